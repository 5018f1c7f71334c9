"""Writes into tensors whose copies along an axis share memory, as `expand` makes them."""

from __future__ import annotations

from collections.abc import Sequence

from msalint.diagnostic import Site
from msalint.facts import SharedWritten
from msalint.shapes.axes import Atom, axis_name
from msalint.state import State
from msalint.values import Tensor


def tell_filled(state: State, tensor: Tensor, mask: Tensor | None, at: Site) -> None:
    """Tell of a fill in place whose mask differs along an axis of copies: each copy gets the fills of all."""
    if mask is None or mask.lead is not None or tensor.lead is not None or len(mask.axes) > len(tensor.axes):
        return
    for i in range(-len(mask.axes), 0):
        found = _copies(tensor, i) if mask.axes[i] and not _copies(mask, i) else None
        if found is not None:
            state.emit(SharedWritten(at, axis_name((found,)), state.copies.get(found.ident), part=False))
            return


def tell_written(state: State, tensor: Tensor, parts: Sequence[bool], at: Site) -> None:
    """Tell of a write to some places of an axis of copies. `parts`: of each axis, whether the index takes a part."""
    if tensor.lead is not None or len(parts) > len(tensor.axes):
        return
    for i, part in enumerate(parts):
        found = _copies(tensor, i) if part else None
        if found is not None:
            state.emit(SharedWritten(at, axis_name((found,)), state.copies.get(found.ident), part=True))
            return


def _copies(tensor: Tensor, place: int) -> Atom | None:
    """The atom of an axis that counts copies in the same memory."""
    axis, layout = tensor.axes[place], tensor.layout
    if len(axis) != 1 or axis[0].ident.relation != "expanded" or layout is None or axis[0].size.is_one:
        return None
    return axis[0] if axis[0].ident not in layout.order else None
