"""Fixes of whole files: made in memory, then written or shown as a diff."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable
from dataclasses import dataclass, field

from msalint.diagnostic import Diagnostic, Safety
from msalint.documents.cells import Cells
from msalint.documents.kinds import NOTEBOOK
from msalint.documents.shown import Shown
from msalint.fix import ROUNDS, applicable
from msalint.fix_document import fix_document
from msalint.project import Project
from msalint.rewrite import ChangedMeanwhileError, RewriteError, replace_file
from msalint.settings import Settings
from msalint.source import Source, SourceError, decode


@dataclass(frozen=True)
class Mended:
    """A file's bytes before and after its fixes, what they mended, and what went wrong with them."""

    path: str
    before: bytes
    after: bytes
    diagnostics: tuple[Diagnostic, ...] = ()
    complaints: tuple[str, ...] = ()


def wants_mending(found: Iterable[Diagnostic], filename: str, mend: Safety | None) -> bool:
    """Whether a file has findings of its own whose fixes may be made."""
    unsafe = mend is Safety.UNSAFE
    return mend is not None and any(one.filename == filename and applicable(one.fix, unsafe) for one in found)


def mend_file(path: str, settings: Settings, project: Project | None, mend: Safety) -> Mended | None:
    """The fixes of one file; None for what is no file that could be written back, a pipe for instance."""
    if not os.path.isfile(path):
        return None
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        return Mended(path, b"", b"", complaints=(f"can't read this file: {error.strerror or error}",))
    return mend_bytes(data, path, settings, project, mend)


def mend_bytes(data: bytes, filename: str, settings: Settings, project: Project | None, mend: Safety) -> Mended:
    """The fixes of a text in its bytes: its encoding, byte order mark and newlines stay as they are.

    Raises InternalError, as the check does. Bytes that can't be read as Python come back as they are.
    """
    try:
        source = decode(data, filename)
        done = fix_document(source.text, filename, settings, project, unsafe=mend is Safety.UNSAFE)
    except SourceError:
        return Mended(filename, data, data)
    if not done.settled:
        codes = ", ".join(sorted({one.code for one in done.mended}))
        said = f"its fixes ({codes}) came to no end within {ROUNDS} rounds, so none was made; please report it"
        return Mended(filename, data, data, complaints=(said,))
    cells = Shown({filename: source.text}).cells(filename)
    complaints = tuple(
        f"{_line(one, cells)}: the fix of {one.code} would break the file, so it was left out; please report it"
        for one in done.broken
    )
    after = _encoded(source, done.text)
    if after is None:
        said = f"a fix needs characters that {source.encoding} lacks, so none was made: save the file as UTF-8"
        return Mended(filename, data, data, complaints=(*complaints, said))
    return Mended(filename, data, after, done.mended, complaints)


def _line(one: Diagnostic, cells: Cells | None) -> str:
    if cells is None:
        return f"line {one.span.start.line}"
    place = cells.place(one.span.start)
    return f"cell {place.cell}, line {place.line}"


def _encoded(source: Source, text: str) -> bytes | None:
    try:
        return source.encode(text)
    except UnicodeEncodeError:
        return None


@dataclass
class Writing:
    """What was written so far, and what was not: complaints by file. A file that was refused is not tried again.

    A `dry` one writes nothing, and takes what would be for what was.
    """

    dry: bool = False
    mended: list[Diagnostic] = field(default_factory=list)
    complaints: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _refused: set[str] = field(default_factory=set)

    def write(self, files: Iterable[Mended]) -> bool:
        """Write changed files, each whole or not at all. One that has two names is written once.

        Whether any holds something else now than what was checked: one that was written, or that someone else changed.
        """
        changed = False
        written: set[str] = set()
        for one in files:
            target = os.path.realpath(one.path)
            if one.complaints:
                self.complaints[one.path] = one.complaints
            if one.after == one.before or target in written or one.path in self._refused:
                continue
            try:
                if not self.dry:
                    replace_file(one.path, one.after, expected=one.before)
                    written.add(target)
                self.mended += one.diagnostics
            except RewriteError as error:
                changed = changed or isinstance(error, ChangedMeanwhileError)
                self._refused.add(one.path)
                self.complaints[one.path] = (*one.complaints, str(error))
        return changed or bool(written)


def as_diff(one: Mended, named: bool = True) -> str:
    """A unified diff of a file's fixes, "" if there are none; without a header for what has no name.

    Of a notebook each cell that changes has one of its own, which people can read and `patch` can't.
    """
    if one.after == one.before:
        return ""
    before, after = (decode(data, one.path).text for data in (one.before, one.after))
    if not one.path.lower().endswith(NOTEBOOK):
        return _diff(before, after, one.path if named else None)
    from msalint.documents.notebook import codes

    old, new = codes(before), codes(after)
    return "".join(_diff(old[cell], new[cell], f"{one.path}:cell {cell}") for cell in old if old[cell] != new[cell])


def _diff(before: str, after: str, name: str | None) -> str:
    header = [] if name is None else [f"--- {name}\n", f"+++ {name}\n"]
    hunks = list(difflib.unified_diff(_rows(before), _rows(after)))[2:]
    whole = [row if row.endswith("\n") else row + "\n\\ No newline at end of file\n" for row in hunks]
    return "".join([*header, *whole]) + "\n"


def _rows(text: str) -> list[str]:
    """Lines as `patch` counts them: a form feed or a lone carriage return ends none."""
    rows = text.split("\n")
    return [row + "\n" for row in rows[:-1]] + rows[-1:] * bool(rows[-1])
