"""What each torch call does to a value: one family a file, small functions on shapes, found by name.

An operation that no table knows gives an unknown value, silently.
"""

from __future__ import annotations

from msalint.ops import (
    attention,
    contraction,
    create,
    einops,
    elementwise,
    indexing,
    layers,
    layout,
    masking,
    reduce,
    scalars,
    softmax,
)
from msalint.ops.table import METHODS, PATHS, Invocation

__all__ = [
    "METHODS",
    "PATHS",
    "Invocation",
    "attention",
    "contraction",
    "create",
    "einops",
    "elementwise",
    "indexing",
    "layers",
    "layout",
    "masking",
    "reduce",
    "scalars",
    "softmax",
]
