"""Diagnostics as text: a module a format, each a function from a `Report` to a string, loaded when it is asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING

from msalint.diagnostic import Diagnostic, Position, Span
from msalint.documents.cells import Cells, Place
from msalint.fix import applicable
from msalint.settings import Fixing

if TYPE_CHECKING:
    from msalint.docs import Page
    from msalint.files import File

FORMATS = (
    "full",
    "concise",
    "grouped",
    "json",
    "json-lines",
    "junit",
    "github",
    "gitlab",
    "pylint",
    "rdjson",
    "azure",
    "sarif",
)
FOR_PEOPLE = ("full", "concise", "grouped")
"""The formats that a summary stands below."""


@dataclass(frozen=True)
class Failure:
    """A file that msalint itself failed on, or a path that isn't there; `detail` is a traceback, if there is one."""

    filename: str
    message: str
    detail: str = ""


@dataclass(frozen=True)
class Report:
    """All that a run found.

    `text` gives the source of a file by its name, "" where it can't be had, and `cells` what of it is which cell, None
    for all that is no notebook. Positions of a notebook count through the code of all its cells.
    """

    diagnostics: tuple[Diagnostic, ...]
    failures: tuple[Failure, ...] = ()
    files: int = 0
    checked: tuple[File, ...] = field(default=(), compare=False)
    """The files that were checked, with their settings."""
    text: Callable[[str], str] = field(default=lambda filename: "", compare=False)
    pages: Sequence[Page] = ()
    version: str = ""
    cells: Callable[[str], Cells | None] = field(default=lambda filename: None, compare=False)
    file_line: Callable[[str, int], int] = field(default=lambda filename, line: line, compare=False)
    """The line of the file itself that a line of `text` is written on: another one in a notebook's JSON."""
    notices: tuple[str, ...] = ()
    """What the person should know besides: no findings, no failures."""
    fixing: Fixing = field(default_factory=Fixing)
    mended: tuple[Diagnostic, ...] = ()
    """What fixes took away, or, where there is a `diff`, would take away."""
    diff: str | None = None
    """What fixes would change, where that was asked for and nothing was written."""
    fixed_text: bytes | None = None
    """What came through a pipe, with its fixes made, where that was asked for."""

    def fixable(self, one: Diagnostic) -> bool:
        """Whether `--fix` mends such a finding, with the unsafe fixes if they are allowed."""
        return applicable(one.fix, unsafe=bool(self.fixing.unsafe_fixes))

    def marked(self, one: Diagnostic) -> bool:
        """Whether to mark a finding with `[*]`: what a fix could not mend while fixes were made is not."""
        return self.fixable(one) and not self.fixing.on

    def hidden(self) -> int:
        """How many more could be mended if unsafe fixes were allowed; 0 where they were refused outright."""
        if self.fixing.unsafe_fixes is not None:
            return 0
        return sum(applicable(one.fix, unsafe=True) and not self.fixable(one) for one in self.diagnostics)

    def place(self, filename: str, position: Position) -> Place:
        """A position as the reader of that file counts it."""
        cells = self.cells(filename)
        return Place(None, *position) if cells is None else cells.place(position)

    def span_in_file(self, one: Diagnostic) -> Span:
        """The stretch of the file itself, for readers that know no cells: they are shown a notebook's beginning."""
        if self.place(one.filename, one.span.start).cell is None:
            return one.span
        return Span(Position(1, 1), Position(1, 1))

    def message_in_file(self, one: Diagnostic) -> str:
        """The message for readers that know no cells: in a notebook it begins with the place, `cell 3:4:8: ...`."""
        place = self.place(one.filename, one.span.start)
        return one.message if place.cell is None else f"{place}: {one.message}"


def render(report: Report, style: str, *, color: bool = False) -> str:
    """The report in one of FORMATS."""
    module = import_module(f"msalint.report.{style.replace('-', '_')}")
    rendered: str = module.render(report, color=color)
    return rendered


def statistics(report: Report) -> str:
    """How many findings each rule has, the commonest first."""
    counts = Counter((one.code, one.name) for one in report.diagnostics)
    marked = Counter((one.code, one.name) for one in report.diagnostics if report.marked(one))
    width = max((len(str(count)) for count in counts.values()), default=1)
    rows = sorted(counts.items(), key=lambda item: (-item[1], item[0]))

    def mark(rule: tuple[str, str]) -> str:
        """`[*]`: all of its findings can be mended, `[-]`: some; nothing at all where no rule's can."""
        return f"[{'*' if marked[rule] == counts[rule] else '-' if marked[rule] else ' '}] " if marked else ""

    return "".join(f"{count:>{width}}  {rule[0]}  {mark(rule)}{rule[1]}\n" for rule, count in rows)
