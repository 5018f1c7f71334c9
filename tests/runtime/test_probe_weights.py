"""`probe` on weights, gradients and values: what is registered, backwards by hand, large inputs, caches in parts."""

# A call of a module is Any to the type checker.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("jaxtyping")

from test_probe_sound import Streaming  # type: ignore[import-not-found]  # noqa: E402
from torch import Tensor, nn  # noqa: E402

from msalint.runtime import MultiHeadSelfAttention, probe  # noqa: E402


def failed(target: object, **asked: Any) -> dict[str, str]:
    return {finding.name: finding.rule for finding in probe(target, **asked).failures}


def status(target: object, name: str, **asked: Any) -> str:
    return next(finding.status for finding in probe(target, **asked).findings if finding.name == name)


NEW = (
    "backward",
    "cached parts",
    "dtype argument",
    "large values",
    "marked tokens",
    "memory lengths",
    "results used",
    "weights registered",
    "weights set",
    "whole weights",
)


@pytest.mark.parametrize(
    ("target", "asked"),
    [
        (nn.MultiheadAttention(24, 3, batch_first=True), {"call": "m(x, x, x)[0]"}),
        (nn.TransformerEncoderLayer(24, 3, 48, batch_first=True), {}),
        (nn.TransformerEncoderLayer, {"settings": {"d_model": 24, "nhead": 3}}),
        (MultiHeadSelfAttention, {}),
    ],
)
def test_stock_modules_have_none_of_these_faults(target: object, asked: dict[str, Any]) -> None:
    assert not set(failed(target, **asked)) & set(NEW)


class Odd(nn.Module):
    """Self-attention with one thing about it chosen."""

    def __init__(self, width: int, kind: str = "plain", dtype: Any = torch.float32) -> None:
        super().__init__()
        self.kind = kind
        self.qkv = nn.Linear(width, 3 * width, dtype=dtype)
        self.mix = nn.Parameter(torch.randn(width, width, dtype=dtype) / width**0.5)
        token = nn.Parameter(torch.empty(1, 1, width) if kind == "empty" else torch.randn(1, 1, width))
        self.token = token.to(dtype) if kind == "moved" else nn.Parameter(token.detach().to(dtype))
        self.register_buffer("bias", torch.zeros(1), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        letters = "dd,bnd->bnd" if self.kind == "diagonal" else "dk,bnk->bnd"
        q, k, v = self.qkv(torch.einsum(letters, self.mix, x) + self.token).chunk(3, -1)
        scores = q @ k.mT * q.shape[-1] ** -0.5
        if self.kind == "promoted":
            scores = scores + self.bias
        if self.kind == "no_maximum":
            weights = scores.exp() / scores.exp().sum(-1, keepdim=True)
        else:
            weights = scores.softmax(-1)
        if self.kind == "discarded":
            weights.masked_fill(weights < 0, 0.0)
        return weights @ v


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("moved", "weights registered"),
        ("empty", "weights set"),
        ("promoted", "dtype argument"),
        ("diagonal", "whole weights"),
        ("no_maximum", "large values"),
        ("discarded", "results used"),
    ],
)
def test_each_fault_fails_its_property(kind: str, name: str) -> None:
    assert name in failed(Odd, settings={"kind": kind})


def test_without_a_fault_each_passes() -> None:
    found = {finding.name: finding.status for finding in probe(Odd).findings}
    assert "fail" not in found.values()
    names = ("weights set", "weights registered", "dtype argument", "whole weights", "large values", "results used")
    assert {found[name] for name in names} == {"pass"}


def test_weights_of_the_last_run_are_no_lost_parameter() -> None:
    class Keeping(Odd):
        def forward(self, x: Tensor) -> Tensor:
            self.last = super().forward(x)
            return self.last

    module = Keeping(12)
    module(torch.randn(2, 5, 12))
    assert set(failed(module)) == {"graph let go"}


class ByHand(torch.autograd.Function):  # type: ignore[name-defined,misc]
    @staticmethod
    def forward(ctx: Any, scores: Tensor, factor: float) -> Tensor:
        weights = scores.softmax(-1)
        ctx.save_for_backward(weights)
        ctx.factor = factor
        return weights

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (weights,) = ctx.saved_tensors
        inner = (gradients[0] * weights).sum(-1, keepdim=True)
        return weights * (gradients[0] - ctx.factor * inner), None


class HandWritten(nn.Module):
    def __init__(self, width: int, factor: float = 1.0) -> None:
        super().__init__()
        self.qkv, self.factor = nn.Linear(width, 3 * width), factor

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).chunk(3, -1)
        weights: Tensor = ByHand.apply(q @ k.mT * q.shape[-1] ** -0.5, self.factor)
        return weights @ v


def test_a_backward_by_hand_is_the_gradient_or_not() -> None:
    assert status(HandWritten, "backward") == "pass"
    assert "backward" in failed(HandWritten, settings={"factor": 0.5})


def test_a_cache_on_the_module_takes_one_token_and_several() -> None:
    assert status(Streaming, "cached decoding") == "pass"
    assert status(Streaming, "cached parts") == "pass"
    found = failed(Streaming, settings={"rows": "new"})
    assert "cached parts" in found
    assert status(Streaming, "cached decoding", settings={"kept": False}) == "not applicable"


class Marked(nn.Module):
    """Ids beside the tokens mark padding with 0; scores are hidden, or only multiplied."""

    def __init__(self, width: int, hides: bool = True) -> None:
        super().__init__()
        self.qkv, self.hides = nn.Linear(width, 3 * width), hides

    def forward(self, x: Tensor, item_ids: Tensor) -> Tensor:
        q, k, v = self.qkv(x).chunk(3, -1)
        keep = (item_ids != 0)[:, None]
        scores = q @ k.mT * q.shape[-1] ** -0.5
        scores = scores.masked_fill(~keep, -1e4) if self.hides else scores * keep
        return scores.softmax(-1) @ v


class Reader(nn.Module):
    """Reads a memory up to its lengths, or with a mask that is added as it is."""

    def __init__(self, width: int, hides: bool = True) -> None:
        super().__init__()
        self.q, self.kv, self.hides = nn.Linear(width, width), nn.Linear(width, 2 * width), hides

    def forward(self, x: Tensor, memory: Tensor, memory_lengths: Tensor) -> Tensor:
        k, v = self.kv(memory).chunk(2, -1)
        keep = (torch.arange(memory.shape[1], device=x.device) < memory_lengths[:, None])[:, None]
        scores = self.q(x) @ k.mT * k.shape[-1] ** -0.5
        scores = scores.masked_fill(~keep, -1e4) if self.hides else scores + keep  # msalint: ignore[MSA312]
        return scores.softmax(-1) @ v


def test_marked_tokens_and_the_rest_of_a_memory_are_hidden_or_not() -> None:
    assert status(Marked, "marked tokens") == "pass"
    assert failed(Marked, settings={"hides": False})["marked tokens"] == "MSA304"
    assert status(Reader, "memory lengths") == "pass"
    assert failed(Reader, settings={"hides": False})["memory lengths"] == "MSA304"


class AddedInHalf(nn.Module):
    """The lowest number of the dtype is added to scores, or put in their place."""

    def __init__(self, width: int, added: bool = True) -> None:
        super().__init__()
        self.qkv, self.added = nn.Linear(width, 3 * width), added

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """mask: (batch, key), True = keep."""
        q, k, v = self.qkv(x).chunk(3, -1)
        scores = q @ k.mT * q.shape[-1] ** -0.5
        lowest = torch.finfo(scores.dtype).min
        if self.added:
            scores = scores + torch.zeros_like(scores).masked_fill(~mask[:, None], lowest)
        else:
            scores = scores.masked_fill(~mask[:, None], lowest)
        return scores.softmax(-1) @ v


def test_a_mask_that_overflows_when_it_is_added_is_told() -> None:
    assert failed(AddedInHalf)["float16"] == "MSA303"
    assert failed(AddedInHalf, settings={"added": False}) == {}


class Encoder(nn.Module):
    """Has no forward; its first method of tensors is what it is for. `parts` says nothing of what it wants."""

    def __init__(self, width: int, parts) -> None:  # type: ignore[no-untyped-def]
        super().__init__()
        self.qkv, self.head = nn.Linear(width, 3 * width), nn.Linear(width, parts)

    def encode(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).chunk(3, -1)
        return self.head((q @ k.mT).softmax(-1) @ v)  # msalint: ignore[MSA201]

    def training_step(self, batch: Tensor) -> Tensor:
        return self.encode(batch).sum()


def test_a_module_without_forward_is_run_by_its_first_method() -> None:
    assert failed(Encoder) == {"scale": "MSA201"}
