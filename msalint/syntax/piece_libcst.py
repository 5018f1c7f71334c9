"""A stretch of a file read by libcst, and where in the file each of its nodes stands."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import libcst as cst
from libcst._nodes.internal import CodegenState

from msalint.diagnostic import Position
from msalint.source import SourceError
from msalint.syntax.depth import TooDeep, nests_too_deeply
from msalint.syntax.piece import TEXT_LIMIT, Piece

_PLACE = re.compile(r"error at (\d+):(\d+)")


class LibcstPiece(Piece):
    """A stretch, or a whole file, parsed by libcst. The origins of its nodes are nodes of libcst.

    Positions are worked out at the first demand, for the whole piece at once, by writing its tree out again and noting
    the offset at which each node begins and ends.
    """

    __slots__ = ("_spans", "module")

    def __init__(
        self, filename: str, text: str, starts: Sequence[int], first: int, last: int, module: cst.Module
    ) -> None:
        super().__init__(filename, text, starts, first, last)
        self.module = module
        self._spans: dict[int, tuple[int, int]] | None = None

    def range_of(self, origin: Any) -> tuple[int, int]:
        if self._spans is None:
            self._spans = _spans(self.module, self.starts[self.first - 1])
        found = self._spans.get(id(origin))
        return found if found is not None else self._first_line()

    def _first_line(self) -> tuple[int, int]:
        """What a place is given whose tree is too deep to be written out."""
        start, end = self.starts[self.first - 1], self.end_of(self.first)
        return start, start + len(self.text[start:end].rstrip("\r\n"))


def parse_piece(filename: str, text: str, starts: Sequence[int], first: int, last: int) -> LibcstPiece:
    """Parse lines `first` to `last` of a text, which must be whole statements without indentation.

    Raises SourceError where they are not Python, TooDeep where they are nested too deeply.
    """
    stretch = text[starts[first - 1] : starts[last] if last < len(starts) else len(text)]
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
    return LibcstPiece(filename, text, starts, first, last, module)


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
        self.ends: dict[int, int] = {}
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
        self.ends[id(node)] = self.offset
        if isinstance(node, cst.Param):
            last = node.default or node.annotation or node.name
            self.spans[id(node)] = (start, self.ends[id(last)])
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
