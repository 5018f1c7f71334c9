"""What a property of attention is, and the ways a check of one can end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from msalint.runtime.experiment import Experiment

SEEDS = (0, 1, 2)


class Failed(Exception):
    """The property does not hold: why, the worst value seen, and the rule that usually explains it."""

    def __init__(self, reason: str, worst: float | None = None, rule: str = "") -> None:
        super().__init__(reason)
        self.worst, self.rule = worst, rule


@dataclass(frozen=True)
class Shown:
    """The property holds: the worst value seen, and what there is to say."""

    worst: float | None = None
    note: str = ""


@dataclass(frozen=True)
class Property:
    """A property by name: what is tried, and the check, which raises `Failed` or `NotApplicable`."""

    name: str
    tried: str
    check: Callable[[Experiment], Shown]
    compares: bool = True
    """It compares two runs, which says nothing about a module that is random in eval."""
