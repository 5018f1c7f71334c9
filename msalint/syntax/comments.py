"""Which comment belongs to which statement and parameter."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import Any

from msalint.syntax.piece import HostPiece
from msalint.syntax.tokens import CONTINUATION

_TO_COLON = re.compile(r"(?:[\s\\()\[\],/*]|#[^\r\n]*|\bas\s+\w+)*:")
_NAMED = re.compile(r"(?:async\s+def|def|class|try|except)\b[\s\\*]*\w*")
_BEHIND_PARAM = re.compile(r"[ \t\f]*(?:#([^\r\n]*))?(?:(?:\s|#[^\r\n]*)*,[ \t\f]*(?:#([^\r\n]*))?)?")


class Comments:
    """Finds comments in one piece. A piece with no comment at all costs one search."""

    __slots__ = ("_lines", "_piece", "any")

    def __init__(self, piece: HostPiece) -> None:
        self._piece = piece
        self._lines = piece.comments
        self.any = bool(self._lines)

    def of_lines(self, first: int, last: int) -> str:
        """The comment of small statements: behind their first physical line, else behind their last."""
        return (self._of_break(first, last) if first < last else "") or self._said(last)

    def of_block(self, node: Any, body: Sequence[Any]) -> str:
        """The comment of a compound statement: behind its first physical line, else behind its colon.

        Those inside the head of a definition belong to its parameters.
        """
        first = self._piece.line_at(self._piece.range_of(node)[0]) if type(node) is ast.match_case else node.lineno
        below, last = body[0].lineno, body[-1].end_lineno or 0
        definition = isinstance(node, _DEFINITIONS)
        said = self._said(first)
        if said and first < below and not definition:
            return said
        if last not in self._lines and not any(line in self._lines for line in range(first, below + 1)):
            return ""
        colon = self._colon_line(node)
        inside = "" if definition else self._of_break(first, colon)
        return inside or self._said(last if colon == below else colon)

    def of_param(self, node: ast.arg, default: ast.expr | None) -> str:
        """The comment behind a parameter and its comma, on the same line."""
        last = node if default is None else default
        line = last.end_lineno or last.lineno
        if line not in self._lines and line + 1 not in self._lines:
            return ""
        piece = self._piece
        end = piece.wide(last)[1]
        found = _BEHIND_PARAM.match(piece.text, end)
        if found is None:
            return ""
        behind, comma = found.groups()
        return (comma or "").strip() or (behind or "").strip()

    def _said(self, line: int) -> str:
        comment = self._lines.get(line)
        return "" if comment is None else comment.said

    def _of_break(self, first: int, last: int) -> str:
        """The comment where lines `first` to `last` break for the first time, but in a string or by a backslash."""
        piece = self._piece
        for line in range(first, last):
            comment = self._lines.get(line)
            if comment is not None:
                if comment.offset >= 0:
                    return comment.said
            elif CONTINUATION.search(piece.text, piece.starts[line - 1], piece.end_of(line)) is None:
                return ""
        return ""

    def _colon_line(self, node: Any) -> int:
        """The line of the colon that ends the head of a compound statement."""
        piece = self._piece
        last = _last_of_head(node)
        if last is None:
            start = piece.bare(node)[0]
            named = _NAMED.match(piece.text, start)
            end = start if named is None else named.end()
        else:
            end = piece.bare(last)[1]
        found = _TO_COLON.match(piece.text, end)
        return piece.line_at(end if found is None else found.end() - 1)


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def _last_of_head(node: Any) -> Any:
    """The last node in front of the colon of a compound statement."""
    kind = type(node)
    if kind in (ast.FunctionDef, ast.AsyncFunctionDef):
        return node.returns or _last_param(node.args) or _last_of(getattr(node, "type_params", ()))
    if kind is ast.ClassDef:
        inside = [*node.bases, *node.keywords]
        if inside:
            return max(inside, key=lambda one: (one.end_lineno, one.end_col_offset))
        return _last_of(getattr(node, "type_params", ()))
    if kind in (ast.With, ast.AsyncWith):
        return node.items[-1].optional_vars or node.items[-1].context_expr
    if kind is ast.match_case:
        return node.guard or node.pattern
    for name in ("test", "iter", "subject", "type"):
        found = getattr(node, name, None)
        if found is not None:
            return found
    return None


def _last_param(args: ast.arguments) -> Any:
    if args.kwarg is not None:
        return args.kwarg
    if args.kwonlyargs:
        return args.kw_defaults[-1] or args.kwonlyargs[-1]
    if args.vararg is not None:
        return args.vararg
    return _last_of(args.defaults) or _last_of(args.args) or _last_of(args.posonlyargs)


def _last_of(nodes: Sequence[Any]) -> Any:
    return nodes[-1] if nodes else None
