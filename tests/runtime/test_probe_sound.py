"""`probe` raises no alarm over modules that are sound in a way of their own: caches, noise, global layers, windows."""

# A call of a module is Any to the type checker.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("jaxtyping")

import attention_modules as modules  # type: ignore[import-not-found]  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch import Tensor, nn  # noqa: E402

from msalint.runtime import probe  # noqa: E402
from msalint.runtime.probing import Report  # noqa: E402


def failed(report: Report) -> dict[str, str]:
    return {finding.name: finding.rule for finding in report.failures}


def finding(report: Report, name: str) -> tuple[str, str]:
    return next((one.status, one.reason) for one in report.findings if one.name == name)


class Streaming(nn.Module):
    """Causal; keeps keys and values on itself, and a count of its tokens. `rows` is how many keys its mask knows of."""

    def __init__(self, d_model: int, num_heads: int, rows: str = "all", kept: bool = True) -> None:
        super().__init__()
        self.qkv, self.heads, self.rows, self.kept = nn.Linear(d_model, 3 * d_model), num_heads, rows, kept
        self.cache: list[Tensor] = []
        self.seen = 0

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        if self.kept:
            if self.cache:
                k, v = (torch.cat([old, new], dim=2) for old, new in zip(self.cache, (k, v), strict=True))
            self.cache = [k.detach(), v.detach()]
            self.seen += x.shape[1]
        new, total = q.shape[2], k.shape[2]
        allowed = torch.ones(total, total, dtype=torch.bool, device=x.device).tril()
        allowed = allowed[:new, :new] if self.rows == "new" else allowed[total - new :]
        return F.scaled_dot_product_attention(q, k, v, attn_mask=allowed).transpose(1, 2).flatten(2)


def test_a_cache_kept_on_the_module_is_no_fault() -> None:
    module = Streaming(24, 3)
    assert failed(probe(module)) == {}
    assert module.cache == []
    assert module.seen == 0


class Variational(nn.Module):
    def __init__(self, width: int, rate: float = 0.0) -> None:
        super().__init__()
        self.qkv, self.rate = nn.Linear(width, 3 * width), rate

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).chunk(3, -1)
        out = ((q @ k.mT) * q.shape[-1] ** -0.5).softmax(-1) @ v
        return F.dropout(out + torch.randn_like(out), self.rate)  # msalint: ignore[MSA601]


def test_noise_is_told_from_dropout() -> None:
    status, reason = finding(probe(Variational), "deterministic eval")
    assert status == "not applicable"
    assert "randn_like" in reason
    assert failed(probe(Variational, settings={"rate": 0.2}))["deterministic eval"] == "MSA601"


class StepsWithDict(nn.Module):
    """Fills the cache it is handed, and hides no future: its last token alone sees the same in steps."""

    table: Tensor

    def __init__(self, width: int, placed: bool = False) -> None:
        super().__init__()
        self.qkv, self.placed = nn.Linear(width, 3 * width), placed
        self.register_buffer("table", torch.randn(1, 64, width))

    def forward(self, x: Tensor, cache: dict[str, Tensor]) -> Tensor:
        q, k, v = self.qkv(x + self.table[:, : x.shape[1]] if self.placed else x).chunk(3, -1)
        if "k" in cache:
            k, v = torch.cat([cache["k"], k], dim=1), torch.cat([cache["v"], v], dim=1)
        cache["k"], cache["v"] = k, v
        return (q @ k.mT * q.shape[-1] ** -0.5).softmax(-1) @ v


def test_steps_without_a_hidden_future_are_judged_by_the_last_token() -> None:
    values = {"x": torch.randn(2, 5, 12), "cache": {}}
    sound = probe(StepsWithDict(12), values=values)
    assert failed(sound) == {}
    assert finding(sound, "cached decoding")[0] == "pass"
    assert set(failed(probe(StepsWithDict(12, placed=True), values=values))) == {"cached decoding"}


OUTSIDE = nn.Linear(6, 18)


def with_layers_from_outside(x: Tensor) -> Tensor:
    q, k, v = OUTSIDE(x).chunk(3, -1)
    return ((q @ k.mT) * q.shape[-1] ** -0.5).softmax(-1) @ v


def without_scale(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """(batch, head, seq, d_k)"""
    return torch.softmax(q @ k.mT, dim=-1) @ v


def weights_of(scores: Tensor) -> Tensor:
    return torch.softmax(scores.masked_fill(torch.ones_like(scores).triu(1).bool(), -1e9), dim=-1)


def test_functions_have_no_layers_and_no_scale_of_their_own() -> None:
    assert failed(probe(with_layers_from_outside, values={"x": torch.randn(2, 5, 6)})) == {}
    assert failed(probe(without_scale)) == {}
    assert failed(probe(weights_of, values={"scores": torch.randn(2, 3, 5, 5)})) == {}


class Windows(nn.Module):
    """Attends inside of windows of a fixed size, or adds a bias of a fixed length."""

    def __init__(self, width: int, size: int = 2) -> None:
        super().__init__()
        self.qkv, self.size = nn.Linear(width, 3 * width), size

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).unflatten(1, (-1, self.size)).chunk(3, -1)
        return (((q @ k.mT) * q.shape[-1] ** -0.5).softmax(-1) @ v).flatten(1, 2)


def test_a_window_may_ask_for_a_length() -> None:
    assert failed(probe(Windows, seq=6)) == {}


class Gated(nn.Module):
    """Starts as the identity: its gate is zero. `pool` is a part that another method works with."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.qkv, self.gate = nn.Linear(width, 3 * width), nn.Parameter(torch.zeros(1))
        self.pool = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).chunk(3, -1)
        return x + self.gate * (((q @ k.mT) * q.shape[-1] ** -0.5).softmax(-1) @ v)

    def pooled(self, x: Tensor) -> Tensor:
        return self.pool(self(x).mean(1))


def test_a_closed_gate_and_a_part_of_another_method_are_no_faults() -> None:
    assert failed(probe(Gated)) == {}


class NormedAfterwards(nn.Module):
    """No projection after its attention: what the next layer reads is normalised over all heads."""

    def __init__(self, d_model: int, num_heads: int) -> None:
        super().__init__()
        self.qkv, self.heads = nn.Linear(d_model, 3 * d_model), num_heads
        self.norm, self.out = nn.LayerNorm(d_model), nn.Linear(d_model, d_model)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        context = (((q @ k.mT) * q.shape[-1] ** -0.5).softmax(-1) @ v).transpose(1, 2).flatten(2)
        return self.out(self.norm(x + context))


def test_heads_meet_in_a_norm_without_a_leak() -> None:
    assert failed(probe(NormedAfterwards)) == {}


class LastToken(nn.Module):
    """Reads the last token of a batch padded on the left; its positions count real tokens, or places."""

    def __init__(self, vocab: int, width: int, counted: bool = True) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(vocab, width), nn.Embedding(64, width)
        self.qkv, self.counted = nn.Linear(width, 3 * width), counted

    def forward(self, ids: Tensor, attention_mask: Tensor) -> Tensor:
        steps = torch.arange(ids.shape[1], device=ids.device).expand(ids.shape)
        if self.counted:
            steps = (attention_mask.long().cumsum(-1) - 1).clamp(min=0)
        q, k, v = self.qkv(self.words(ids) + self.places(steps)).chunk(3, -1)
        scores = (q @ k.mT * q.shape[-1] ** -0.5).masked_fill(~attention_mask.bool()[:, None], -1e9)
        return (scores.softmax(-1) @ v)[:, -1]


def test_padding_at_the_beginning_moves_no_position() -> None:
    assert failed(probe(LastToken)) == {}
    assert set(failed(probe(LastToken, settings={"counted": False}))) == {"left padding"}


class Documented(nn.Module):
    """Its parameter's name says one thing, its docstring another."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)

    def forward(self, x: Tensor, padding_mask: Tensor) -> Tensor:
        """padding_mask: (batch, seq) bool, True = token."""
        q, k, v = self.qkv(x).chunk(3, -1)
        scores = (q @ k.mT * q.shape[-1] ** -0.5).masked_fill(~padding_mask[:, None], -1e9)
        return scores.softmax(-1) @ v


def test_a_docstring_says_more_than_a_name() -> None:
    assert failed(probe(Documented)) == {}


def test_overflow_that_raises_is_said_but_no_failure() -> None:
    status, reason = finding(probe(modules.Choice), "float16")
    assert status == "not applicable"
    assert "overflow" in reason


class TinyFloor(nn.Module):
    """Divides by a floor that is nothing in half."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """mask: (batch, key), True = keep."""
        q, k, v = self.qkv(x).chunk(3, -1)
        weights = ((q @ k.mT) * q.shape[-1] ** -0.5).softmax(-1)
        if mask is not None:
            weights = weights * mask[:, None]
        return weights / (weights.sum(-1, keepdim=True) * 1e-9).clamp(min=1e-9) * 1e-9 @ v


def test_what_is_not_finite_in_half_is_told() -> None:
    assert failed(probe(TinyFloor)).get("float16") == "MSA303"


@pytest.mark.parametrize("cls", [nn.Transformer, nn.TransformerDecoderLayer])
def test_a_target_and_its_source_are_two_sequences(cls: type[nn.Module]) -> None:
    sizes = {"d_model": 24, "nhead": 3, "dim_feedforward": 32}
    layers = {"num_encoder_layers": 1, "num_decoder_layers": 1} if cls is nn.Transformer else {}
    report = probe(cls, settings={**sizes, **layers})
    assert failed(report) == {}
    assert finding(report, "causality")[0] == "pass"
