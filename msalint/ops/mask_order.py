"""Masks copied for each head: in which order the copies and the samples lie, against heads folded behind the batch."""

from __future__ import annotations

from msalint.diagnostic import Site
from msalint.facts import MaskTiled
from msalint.ops.layout import is_head
from msalint.shapes.axes import Axis, axis_name
from msalint.shapes.size import Size
from msalint.shapes.vocabulary import BATCH, role_of_name
from msalint.state import State
from msalint.values import Tensor, Value


def tell_tiled_for_layer(state: State, heads: Size | None, query: Tensor | None, mask: Value, at: Site) -> None:
    """A mask (batch * heads, query, key) as nn.MultiheadAttention takes it, the copies for the heads put outside."""
    tiled = _tiled(state, mask)
    unbatched = query is not None and state.resolve(query).rank == 2
    if tiled is None or heads is None or unbatched:
        return
    if state.relations.compare(state.size_of(tiled[:1]), heads).certainly:
        _tell(state, "heads", tiled, "nn.MultiheadAttention", at)


def tell_tiled_for_scores(state: State, scores: Tensor, mask: Value, at: Site) -> None:
    """A mask put on scores (batch * heads, query, key): copied for the heads outside, or for each of their product."""
    scores = state.resolve(scores)
    tiled = _tiled(state, mask)
    if tiled is None or scores.traits.product is None or scores.lead is not None or len(scores.axes) != 3:
        return
    folded = scores.axes[0]
    if len(folded) != 2 or not is_head(folded[1], (folded, *scores.axes[1:])):
        return
    copies = state.size_of(tiled[:1])
    if state.relations.compare(copies, state.size_of(folded)).certainly:
        order = "folded" if _named_batch(tiled[1:]) else ""
    elif state.relations.compare(copies, state.size_of(folded[:1])).certainly:
        order = ""
    else:
        order = "heads" if state.relations.compare(copies, state.size_of(folded[1:])).certainly else ""
    if order:
        _tell(state, order, tiled, "scores", at)


def _named_batch(axis: Axis) -> bool:
    return any(role_of_name(name) == BATCH for atom in axis for name in (str(atom.size), *atom.ident.names))


def _tiled(state: State, mask: Value) -> Axis | None:
    """The first of three axes, where it is made of copies of samples that may differ."""
    tensor = state.as_tensor(mask) if isinstance(mask, Tensor) else None
    if tensor is None or tensor.lead is not None or len(tensor.axes) != 3 or len(tensor.axes[0]) < 2:
        return None
    copies, *samples = tensor.axes[0]
    alike = any(atom.ident in state.copies or state.size_of((atom,)).is_one for atom in samples)
    return None if copies.ident not in state.copies or alike else tensor.axes[0]


def _tell(state: State, order: str, tiled: Axis, api: str, at: Site) -> None:
    copied_at = state.copies[tiled[0].ident]
    state.emit(MaskTiled(copied_at, order, axis_name(tiled[:1]), axis_name(tiled[1:]), api, at))
