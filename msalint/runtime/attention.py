"""The reference: multi-head self-attention with every tensor bound to (batch, head, seq, d_k)."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from msalint.runtime.checked import shape_checked

__all__ = ["KeyValueCache", "MultiHeadSelfAttention"]


@shape_checked
class KeyValueCache:
    """The keys and values of the tokens seen so far; rotary positions are already in the keys."""

    keys: Float[Tensor, "batch head past d_k"] | None = None
    values: Float[Tensor, "batch head past d_k"] | None = None

    @property
    def length(self) -> int:
        """How many tokens were seen."""
        return 0 if self.keys is None else self.keys.shape[2]

    def extend(
        self, keys: Float[Tensor, "batch head seq d_k"], values: Float[Tensor, "batch head seq d_k"]
    ) -> tuple[Float[Tensor, "batch head keys d_k"], Float[Tensor, "batch head keys d_k"]]:
        """Append the keys and values of new tokens, on the seq axis, and give back all of them."""
        if self.keys is not None and self.values is not None:
            keys, values = torch.cat([self.keys, keys], dim=2), torch.cat([self.values, values], dim=2)
        self.keys, self.values = keys, values
        return keys, values


@shape_checked(dims="d_model = num_heads * d_k, head = num_heads")
class MultiHeadSelfAttention(nn.Module):
    """softmax(q kᵀ / sqrt(d_k)) v in `num_heads` heads of width d_k = d_model / num_heads, then an output projection.

    Projections start from Xavier weights and zero bias. `dropout` falls on the weights, in training only. With `rotary`
    the queries and keys are turned by their positions. Raises ValueError if d_model is no multiple of num_heads, or if
    d_k is odd with `rotary`.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        *,
        dropout: float = 0.0,
        bias: bool = True,
        rotary: bool = False,
        rotary_base: float = 10_000.0,
    ) -> None:
        super().__init__()
        if num_heads < 1 or d_model % num_heads:
            raise ValueError(f"d_model = {d_model} can't be split into num_heads = {num_heads} heads of one width")
        self.d_model, self.num_heads, self.d_k = d_model, num_heads, d_model // num_heads
        if rotary and self.d_k % 2:
            raise ValueError(f"rotary positions turn pairs, so d_k = {self.d_k} has to be even")
        self.rotary, self.rotary_base = rotary, rotary_base
        self.query = nn.Linear(d_model, d_model, bias=bias)
        self.key = nn.Linear(d_model, d_model, bias=bias)
        self.value = nn.Linear(d_model, d_model, bias=bias)
        self.output = nn.Linear(d_model, d_model, bias=bias)
        self.weights_dropout = nn.Dropout(dropout)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        for projection in (self.query, self.key, self.value, self.output):
            nn.init.xavier_uniform_(projection.weight)
            if projection.bias is not None:
                nn.init.zeros_(projection.bias)

    def forward(
        self,
        x: Float[Tensor, "batch seq d_model"],
        *,
        keep: Bool[Tensor, "#batch #head #seq keys"] | Bool[Tensor, "batch keys"] | None = None,
        hide: Bool[Tensor, "#batch #head #seq keys"] | Bool[Tensor, "batch keys"] | None = None,
        causal: bool = False,
        cache: KeyValueCache | None = None,
    ) -> Float[Tensor, "batch seq d_model"]:
        """Attend from each token to the keys it may see. See `forward_with_weights` for the masks and the cache."""
        out, _ = self.forward_with_weights(x, keep=keep, hide=hide, causal=causal, cache=cache)
        return out

    def forward_with_weights(
        self,
        x: Float[Tensor, "batch seq d_model"],
        *,
        keep: Bool[Tensor, "#batch #head #seq keys"] | Bool[Tensor, "batch keys"] | None = None,
        hide: Bool[Tensor, "#batch #head #seq keys"] | Bool[Tensor, "batch keys"] | None = None,
        causal: bool = False,
        cache: KeyValueCache | None = None,
    ) -> tuple[Float[Tensor, "batch seq d_model"], Float[Tensor, "batch head seq keys"]]:
        """The output, and the weights before dropout.

        `keep` is True where a query may see a key, `hide` is True where it may not; given both, a key must pass both.
        Either is (batch, keys) for padding or broadcasts to (batch, head, seq, keys). A query that may see no key gets
        weights of zero. With a `cache` the keys are those of the cache followed by those of `x`, and `causal` counts
        positions from the cache's first token.
        """
        past = 0 if cache is None else cache.length
        q: Float[Tensor, "batch head seq d_k"] = self.split_heads(self.query(x))
        k: Float[Tensor, "batch head seq d_k"] = self.split_heads(self.key(x))
        v: Float[Tensor, "batch head seq d_k"] = self.split_heads(self.value(x))
        if self.rotary:
            q, k = self.rotate(q, past), self.rotate(k, past)
        k_all: Float[Tensor, "batch head keys d_k"]
        v_all: Float[Tensor, "batch head keys d_k"]
        k_all, v_all = (k, v) if cache is None else cache.extend(k, v)
        scores: Float[Tensor, "batch head seq keys"] = q @ k_all.transpose(-2, -1) * self.d_k**-0.5
        hidden = self.hidden_keys(scores, keep, hide, causal, past)
        weights: Float[Tensor, "batch head seq keys"] = self.normalise(scores, hidden)
        context: Float[Tensor, "batch head seq d_k"] = self.weights_dropout(weights) @ v_all
        out: Float[Tensor, "batch seq d_model"] = self.output(self.merge_heads(context))
        return out, weights

    def split_heads(self, x: Float[Tensor, "batch seq d_model"]) -> Float[Tensor, "batch head seq d_k"]:
        """Take each token's width apart into heads, then bring the heads before the tokens."""
        return x.view(*x.shape[:2], self.num_heads, self.d_k).transpose(1, 2)

    def merge_heads(self, context: Float[Tensor, "batch head seq d_k"]) -> Float[Tensor, "batch seq d_model"]:
        """The way back from `split_heads`."""
        return context.transpose(1, 2).flatten(-2)

    def hidden_keys(
        self,
        scores: Float[Tensor, "batch head seq keys"],
        keep: Bool[Tensor, "*kept"] | None,
        hide: Bool[Tensor, "*hid"] | None,
        causal: bool,
        past: int,
    ) -> Bool[Tensor, "#batch #head #seq #keys"] | None:
        """True where a query may not see a key, all masks together; None where every query sees every key."""
        masks = [_over_heads(mask) for mask in (None if keep is None else ~keep, hide) if mask is not None]
        if causal:
            seq, keys = scores.shape[-2:]
            query_position = torch.arange(past, past + seq, device=scores.device)
            key_position = torch.arange(keys, device=scores.device)
            masks.append((key_position > query_position[:, None])[None, None])
        if not masks:
            return None
        hidden = masks[0]
        for mask in masks[1:]:
            hidden = hidden | mask
        return hidden

    def normalise(
        self,
        scores: Float[Tensor, "batch head seq keys"],
        hidden: Bool[Tensor, "#batch #head #seq #keys"] | None,
    ) -> Float[Tensor, "batch head seq keys"]:
        """Softmax over the keys, in float32 for half types; hidden keys get weights of exactly zero."""
        wide = torch.promote_types(scores.dtype, torch.float32)
        if hidden is None:
            return scores.softmax(dim=-1, dtype=wide).to(scores.dtype)
        low = scores.masked_fill(hidden, torch.finfo(scores.dtype).min)
        return low.softmax(dim=-1, dtype=wide).masked_fill(hidden, 0.0).to(scores.dtype)

    def rotate(self, x: Float[Tensor, "batch head seq d_k"], past: int) -> Float[Tensor, "batch head seq d_k"]:
        """Turn pair i of the token at position p by p / base ** (2 i / d_k), pairs taken from the two halves of d_k."""
        half = self.d_k // 2
        wide = torch.promote_types(x.dtype, torch.float32)
        exponent = torch.arange(half, device=x.device, dtype=wide) / half
        position = torch.arange(past, past + x.shape[2], device=x.device, dtype=wide)
        angle: Float[Tensor, "seq half"] = position[:, None] * self.rotary_base**-exponent
        cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        first, second = x[..., :half], x[..., half:]
        return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


def _over_heads(mask: Tensor) -> Tensor:
    """(batch, keys) to (batch, 1, 1, keys); a mask of four axes stays."""
    return mask[:, None, None, :] if mask.dim() == 2 else mask
