"""Comments that hide findings: (text, findings) -> the text with a suppression on each line; a pure function."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from msalint.diagnostic import Diagnostic, Position
from msalint.source import LineTable
from msalint.suppress import COMMENT

NOT_HIDDEN = ("MSA901", "MSA902", "MSA903")
"""Unreadable files, and suppressions that are idle or misspelt: what is wrong there is mended, not hidden."""


@dataclass(frozen=True)
class Comments:
    """What to write: `# noqa: CODE`, or `# msalint: ignore[CODE] -- reason`."""

    noqa: bool = False
    reason: str = ""

    def written(self, codes: Iterable[str]) -> str:
        joined = ", ".join(codes)
        if self.noqa:
            return f"# noqa: {joined}"
        return f"# msalint: ignore[{joined}]" + (f" -- {self.reason}" if self.reason else "")

    def place_in(self, comment: str) -> int | None:
        """Where in a comment that already hides codes in this way further ones are added."""
        for match in COMMENT.finditer(comment):
            if self.noqa and match.group("codes"):
                return match.end("codes")
            if (
                not self.noqa
                and (match.group("verb") or "").lower() == "ignore"
                and (match.group("words") or "").strip()
            ):
                return match.start("words") + len(match.group("words").rstrip())
        return None


@dataclass(frozen=True)
class Suppressed:
    """A text with comments added: on how many lines, and the findings that no comment could be written for."""

    text: str
    lines: int = 0
    left: tuple[Diagnostic, ...] = ()


def suppressed(text: str, findings: Iterable[Diagnostic], comments: Comments) -> Suppressed:
    """Hide some findings of one text. A comment stands on the finding's line, or the next that can hold one."""
    findings = list(findings)
    lines = LineTable(text)
    tokens = _tokens(text)
    places = _places(tokens, lines)
    columns = {token.start[0]: token.start[1] for token in tokens if token.type == tokenize.COMMENT}
    wanted: dict[int, dict[str, None]] = {}
    left = []
    for one in findings:
        line = places.get(one.span.start.line)
        if line is None or one.code in NOT_HIDDEN:
            left.append(one)
        else:
            wanted.setdefault(line, {})[one.code] = None
    changed = text
    for line in sorted(wanted, reverse=True):
        changed = _with_comment(changed, lines, (line, columns.get(line)), sorted(wanted[line]), comments)
    if not _same_code(text, changed):
        return Suppressed(text, 0, tuple(findings))
    return Suppressed(changed, len(wanted), tuple(left))


def _with_comment(
    text: str, lines: LineTable, place: tuple[int, int | None], codes: list[str], comments: Comments
) -> str:
    """Add codes to a line, where its comment begins at a column or it has none.

    `lines` are those of the text before any comment was added: the lines up to this one are still the same.
    """
    line, column = place
    written = lines.line(line)
    start = lines.offset(Position(line, 1))
    inside = comments.place_in(written[column:]) if column is not None else None
    if column is not None and inside is not None:
        at = start + column + inside
        return text[:at] + "".join(f", {code}" for code in codes) + text[at:]
    at = start + len(written.rstrip())
    return text[:at] + "  " + comments.written(codes) + text[start + len(written) :]


def _tokens(text: str) -> list[tokenize.TokenInfo]:
    try:
        return list(tokenize.generate_tokens(io.StringIO(text, newline="").readline))
    except (tokenize.TokenError, SyntaxError):
        return []


def _places(tokens: list[tokenize.TokenInfo], lines: LineTable) -> dict[int, int]:
    """For each line of a statement, the line whose end can hold the comment: no string or statement goes on there."""
    broken = {line for first, last in _strings(tokens) for line in range(first, last)}
    places: dict[int, int] = {}
    start = 0
    for token in tokens:
        if token.type == tokenize.NEWLINE:
            last = token.start[0]
            place = last
            for line in range(last, (start or last) - 1, -1):
                if line not in broken and (line == last or not lines.line(line).rstrip().endswith("\\")):
                    place = line
                places[line] = place
            start = 0
        elif not start and token.type not in _BETWEEN:
            start = token.start[0]
    return places


_BETWEEN = (tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)


def _strings(tokens: Iterable[tokenize.TokenInfo]) -> Iterator[tuple[int, int]]:
    """First and last line of each string, formatted ones as a whole."""
    opened: list[int] = []
    for token in tokens:
        name = tokenize.tok_name[token.type]
        if token.type == tokenize.STRING:
            yield token.start[0], token.end[0]
        elif name in ("FSTRING_START", "TSTRING_START"):
            opened.append(token.start[0])
        elif name in ("FSTRING_END", "TSTRING_END"):
            yield opened.pop(), token.end[0]


def _same_code(before: str, after: str) -> bool:
    """Whether two texts are the same to Python."""
    try:
        return ast.dump(ast.parse(before)) == ast.dump(ast.parse(after))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
