"""What masks on scores amount to, told once it is known that the scores become weights."""

from __future__ import annotations

from collections.abc import Sequence

from msalint.diagnostic import Site
from msalint.facts import Fact, MaskAdded, MaskedAfterSoftmax, MaskFilled, MaskMultiplied
from msalint.ops.devices import tell_off_device
from msalint.shapes.vocabulary import says
from msalint.state import State
from msalint.values import Cells, MaskUse, Normalised, Opaque, Region, Tensor, Traits, replace

FAR_BELOW = -50.0
"""A mask value at or below this hides a key, as opposed to a bias."""

_CAUSAL = ("causal", "tril", "triu", "future", "subsequent", "lower", "upper")


def tell_masks(state: State, scores: Tensor, normalised: Normalised) -> None:
    """Tell of each mask on scores that were softmaxed and are known to be attention's."""
    uses = scores.traits.masks
    whole = [covers_rows(use, normalised) for use in uses]
    empties = emptying(uses, whole)
    lowered = any(use.how != "multiplied" and (use.fill is None or use.fill <= FAR_BELOW) for use in uses)
    product = scores.traits.product
    for use, rows, empty in zip(uses, whole, empties):
        if product is not None and not product.left.traits.made_by_default and use.how not in {"index", "indices"}:
            tell_off_device(state, use.value, use.at)
        if use.how == "multiplied":
            if not rows:
                site = use.mask_site or use.at
                state.emit(MaskMultiplied(use.at, site, mask_name(use), normalised.at, lowered))
        elif use.how == "added":
            state.emit(_added(state, scores, use, normalised, empty))
        else:
            state.emit(replace(_filled(state, scores, use, normalised, empty, rows), mends=_mends(use, uses)))


def cleared_by(state: State, weights: Traits, use: MaskUse) -> Traits:
    """Weights that a mask makes 0 in places: what masked their scores need not have hidden anything."""
    if weights.softmax is not None:
        state.cleared.add(id(weights.softmax.at))
    return replace(weights, reweighted=True, cleared=(*weights.cleared, use))


def _mends(use: MaskUse, uses: Sequence[MaskUse]) -> bool:
    """Whether a mask of the same kind hid scores before: `masked_fill(a | b, -inf)`, then `masked_fill(a & b, 1)`."""
    before = uses[: next(i for i, one in enumerate(uses) if one is use)]
    return any(
        one.fill is not None
        and one.fill <= FAR_BELOW
        and one.hidden is not None
        and use.hidden is not None
        and one.hidden.kinds == use.hidden.kinds
        for one in before
    )


def _added(state: State, scores: Tensor, use: MaskUse, normalised: Normalised, empty: bool | None) -> Fact:
    cells = _cells(use)
    hidden = _by_key(use.hidden, normalised)
    return MaskAdded(
        use.at,
        cells=cells,
        hidden=hidden,
        mask_site=use.mask_site or use.at,
        mask_name=mask_name(use),
        attention=True,
        inverted=is_inverted(hidden),
        empty_rows=empty,
        made_at=cells.at if cells is not None else None,
        softmaxed_at=normalised.at,
        bounded=scores.traits.bounded,
        fill=use.fill,
        boolean=isinstance(use.value, Tensor) and use.value.dtype == "bool",
        said=isinstance(use.value, Tensor) and use.value.traits.said_bool,
        purpose=state.purpose(),
    )


def _filled(
    state: State, scores: Tensor, use: MaskUse, normalised: Normalised, empty: bool | None, whole_rows: bool
) -> Fact:
    cells = _cells(use)
    hidden = _by_key(use.hidden, normalised)
    return MaskFilled(
        use.at,
        fill=use.fill,
        fill_site=use.fill_site,
        mask_site=use.mask_site or use.at,
        hidden=hidden,
        mask_name=mask_name(use),
        how=use.how,
        attention=True,
        empty_rows=empty,
        half=state.half_in_sight or scores.dtype == "half",
        inverted=is_inverted(hidden),
        made_at=cells.at if cells is not None else None,
        taken_at=use.taken_at,
        softmaxed_at=normalised.at,
        scores_site=use.scores_site,
        bounded=scores.traits.bounded,
        in_place=use.in_place,
        fill_parameter=use.fill_name,
        whole_rows=whole_rows,
        purpose=state.purpose(),
    )


def tell_cleared(state: State, weights: Tensor, softmax: Normalised, weighted_at: Site) -> None:
    """Tell of each mask that was put on weights after softmax, now that they meet the values."""
    earlier = bool(softmax.scores.traits.masks)
    for use in weights.traits.cleared:
        if not covers_rows(use, softmax):
            site = use.mask_site or use.at
            state.emit(MaskedAfterSoftmax(use.at, softmax, site, masked_before=earlier, weighted_at=weighted_at))


def mask_name(use: MaskUse) -> str:
    """What the mask is called."""
    if isinstance(use.value, Tensor):
        return use.value.traits.name
    return use.value.name if isinstance(use.value, Opaque) else ""


def _cells(use: MaskUse) -> Cells | None:
    return use.value.traits.cells if isinstance(use.value, Tensor) else None


def _by_key(hidden: Region | None, normalised: Normalised) -> Region | None:
    """The region with queries as rows and keys as columns: softmax over axis -2 says that they stand the other way."""
    return hidden.transposed() if hidden is not None and normalised.position == -2 else hidden


def is_inverted(hidden: Region | None) -> bool:
    """What is hidden is known to be what was to be kept, by more than a name."""
    return hidden is not None and hidden.meaning == "keep" and hidden.strong and hidden.side is None


def covers_rows(use: MaskUse, normalised: Normalised) -> bool:
    """Whether a mask is the same for all keys of a query, so that it takes or leaves whole rows."""
    mask, place = use.value, normalised.position
    if use.hidden is not None and use.hidden.kinds == {"row"}:
        return True
    if says(mask_name(use), "head") and not (isinstance(mask, Tensor) and mask.lead is None):
        return True  # `head_mask`: of unknown shape, its name is all there is
    if not isinstance(mask, Tensor) or place is None or not mask.axes or use.how == "indices":
        return False
    if -place > len(mask.axes):
        return mask.lead is None
    return not mask.axes[place]


def emptying(uses: tuple[MaskUse, ...], whole: list[bool]) -> list[bool | None]:
    """Of each mask, whether it may hide all that is left of a row; None if nothing is known.

    A causal mask that keeps its diagonal does not. A mask of whole rows empties them where it is infinite, and mends
    empty ones where it is finite.
    """
    hiding = [(use, rows) for use, rows in zip(uses, whole) if use.how != "multiplied"]
    if any(rows and use.fill is not None and use.fill > -1e38 for use, rows in hiding):
        return [False] * len(uses)
    alone: list[bool | None] = [True if rows else _empties(use) for use, rows in zip(uses, whole)]
    mixed = {use.hidden.kinds for use, _ in hiding if use.hidden is not None} - {frozenset({"causal"})}
    if len(hiding) > 1 and mixed and not any(alone):
        # Each leaves a key, but not always the same one.
        return [True if one is False else one for one in alone]
    return alone


def _empties(use: MaskUse) -> bool | None:
    """Whether a mask by itself may hide a whole row."""
    hidden = use.hidden
    if _called_causal(use):
        return False
    if hidden is None or ("other" in hidden.kinds and not hidden.kinds & {"padding", "given"}):
        return None
    return not (hidden.feeds("outside") or (hidden.kinds == {"causal"} and not hidden.hides_itself))


def _called_causal(use: MaskUse) -> bool:
    """A mask of unknown make that its name calls causal."""
    drawn = use.hidden is not None and use.hidden.side is not None
    region = use.hidden.name if use.hidden is not None else ""
    return not drawn and (says(mask_name(use), *_CAUSAL) or says(region, *_CAUSAL))


class NaNGuards:
    """Repairs that came after the softmax: the masks before it leave no NaN behind."""

    def __init__(self, guarded: set[int]) -> None:
        self.guarded = guarded

    def applied(self, facts: list[Fact]) -> list[Fact]:
        """The facts, with `guarded` set where a later repair covers them."""
        if not self.guarded:
            return facts
        return [
            replace(fact, guarded=True)
            if isinstance(fact, (MaskFilled, MaskAdded)) and id(fact.softmaxed_at) in self.guarded
            else fact
            for fact in facts
        ]
