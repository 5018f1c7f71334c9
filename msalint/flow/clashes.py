"""Clashes of sizes and orders are told only where every path has them: conditions that never meet prove nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msalint.facts import Fact, SizesDisagree, Viewed
from msalint.state import Decisions

MAX_DOUBTS = 40
"""Runs of one entry that try to get by a clash."""


class Clashes:
    """The clashes of all paths through one entry, held back until the last path is read."""

    def __init__(self) -> None:
        self.held: list[tuple[Fact, Decisions]] = []
        self.fitted: set[int] = set()
        self.doubted: set[int] = set()

    def held_back(self, facts: Iterable[Fact], passed: set[int], decisions: Decisions) -> Iterator[Fact]:
        """The other facts of a path, which evaluated the expressions of `passed` under these answers."""
        clashing = set()
        for fact in facts:
            if _is_clash(fact):
                self.held.append((fact, decisions))
                clashing.add(id(fact.at))
            else:
                yield fact
        self.fitted |= passed - clashing

    def doubts(self) -> Iterator[dict[str, bool]]:
        """Answers that may lead by the clashes: those of a clashing path, each in turn the other way.

        Where there are too many to try, the clashes are not told.
        """
        left = MAX_DOUBTS
        for fact, decisions in list(self.held):
            if id(fact.at) in self.doubted:
                continue
            self.doubted.add(id(fact.at))
            for key, answer in list(decisions.asked.items()):
                if id(fact.at) in self.fitted:
                    break
                if key in decisions.closed:
                    continue
                if left == 0:
                    self.fitted.add(id(fact.at))
                    break
                left -= 1
                yield {**decisions.asked, key: not answer}

    def give_up(self) -> None:
        """Tell of none: there is too much left to try."""
        self.fitted |= {id(fact.at) for fact, _ in self.held}

    def on_every_path(self) -> Iterator[Fact]:
        """The clashes at places that no path got by without one."""
        return (fact for fact, _ in self.held if id(fact.at) not in self.fitted)


def _is_clash(fact: Fact) -> bool:
    if isinstance(fact, Viewed):
        return fact.mismatch or bool(fact.left_over) or fact.kind == "other"
    return isinstance(fact, SizesDisagree)
