"""Grouped-query attention: which key and value head each query head meets."""

from __future__ import annotations

from collections.abc import Iterable

from msalint.diagnostic import Site
from msalint.facts import HeadsTiled
from msalint.ops.layout import is_head
from msalint.state import State
from msalint.values import Tensor


def tell_tiled(state: State, at: Site, query: Tensor, others: Iterable[tuple[str, Tensor | None]]) -> None:
    """Tell of key or value heads whose copies lie outside of them: (0 1 0 1), where query heads come as (0 0 1 1).

    Only where the query heads are one axis that nothing took apart: heads that are split as (group, kv) meet their own.
    """
    heads = [axis for axis in query.axes if axis and any(is_head(atom, query.axes) for atom in axis)]
    if len(heads) != 1 or len(heads[0]) != 1 or heads[0][0].ident in state.copies:
        return
    for what, tensor in others:
        for axis in state.resolve(tensor).axes if tensor is not None else ():
            if tensor is None or len(axis) != 2:
                continue
            copies, kept = axis
            copied_at = state.copies.get(copies.ident)
            sizes = [state.size_of((atom,)) for atom in axis]
            if copied_at is None or any(size.is_one for size in sizes) or not is_head(kept, tensor.axes):
                continue
            state.emit(HeadsTiled(copied_at, what, str(sizes[1]), str(sizes[0]), at, state.purpose()))
