"""Code that stands in prose: some lines of a file with what is in front of the code on each of them."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from msalint.diagnostic import Position
from msalint.source import LineTable


@dataclass(frozen=True)
class Line:
    """A line of code: its number in the file, and how many characters of it stand in front of the code."""

    number: int
    before: int


@dataclass(frozen=True)
class Block:
    """A block of code of a file. Its first line stands at `lines[0]`, and so on; lines of output are left out.

    `prompts`: each line has `>>> ` or `... ` in front. `forbidden`: what may not come into it by a fix, such as the
    quotes of the string it stands in.
    """

    file: LineTable
    lines: tuple[Line, ...]
    prompts: bool = False
    forbidden: tuple[str, ...] = ()
    prose: bool = True

    @cached_property
    def text(self) -> str:
        return "".join(self.file.line(line.number)[line.before :] + "\n" for line in self.lines)

    def outward(self, position: Position) -> Position:
        if position.line > len(self.lines):
            return Position(self.lines[-1].number + 1, 1)
        line = self.lines[position.line - 1]
        return Position(line.number, position.column + line.before)

    def indented(self, text: str) -> str:
        """An edit's text: all of its lines but the first have in front what the block's second line has."""
        return text.replace("\n", "\n" + self._front(self.lines[min(1, len(self.lines) - 1)], first=False))

    def rewritten(self, text: str) -> str | None:
        """The file with these lines of code, each behind what stood in front of the one it replaces."""
        old, new = self.text.split("\n")[:-1], text.removesuffix("\n").split("\n")
        if text == self.text:
            return self.file.text
        if not text.strip() or any(word in line for word in self.forbidden for line in set(new) - set(old)):
            return None
        beginnings = _statement_lines(text) if self.prompts else frozenset()
        changed: dict[int, list[str]] = {}
        for kind, first, last, begin, end in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            if kind == "equal":
                continue
            fresh = [
                self._placed(new[at], self.lines[min(first, len(old) - 1)], at in beginnings)
                for at in range(begin, end)
            ]
            if first == last:  # new lines in front of line `first`, or behind the last one
                anchor = min(first, len(old) - 1)
                kept = changed.get(anchor, [self.file.line(self.lines[anchor].number)])
                changed[anchor] = [*fresh, *kept] if first < len(old) else [*kept, *fresh]
            else:
                changed |= {at: [] for at in range(first, last)}
                changed[first] = fresh
        return self._with(changed)

    def _with(self, changed: dict[int, list[str]]) -> str:
        """The file in which some lines of the block, by index, are replaced by others."""
        text = self.file.text
        for at, rows in sorted(changed.items(), reverse=True):
            number = self.lines[at].number
            start, end = self.file.offset(Position(number, 1)), self.file.offset(Position(number + 1, 1))
            line_break = text[start + len(self.file.line(number)) : end]
            text = text[:start] + (line_break or "\n").join(rows) + (line_break if rows else "") + text[end:]
        return text

    def _placed(self, code: str, like: Line, begins: bool) -> str:
        return (self._front(like, begins) + code).rstrip() if code.strip() or self.prompts else ""

    def _front(self, like: Line, first: bool) -> str:
        front = self.file.line(like.number)[: like.before]
        if not self.prompts:
            return front if not front.strip() else " " * len(front)
        indent = front[: len(front) - len(front.lstrip())]
        return indent + (">>> " if first else "... ")


def _statement_lines(text: str) -> frozenset[int]:
    """The lines (from 0) that statements begin on."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()
    decorated = (getattr(node, "decorator_list", None) or [node] for node in tree.body)
    return frozenset(min(one.lineno for one in first) - 1 for first in decorated)


def dedented(rows: Sequence[tuple[int, str]]) -> tuple[Line, ...]:
    """Lines of code (number, text) without the blanks that all of them share, and without blank ones at both ends."""
    filled = [row for row in rows if row[1].strip()]
    if not filled:
        return ()
    before = min(len(text) - len(text.lstrip()) for _, text in filled)
    first, last = rows.index(filled[0]), len(rows) - rows[::-1].index(filled[-1])
    return tuple(Line(number, min(before, len(text))) for number, text in rows[first:last])
