"""What a check says: frozen data, made by rules and read by reports and fixes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Protocol


class Level(Enum):
    """How sure a finding is. `ERROR` promises no false positives; `NOTE` is off by default."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Safety(Enum):
    """Whether a fix keeps behaviour on correct inputs (safe), changes it (unsafe) or is only shown."""

    SAFE = "safe"
    UNSAFE = "unsafe"
    DISPLAY = "display"


class Position(NamedTuple):
    """A place in a file: `line` and `column` count from 1, columns in characters."""

    line: int
    column: int


class Span(NamedTuple):
    """A half-open stretch of a file, from `start` up to but not including `end`."""

    start: Position
    end: Position


class Site(Protocol):
    """A place in the code that a fact speaks of. Positions and text are worked out when asked for."""

    @property
    def filename(self) -> str: ...

    @property
    def span(self) -> Span: ...

    @property
    def text(self) -> str:
        """The source text of the place, as written."""
        ...


@dataclass(frozen=True)
class Step:
    """One step of a trail: an earlier line that made the fault, and what it did."""

    filename: str
    span: Span
    message: str


@dataclass(frozen=True)
class Edit:
    """Replace the text of `span` (empty for an insertion) by `text`.

    `filename` is "" for the file of the diagnostic. A fix can change no other file.
    """

    span: Span
    text: str
    filename: str = ""


@dataclass(frozen=True)
class Fix:
    """A way to mend a finding: all of its edits or none."""

    title: str
    edits: tuple[Edit, ...] = ()
    safety: Safety = Safety.UNSAFE
    imports: tuple[str, ...] = ()
    """Statements such as `import torch` that the new text relies on."""


@dataclass(frozen=True)
class Diagnostic:
    """One finding: where, what happens at run time, and the earlier lines that made it so."""

    code: str
    name: str
    level: Level
    message: str
    filename: str
    span: Span
    trail: tuple[Step, ...] = ()
    help: str | None = None
    fix: Fix | None = None

    @property
    def url(self) -> str:
        """The page of the rule."""
        return f"https://msalint.readthedocs.io/rules/{self.name}"
