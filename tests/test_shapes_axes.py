"""Layouts follow memory through splits, cuts and picks; regions and cells follow what elementwise functions do."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from msalint.shapes.axes import (
    Atom,
    Axis,
    Ident,
    Layout,
    ShapeVar,
    axis_name,
    axis_size,
    fresh,
    fresh_axis,
    shape_text,
    split_atom,
)
from msalint.shapes.size import Size, Symbol
from msalint.values import Cells, Region

B, L, H, D = (fresh(Symbol(name)) for name in "B L H d".split())


def test_neighbours_in_memory_follow_each_other() -> None:
    layout = Layout.dense([(B,), (L,), (H,), (D,)])
    assert layout.follows(B.ident, L.ident) and layout.follows(H.ident, D.ident)
    assert not layout.follows(L.ident, B.ident) and not layout.follows(B.ident, H.ident)


def test_parts_take_the_place_of_the_whole_and_its_gap() -> None:
    whole = fresh(Size.of(6))
    outer, inner = split_atom(whole, [Size.of(2), Size.of(3)])
    layout = Layout((B.ident, whole.ident), frozenset({whole.ident}))
    parted = layout.splits({whole.ident: (outer.ident, inner.ident)})
    assert parted.order == (B.ident, outer.ident, inner.ident) and parted.gaps == {inner.ident}
    assert parted.follows(outer.ident, inner.ident) and outer.ident.parent is whole.ident


def test_picking_one_position_leaves_a_gap() -> None:
    layout = Layout.dense([(B,), (L,), (H,)]).without(L.ident)
    assert layout.order == (B.ident, H.ident) and not layout.follows(B.ident, H.ident)
    assert Layout.dense([(B,), (L,)]).without(B.ident) == Layout((L.ident,))


def test_a_cut_axis_parts_what_lay_before_it_only() -> None:
    part = Ident("place")
    layout = Layout.dense([(B,), (L,), (H,)]).cut(L.ident, part)
    assert not layout.follows(B.ident, part) and layout.follows(part, H.ident)
    stepped = Layout.dense([(B,), (L,), (H,)]).cut(L.ident, part, step=True)
    assert not stepped.follows(part, H.ident)


def test_a_cut_that_may_be_the_whole_leaves_a_doubt_and_no_gap() -> None:
    part = Ident("place")
    layout = Layout.dense([(B,), (L,), (H,)]).cut(L.ident, part, whole=True)
    assert layout.follows(B.ident, part) and layout.doubts == {B.ident} and layout != Layout(layout.order)
    assert layout.closed() == Layout((B.ident, part, H.ident))
    assert layout.without(part).gaps == {B.ident} and not layout.without(part).doubts


def test_leading_axes_unfold_in_place() -> None:
    lead = ShapeVar("x")
    layout = Layout.dense([(D,)], lead).expand_lead(lead, [B.ident, L.ident])
    assert layout == Layout.dense([(B,), (L,), (D,)])


shapes = st.lists(st.integers(2, 4), min_size=1, max_size=4)


@given(shapes, st.data())
def test_cuts_and_picks_agree_with_numpy_strides(shape: list[int], data: st.DataObject) -> None:
    """After any slices and indices of a contiguous array, a gap is told exactly where strides don't meet."""
    array = np.zeros(shape, dtype=np.int8)
    axes: list[Atom] = [fresh(Size.of(size)) for size in shape]
    layout = Layout.dense([(atom,) for atom in axes])
    for place in reversed(range(len(shape))):
        act = data.draw(st.sampled_from(["keep", "pick", "cut"]))
        if act == "pick":
            array = array[(slice(None),) * place + (0,)]
            layout = layout.without(axes[place].ident)
            del axes[place]
        elif act == "cut" and shape[place] > 2:
            array = array[(slice(None),) * place + (slice(0, shape[place] - 1),)]
            part = fresh(Size.of(shape[place] - 1))
            layout = layout.cut(axes[place].ident, part.ident)
            axes[place] = part
    for (outer, before), (inner, after) in zip(zip(axes, array.strides), list(zip(axes, array.strides))[1:]):
        meets = before == after * (inner.size.constant or 0)
        assert layout.follows(outer.ident, inner.ident) == meets


def test_axes_are_written_as_people_write_them() -> None:
    axes: list[Axis] = [(B,), (H, D), (), (fresh(Symbol("w", "d_model // h")),)]
    assert shape_text(axes) == "(B, H*d, 1, d_model // h)"
    assert shape_text([(D,)], ShapeVar()) == "(..., d)" and shape_text([(D,)]) == "(d,)" and shape_text([]) == "()"
    assert axis_name((H, fresh(Symbol("w", "e // h")))) == "H*(e // h)"
    assert axis_size((H, D)) == H.size * D.size and axis_size(()).is_one and fresh_axis(1) == ()


def test_a_constant_axis_goes_by_the_name_it_was_given() -> None:
    assert axis_name((fresh(7, "new", "window"),)) == "window" and axis_name((fresh(7),)) == "7"


# --- regions and cells -------------------------------------------------------------------------------------------

N = 5
triangles = st.builds(
    lambda side, offset, meaning: Region(frozenset({"causal"}), meaning, side, offset),
    st.sampled_from(["upper", "lower"]),
    st.integers(-2, 2),
    st.sampled_from([None, "keep", "hide"]),
)


def drawn(region: Region) -> np.ndarray:
    """Where a triangle holds, over (query, key)."""
    assert region.offset is not None
    distance = np.arange(N)[None] - np.arange(N)[:, None]
    return distance >= region.offset if region.side == "upper" else distance <= region.offset


@given(triangles)
def test_a_complement_holds_exactly_where_the_region_does_not(region: Region) -> None:
    other = region.complement()
    assert (drawn(other) == ~drawn(region)).all()
    assert other.complement() == region
    assert {region.meaning, other.meaning} in ({"keep", "hide"}, {None})


@given(triangles)
def test_a_transposed_triangle_is_the_transpose(region: Region) -> None:
    assert (drawn(region.transposed()) == drawn(region).T).all()


@given(triangles, st.sampled_from(["inside", "outside"]))
def test_every_row_is_fed_where_it_is_said_to_be(region: Region, side: str) -> None:
    if region.feeds(side):
        cells = drawn(region) if side == "inside" else ~drawn(region)
        assert cells.any(axis=1).all()


@given(triangles, st.sampled_from([0.0, 1.0, -1e9, -math.inf]), st.sampled_from([0.0, 1.0, -1e9]))
def test_where_a_predicate_holds_is_where_numpy_finds_it(region: Region, inside: float, outside: float) -> None:
    values = np.where(drawn(region), inside, outside)
    for holds in (bool, lambda x: x <= -50, lambda x: x == 0, lambda x: not x):
        found = Cells(inside, outside, region).where(holds)
        expected = np.vectorize(holds, otypes=[bool])(values)
        if found is None:
            assert expected.all() or not expected.any()
        else:
            assert (drawn(found) == expected).all()


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (operator.neg, (-1.0, 0.0)),
        (lambda x: x * -1e9, (-1e9, 0.0)),
        (lambda x: 1 - x, (0.0, 1.0)),
        (lambda x: x * -math.inf, (-math.inf, math.nan)),
        (math.log, (0.0, None)),
    ],
)
def test_a_function_maps_both_values(function: Callable[[float], float], expected: tuple[float, float | None]) -> None:
    mapped = Cells(1.0, 0.0, Region(side="upper", offset=1)).map(function)
    for value, wanted in zip((mapped.inside, mapped.outside), expected):
        assert value == wanted or (repr(value), repr(wanted)) == ("nan", "nan")
