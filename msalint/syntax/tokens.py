"""The few tokens that the interpreter's tree leaves out: comments, and where one string ends and the next begins."""

from __future__ import annotations

import io
import re
import sys
import tokenize
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_STRING = (
    r'"""[^"\\]*(?:(?:\\(?s:.)|"(?!""))[^"\\]*)*"""'
    r"|'''[^'\\]*(?:(?:\\(?s:.)|'(?!''))[^'\\]*)*'''"
    r'|"[^"\\\r\n]*(?:\\(?:\r\n|(?s:.))[^"\\\r\n]*)*"'
    r"|'[^'\\\r\n]*(?:\\(?:\r\n|(?s:.))[^'\\\r\n]*)*'"
)
STRING = re.compile(_STRING)
"""A string from its first quote to its last."""

_STRING_OR_COMMENT = re.compile(rf"#[^\r\n]*|{_STRING}")
_BETWEEN_STRINGS = re.compile(r"(?:[\s\\]|#[^\r\n]*)*[A-Za-z]{0,2}")
CONTINUATION = re.compile(r"\\(?:\r\n|\r|\n)\Z")
_FORMATTED = re.compile(r"[fFtT][rR]?[\"']|[rR][fFtT][\"']")

NESTED_QUOTES = sys.version_info >= (3, 12)
"""Whether an expression in an f-string may hold the quotes of the f-string."""


class Comment(NamedTuple):
    """A comment: the offset of its `#`, and what it says, stripped. `offset` is -1 for a line that ends in a string."""

    offset: int
    said: str


INSIDE_STRING = Comment(-1, "")
"""Stands for a line whose end is inside a string."""


def comments(text: str, starts: Sequence[int], start: int, end: int) -> dict[int, Comment]:
    """The comments between two offsets, which hold whole statements, by their lines.

    Lines that end inside a string are there too, as `INSIDE_STRING`. Empty where there is no `#` at all.
    """
    found: dict[int, Comment] = {}
    if text.find("#", start, end) < 0:
        return found
    for match in _STRING_OR_COMMENT.finditer(text, start, end):
        at = match.start()
        if text[at] == "#":
            line = bisect_right(starts, at)
            if NESTED_QUOTES and _FORMATTED.search(text, starts[line - 1], at):
                return by_tokenizer(text, starts, start, end)
            found[line] = Comment(at, match.group()[1:].strip())
        else:
            _note_string(found, starts, at, match.end())
    return found


def _note_string(found: dict[int, Comment], starts: Sequence[int], at: int, end: int) -> None:
    line = bisect_right(starts, at)
    while line < len(starts) and starts[line] < end:
        found[line] = INSIDE_STRING
        line += 1


def by_tokenizer(text: str, starts: Sequence[int], start: int, end: int) -> dict[int, Comment]:
    """The same by the interpreter's tokenizer, which knows strings in f-strings."""
    found: dict[int, Comment] = {}
    before = bisect_right(starts, start) - 1
    middle = getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)
    for token in tokenize.generate_tokens(io.StringIO(text[start:end], newline="").readline):
        line = before + token.start[0]
        if token.type == tokenize.COMMENT:
            found[line] = Comment(starts[line - 1] + token.start[1], token.string[1:].strip())
        elif token.type in (tokenize.STRING, middle):
            found.update((inner, INSIDE_STRING) for inner in range(line, before + token.end[0]))
    return found


def one_literal(text: str, start: int, end: int) -> bool:
    """Whether a string constant is written as one string, not as several side by side."""
    return next(strings(text, start, end))[1] == end


def strings(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The strings written side by side between two offsets: where the quotes of each begin and end."""
    while start < end:
        between = _BETWEEN_STRINGS.match(text, start, end)
        found = STRING.match(text, start if between is None else between.end(), end)
        if found is None:
            # Quotes within those of an f-string.
            yield start, end
            return
        yield found.span()
        start = found.end()
