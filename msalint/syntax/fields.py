"""Places inside f-strings on a Python before 3.12, whose parser does not tell them right."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Generator, Iterator

from msalint.source import NEWLINE
from msalint.syntax.piece import HostPiece
from msalint.syntax.tokens import NESTED_QUOTES, STRING, strings

PLACED = NESTED_QUOTES
"""Whether the parser gives the places of expressions inside f-strings."""


class FieldPiece(HostPiece):
    """The expressions in one f-string, each parsed once more by itself when a place is asked for."""

    __slots__ = ("_again", "_around", "_literal")

    def __init__(self, around: HostPiece, literal: ast.JoinedStr) -> None:
        super().__init__(around.filename, around.text, around.starts, around.first, around.last, ())
        self._around, self._literal = around, literal
        self._again: dict[int, tuple[HostPiece, ast.AST, int, int]] | None = None
        self._comments = around.comments

    def bare(self, node: ast.AST) -> tuple[int, int]:
        """The offsets of a node; those of the f-string where the expression could not be found in it."""
        if self._again is None:
            self._again = dict(self._read_again())
        found = self._again.get(id(node))
        if found is None:
            return self._around.bare(self._literal)
        field, again, first, last = found
        start, end = field.bare(again)
        # The brackets put around `a, b` are counted to it.
        return max(start, first), min(end, last)

    def _read_again(self) -> Iterator[tuple[int, tuple[HostPiece, ast.AST, int, int]]]:
        places = list(_fields_of(self.text, *self._around.bare(self._literal)))
        expressions = list(formatted(self._literal))
        if len(places) != len(expressions):
            return
        for (start, end), expression in zip(places, expressions, strict=True):
            again = _parse(self.text[start:end])
            if again is None or ast.dump(again) != ast.dump(expression):
                continue
            # The bracket put in front stands where the brace of the field does: one character, one byte.
            starts = (start - 1, *(line.end() for line in NEWLINE.finditer(self.text, start, end)))
            piece = HostPiece(self.filename, self.text, starts, 1, len(starts), ())
            for ours, theirs in zip(ast.walk(expression), ast.walk(again), strict=True):
                yield id(ours), (piece, theirs, start, end)


def formatted(literal: ast.AST) -> Iterator[ast.expr]:
    """The expressions in an f-string, those of its format specifications included, in the order they are written."""
    for part in getattr(literal, "values", ()):
        if not isinstance(part, ast.Constant):
            yield part.value
            yield from formatted(part.format_spec)


def _parse(expression: str) -> ast.expr | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(f"({expression})", mode="eval").body
    except (SyntaxError, ValueError, RecursionError):
        return None


_LITERAL = re.compile(r"\\N\{[^}]*\}|\\(?s:[^{])|\{\{|\}\}|\{")
_RAW_LITERAL = re.compile(r"\{\{|\}\}|\{")
_SPECIFICATION = re.compile(r"\{|\}")
_EXPRESSION = re.compile(rf"[!=<>]=|[()\[\]{{}}:!=]|{STRING.pattern}")


def _fields_of(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Where the expressions of an f-string stand, in the order of `formatted`."""
    before = start
    for opening, closing in strings(text, start, end):
        prefix = text[before:opening][-2:].lower()
        before = closing
        if "f" not in prefix:
            continue
        pattern = _RAW_LITERAL if "r" in prefix else _LITERAL
        at = opening
        while (brace := pattern.search(text, at, closing)) is not None:
            at = brace.end()
            if brace.group() == "{":
                at = yield from _field(text, at, closing)


def _field(text: str, start: int, end: int) -> Generator[tuple[int, int], None, int]:
    """The expression of a field and those of its format specification. Returns the offset behind the field."""
    stop = at = _expression_end(text, start, end)
    yield start, stop
    while at < end and text[at] not in ":}":
        at += 1
    if text[at : at + 1] == ":":
        while (brace := _SPECIFICATION.search(text, at, end)) is not None:
            at = brace.end()
            if brace.group() == "}":
                return at
            at = yield from _field(text, at, end)
    return at + 1


def _expression_end(text: str, start: int, end: int) -> int:
    depth = 0
    for token in _EXPRESSION.finditer(text, start, end):
        written = token.group()
        if written in ("(", "[", "{"):
            depth += 1
        elif depth and written in (")", "]", "}"):
            depth -= 1
        elif not depth and written in ("}", ":", "!", "="):
            return token.start()
    return end
