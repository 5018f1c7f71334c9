"""Shared steps of the operations: which axis a dim names, moving, dropping and cutting axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from msalint.shapes.axes import Atom, Axis, Ident, Layout, ShapeVar, fresh_axis
from msalint.shapes.size import Size
from msalint.state import State
from msalint.values import Tensor, Traits


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
    carried = replace(tensor.traits, moved=None, implementation_layout=False, **traits)  # type: ignore[arg-type]
    return Tensor(lead, tuple(axes), Layout.dense(axes, lead), tensor.dtype, carried)


def drop_axis(tensor: Tensor, place: int) -> Tensor:
    """One position of an axis picked: the axis is gone, and memory around it no longer touches."""
    layout = tensor.layout
    for atom in tensor.axes[place]:
        layout = layout.without(atom.ident) if layout else None
    return with_axes(tensor, tensor.axes[:place] + tensor.axes[place + 1 :], layout)


def cut_axis(tensor: Tensor, place: int, size: Size, *, step: bool = False, **born: object) -> Tensor:
    """Only part of an axis kept: a new atom in its place, a child of the old one."""
    axis = tensor.axes[place]
    parent = axis[0].ident if axis else None
    kind = parent.kind if parent else "new"
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
            layout = layout.cut(axis[0].ident, ident, step)
            if len(axis) > 1:
                layout = Layout(layout.order, layout.gaps | {ident})
    return with_axes(tensor, (*tensor.axes[:place], (Atom(size, ident),), *tensor.axes[place + 1 :]), layout)


def insert_axis(tensor: Tensor, place: int, axis: Axis = ()) -> Tensor:
    """A new axis in front of `place`: of size 1, or expanded (it takes no memory)."""
    return with_axes(tensor, (*tensor.axes[:place], axis, *tensor.axes[place:]), tensor.layout)


def elementwise_layout(tensor: Tensor) -> Layout | None:
    """The memory order of a fresh result of one tensor: the same order, made dense; unknown if it is expanded."""
    layout = tensor.layout
    if layout is None:
        return None
    atoms = {atom.ident for axis in tensor.axes for atom in axis}
    if tensor.lead is not None and tensor.lead not in layout.order:
        return None
    if len(layout.order) != len(atoms) + (tensor.lead is not None):
        return None
    if layout.gaps:
        # Only a tensor whose memory has no holes keeps its order by contract; with holes the order still stands.
        return layout.closed()
    return layout


def new_axis(size: Size | None, kind: str = "new", *names: str) -> Axis:
    """An axis of a new identity; an unknown size gets a symbol of its own."""
    from msalint.state import axis_symbol

    return fresh_axis(size if size is not None else Size.of(axis_symbol("?")), kind, *names)


def forget_content(traits: Traits) -> Traits:
    """What stays true of a tensor's traits when its values are changed by an unknown function."""
    return replace(traits, cells=None, number=None, product=None, softmax=None, masks=(), projection=None, scale=())
