"""The sizes that a module is tried on: all distinct, so that a size names its axis, and the heads still divide."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace


@dataclass(frozen=True)
class Sizes:
    """One choice of sizes; `d_model` is heads * d_k. `memory` is the length of another sequence (cross-attention)."""

    batch: int = 2
    seq: int = 5
    heads: int = 3
    d_k: int = 7
    memory: int = 11
    layers: int = 2
    vocab: int = 23
    classes: int = 13
    longest: int = 64
    image: int = 8
    patch: int = 4
    channels: int = 3

    @property
    def d_model(self) -> int:
        return self.heads * self.d_k

    def changed(self, **sizes: int) -> Sizes:
        return replace(self, **sizes)


SIZE_NAMES = tuple(field.name for field in fields(Sizes))

CANDIDATES = (
    Sizes(),
    # Rotary positions and sinusoids want an even head width.
    Sizes(d_k=8),
    # Powers of two in the width, for modules that insist on them.
    Sizes(heads=4, d_k=16),
    Sizes(heads=8, d_k=64),
)
