"""Suppression comments: (diagnostics, comments) -> kept, hidden, unused; a pure function."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from msalint.diagnostic import Diagnostic, Position, Span
from msalint.source import LineTable

COMMENT = re.compile(
    r"#\s*(?:(?P<noqa>noqa)(?![\w-])(?:\s*:\s*(?P<codes>[A-Za-z]+\d+(?:[\s,]+[A-Za-z]+\d+)*))?"
    r"|msalint:\s*(?P<verb>ignore-file|ignore)(?:\s*\[(?P<words>[^\]]*)\])?(?:\s*--[^#]*)?)",
    re.IGNORECASE,
)
OWN_CODE = re.compile(r"MSA\w*", re.IGNORECASE)


@dataclass(frozen=True)
class Word:
    """One code or name of a suppression, and where it is written."""

    text: str
    span: Span


@dataclass(frozen=True)
class Suppression:
    """One comment and the lines it covers, first and last included.

    `words` is None for one that hides every code. `foreign`: it also holds codes of other tools, or is a bare noqa
    that other tools read, so that it is not ours to call unused as a whole. `alone`: nothing but it is on its line.
    """

    span: Span
    first: int
    last: int
    words: tuple[Word, ...] | None
    foreign: bool = False
    alone: bool = False


@dataclass(frozen=True)
class Outcome:
    """What suppressions did. `unused` pairs each one with the words of it that hid nothing."""

    kept: tuple[Diagnostic, ...]
    hidden: tuple[Diagnostic, ...]
    unused: tuple[tuple[Suppression, tuple[Word, ...]], ...]


def apply(
    diagnostics: Iterable[Diagnostic], suppressions: Sequence[Suppression], codes: Callable[[str], frozenset[str]]
) -> Outcome:
    """Hide what a suppression covers. `codes` gives the codes that a word of a suppression stands for."""
    used: set[tuple[int, str | None]] = set()
    kept: list[Diagnostic] = []
    hidden: list[Diagnostic] = []
    meant = [
        None if comment.words is None else [(word.text, codes(word.text)) for word in comment.words]
        for comment in suppressions
    ]
    for diagnostic in diagnostics:
        line = diagnostic.span.start.line
        hits: list[tuple[int, str | None]] = []
        for number, comment in enumerate(suppressions):
            if comment.first <= line <= comment.last:
                words = meant[number]
                if words is None:
                    hits.append((number, None))
                else:
                    hits += [(number, text) for text, those in words if diagnostic.code in those]
        used.update(hits)
        (hidden if hits else kept).append(diagnostic)
    unused = tuple(_unused(suppressions, used))
    return Outcome(tuple(kept), tuple(hidden), unused)


def _unused(
    suppressions: Sequence[Suppression], used: set[tuple[int, str | None]]
) -> Iterator[tuple[Suppression, tuple[Word, ...]]]:
    for number, comment in enumerate(suppressions):
        if comment.words is None:
            if (number, None) not in used and not comment.foreign:
                yield comment, ()
        else:
            left = tuple(word for word in comment.words if (number, word.text) not in used)
            if left:
                yield comment, left


def may_hold(text: str) -> bool:
    """Whether a text can hold a suppression at all: a quick look before the comments are read."""
    folded = text.casefold()
    return "noqa" in folded or "msalint:" in folded


def find(text: str) -> list[Suppression]:
    """The suppressions of a file, in order."""
    if not may_hold(text):
        return []
    return [found for block in _comments(text) for found in _read(block)]


@dataclass(frozen=True)
class _Comment:
    """A comment, the lines of the statement it belongs to, and whether it stands on a line of its own."""

    text: str
    line: int
    column: int
    first: int
    last: int
    alone: bool


def _read(comment: _Comment) -> Iterator[Suppression]:
    for match in COMMENT.finditer(comment.text):
        start = Position(comment.line, comment.column + match.start())
        span = Span(start, Position(comment.line, comment.column + match.start() + len(match.group().rstrip())))
        words: tuple[Word, ...] | None = None
        foreign = False
        if match.group("noqa"):
            words = tuple(_words(match, "codes", comment, r"[A-Za-z]+\d+"))
            own = tuple(word for word in words if OWN_CODE.fullmatch(word.text))
            foreign = len(own) < len(words) or not words
            if words and not own:
                continue
            words = own or None
        elif match.group("words") is not None:
            words = tuple(_words(match, "words", comment, r"[^\s,]+"))
        whole_file = (match.group("verb") or "").lower() == "ignore-file"
        first, last = (1, 2**31) if whole_file else (comment.first, comment.last)
        yield Suppression(span, first, last, words, foreign, comment.alone)


def _words(match: re.Match[str], group: str, comment: _Comment, pattern: str) -> Iterator[Word]:
    for word in re.finditer(pattern, match.group(group) or ""):
        column = comment.column + match.start(group) + word.start()
        yield Word(word.group(), Span(Position(comment.line, column), Position(comment.line, column + len(word[0]))))


def _comments(text: str) -> Iterator[_Comment]:
    """The comments of a file with the lines each one covers.

    A comment at the end of a line covers the statement that the line belongs to, from its first line to its last; of
    a compound statement (`def`, `if`) that is the header. A comment on a line of its own covers the whole statement
    that follows, body included.
    """
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text, newline="").readline))
    except (tokenize.TokenError, SyntaxError):
        yield from _comments_by_line(text)
        return
    lines = LineTable(text)
    extents = _extents(tokens)
    for number, token in enumerate(tokens):
        if token.type != tokenize.COMMENT:
            continue
        line, column = token.start
        alone = not lines.line(line)[:column].strip()
        first, last = extents[number]
        yield _Comment(token.string, line, column + 1, min(first, line), last, alone)


def _extents(tokens: Sequence[tokenize.TokenInfo]) -> dict[int, tuple[int, int]]:
    """The first and last line that each comment covers, by the comment's number among the tokens."""
    found: dict[int, tuple[int, int]] = {}
    waiting: list[int] = []  # comments on lines of their own, for the statement to come
    inside: list[int] = []  # comments within the statement being read
    whole: list[tuple[int, int, list[int]]] = []  # statements with comments above: first line, depth, those comments
    start, depth, opening = 0, 0, ""
    for number, token in enumerate(tokens):
        if token.type == tokenize.COMMENT:
            (inside if start else waiting).append(number)
            found[number] = (token.start[0], token.start[0])
        elif token.type == tokenize.NEWLINE:
            for comment in inside:
                found[comment] = (start, token.start[0])
            for first, _, above in whole:
                for comment in above:
                    found[comment] = (min(found[comment][0], first), token.start[0])
            start, inside = 0, []
        elif token.type == tokenize.INDENT:
            depth += 1
        elif token.type == tokenize.DEDENT:
            depth -= 1
        elif token.type not in (tokenize.NL, tokenize.ENDMARKER) and not start:
            start = token.start[0]
            # `else` belongs to the statement above it, `def` to the decorator above it.
            goes_on = opening == "@" or token.string in ("else", "elif", "except", "finally")
            whole = [item for item in whole if item[1] < depth or (goes_on and item[1] == depth)]
            opening = token.string
            if waiting:
                whole.append((start, depth, waiting))
                waiting = []
    return found


def _comments_by_line(text: str) -> Iterator[_Comment]:
    """Comments of a text that can't be split into tokens: each covers its own line."""
    lines = LineTable(text)
    for number in range(1, len(lines) + 1):
        line = lines.line(number)
        column = line.find("#")
        if column >= 0:
            yield _Comment(line[column:], number, column + 1, number, number, not line[:column].strip())
