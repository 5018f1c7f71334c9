"""Where a position of a notebook's joined code lies: in which cell, on which line of it."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import NamedTuple

from msalint.diagnostic import Position


class Place(NamedTuple):
    """A position as a reader counts: from line 1 of the file, or of the cell of a notebook."""

    cell: int | None
    line: int
    column: int

    def __str__(self) -> str:
        """`4:8`, or `cell 3:4:8` in a notebook."""
        cell = "" if self.cell is None else f"cell {self.cell}:"
        return f"{cell}{self.line}:{self.column}"


@dataclass(frozen=True)
class Cells:
    """The code cells of a notebook: their numbers, counted from 1 with all other cells, and their first lines.

    `starts[i]` is the line of the joined code that cell `numbers[i]` begins on.
    """

    numbers: tuple[int, ...]
    starts: tuple[int, ...]

    def place(self, position: Position) -> Place:
        if not self.starts:
            return Place(None, position.line, position.column)
        which = max(bisect_right(self.starts, position.line) - 1, 0)
        return Place(self.numbers[which], position.line - self.starts[which] + 1, position.column)
