"""einops: rearrange, repeat, reduce and einsum, and the layers of the same names. Patterns name every atom."""

from __future__ import annotations

from collections.abc import Sequence

from msalint.ops.axes import dense_like, new_axis, vague
from msalint.ops.contraction import lettered_product
from msalint.ops.reduce import reduced_dtype
from msalint.ops.table import Invocation, op
from msalint.shapes.axes import Atom, Axis, Layout, fresh
from msalint.shapes.notation import ELLIPSIS, EinopsSide, NotationError, parse_einops, parse_einops_einsum
from msalint.shapes.reshape import first_broken_merge, reshape
from msalint.shapes.size import Size
from msalint.state import State, axis_symbol
from msalint.values import Const, Items, Tensor, Value, replace


@op("", on="einops.rearrange")
def rearrange(call: Invocation) -> Value | None:
    return by_pattern(call, "rearrange")


@op("", on="einops.repeat")
def repeat(call: Invocation) -> Value | None:
    return by_pattern(call, "repeat")


@op("", on="einops.reduce")
def reduce(call: Invocation) -> Value | None:
    return by_pattern(call, "reduce")


def by_pattern(call: Invocation, kind: str) -> Value | None:
    """One pattern applied to a tensor, or to each of a list that is stacked first."""
    pattern = call.get(1, "pattern")
    value = call.get(0, "tensor")
    if isinstance(value, Items):
        from msalint.ops.layout import stack

        value = stack(replace(call, args=[value], kwargs={}, name="stack"))
    tensor = call.state.some_tensor(value)
    if tensor is None or not isinstance(pattern, Const) or not isinstance(pattern.value, str):
        return vague(tensor) if tensor is not None else None
    result = apply(call, tensor, pattern.value, kind)
    if kind != "reduce":
        return result
    how = call.get(2, "reduction")
    name = how.value if isinstance(how, Const) and isinstance(how.value, str) else "sum"
    return replace(result, dtype=reduced_dtype(name, tensor.dtype))


def apply(call: Invocation, tensor: Tensor, pattern: str, kind: str) -> Tensor:
    """The tensor after a pattern; of unknown shape where the pattern can't be read."""
    try:
        sides = parse_einops(pattern)
    except NotationError:
        return vague(tensor)
    if len(sides) != 2:
        return vague(tensor)
    sizes = {k: call.state.as_size(v) for k, v in call.kwargs.items() if k not in {"reduction", "tensor", "pattern"}}
    named = named_atoms(call, tensor, sides[0], sizes)
    if named is None:
        return vague(tensor)
    source, atoms = named
    axes = _result(sides[1], atoms, sizes)
    if axes is None:
        return vague(tensor)
    if kind == "repeat":
        old = {atom.ident for axis in atoms.values() for atom in axis}
        new = (atom.ident for axis in axes for atom in axis if atom.ident not in old)
        call.state.copies.update(dict.fromkeys(new, call.at))
    if kind in {"rearrange", "repeat"}:
        # What repeat adds is expanded: it takes no memory unless it is merged with another.
        layout = source.layout
        traits = tensor.traits
        cells = traits.cells
        if cells is not None and cells.region is not None and axes[-2:] != source.axes[-2:]:
            cells = replace(cells, region=cells.region.aside())
        traits = replace(traits, cells=cells)
        if layout is not None and first_broken_merge(axes, layout) is not None:
            return dense_like(tensor, axes, cells=cells)
        moved = (call.at, "rearrange") if layout is not None and layout != Layout.dense(axes) else traits.moved
        return replace(tensor, lead=None, axes=axes, layout=layout, traits=replace(traits, moved=moved))
    return dense_like(tensor, axes)


def named_atoms(
    call: Invocation, tensor: Tensor, side: EinopsSide, sizes: dict[str, Size | None]
) -> tuple[Tensor, dict[str, Axis]] | None:
    """The tensor's axes taken apart as the left side says, and each name's atoms."""
    state = call.state
    dots = any(axis.atoms == (ELLIPSIS,) for axis in side)
    if dots:
        tensor = state.with_rank(tensor)
        if tensor.lead is not None or len(tensor.axes) < len(side) - 1:
            return None
    else:
        tensor = state.bind_rank(tensor, len(side))
        if tensor.lead is not None:
            return None
        if len(tensor.axes) != len(side):
            return None  # a rank is often known by convention only, which the pattern overrules
    named: dict[str, Axis] = {}
    place = 0
    for axis in side:
        if axis.atoms == (ELLIPSIS,):
            count = len(tensor.axes) - (len(side) - 1)
            for i in range(count):
                named[f"{ELLIPSIS}{i}"] = tensor.axes[place + i]
            place += count
            continue
        tensor = _take_apart(call, tensor, place, axis.atoms, sizes, named)
        place += 1
    return tensor, named


def _take_apart(
    call: Invocation,
    tensor: Tensor,
    place: int,
    atoms: Sequence[int | str],
    sizes: dict[str, Size | None],
    named: dict[str, Axis],
) -> Tensor:
    """One axis of the left side: a single name takes it whole, a group takes it apart."""
    state = call.state
    axis = tensor.axes[place]
    if len(atoms) == 1 and isinstance(atoms[0], str):
        named[atoms[0]] = axis
        _name(state, axis, atoms[0])
        given = sizes.get(atoms[0])
        if given is not None and axis:
            state.unify(state.size_of(axis), given)
        return tensor
    if not atoms:
        return tensor
    target: list[Size | None] = []
    for item in atoms:
        size = Size.of(item) if isinstance(item, int) else sizes.get(item)
        target.append(size)
    if target.count(None) > 1:
        target = [size if size is not None else Size.of(axis_symbol(str(item))) for size, item in zip(target, atoms)]
    outcome = reshape([axis], target, state.relations)
    # einops raises by itself where the axis does not divide: nothing is relied on silently.
    layout = tensor.layout.splits(outcome.splits) if tensor.layout and outcome.aligned else None
    for item, part in zip(atoms, outcome.axes):
        if isinstance(item, str):
            named[item] = part
            _name(state, part, item)
    axes = (*tensor.axes[:place], tuple(a for part in outcome.axes for a in part), *tensor.axes[place + 1 :])
    return replace(tensor, axes=axes, layout=layout)


def _name(state: State, axis: Axis, name: str) -> None:
    """A name is learned of an axis of one atom: what (batch frames) is called is neither's name."""
    if len(axis) != 1:
        return
    atom = axis[0]
    atom.ident.learn(name)
    symbol = atom.size.symbol
    if symbol is not None and symbol.key.startswith("axis:") and ("[" in symbol.name or symbol.name == "?"):
        symbol.name = name


def _result(side: EinopsSide, named: dict[str, Axis], sizes: dict[str, Size | None]) -> tuple[Axis, ...] | None:
    axes: list[Axis] = []
    for axis in side:
        if axis.atoms == (ELLIPSIS,) and not axis.grouped:
            axes += [named[name] for name in named if name.startswith(ELLIPSIS)]
            continue
        merged: list[Atom] = []
        for item in axis.atoms:
            if isinstance(item, int):
                merged += (fresh(item, "new"),)
            elif item in named:
                merged += named[item]
            elif item == ELLIPSIS:
                merged += [a for name in named if name.startswith(ELLIPSIS) for a in named[name]]
            else:
                size = sizes.get(item)
                merged += new_axis(size, "new", item)
        axes.append(tuple(merged))
    return tuple(axes)


@op("", on="einops.einsum")
def einsum(call: Invocation) -> Value | None:
    texts = [i for i, v in enumerate(call.args) if isinstance(v, Const) and isinstance(v.value, str)]
    if not texts:
        return None
    pattern = call.args[texts[0]]
    assert isinstance(pattern, Const)
    try:
        inputs, output = parse_einops_einsum(pattern.value)
    except NotationError:
        return None
    operands = [value for i, value in enumerate(call.args) if i != texts[0]]
    sites = [call.at, *(site for i, site in enumerate(call.sites) if i != texts[0])]
    call = replace(call, sites=sites)
    return lettered_product(call, [_letters(side) for side in inputs], _letters(output), operands)


def _letters(side: EinopsSide) -> list[str]:
    return [str(axis.atoms[0]) if axis.atoms else "()" for axis in side]


@op("", on="einops.pack einops.unpack")
def pack(call: Invocation) -> Value | None:
    return None
