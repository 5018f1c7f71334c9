"""Which axis is attended over, by what the code calls it and by its size."""

from __future__ import annotations

from msalint.ops.attending import role_of_axis
from msalint.shapes.axes import Axis, fresh
from msalint.shapes.size import Size, Symbol
from msalint.shapes.vocabulary import BATCH, SEQ

SAMPLES = Size.of(Symbol("batch_size"))


def axis(*names: str) -> Axis:
    """An axis as long as the batch, under these names."""
    return (fresh(SAMPLES, "new", *names),)


def test_an_axis_of_the_batch_s_size_is_the_batch() -> None:
    assert role_of_axis(axis(), ()) == (BATCH, True)
    assert role_of_axis(axis("batch"), ()) == (BATCH, True)


def test_what_is_called_a_sequence_is_one_whatever_its_length_equals() -> None:
    assert role_of_axis(axis("slen"), ()) == (SEQ, False)


def test_a_name_of_the_batch_outweighs_one_of_a_sequence() -> None:
    assert role_of_axis(axis("slen", "batch"), ()) == (BATCH, True)
