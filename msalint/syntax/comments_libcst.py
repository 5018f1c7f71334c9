"""Which comment belongs to which statement and parameter of a libcst tree."""

from __future__ import annotations

from typing import Any

import libcst as cst

from msalint.syntax.piece_libcst import LibcstPiece


class Comments:
    """Finds comments in one piece. A piece with no comment at all costs one search."""

    __slots__ = ("_any",)

    def __init__(self, piece: LibcstPiece) -> None:
        start, end = piece.bounds
        self._any = piece.text.find("#", start, end) >= 0

    def of_line(self, line: Any) -> str:
        """The comment of a line of small statements: behind its first physical line, else behind its last."""
        if not self._any:
            return ""
        for small in line.body:
            broken, comment = _first_break(small)
            if broken:
                if comment:
                    return comment
                break
        return _text(line.trailing_whitespace.comment)

    def of_block(self, node: Any) -> str:
        """The comment of a compound statement: behind its first physical line, else behind its colon.

        Those inside the head of a definition belong to its parameters.
        """
        if not self._any:
            return ""
        if type(node) not in (cst.FunctionDef, cst.ClassDef):
            _, comment = _first_break(node)
            if comment:
                return comment
        if type(node) is cst.Match:
            return _text(node.whitespace_after_colon.comment)
        suite = node.body
        if type(suite) is cst.IndentedBlock:
            return _text(suite.header.comment)
        return _text(suite.trailing_whitespace.comment)

    def of_param(self, node: cst.Param) -> str:
        """The comment behind a parameter and its comma, on the same line."""
        if not self._any:
            return ""
        comment = ""
        if type(node.comma) is cst.Comma:
            comment = _space(node.comma.whitespace_after)[1] or _space(node.comma.whitespace_before)[1]
        return comment or _space(node.whitespace_after_param)[1]


def _text(comment: cst.Comment | None) -> str:
    return "" if comment is None else comment.value[1:].strip()


def _space(node: Any) -> tuple[bool, str]:
    """Whether a stretch of whitespace breaks the line, and the comment it begins with."""
    if type(node) is cst.ParenthesizedWhitespace:
        return True, _text(node.first_line.comment)
    return False, ""


_BELOW_HEAD = (
    cst.BaseSuite,
    cst.Else,
    cst.If,
    cst.Finally,
    cst.ExceptHandler,
    cst.ExceptStarHandler,
    cst.MatchCase,
)
"""What follows the head of a compound statement."""


def _first_break(statement: cst.CSTNode) -> tuple[bool, str]:
    """Whether a statement or the head of one goes on on another line, and the comment at the end of its first line."""
    waiting = [*reversed(statement.children)]
    while waiting:
        node = waiting.pop()
        if type(node) is cst.ParenthesizedWhitespace:
            return _space(node)
        if not isinstance(node, _BELOW_HEAD):
            waiting.extend(reversed(node.children))
    return False, ""
