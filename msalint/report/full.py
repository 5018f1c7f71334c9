"""The report for people: the sentence, the source with the steps that led to it marked in place, the fix."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

from msalint.diagnostic import Diagnostic, Fix, Position, Safety, Span
from msalint.documents.cells import Cells
from msalint.fix import apply, touched
from msalint.report import Report
from msalint.report.paint import Paint
from msalint.source import LineTable

TAB = 4
LONGEST_GAP = 2
"""So many unmarked lines between two marked ones are shown; more are left out."""
LONGEST_DIFF = 6
"""A fix that touches more lines is named, not shown."""


def render(report: Report, *, color: bool = False) -> str:
    paint = Paint(color)
    sources: dict[str, _Source] = {}

    def source_of(filename: str) -> _Source:
        if filename not in sources:
            sources[filename] = _Source(report.text(filename), report.cells(filename))
        return sources[filename]

    blocks = [_block(one, source_of(one.filename), report, paint) for one in report.diagnostics]
    return "".join(block + "\n" for block in blocks)


def headline(one: Diagnostic, report: Report, paint: Paint) -> str:
    """`src/attention.py:21:16: MSA101 [error] [*] the sentence`; the star says that `--fix` can mend it."""
    place = paint("place", f"{one.filename}:{report.place(one.filename, one.span.start)}:")
    return f"{place} {verdict(one, report, paint)}"


def verdict(one: Diagnostic, report: Report, paint: Paint) -> str:
    """`MSA101 [error] [*] the sentence`"""
    level = paint.level(one.level)
    star = f"[{paint('help', '*')}] " if report.marked(one) else ""
    return f"{level(one.code)} [{level(one.level.value)}] {star}{one.message}"


class _Source(LineTable):
    """The lines of a file, with the numbers that its reader knows them by: those of a cell begin at 1."""

    def __init__(self, text: str, cells: Cells | None) -> None:
        super().__init__(text)
        self._cells = cells

    def number(self, line: int) -> int:
        return line if self._cells is None else self._cells.place(Position(line, 1)).line

    def cell(self, line: int) -> int | None:
        return None if self._cells is None else self._cells.place(Position(line, 1)).cell


def _block(one: Diagnostic, lines: _Source, report: Report, paint: Paint) -> str:
    here = [step for step in one.trail if step.filename == one.filename]
    marks = [_Mark(one.span, one.name, main=True), *(_Mark(step.span, step.message) for step in here)]
    shown = [mark for mark in marks if 1 <= mark.span.start.line <= len(lines) and lines.text]
    last = max((lines.number(mark.span.start.line) for mark in shown), default=1)
    diff = _diff(one, lines)
    width = len(str(max([last, *(number for number, _, _ in diff)])))
    out = [headline(one, report, paint)]
    edge = " " * width + " " + paint("gutter", "|")
    if shown:
        out += [edge, *_frame(shown, lines, width, paint, one), edge]
    for step in one.trail:
        if step.filename != one.filename:
            place = report.place(step.filename, step.span.start)
            out.append(f"{' ' * width} {paint('gutter', '=')} note: {step.filename}:{place}: {step.message}")
    if one.help:
        note = _safety(one.fix)
        out.append(f"{' ' * width} {paint('gutter', '=')} {paint('help', 'help')}: {one.help}{note}")
    for number, role, text in diff:
        sign = "-" if role == "removed" else "+"
        out.append(f"{paint('gutter', f'{number:>{width}} |')} {paint(role, f'{sign} {text}')}")
    return "\n".join(out) + "\n"


def _safety(fix: Fix | None) -> str:
    if fix is None or not fix.edits:
        return ""
    return {
        Safety.SAFE: " (safe fix)",
        Safety.UNSAFE: " (changes what is computed)",
        Safety.DISPLAY: " (a suggestion)",
    }[fix.safety]


@dataclass(frozen=True)
class _Mark:
    """A stretch of source to underline, with what to say of it."""

    span: Span
    text: str
    main: bool = False


def _frame(marks: list[_Mark], lines: _Source, width: int, paint: Paint, one: Diagnostic) -> Iterable[str]:
    by_line: dict[int, list[_Mark]] = {}
    for mark in dict.fromkeys(marks):
        by_line.setdefault(mark.span.start.line, []).append(mark)
    previous = None
    in_many_cells = len({lines.cell(number) for number in by_line}) > 1
    for number in sorted(by_line):
        if in_many_cells and (previous is None or lines.cell(number) != lines.cell(previous)):
            yield " " * width + " " + paint("gutter", f"::: cell {lines.cell(number)}")
        elif previous is not None:
            yield from _between(previous, number, lines, width, paint)
        yield _source_line(number, lines, width, paint)
        for mark in sorted(by_line[number], key=lambda mark: (mark.main, mark.span.start.column), reverse=True):
            role = one.level.value if mark.main else "step"
            gutter = " " * width + " " + paint("gutter", "|")
            yield f"{gutter} {_underline(mark, lines, paint, role)}"
        previous = number


def _between(above: int, below: int, lines: _Source, width: int, paint: Paint) -> Iterable[str]:
    """The lines between two marked ones, or dots where there are too many of them."""
    if below - above - 1 > LONGEST_GAP:
        yield paint("gutter", "." * max(3, width))
        return
    for number in range(above + 1, below):
        yield _source_line(number, lines, width, paint)


def _source_line(number: int, lines: _Source, width: int, paint: Paint) -> str:
    return f"{paint('gutter', f'{lines.number(number):>{width}} |')} {_untabbed(lines.line(number))}".rstrip()


def _underline(mark: _Mark, lines: LineTable, paint: Paint, role: str) -> str:
    """Carets (the finding) or dashes (a step) below a stretch, and the words behind them.

    A stretch over several lines is underlined to the end of its first one.
    """
    text = lines.line(mark.span.start.line)
    begin = mark.span.start.column - 1
    many = mark.span.end.line > mark.span.start.line
    end = len(text) if many else mark.span.end.column - 1
    before = cells(_untabbed(text[:begin]))
    size = max(1, cells(_untabbed(text[:end])) - before)
    sign = "^" if mark.main else "-"
    return " " * before + paint(role, sign * size + ("..." if many else "") + " " + mark.text)


def _untabbed(text: str) -> str:
    return text.expandtabs(TAB)


def cells(text: str) -> int:
    """How many columns of a terminal a text takes: two for wide characters, none for combining ones."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


def _diff(one: Diagnostic, lines: _Source) -> list[tuple[int, str, str]]:
    """The lines that a fix changes, as (number, "removed" or "added", text); none if it is too long to show."""
    place = touched(one.fix) if one.fix else None
    if place is None or not lines.text:
        return []
    first, last = place.start.line, place.end.line
    if last - first >= LONGEST_DIFF:
        return []
    old = lines.slice(Span(Position(first, 1), Position(last + 1, 1)))
    moved = lines.offset(Position(first, 1))
    bare = Diagnostic(
        one.code, one.name, one.level, "", one.filename, one.span, fix=Fix("", one.fix.edits if one.fix else ())
    )
    whole = apply(lines.text, [bare]).text
    new = whole[moved : len(whole) - (len(lines.text) - moved - len(old))]
    before, after = _rows(old), _rows(new)
    while before and after and before[-1] == after[-1]:
        before, after = before[:-1], after[:-1]
    while before and after and before[0] == after[0]:
        before, after, first = before[1:], after[1:], first + 1
    if len(before) + len(after) > 2 * LONGEST_DIFF:
        return []
    first = lines.number(first)
    rows = [(first + number, "removed", _untabbed(text)) for number, text in enumerate(before)]
    return rows + [(first + number, "added", _untabbed(text)) for number, text in enumerate(after)]


def _rows(text: str) -> list[str]:
    table = LineTable(text)
    rows = [table.line(number) for number in range(1, len(table) + 1)]
    return rows[:-1] if rows and not rows[-1] else rows
