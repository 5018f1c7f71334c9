"""Which comment belongs to which statement and parameter."""

from __future__ import annotations

import re
from typing import Any

import libcst as cst

from msalint.syntax.piece import Piece

_INSIDE_BRACKETS = re.compile(r"[(\[{,][ \t]*#|^([ \t]*)\S.*[^:\s][ \t]*#.*\r?\n\1[ \t]+\S", re.MULTILINE)
"""A comment behind a bracket or a comma, or on a line that is carried on, further in, on the next."""


class Comments:
    """Finds comments in one piece. A piece with no comment at all costs one search."""

    __slots__ = ("_any", "_inside")

    def __init__(self, piece: Piece) -> None:
        start, end = piece.bounds
        self._any = piece.text.find("#", start, end) >= 0
        self._inside = self._any and _INSIDE_BRACKETS.search(piece.text, start, end) is not None

    def of_line(self, line: Any) -> str:
        """The comment of a line of small statements: behind its first physical line, else behind its last."""
        if not self._any:
            return ""
        if self._inside:
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
        if self._inside and type(node) not in (cst.FunctionDef, cst.ClassDef):
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


_ORDER: dict[type, tuple[str, ...]] = {
    cst.Assign: ("targets", "value"),
    cst.AssignTarget: ("target",),
    cst.AnnAssign: ("target", "annotation", "value"),
    cst.Annotation: ("annotation",),
    cst.AugAssign: ("target", "value"),
    cst.Expr: ("value",),
    cst.Return: ("value",),
    cst.Assert: ("test", "msg"),
    cst.Raise: ("exc",),
    cst.If: ("test",),
    cst.While: ("test",),
    cst.For: ("target", "iter"),
    cst.With: ("lpar", "items"),
    cst.WithItem: ("item", "asname", "comma"),
    cst.Call: ("lpar", "func", "whitespace_before_args", "args", "rpar"),
    cst.Arg: ("value", "comma", "whitespace_after_arg"),
    cst.Attribute: ("lpar", "value", "dot", "rpar"),
    cst.Subscript: ("lpar", "value", "lbracket", "slice", "rbracket", "rpar"),
    cst.SubscriptElement: ("slice", "comma"),
    cst.Index: ("value",),
    cst.Tuple: ("lpar", "elements", "rpar"),
    cst.List: ("lpar", "lbracket", "elements", "rbracket", "rpar"),
    cst.Set: ("lpar", "lbrace", "elements", "rbrace", "rpar"),
    cst.Dict: ("lpar", "lbrace", "elements", "rbrace", "rpar"),
    cst.Element: ("value", "comma"),
    cst.StarredElement: ("value", "comma"),
    cst.DictElement: ("key", "whitespace_before_colon", "whitespace_after_colon", "value", "comma"),
    cst.BinaryOperation: ("lpar", "left", "operator", "right", "rpar"),
    cst.BooleanOperation: ("lpar", "left", "operator", "right", "rpar"),
    cst.UnaryOperation: ("lpar", "expression", "rpar"),
    cst.Comparison: ("lpar", "left", "comparisons", "rpar"),
    cst.ComparisonTarget: ("operator", "comparator"),
    cst.IfExp: ("lpar", "body", "whitespace_before_if", "test", "whitespace_before_else", "orelse", "rpar"),
    cst.ListComp: ("lpar", "lbracket", "elt", "for_in", "rbracket", "rpar"),
    cst.GeneratorExp: ("lpar", "elt", "for_in", "rpar"),
    cst.CompFor: ("whitespace_before", "iter", "ifs", "inner_for_in"),
    cst.CompIf: ("whitespace_before", "test"),
    cst.Name: ("lpar", "rpar"),
    cst.Integer: ("lpar", "rpar"),
    cst.Float: ("lpar", "rpar"),
    cst.SimpleString: ("lpar", "rpar"),
    cst.ConcatenatedString: ("lpar", "whitespace_between", "right", "rpar"),
    cst.LeftParen: ("whitespace_after",),
    cst.LeftSquareBracket: ("whitespace_after",),
    cst.LeftCurlyBrace: ("whitespace_after",),
    cst.RightParen: ("whitespace_before",),
    cst.RightSquareBracket: ("whitespace_before",),
    cst.RightCurlyBrace: ("whitespace_before",),
    cst.Comma: ("whitespace_before", "whitespace_after"),
    cst.Dot: ("whitespace_before", "whitespace_after"),
}
"""Where a line can break inside a statement, in the order it is written."""

_BREAKS_AROUND = ("whitespace_before", "whitespace_after")


def _first_break(node: Any) -> tuple[bool, str]:
    """Whether the statement goes on on another line, and the comment at the end of its first line."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        kind = type(node)
        if kind is cst.ParenthesizedWhitespace:
            return _space(node)
        if kind is cst.SimpleWhitespace:
            continue
        if kind is tuple or kind is list:
            waiting.extend(reversed(node))
            continue
        names = _ORDER.get(kind)
        if names is None:
            names = _BREAKS_AROUND if isinstance(node, (cst.BaseBinaryOp, cst.BaseBooleanOp, cst.BaseCompOp)) else ()
        for name in reversed(names):
            below = getattr(node, name)
            if below is not None:
                waiting.append(below)
    return False, ""
