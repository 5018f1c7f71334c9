"""What only later code tells of an earlier call: a pair taken apart, an axis averaged away, a late mask, a count."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msalint.facts import Fact, MaskMultiplied, MhaCalled, Multiplied, Softmaxed, TupleUsed, Weighted, WeightsKept
from msalint.state import State
from msalint.values import replace


def completed(facts: Iterable[Fact], state: State) -> Iterator[Fact]:
    """The facts of a path that has ended, with what its end knows better than their moment did."""
    seen = list(facts)
    for fact in seen:
        if isinstance(fact, MaskMultiplied) and id(fact.softmaxed_at) in state.cleared:
            continue  # softmax(scores * mask) * mask hides what the mask hides
        if isinstance(fact, TupleUsed) and id(fact.call) in state.taken_apart:
            yield replace(fact, taken_apart=True)
        elif isinstance(fact, MhaCalled):
            yield _layout_told(fact, state)
        elif isinstance(fact, Softmaxed) and id(fact.at) in state.scaled_late:
            yield replace(fact, scaled_late=True)
        elif isinstance(fact, Multiplied) and fact.head_axis is not None and not _is_weighed(fact, seen):
            yield replace(fact, head_axis=None)
        elif isinstance(fact, Weighted) and id(fact.softmax.at) in state.counted:
            yield replace(fact, renormalised=True)
        elif isinstance(fact, WeightsKept) and id(fact.made_at) in state.weighed:
            yield replace(fact, weighed=True)
        else:
            yield fact


def _layout_told(fact: MhaCalled, state: State) -> MhaCalled:
    """The call with what is done with its axes: one that positions count along, or that is pooled, is the sequence."""
    if fact.second_axis in state.pooled:
        fact = replace(fact, pooled_at=state.pooled[fact.second_axis])
    first, second = (state.placed.get(axis) if axis else None for axis in (fact.first_axis, fact.second_axis))
    if (first is None) != (second is None):
        fact = replace(fact, placed_at=first or second, placed_first=first is not None)
    return fact


def _is_weighed(fact: Multiplied, facts: Iterable[Fact]) -> bool:
    """Whether values are summed under the scores of a product: scores that nobody uses attend to nothing."""
    scores = (one.softmax.scores.traits.product for one in facts if isinstance(one, Weighted))
    return any(product is not None and product.at is fact.at for product in scores)
