"""Shared steps of the operations: which axis a dim names, moving, dropping and cutting axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msalint.shapes.axes import Atom, Axis, Ident, Layout, ShapeVar, axis_size, fresh_axis
from msalint.shapes.size import Size
from msalint.state import State
from msalint.values import Region, Tensor, Traits, replace


def locate(state: State, tensor: Tensor, dim: int | None, extra: int = 0) -> tuple[Tensor, int] | None:
    """The tensor with the axis `dim` known, and that axis' place in `tensor.axes`; None where it can't be known.

    `extra` is 1 for operations whose dim counts the result's axes (unsqueeze, stack).
    """
    if dim is None:
        return None
    if dim < 0:
        tensor = state.with_trailing(tensor, -dim - extra)
        place = len(tensor.axes) + extra + dim
        return (tensor, place) if place >= 0 else None
    tensor = state.with_rank(tensor)
    if tensor.lead is not None or dim >= len(tensor.axes) + extra:
        return None
    return tensor, dim


def vague(tensor: Tensor) -> Tensor:
    """The tensor with nothing known of its shape; what it carries stays."""
    return replace(tensor, lead=ShapeVar(), axes=(), layout=None)


def with_axes(tensor: Tensor, axes: Sequence[Axis], layout: Layout | None) -> Tensor:
    return replace(tensor, axes=tuple(axes), layout=layout)


def dense_like(tensor: Tensor, axes: Sequence[Axis], lead: ShapeVar | None = None, **traits: object) -> Tensor:
    """A contiguous result of these axes that carries what `tensor` carries."""
    carried = replace(tensor.traits, moved=None, implementation_layout=False, **traits)
    return Tensor(lead, tuple(axes), Layout.dense(axes, lead), tensor.dtype, carried)


def drop_axis(tensor: Tensor, place: int) -> Tensor:
    """One position of an axis picked: the axis is gone, and memory around it no longer touches."""
    layout = tensor.layout
    for atom in tensor.axes[place]:
        layout = layout.without(atom.ident) if layout else None
    if place >= len(tensor.axes) - 2:
        tensor = replace(tensor, traits=set_aside(tensor.traits))
    return with_axes(tensor, tensor.axes[:place] + tensor.axes[place + 1 :], layout)


def cut_axis(
    tensor: Tensor, place: int, size: Size, *, step: bool = False, whole: bool = False, **born: object
) -> Tensor:
    """Only part of an axis kept: a new atom in its place, a child of the old one.

    `whole`: nothing shows that anything is cut off, so memory may hold no gap.
    """
    axis = tensor.axes[place]
    parent = axis[0].ident if axis else None
    kind = parent.kind if parent else "new"
    if size == axis_size(axis) and not step:
        return tensor
    if size.is_one:
        # A cut to one position takes no stride of its own, but parts memory around it.
        dropped = drop_axis(tensor, place)
        axes = (*dropped.axes[:place], (), *dropped.axes[place:])
        return with_axes(dropped, axes, dropped.layout)
    ident = Ident(kind, parent=parent, relation="cut", **born)  # type: ignore[arg-type]
    layout = tensor.layout
    if layout is not None:
        if not axis:
            layout = None
        else:
            for atom in axis[1:]:
                layout = layout.without(atom.ident)
            layout = layout.cut(axis[0].ident, ident, step, whole)
            if len(axis) > 1 and not whole:
                layout = layout.parted(ident)
    return with_axes(tensor, (*tensor.axes[:place], (Atom(size, ident),), *tensor.axes[place + 1 :]), layout)


def insert_axis(tensor: Tensor, place: int, axis: Axis = ()) -> Tensor:
    """A new axis in front of `place`: of size 1, or expanded (it takes no memory)."""
    if place >= len(tensor.axes) - 1:
        tensor = replace(tensor, traits=set_aside(tensor.traits))
    return with_axes(tensor, (*tensor.axes[:place], axis, *tensor.axes[place:]), tensor.layout)


def elementwise_layout(tensor: Tensor) -> Layout | None:
    """The memory order of a fresh result of one tensor: the same order, made dense."""
    layout = tensor.layout
    if layout is None:
        return None
    atoms = {atom.ident for axis in tensor.axes for atom in axis}
    if len(layout.order) == len(atoms) + (tensor.lead is not None):
        return layout.closed() if tensor.lead is None or tensor.lead in layout.order else None
    return joint_layout(tensor.axes, [tensor]) if tensor.lead is None else None


def joint_layout(axes: Sequence[Axis], tensors: Sequence[Tensor]) -> Layout | None:
    """The memory order of a fresh elementwise result of these axes, as torch's TensorIterator settles it.

    Axes are sorted by the strides of the first operand that has both: one that it expands or lacks has none. Where no
    operand tells, they stay as they stand: `(B, 1, L) + (H, 1)` of two contiguous tensors is contiguous.
    """
    rank = len(axes)
    ranked = [_memory_ranks(tensor, rank) for tensor in tensors]
    if any(ranks is None for ranks in ranked):
        return None
    inner_first = list(reversed(range(rank)))
    for i in range(1, rank):
        here = i
        for before in reversed(range(i)):
            swap = _out_of_order(
                inner_first[here], inner_first[before], [ranks for ranks in ranked if ranks is not None]
            )
            if swap:
                inner_first[before], inner_first[here] = inner_first[here], inner_first[before]
                here = before
            elif swap is False:
                break
    return Layout(tuple(atom.ident for place in reversed(inner_first) for atom in axes[place]))


def _memory_ranks(tensor: Tensor, rank: int) -> dict[int, int] | None:
    """For each axis of a broadcast result the place that it has in a tensor's memory; None if that is not known."""
    sized = [axis for axis in tensor.axes if axis]
    if tensor.layout is None:
        return {} if tensor.lead is None and len(sized) <= 1 else None
    shift = rank - len(tensor.axes)
    places = {item: place for place, item in enumerate(tensor.layout.order)}
    return {i + shift: places[axis[0].ident] for i, axis in enumerate(tensor.axes) if axis and axis[0].ident in places}


def _out_of_order(outer: int, inner: int, ranked: Sequence[dict[int, int]]) -> bool | None:
    """Whether the first operand that knows both axes has `inner` further out in memory; None if none knows."""
    for ranks in ranked:
        if outer in ranks and inner in ranks:
            return ranks[inner] < ranks[outer]
    return None


def distinct(axes: Sequence[Axis]) -> tuple[Axis, ...]:
    """The axes with each identity once: in `i[:, None] - i[None]` the second is the same positions over again."""
    seen: set[Ident] = set()
    result: list[Axis] = []
    for axis in axes:
        if any(atom.ident in seen for atom in axis):
            axis = tuple(Atom(a.size, Ident(a.ident.kind, a.ident, "cut", names=list(a.ident.names))) for a in axis)
        seen.update(atom.ident for atom in axis)
        result.append(axis)
    return tuple(result)


def is_channels_last(tensor: Tensor) -> bool:
    """Whether a tensor lies in memory as (batch, places, channels) though its axes are (batch, channels, places)."""
    if tensor.layout is None or tensor.lead is not None or len(tensor.axes) not in {4, 5}:
        return False
    moved = (tensor.axes[0], *tensor.axes[2:], tensor.axes[1])
    return bool(tensor.axes[1]) and tensor.layout.order == Layout.dense(moved).order


def copied_layout(axes: Sequence[Axis], lead: ShapeVar | None, sources: Sequence[Tensor]) -> Layout | None:
    """The layout of a fresh copy, which torch makes contiguous unless all its sources are, or may be, channels last."""
    doubtful = all(is_channels_last(source) or source.layout is None for source in sources)
    return None if doubtful and any(len(source.axes) in {4, 5} for source in sources) else Layout.dense(axes, lead)


def new_axis(size: Size | None, kind: str = "new", *names: str) -> Axis:
    """An axis of a new identity; an unknown size gets a symbol of its own."""
    from msalint.state import axis_symbol

    return fresh_axis(size if size is not None else Size.of(axis_symbol("?")), kind, *names)


def forget_content(traits: Traits) -> Traits:
    """What stays true of a tensor's traits when its values are changed by an unknown function."""
    return replace(
        traits,
        cells=None,
        number=None,
        product=None,
        peak_of=None,
        softmax=None,
        masks=(),
        cleared=(),
        projection=None,
        scale=(),
        context_of=None,
        ramp=False,
        ramp_from=None,
        distance="",
        triangle=None,
        exponent=None,
        total=None,
        logarithm=None,
    )


def set_aside(traits: Traits) -> Traits:
    """Traits once the last two axes are others: a triangle keeps what it means, not where it lies."""
    return _with_regions(traits, Region.aside)


def transposed(traits: Traits) -> Traits:
    """Traits once the last two axes have changed places: an upper triangle is a lower one."""
    return _with_regions(traits, Region.transposed)


def _with_regions(traits: Traits, changed: Callable[[Region], Region]) -> Traits:
    """Traits with each triangle that they speak of changed."""
    cells = traits.cells
    if cells is not None and cells.region is not None and cells.region.side is not None:
        cells = replace(cells, region=changed(cells.region))
    masks = tuple(
        replace(use, hidden=changed(use.hidden)) if use.hidden is not None and use.hidden.side is not None else use
        for use in traits.masks
    )
    if cells is traits.cells and masks == traits.masks:
        return traits
    return replace(traits, cells=cells, masks=masks)


def weigh_hearsay(tensor: Tensor, width: Size | None) -> None:
    """Forget what a docstring calls a tensor's axes if it gives another than the last the width that a layer takes."""
    called = str(width) if width is not None and width.symbol is not None else ""
    *others, last = tensor.axes or ((),)
    if not called or any(called in atom.ident.names for atom in last) or not any(atom.ident.hearsay for atom in last):
        return
    if any(called in atom.ident.hearsay for axis in others for atom in axis):
        for atom in (atom for axis in tensor.axes for atom in axis):
            symbol = atom.size.symbol
            if symbol is not None and symbol.name in atom.ident.hearsay:
                symbol.name = "?"
            atom.ident.forget_hearsay()
