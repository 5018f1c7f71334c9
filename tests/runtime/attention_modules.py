"""One attention module with a fault by choice, and small modules that the runtime tests share."""

# A call of a module is Any to the type checker.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Choice(nn.Module):
    """Self-attention on (batch, seq, d_model). `fault` names the one thing that is wrong with it."""

    def __init__(self, d_model: int, num_heads: int, fault: str = "none", dropout: float = 0.0) -> None:
        super().__init__()
        self.num_heads, self.d_k, self.fault, self.rate = num_heads, d_model // num_heads, fault, dropout
        self.q, self.k, self.v, self.o = (nn.Linear(d_model, d_model) for _ in range(4))
        if fault == "unregistered":
            del self.v
            self.hidden = [nn.Linear(d_model, d_model)]

    def split(self, x: Tensor) -> Tensor:
        B, L, _ = x.shape
        if self.fault == "scrambled_split":
            return x.reshape(B, self.num_heads, L, self.d_k)
        x = x.view(B, L, self.num_heads, self.d_k)
        if self.fault == "heads_not_moved":
            return x
        return x.permute(1, 2, 0, 3) if self.fault == "over_batch" else x.transpose(1, 2)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        B, L, D = x.shape
        v = self.hidden[0].to(x.dtype)(x) if self.fault == "unregistered" else self.v(x)
        k = self.q(x) if self.fault == "projection_mixed_up" else self.k(x)
        q, k, v = self.split(self.q(x)), self.split(k), self.split(v)
        scores = q @ k.transpose(-2, -1) * self.scale(D)
        if mask is not None and self.fault != "mask_ignored":
            fill = -1e-9 if self.fault == "weak_fill" else float("-inf")
            fill = -1e9 if self.fault in ("safe_fill", "none") else fill
            hidden = mask if self.fault == "inverted_mask" else ~mask
            scores = scores.masked_fill(hidden[:, None, None, :] if mask.dim() == 2 else hidden, fill)
        weights = scores.softmax(dim=-2 if self.fault == "softmax_over_queries" else -1)
        weights = F.dropout(weights, self.rate, training=True if self.fault == "dropout_alive" else self.training)
        if self.fault == "weights_transposed":
            weights = weights.transpose(-2, -1)
        context = weights @ v
        if self.fault == "over_batch":
            context = context.permute(2, 0, 1, 3)
        elif self.fault not in ("merged_without_transpose", "heads_not_moved"):
            context = context.transpose(1, 2)
        return self.o(context.reshape(B, L, D))

    def scale(self, width: int) -> float:
        return {
            "unscaled": 1.0,
            "scaled_by_model": width**-0.5,
            "scaled_without_root": 1 / self.d_k,
            "scale_inverted": math.sqrt(self.d_k),
        }.get(self.fault, self.d_k**-0.5)


class Fused(nn.Module):
    """One projection, the fused kernel, causal by itself."""

    def __init__(self, dim: int, num_heads: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.num_heads, self.dropout = num_heads, dropout
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).unflatten(-1, (3, self.num_heads, -1)).permute(2, 0, 3, 1, 4)
        rate = self.dropout if self.training else 0.0
        out = F.scaled_dot_product_attention(q, k, v, dropout_p=rate, is_causal=True)
        return self.proj(out.transpose(1, 2).flatten(2))


class SeqFirst(nn.Module):
    """Attends over the first axis, as nn.MultiheadAttention does by default, and does not say so."""

    def __init__(self, d_model: int, num_heads: int) -> None:
        super().__init__()
        self.inner = nn.MultiheadAttention(d_model, num_heads)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x, x, x, need_weights=False)[0]


class SeqFirstFedBatchFirst(SeqFirst):
    """The same, with a shape that says batch first."""

    def forward(self, x: Tensor) -> Tensor:
        batch, seq, width = x.shape
        return self.inner(x, x, x, need_weights=False)[0].view(batch, seq, width)


class Commented(nn.Module):
    """Shape comments, one of them wrong."""

    def __init__(self, d_model: int, num_heads: int) -> None:
        super().__init__()
        self.h, self.q = num_heads, nn.Linear(d_model, d_model)

    def forward(self, x: Tensor) -> Tensor:
        B, L, D = x.shape  # (B, L, D)
        q = self.q(x).view(B, L, self.h, -1)  # (B, L, H, d)
        q = q.transpose(1, 2)  # (B, L, H, d)
        w = (q @ q.mT / (D // self.h) ** 0.5).softmax(-1)  # (B, H, L, L)
        return (w @ q).transpose(1, 2).reshape(B, L, D)


class NoAttention(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.inner = nn.Linear(dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x)


class Raises(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.inner = nn.Linear(dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        y = self.inner(x)
        return y.transpose(1, 2).view(-1)


class CantBeBuilt(nn.Module):
    def __init__(self, flavour: object) -> None:
        super().__init__()

    def forward(self, x: Tensor) -> Tensor:
        return x


class OnlyOnGpu(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.inner = nn.Linear(dim, dim).cuda()

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x)


def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """(batch, head, seq, d_k)"""
    return torch.softmax(q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5, dim=-1) @ v
