"""What a person asks of `trace` and `probe`: how the target is to be built and called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from msalint.runtime.sizes import CANDIDATES, Sizes

MaskKind = Literal["none", "causal", "padding", "both"]


@dataclass(frozen=True)
class Request:
    """What a person asked for: constructor settings, input shapes, a mask, sizes, a device, a call of their own."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of forward themselves, by parameter; then no other is made up."""
    mask: MaskKind = "none"
    mask_true: Literal["keep", "hide"] | None = None
    device: str = "cpu"
    call: str | None = None
    sizes: tuple[Sizes, ...] = CANDIDATES
    batch: int | None = None
    seq: int | None = None
    seed: int = 0
    dropout: float = 0.0
    """The dropout rate to build with: above 0 where its effect is to be seen."""
    venture: bool = False
    """Build with a whole number where nothing tells what an argument of the constructor is."""
