"""One parsed stretch of a file, and where in the file each of its libcst nodes stands."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import libcst as cst
from libcst._nodes.internal import CodegenState

from msalint.diagnostic import Position, Span
from msalint.source import SourceError
from msalint.syntax.depth import TooDeep, nests_too_deeply

TEXT_LIMIT = 8_000_000
"""Characters of one stretch; a longer one is generated data and is given up."""


_PLACE = re.compile(r"error at (\d+):(\d+)")


class Piece:
    """A top-level definition or statement, or a whole file, parsed by libcst.

    `text` is the text of the whole file, `starts` its `line_starts` (shared by all pieces of the file), `first` and
    `last` the lines of the piece. Positions are worked out at the first demand, for the whole piece at once, by writing
    its tree out again and noting the offset at which each node begins and ends.
    """

    __slots__ = ("_spans", "filename", "first", "last", "module", "starts", "text")

    def __init__(
        self, filename: str, text: str, starts: Sequence[int], first: int, last: int, module: cst.Module
    ) -> None:
        self.filename, self.text, self.starts = filename, text, starts
        self.first, self.last, self.module = first, last, module
        self._spans: dict[int, tuple[int, int]] | None = None

    @property
    def bounds(self) -> tuple[int, int]:
        """The offsets in the text between which the piece stands, its last newline included."""
        return self.starts[self.first - 1], _end(self.text, self.starts, self.last)

    def span_of(self, node: cst.CSTNode) -> Span:
        """Where a node of this piece stands in the file: 1-based lines, 1-based columns in characters.

        Parentheses around an expression belong to its span where code written behind the span would otherwise bind
        to a part of it only: in `(a @ b)` the span of the product holds the parentheses, in `(f(x))` that of the call
        does not, and `.contiguous()` may follow either. A statement has no leading comments, no semicolon and no
        newline in its span; a decorated definition starts at `def` or `class`; a parameter ends before its comma.
        """
        start, end = self._range_of(node)
        return Span(self._position(start), self._position(end))

    def text_of(self, node: cst.CSTNode) -> str:
        """The source text of a node, just as it is written in the file."""
        start, end = self._range_of(node)
        return self.text[start:end]

    def _range_of(self, node: cst.CSTNode) -> tuple[int, int]:
        if self._spans is None:
            self._spans = _spans(self.module, self.starts[self.first - 1])
        found = self._spans.get(id(node))
        return found if found is not None else self._first_line()

    def _first_line(self) -> tuple[int, int]:
        """What a place is given whose tree is too deep to be written out."""
        start, end = self.starts[self.first - 1], _end(self.text, self.starts, self.first)
        return start, start + len(self.text[start:end].rstrip("\r\n"))

    def _position(self, offset: int) -> Position:
        line = bisect_right(self.starts, offset)
        return Position(line, offset - self.starts[line - 1] + 1)


def parse_piece(filename: str, text: str, starts: Sequence[int], first: int, last: int) -> Piece:
    """Parse lines `first` to `last` of a text, which must be whole statements without indentation.

    Raises SourceError where they are not Python, TooDeep where they are nested too deeply.
    """
    stretch = text[starts[first - 1] : _end(text, starts, last)]
    if len(stretch) > TEXT_LIMIT or nests_too_deeply(stretch):
        raise TooDeep(first)
    try:
        module = cst.parse_module(stretch)
    except cst.ParserSyntaxError as error:
        place = _PLACE.search(error.message)
        line, column = (int(place[1]), int(place[2]) + 1) if place else (1, 1)
        raise SourceError("libcst can't parse this", Position(first + line - 1, max(column, 1))) from error
    except RecursionError as error:
        raise TooDeep(first) from error
    return Piece(filename, text, starts, first, last, module)


def _end(text: str, starts: Sequence[int], line: int) -> int:
    """The offset behind a line and its newline."""
    return starts[line] if line < len(starts) else len(text)


_PARENTHESES_APART = (
    cst.Name,
    cst.Attribute,
    cst.Call,
    cst.Subscript,
    cst.List,
    cst.Set,
    cst.Dict,
    cst.ListComp,
    cst.SetComp,
    cst.DictComp,
    cst.SimpleString,
    cst.FormattedString,
    cst.StarredElement,
)
"""Expressions that stay whole whatever is written behind them."""


class _Offsets(CodegenState):
    """Writes a tree out and notes, by the id of each node, the offsets in the file between which it stands."""

    def __init__(self, module: cst.Module, offset: int) -> None:
        super().__init__(module.default_indent, module.default_newline)
        self.offset = offset
        self.spans: dict[int, tuple[int, int]] = {}
        self.open: list[int] = []

    def add_token(self, value: str) -> None:
        self.offset += len(value)

    def add_indent_tokens(self) -> None:
        for token in self.indent_tokens:
            self.offset += len(token)

    def pop_trailing_newline(self) -> None:
        pass

    def before_codegen(self, node: cst.CSTNode) -> None:
        self.open.append(self.offset)

    def after_codegen(self, node: cst.CSTNode) -> None:
        start = self.open.pop()
        if isinstance(node, cst.Param):
            last = node.default or node.annotation or node.name
            self.spans[id(node)] = (start, self.spans[id(last)][1])
        else:
            self.spans.setdefault(id(node), (start, self.offset))

    @contextmanager
    def record_syntactic_position(
        self, node: cst.CSTNode, *, start_node: cst.CSTNode | None = None, end_node: cst.CSTNode | None = None
    ) -> Iterator[None]:
        start = self.offset
        yield
        if isinstance(node, cst.BaseExpression) and not isinstance(node, _PARENTHESES_APART):
            return
        if start_node is not None:
            start = self.spans[id(start_node)][0]
        self.spans[id(node)] = (start, self.offset if end_node is None else self.spans[id(end_node)][1])


def _spans(module: cst.Module, offset: int) -> dict[int, tuple[int, int]]:
    state = _Offsets(module, offset)
    with suppress(RecursionError):
        module._codegen(state)
    return state.spans


def expressions_below(node: cst.CSTNode) -> Iterator[Any]:
    """The outermost expressions below a node, whatever its kind."""
    for child in node.children:
        if isinstance(child, cst.BaseExpression):
            yield child
        else:
            yield from expressions_below(child)
