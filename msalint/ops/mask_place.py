"""Where a mask comes to lie: its axes lined up from the right with those of the scores."""

from __future__ import annotations

from collections.abc import Sequence

from msalint.diagnostic import Site
from msalint.facts import MaskMisplaced, shape_of
from msalint.ops.attending import origin_of, role_of_axis
from msalint.ops.layout import is_head
from msalint.ops.mask_order import tell_tiled_for_scores
from msalint.shapes.axes import Atom, Axis, axis_name, shape_text
from msalint.shapes.vocabulary import BATCH, SEQ, role_of_name
from msalint.state import State
from msalint.values import MaskUse, Tensor, Value, replace


def tell_places(state: State, scores: Tensor) -> None:
    """Tell of the masks on scores (batch, ..., query, key) that lie on other axes than their own."""
    scores = state.resolve(scores)
    product = scores.traits.product
    if product is None or scores.lead is not None or len(scores.axes) < 3:
        return
    for use in scores.traits.masks:
        tell_tiled_for_scores(state, scores, use.value, use.at)
        site = use.mask_site or use.at
        onto = replace(scores, axes=use.onto) if len(use.onto) >= 3 else scores
        if not tell_batch_elsewhere(state, onto.axes, use.value, use.at, site, "scores"):
            others = [other for other in scores.traits.masks if other is not use]
            _tell_queries_hidden(state, onto, use, others, site)


def tell_batch_elsewhere(state: State, onto: Sequence[Axis], mask: Value, at: Site, site: Site, api: str) -> bool:
    """Tell of a mask whose batch axis lies on heads or positions: (B, L) on (B, H, L, L), for one."""
    tensor = state.as_tensor(mask)
    if tensor is None or tensor.lead is not None or len(tensor.axes) > len(onto) or _is_hearsay(tensor):
        return False
    for i in range(-len(tensor.axes), 0):
        mine, under = tensor.axes[i], onto[i]
        front = i == -len(onto)
        whole = len(tensor.axes) == len(onto)
        if _batch_on_sequence(mine, onto) if front else _batch_meets_another(mine, under, onto[0], whole):
            shapes = shape_of(tensor), shape_text(onto)
            two = len(tensor.axes) == 2
            state.emit(MaskMisplaced(at, site, "batch", *shapes, axis_name(mine), axis_name(under), api, two_axes=two))
            return True
    return False


def _is_hearsay(mask: Tensor) -> bool:
    """Only a docstring tells the rank of a mask, and often a former one: the scores that it lies on tell better."""
    return any(atom.ident.hearsay for axis in mask.axes for atom in axis)


def _batch_meets_another(mine: Axis, under: Axis, first: Axis, whole: bool) -> bool:
    """Whether an axis of a mask is the batch and lies on something else. `first`: the first axis that it is laid on.

    A mask that is `whole`, with an axis for each of the scores, was lined up on purpose: attention between the samples
    has its batch on the tokens. There a name is not enough, the scores' own batch has to be the same axis.
    """
    if len(mine) != 1 or not under:
        return False
    mask_batch = mine[0].ident
    origins = [origin_of(atom.ident) for atom in under]
    if mask_batch in origins or any(_named_batch(atom) for atom in under):
        return False
    if len(first) == 1 and origin_of(first[0].ident) is mask_batch:
        return True
    return not whole and _named_batch(mine[0]) and _is_head_or_position(under)


def _batch_on_sequence(mine: Axis, onto: Sequence[Axis]) -> bool:
    """The mask's batch axis lies on the sequence in front of scores whose batch stands elsewhere."""
    front = onto[0]
    if len(mine) != 1 or len(front) != 1 or not _named_batch(mine[0]):
        return False
    if role_of_axis(front, ())[0] != SEQ or origin_of(front[0].ident) is mine[0].ident:
        return False
    return any(role_of_axis(axis, [front])[0] == BATCH for axis in onto[1:])


def _named_batch(atom: Atom) -> bool:
    names = (*origin_of(atom.ident).names, *atom.ident.names, str(atom.size))
    return any(role_of_name(name) == BATCH for name in names)


def _is_head_or_position(axis: Axis) -> bool:
    position = any(atom.ident.relation in {"rows", "columns"} or atom.ident.kind == "place" for atom in axis)
    return position or any(is_head(atom) for atom in axis)


def _tell_queries_hidden(state: State, scores: Tensor, use: MaskUse, others: Sequence[MaskUse], site: Site) -> None:
    """Tell of padding that lies on the queries alone: padded keys stay visible to everyone."""
    mask = state.as_tensor(use.value)
    cells = mask.traits.cells if mask is not None else None
    if mask is None or cells is None or cells.region is None or mask.lead is not None or len(mask.axes) < 2:
        return
    kinds = cells.region.kinds
    if "padding" not in kinds or kinds - {"padding", "causal"} or any(_may_hide_keys(state, other) for other in others):
        return
    queries, keys = mask.axes[-2], mask.axes[-1]
    rows, columns = scores.axes[-2], scores.axes[-1]
    if not _same_origin(rows, columns) or not _same_origin(queries, rows) or _same_origin(keys, columns):
        return
    if keys and any(atom.ident.kind != "new" for atom in keys):
        return
    state.emit(
        MaskMisplaced(
            use.at,
            site,
            "query",
            shape_of(mask),
            shape_of(scores),
            axis_name(queries),
            axis_name(rows),
            "scores",
            made_at=cells.region.made_at or cells.at,
            causal="causal" in kinds,
        )
    )


def _may_hide_keys(state: State, use: MaskUse) -> bool:
    """A mask that may be the keys' padding: anything but a causal one."""
    mask = state.as_tensor(use.value)
    cells = mask.traits.cells if mask is not None else None
    return cells is None or cells.region is None or cells.region.kinds != frozenset({"causal"})


def _same_origin(one: Axis, other: Axis) -> bool:
    return len(one) == len(other) == 1 and origin_of(one[0].ident) is origin_of(other[0].ident)
