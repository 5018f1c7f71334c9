"""Which keys each query gives weight to, read off the recorded weights, and what is odd about a causal pattern."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from msalint.runtime.experiment import Experiment
from msalint.runtime.recorder import WeightsTracer

_NOTHING = 1e-12
"""A weight below this counts for nothing."""


def seen_keys(
    it: Experiment, masks: Mapping[str, Any] | None = None, seed: int = 0, tokens: Tensor | None = None
) -> Tensor | None:
    """(query, key), True where a query gives a key weight, in any head of any sample.

    None where no weights were recorded, or those of several attention calls differ.
    """
    tokens = it.tokens(seed) if tokens is None else tokens
    with WeightsTracer() as tracer:
        it.run(tokens, masks)
    patterns = [
        (attention.weights > _NOTHING).flatten(0, -3).any(0)
        for attention in tracer.attentions
        if attention.scored and attention.weights.dim() > 2
    ]
    seq = tokens.shape[1]
    if not patterns or any(pattern.shape != (seq, seq) for pattern in patterns):
        return None
    return patterns[0] if all(torch.equal(pattern, patterns[0]) for pattern in patterns) else None


def causal_fault(seen: Tensor) -> tuple[str, str] | None:
    """What is wrong with a pattern that is nearly causal, and the rule: None for a causal one and for any other.

    A row whose keys are all hidden shows as one that sees all, or none: the first row of a mask that hides the
    diagonal, the last one of a mask that hides the past.
    """
    number = len(seen)
    if number < 3:
        return None
    lower = torch.ones_like(seen).tril()
    if torch.equal(seen[1:], lower.tril(-1)[1:]):
        return "no token sees itself: the mask hides the diagonal", "MSA309"
    for shown in (lower.T, lower.T.triu(1)):
        if torch.equal(seen[:-1], shown[:-1]):
            return "tokens see later ones and no earlier one: the mask is upside down", "MSA310"
    if torch.equal(seen[:-2], torch.ones_like(seen).tril(1)[:-2]):
        return "each token sees the one after it", "MSA310"
    return None
