"""What a check sees of a file: pieces of Python text, and the way back from a piece to the file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from msalint.diagnostic import Diagnostic, Edit, Position, Span
from msalint.documents.cells import Cells
from msalint.source import SourceError


class Piece(Protocol):
    """Python text that is checked by itself."""

    @property
    def text(self) -> str: ...

    @property
    def prose(self) -> bool:
        """Whether it stands in prose: an example that is no Python is nobody's fault."""
        ...

    def outward(self, position: Position) -> Position:
        """The position in the document that a position in the piece is."""
        ...

    def indented(self, text: str) -> str:
        """The new text of an edit as the document would write it."""
        ...

    def rewritten(self, text: str) -> str | None:
        """The whole file with another text in this piece's place; None where that text can't be put there."""
        ...


@dataclass(frozen=True)
class Document:
    """A file by its pieces.

    `shown` is the text that positions refer to: the file's own, or the code of a notebook's cells, which `cells`
    tells apart. `faults` are parts of it that are no Python and so are in no piece.
    """

    shown: str
    pieces: tuple[Piece, ...]
    cells: Cells | None = None
    faults: tuple[SourceError, ...] = ()
    locate: Callable[[int], int] | None = field(default=None, compare=False)

    def file_line(self, line: int) -> int:
        """The line of the file on which a line of `shown` is written, as `git diff` counts."""
        return line if self.locate is None else self.locate(line)


@dataclass(frozen=True)
class Whole:
    """A file that is one piece of Python."""

    text: str
    prose: bool = False

    def outward(self, position: Position) -> Position:
        return position

    def indented(self, text: str) -> str:
        return text

    def rewritten(self, text: str) -> str:
        return text


def outward(piece: Piece, filename: str, found: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Findings in a piece of `filename` as findings in the document."""
    return list(found) if isinstance(piece, Whole) else [_outward(piece, filename, one) for one in found]


def _outward(piece: Piece, filename: str, one: Diagnostic) -> Diagnostic:
    if one.filename != filename:
        return one

    def moved(span: Span) -> Span:
        return Span(piece.outward(span.start), piece.outward(span.end))

    trail = tuple(replace(step, span=moved(step.span)) if step.filename == filename else step for step in one.trail)
    fix = one.fix
    if fix is not None:
        fix = replace(fix, edits=tuple(Edit(moved(edit.span), piece.indented(edit.text)) for edit in fix.edits))
    return replace(one, span=moved(one.span), trail=trail, fix=fix)
