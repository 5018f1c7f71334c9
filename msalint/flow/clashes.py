"""Sizes that can't fit are told only where they can't fit on any path: two conditions that never meet prove nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msalint.facts import Fact, SizesDisagree, Viewed


class Clashes:
    """The clashes of all paths through one entry, held back until the last path is read."""

    def __init__(self) -> None:
        self.held: list[Fact] = []
        self.fitted: set[int] = set()

    def held_back(self, facts: Iterable[Fact], passed: set[int]) -> Iterator[Fact]:
        """The other facts of a path, which evaluated the expressions of `passed`."""
        clashing = set()
        for fact in facts:
            if _is_clash(fact):
                self.held.append(fact)
                clashing.add(id(fact.at))
            else:
                yield fact
        self.fitted |= passed - clashing

    def on_every_path(self) -> Iterator[Fact]:
        """The clashes at places that no path got by without one."""
        return (fact for fact in self.held if id(fact.at) not in self.fitted)


def _is_clash(fact: Fact) -> bool:
    return isinstance(fact, SizesDisagree) or (isinstance(fact, Viewed) and (fact.mismatch or bool(fact.left_over)))
