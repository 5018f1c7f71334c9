"""A reshape keeps, splits and merges axes as numpy does: every element is labelled by where it came from."""

from __future__ import annotations

from itertools import product as combinations
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

from msalint.shapes.axes import Atom, Axis, Ident, Layout
from msalint.shapes.relations import Relations
from msalint.shapes.reshape import Reshaped, first_broken_merge, reshape
from msalint.shapes.size import Size, Symbol

extents = st.lists(st.sampled_from([1, 2, 3, 4, 5, 6]), min_size=1, max_size=4)


@st.composite
def targets(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int | None, ...]]:
    """A shape, and another of as many elements, one entry of which may be -1 (None)."""
    shape = tuple(draw(extents))
    primes = [f for size in shape for f in ((2, size // 2) if size in (4, 6) else (size,))]
    factors = draw(st.permutations(primes))
    target: list[int | None] = []
    for factor in factors:
        last = target[-1] if target else None
        joined: bool = draw(st.booleans())
        if last is not None and joined:
            target[-1] = last * factor
        else:
            target.append(factor)
    wildcard: bool = draw(st.booleans())
    if target and wildcard:
        target[draw(st.integers(0, len(target) - 1))] = None
    return shape, tuple(target)


def axes_of(shape: tuple[int, ...]) -> tuple[Axis, ...]:
    return tuple(() if size == 1 else (Atom(Size.of(size), Ident("place")),) for size in shape)


def leaves(axes: tuple[Axis, ...], outcome: Reshaped) -> list[tuple[Atom, list[Ident]]]:
    """The source's atoms with the parts that they fell into, in the order they stand in."""
    return [(atom, list(outcome.splits.get(atom.ident, (atom.ident,)))) for axis in axes for atom in axis]


@settings(max_examples=300)
@given(targets())
def test_sizes_are_numpys(case: tuple[tuple[int, ...], tuple[int | None, ...]]) -> None:
    shape, target = case
    outcome = reshape(axes_of(shape), [None if s is None else Size.of(s) for s in target], Relations())
    expected = np.empty(shape).reshape([-1 if s is None else s for s in target]).shape
    sizes = tuple(prod(atom.size.constant or 0 for atom in axis) for axis in outcome.axes)
    assert sizes == expected and not outcome.mismatch


@settings(max_examples=300)
@given(targets())
def test_an_aligned_result_keeps_every_element_where_its_atoms_say(
    case: tuple[tuple[int, ...], tuple[int | None, ...]],
) -> None:
    """Walking an atom of the result moves the element along exactly the part of the source that the atom is."""
    shape, target = case
    axes = axes_of(shape)
    outcome = reshape(axes, [None if s is None else Size.of(s) for s in target], Relations())
    if not outcome.aligned:
        return
    result = np.arange(prod(shape)).reshape(shape).reshape([-1 if s is None else s for s in target])
    step_of = element_steps(axes, outcome)
    for place, axis in enumerate(outcome.axes):
        stride = 1
        for atom in reversed(axis):
            here: list[int] = [0] * result.ndim
            here[place] = stride
            assert atom.ident in step_of, "an atom of the result is one of the source's, or a part of one"
            assert result[tuple(here)] - result[(0,) * result.ndim] == step_of[atom.ident]
            stride *= atom.size.constant or 1


def element_steps(axes: tuple[Axis, ...], outcome: Reshaped) -> dict[Ident, int]:
    """How many elements further on the next position of each part of the source is, in row-major order."""
    sizes = {atom.ident: atom.size.constant or 1 for axis in outcome.axes for atom in axis}
    steps: dict[Ident, int] = {}
    step = 1
    for atom, parts in reversed(leaves(axes, outcome)):
        for part in reversed(parts):
            steps[part] = step
            step *= sizes.get(part, atom.size.constant if len(parts) == 1 else 1) or 1
    return steps


@settings(max_examples=300)
@given(st.permutations([2, 3, 5, 7]), st.permutations([2, 3, 5, 7]))
def test_a_scramble_really_mixes_the_axes(before: list[int], after: list[int]) -> None:
    """Distinct primes in another order: told if and only if an axis of the result runs through others of the source."""
    axes = axes_of(tuple(before))
    outcome = reshape(axes, [Size.of(size) for size in after], Relations())
    assert (outcome.scramble is not None) == (before != after)
    assert outcome.aligned == (before == after)
    if outcome.scramble is not None:
        named = [atom.size.constant for axis in outcome.scramble.after for atom in axis]
        held = [atom.size.constant for atom in outcome.scramble.before]
        assert named != held and sorted(n or 0 for n in named) == sorted(h or 0 for h in held)


B, L, H, D, W = (Size.of(Symbol(name)) for name in "B L H d W".split())


def symbolic(*sizes: Size) -> tuple[Axis, ...]:
    return tuple((Atom(size, Ident("feature" if i == len(sizes) - 1 else "place")),) for i, size in enumerate(sizes))


def names(outcome: Reshaped) -> list[list[str]]:
    return [[str(atom.size) for atom in axis] for axis in outcome.axes]


def test_heads_split_off_the_width() -> None:
    axes = symbolic(B, L, H * D)
    outcome = reshape(axes, [B, L, H, D], Relations())
    assert outcome.aligned and names(outcome) == [["B"], ["L"], ["H"], ["d"]]
    assert outcome.axes[2][0].ident.parent is axes[2][0].ident and outcome.axes[0] == axes[0]


@pytest.mark.parametrize("wanted", list(combinations([B, None], [L, None], [H, None], [D, None])))
def test_one_wildcard_is_worked_out(wanted: tuple[Size | None, ...]) -> None:
    if wanted.count(None) != 1:
        return
    outcome = reshape(symbolic(B, L, H * D), list(wanted), Relations())
    assert outcome.aligned and names(outcome) == [["B"], ["L"], ["H"], ["d"]]


def test_heads_before_tokens_is_a_scramble() -> None:
    outcome = reshape(symbolic(B, L, H * D), [B, H, L, D], Relations())
    assert outcome.scramble is not None and not outcome.aligned
    assert [str(atom.size) for atom in outcome.scramble.before] == ["L", "H"]
    assert [str(axis[0].size) for axis in outcome.scramble.after] == ["H", "L"]


def test_heads_merged_across_tokens_is_a_scramble() -> None:
    outcome = reshape(symbolic(B, H, L, D), [B, L, H * D], Relations())
    assert outcome.scramble is not None


def test_merging_neighbours_is_none() -> None:
    outcome = reshape(symbolic(B, L, H, D), [B, L, H * D], Relations())
    assert outcome.aligned and names(outcome) == [["B"], ["L"], ["H", "d"]]


def test_a_width_that_is_split_by_its_quotient_relies_on_the_division() -> None:
    outcome = reshape(symbolic(B, L, W), [B, L, H, W // H], Relations())
    assert outcome.aligned and outcome.relies == {(W, H)}
    proved = Relations()
    proved.learn_exact(W, H)
    assert reshape(symbolic(B, L, W), [B, L, H, W // H], proved).relies == frozenset()


def test_counts_that_can_never_agree_are_told() -> None:
    assert reshape(symbolic(B, L, W), [B, L, W, Size.of(2)], Relations()).mismatch
    assert not reshape(symbolic(B, L, W), [B, L, D], Relations()).mismatch


# --- views -------------------------------------------------------------------------------------------------------


@st.composite
def strided(draw: st.DrawFn) -> tuple[np.ndarray, tuple[Axis, ...], Layout]:
    """An array permuted, sliced or expanded, with its axes and layout in our terms."""
    shape = draw(st.lists(st.integers(2, 4), min_size=2, max_size=4))
    order = draw(st.permutations(range(len(shape))))
    holes = draw(st.lists(st.booleans(), min_size=len(shape), max_size=len(shape)))
    axes = axes_of(tuple(shape))
    idents = [axes[i][0].ident for i in order]
    strides, step, gaps = {}, 1, set()
    for at in reversed(range(len(order))):
        if holes[at]:
            step += 1 if at == len(order) - 1 else step
            gaps.add(idents[at])
        strides[order[at]] = step
        step *= shape[order[at]]
    memory = np.arange(step * 2 + 8)
    array = as_strided(memory, shape, [strides[i] * memory.itemsize for i in range(len(shape))])
    return array, axes, Layout(tuple(idents), frozenset(gaps))


@settings(max_examples=400, deadline=None)
@given(strided(), st.integers(0, 2))
def test_a_broken_merge_is_what_torch_refuses(made: tuple[np.ndarray, tuple[Axis, ...], Layout], start: int) -> None:
    torch = pytest.importorskip("torch")
    array, axes, layout = made
    if start + 1 >= array.ndim:
        return
    merged = (*axes[:start], axes[start] + axes[start + 1], *axes[start + 2 :])
    target = [prod(atom.size.constant or 0 for atom in axis) for axis in merged]
    tensor = torch.from_numpy(array)
    try:
        tensor.view(target)
        refused = False
    except RuntimeError:
        refused = True
    assert (first_broken_merge(merged, layout) is not None) == refused
