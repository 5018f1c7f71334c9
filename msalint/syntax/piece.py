"""Where in a file the nodes of one stretch stand: worked out from the interpreter's own parser, when asked for."""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections.abc import Sequence
from keyword import iskeyword
from typing import Any

from msalint.diagnostic import Position, Span
from msalint.syntax.tokens import Comment, comments, one_literal

TEXT_LIMIT = 8_000_000
"""Characters of one stretch; a longer one is generated data and is given up."""


class Piece:
    """A top-level definition or statement, or a whole file, whichever parser read it.

    `text` is the text of the whole file, `starts` its `line_starts` (shared by all pieces of the file), `first` and
    `last` the lines of the piece.
    """

    __slots__ = ("filename", "first", "last", "starts", "text")

    def __init__(self, filename: str, text: str, starts: Sequence[int], first: int, last: int) -> None:
        self.filename, self.text, self.starts, self.first, self.last = filename, text, starts, first, last

    @property
    def bounds(self) -> tuple[int, int]:
        """The offsets in the text between which the piece stands, its last newline included."""
        return self.starts[self.first - 1], self.end_of(self.last)

    def span_of(self, origin: Any) -> Span:
        """Where a node of this piece stands in the file: 1-based lines, 1-based columns in characters.

        Parentheses around an expression belong to its span where code written behind the span would otherwise bind
        to a part of it only: in `(a @ b)` the span of the product holds the parentheses, in `(f(x))` that of the call
        does not, and `.contiguous()` may follow either. A statement has no leading comments, no semicolon and no
        newline in its span; a decorated definition starts at `def` or `class`; a parameter ends before its comma.
        """
        start, end = self.range_of(origin)
        return Span(self._position(start), self._position(end))

    def text_of(self, origin: Any) -> str:
        """The source text of a node, just as it is written in the file."""
        start, end = self.range_of(origin)
        return self.text[start:end]

    def range_of(self, origin: Any) -> tuple[int, int]:
        """The offsets in the text between which a node stands."""
        raise NotImplementedError

    def end_of(self, line: int) -> int:
        """The offset behind a line and its newline."""
        return self.starts[line] if line < len(self.starts) else len(self.text)

    def line_at(self, offset: int) -> int:
        """The line, from 1, in which an offset of the text stands."""
        return bisect_right(self.starts, offset)

    def _position(self, offset: int) -> Position:
        line = self.line_at(offset)
        return Position(line, offset - self.starts[line - 1] + 1)


class Between:
    """The origin of what the interpreter has no node for: from one of its nodes to another.

    Parentheses around either belong to it; so do `stars` of a parameter in front of the first.
    """

    __slots__ = ("first", "last", "stars")

    def __init__(self, first: ast.AST, last: ast.AST, stars: str = "") -> None:
        self.first, self.last, self.stars = first, last, stars


_PARENTHESES_APART = frozenset(
    {
        ast.Name,
        ast.Attribute,
        ast.Call,
        ast.Subscript,
        ast.List,
        ast.Set,
        ast.Dict,
        ast.ListComp,
        ast.SetComp,
        ast.DictComp,
        ast.Starred,
        ast.Slice,
    }
)
"""Expressions that stay whole whatever is written behind them."""

_BLANK = re.compile(r"(?:[\s\\]|#[^\r\n]*)*")
_WORD_BEFORE = re.compile(r"\w+\Z")
_CASE = re.compile(r"\bcase\Z")


class HostPiece(Piece):
    """A stretch that the interpreter's own parser has read. The origins of its nodes are nodes of `ast`."""

    __slots__ = ("_comments", "_statements", "_subjects", "body")

    def __init__(
        self, filename: str, text: str, starts: Sequence[int], first: int, last: int, body: Sequence[ast.stmt]
    ) -> None:
        super().__init__(filename, text, starts, first, last)
        self.body = body
        self._comments: dict[int, Comment] | None = None
        self._subjects: set[int] = set()
        self._statements: set[int] | None = None

    @property
    def comments(self) -> dict[int, Comment]:
        """The comments of the piece by their lines."""
        if self._comments is None:
            self._comments = comments(self.text, self.starts, *self.bounds)
        return self._comments

    def mark_subject(self, node: ast.expr) -> None:
        """Note that parentheses behind the word `match` belong to a node, and are not those of a call."""
        self._subjects.add(id(node))

    def offset(self, line: int, column: int) -> int:
        """The offset in the text of a place that the parser gave: the column counts bytes of UTF-8."""
        start = self.starts[line - 1]
        if self.text.isascii():
            return start + column
        written = self.text[start : self.end_of(line)]
        return start + (column if written.isascii() else len(written.encode()[:column].decode()))

    def range_of(self, origin: Any) -> tuple[int, int]:
        kind = type(origin)
        if kind is Between:
            return self._between(origin)
        if kind is ast.match_case:
            return self._case(origin)
        start, end = self.bare(origin)
        if kind in _PARENTHESES_APART or not isinstance(origin, ast.expr):
            return start, end
        if isinstance(origin, ast.Constant) and isinstance(origin.value, (bool, type(None))):
            return start, end
        if _is_string(origin) and one_literal(self.text, start, end):
            return start, end
        return self._with_parentheses(origin, start, end)

    def bare(self, node: Any) -> tuple[int, int]:
        """The offsets that the parser gives a node."""
        return self.offset(node.lineno, node.col_offset), self.offset(node.end_lineno, node.end_col_offset)

    def wide(self, node: ast.AST) -> tuple[int, int]:
        """The offsets of a node with all parentheses around it."""
        start, end = self.bare(node)
        return self._with_parentheses(node, start, end) if isinstance(node, ast.expr) else (start, end)

    def _between(self, origin: Between) -> tuple[int, int]:
        start, end = self.wide(origin.first)
        if origin.last is not origin.first:
            end = self.wide(origin.last)[1]
        for _ in origin.stars:
            start = self.text.rindex("*", 0, start)
        return start, end

    def _case(self, node: ast.match_case) -> tuple[int, int]:
        """A case begins at its word, which stands before the pattern and its parentheses."""
        start = self._back(self.bare(node.pattern)[0])
        while self.text[start - 1] == "(":
            start = self._back(start - 1)
        found = _CASE.search(self.text, max(start - 5, 0), start)
        return found.start() if found else start, self.bare(node.body[-1])[1]

    def _with_parentheses(self, node: ast.AST, start: int, end: int) -> tuple[int, int]:
        pairs: list[tuple[int, int]] = []
        left, right = self._back(start), self._ahead(end)
        while self.text[left - 1 : left] == "(" and self.text[right : right + 1] == ")":
            pairs.append((left - 1, right + 1))
            left, right = self._back(left - 1), self._ahead(right + 1)
        if pairs and self._are_of_another(node, left, right):
            pairs.pop()
        return pairs[-1] if pairs else (start, end)

    def _are_of_another(self, node: ast.AST, left: int, right: int) -> bool:
        """Whether the outermost pair is that of a call, of the bases of a class or of a `with`.

        `left` is the offset behind what stands before it, `right` that of what stands behind it.
        """
        before = self.text[left - 1 : left]
        if self._begins_statement(left):
            return False
        if before and before in ")]}\"'":
            return True
        found = _WORD_BEFORE.search(self.text, max(left - 80, 0), left)
        if found is None:
            return False
        word = found.group()
        if word == "with":
            alone = self.text[right : right + 1] == ":"
            return alone and not isinstance(node, (ast.Yield, ast.YieldFrom, ast.NamedExpr))
        return not (iskeyword(word) or (word == "match" and id(node) in self._subjects))

    def _begins_statement(self, left: int) -> bool:
        """Whether what stands behind an offset, on a line below, is the beginning of a statement."""
        start = self._ahead(left)
        if self.line_at(start) == self.line_at(left):
            return False
        if self._statements is None:
            found = (inner for outer in self.body for inner in ast.walk(outer) if isinstance(inner, ast.stmt))
            self._statements = {self.offset(one.lineno, one.col_offset) for one in found}
        return start in self._statements

    def _ahead(self, offset: int) -> int:
        found = _BLANK.match(self.text, offset)
        return offset if found is None else found.end()

    def _back(self, offset: int) -> int:
        """The offset behind the last thing before an offset that is neither blank nor a comment."""
        text = self.text
        while offset:
            before = offset
            while before and (text[before - 1].isspace() or text[before - 1] == "\\"):
                before -= 1
            comment = self.comments.get(self.line_at(before - 1)) if before < offset else None
            if comment is None or not 0 <= comment.offset < before:
                return before
            offset = comment.offset
        return 0


def _is_string(node: ast.expr) -> bool:
    return isinstance(node.value, (str, bytes)) if isinstance(node, ast.Constant) else isinstance(node, ast.JoinedStr)
