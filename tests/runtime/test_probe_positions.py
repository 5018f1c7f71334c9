"""`probe` on modules of positions: tables, rotations and sines, each sound, and with one thing wrong."""

# A call of a module is Any to the type checker.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import math
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("jaxtyping")

import attention_modules as modules  # type: ignore[import-not-found]  # noqa: E402
from torch import Tensor, nn  # noqa: E402

from msalint.runtime import probe  # noqa: E402
from msalint.runtime.target import TargetError  # noqa: E402


def statuses(target: object, **asked: Any) -> dict[str, str]:
    return {finding.name: finding.status for finding in probe(target, **asked).findings}


def failed(target: object, **asked: Any) -> set[str]:
    return {name for name, status in statuses(target, **asked).items() if status == "fail"}


class Sines(nn.Module):
    """(batch, seq, d_model). `fault`: the sum thrown away, one row for all, two frequencies a pair, no frequencies."""

    table: Tensor

    def __init__(self, d_model: int, max_len: int = 64, fault: str = "none") -> None:
        super().__init__()
        self.fault = fault
        steps = torch.arange(0, d_model, 2).float()
        rate = torch.exp(steps * -(1.0 if fault == "no_frequencies" else math.log(10000.0) / d_model))
        places = torch.arange(max_len)[:, None].float()
        table = torch.zeros(max_len, d_model)
        table[:, 0::2] = torch.sin(places * rate)
        table[:, 1::2] = torch.cos(places * (rate**2 if fault == "two_frequencies" else rate)[: d_model // 2])
        self.register_buffer("table", table)

    def forward(self, x: Tensor) -> Tensor:
        rows = self.table[x.size(1)] if self.fault == "one_row" else self.table[: x.size(1)]
        total = x + rows
        return x * 1.0 if self.fault == "discarded" else total


@pytest.mark.parametrize(
    ("fault", "name"),
    [
        ("discarded", "places apart"),
        ("one_row", "places apart"),
        ("two_frequencies", "sine pairs"),
        ("no_frequencies", "columns"),
    ],
)
def test_each_fault_of_a_table_fails_its_property(fault: str, name: str) -> None:
    assert name in failed(Sines, settings={"fault": fault, "d_model": 24}, seq=6)


def test_a_sound_table_has_what_applies_to_it() -> None:
    found = statuses(Sines, seq=6, settings={"d_model": 24})
    assert {name for name, status in found.items() if status == "fail"} == set()
    assert {found["places apart"], found["sine pairs"], found["columns"]} == {"pass"}


class SinesSeqFirst(Sines):
    """(seq, batch, d_model)"""

    def forward(self, x: Tensor) -> Tensor:
        return x + self.table[: x.size(0), None]


class Learned(nn.Module):
    """Ids, and the length of a prefix that it may be told of and forget."""

    def __init__(self, vocab: int, width: int, counts: bool = True) -> None:
        super().__init__()
        self.words, self.positions, self.counts = nn.Embedding(vocab, width), nn.Embedding(64, width), counts

    def forward(self, input_ids: Tensor | None = None, past_length: int = 0) -> Tensor:
        assert input_ids is not None
        places = torch.arange(input_ids.shape[1], device=input_ids.device) + past_length * self.counts
        return self.words(input_ids) + self.positions(places)


def test_a_prefix_moves_positions_on() -> None:
    assert failed(Learned) == set()
    assert statuses(Learned)["prefix"] == "pass"
    assert failed(Learned, settings={"counts": False}) == {"prefix"}
    assert failed(SinesSeqFirst, settings={"d_model": 24}) == set()


class StartsAtZero(nn.Module):
    """Learned positions that are zero before they are trained."""

    def __init__(self, longest: int, width: int) -> None:
        super().__init__()
        self.positions = nn.Parameter(torch.zeros(1, longest, width))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.positions[:, : x.shape[1]]


def test_learned_positions_may_start_at_zero() -> None:
    assert statuses(StartsAtZero)["places apart"] == "pass"


def rotated(x: Tensor, first: int = 0) -> Tensor:
    """(batch, head, seq, d_k)"""
    places = torch.arange(first, first + x.shape[2], device=x.device).double()
    rate = 10000 ** (-torch.arange(0, x.shape[3], 2, device=x.device).double() / x.shape[3])
    angles = places[:, None] * rate
    even, odd = x[..., 0::2], x[..., 1::2]
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1).flatten(-2)


def rotated_by_the_square(x: Tensor) -> Tensor:
    """(batch, head, seq, d_k); a rotation by the square of the place."""
    angle = torch.arange(x.shape[2], device=x.device).to(x.dtype).square()[:, None] * 0.1
    even, odd = x[..., 0::2], x[..., 1::2]
    cos, sin = angle.cos(), angle.sin()
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1).flatten(-2)


def test_a_rotation_is_relative_or_not() -> None:
    x = torch.randn(2, 3, 5, 8)
    found = statuses(rotated, values={"x": x, "first": 0})
    assert set(found.values()) <= {"pass", "not applicable"}
    assert (found["relative rotation"], found["prefix"]) == ("pass", "pass")
    assert failed(rotated_by_the_square, values={"x": x}) == {"relative rotation", "exact angles"}


class RotaryTables(nn.Module):
    """Tables of cosines (seq_len, dim), of angles in float32 or in the dtype of x."""

    rate: Tensor

    def __init__(self, dim: int, exact: bool = True) -> None:
        super().__init__()
        self.register_buffer("rate", 10000 ** (-torch.arange(0, dim, 2).float() / dim))
        self.exact = exact

    def forward(self, x: Tensor, seq_len: int) -> tuple[Tensor, Tensor]:
        rate = self.rate.float() if self.exact else self.rate.to(x.dtype)
        angles = torch.arange(seq_len, device=x.device).to(rate.dtype)[:, None] * rate
        return angles.cos().to(x.dtype), angles.sin().to(x.dtype)


def test_angles_are_not_made_in_half() -> None:
    assert failed(RotaryTables) == set()
    assert failed(RotaryTables, settings={"exact": False}) == {"exact angles"}


def test_what_has_neither_attention_nor_positions_is_refused() -> None:
    with pytest.raises(TargetError, match="no attention was seen"):
        probe(modules.NoAttention)
