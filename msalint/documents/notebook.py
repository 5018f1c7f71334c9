"""Jupyter notebooks: the code cells in order as one text of Python, and fixes put back cell by cell."""

from __future__ import annotations

import ast
import json
import re
import warnings
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from msalint.diagnostic import Position
from msalint.documents.cells import Cells
from msalint.documents.document import Document
from msalint.documents.escapes import cell_magic, escaped_lines, is_python
from msalint.documents.json_strings import Value, child, children, whole, with_text
from msalint.gate import is_about_attention, is_torch
from msalint.source import NEWLINE, SourceError
from msalint.syntax.outline import TooDeep, outline

FORMAT = 4
_NO_PYTHON = re.compile("\0|\r(?!\n)|[\ud800-\udfff]")
"""Signs that no line of a cell can hold: Python would refuse them, or see two lines where Jupyter shows one."""


@dataclass(frozen=True)
class Cell:
    """A code cell: its index among all cells, from 0, and its code.

    `exact` is False where the code holds signs that no file of Python may, and others stand in their place.
    """

    index: int
    code: str
    exact: bool = True


@dataclass(frozen=True)
class Notebook:
    """The code of a notebook as one piece of Python, its cells parted by lines that no notebook holds.

    What is not Python (magics, cells that can't be parsed) is hidden behind stand-ins, line for line, so that every
    position stays. `lines` are those of all cells, as written.
    """

    file: str
    cells: tuple[Cell, ...]
    mark: str
    text: str
    lines: tuple[str, ...]
    prose: bool = False

    def outward(self, position: Position) -> Position:
        return position

    def indented(self, text: str) -> str:
        return text

    def rewritten(self, text: str) -> str | None:
        """The notebook with other code in its cells. None where a hidden line was touched."""
        hidden = re.compile(rf"[^\r\n]*{re.escape(self.mark)}(\d+)(?=\r|\n|\Z)")
        if [one.group() for one in hidden.finditer(text)] != [one.group() for one in hidden.finditer(self.text)]:
            return None
        parts = _parted(hidden.sub(lambda one: self.lines[int(one.group(1))], text), self.mark)
        if len(parts) != len(self.cells):
            return None
        file = self.file
        for cell, code in reversed(list(zip(self.cells, parts))):
            if code == cell.code:
                continue
            if not cell.exact or self.mark in code or cell_magic(code) != cell_magic(cell.code):
                return None
            file = with_text(file, self._sources[cell.index], code)
        return file

    def file_line(self, line: int) -> int:
        """The line of the JSON on which a line of the joined code is written."""
        which = max(bisect_right(self.starts, line) - 1, 0)
        source = self._sources[self.cells[which].index]
        rows = list(children(self.file, source)) or [source]
        place = rows[min(line - self.starts[which], len(rows) - 1)]
        return self.file.count("\n", 0, place.start) + 1

    @cached_property
    def starts(self) -> tuple[int, ...]:
        return _table(self.cells).starts

    @cached_property
    def _sources(self) -> list[Value]:
        return _sources(self.file)


def read(file: str) -> Document:
    """A notebook as a document, an empty one if its code is not Python. Raises SourceError where the file is none."""
    data = _loaded(file)
    cells = tuple(_code_cells(data)) if language(data) is None else ()
    if not cells:
        return Document("", (), Cells((), ()))
    mark = "#~cell~"
    while any(mark in cell.code for cell in cells):
        mark += "~"
    shown = _joined([cell.code for cell in cells], mark)
    piece, faults = _piece(file, cells, mark, shown)
    return Document(shown, (piece,), _table(cells), faults, piece.file_line)


def codes(file: str) -> dict[int, str]:
    """The code of a notebook's cells by their numbers, for a person to compare."""
    return {cell.index + 1: cell.code.removesuffix("\n") + "\n" for cell in _code_cells(_loaded(file))}


def foreign_language(file: str) -> str | None:
    """The language of a notebook whose code is not Python; None for Python, and for what is no notebook."""
    try:
        return language(_loaded(file))
    except SourceError:
        return None


def _loaded(file: str) -> dict[str, Any]:
    try:
        data = json.loads(file)
    except json.JSONDecodeError as error:
        reason = f"a notebook is a JSON file, and this is not valid JSON: {error.msg}"
        raise SourceError(reason, Position(error.lineno, error.colno)) from error
    except RecursionError as error:
        raise SourceError("this is no Jupyter notebook: its JSON is nested too deeply") from error
    if not isinstance(data, dict) or not isinstance(data.get("nbformat"), int):
        raise SourceError('this is no Jupyter notebook: it is JSON, but not an object with an "nbformat"')
    if data["nbformat"] != FORMAT:
        hint = "save it anew, or `jupyter nbconvert --to notebook`"
        raise SourceError(f"notebooks of format {FORMAT} are read, and this one is of {data['nbformat']}: {hint}")
    if not isinstance(data.get("cells"), list):
        raise SourceError("this is no Jupyter notebook: it has no list of cells")
    return data


def language(data: dict[str, Any]) -> str | None:
    """The language that a notebook says its code is in, unless that is Python; one that says nothing is Python."""
    metadata = data.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    for table, key in (("language_info", "name"), ("kernelspec", "language")):
        inner = metadata.get(table)
        said = inner.get(key) if isinstance(inner, dict) else None
        if isinstance(said, str) and said:
            return None if said.lower() in ("python", "python2", "python3", "ipython") else said
    return None


def _code_cells(data: dict[str, Any]) -> Iterator[Cell]:
    """The cells of Python, those of magics such as %%bash and of an editor's other languages left out."""
    for index, cell in enumerate(data["cells"]):
        source = cell.get("source", "") if isinstance(cell, dict) else None
        if isinstance(source, list) and all(isinstance(line, str) for line in source):
            source = "".join(source)
        if not isinstance(source, str):
            raise SourceError(f"this is no Jupyter notebook: cell {index + 1} has no source")
        if cell.get("cell_type") == "code" and _is_in_python(cell) and is_python(source):
            code = _NO_PYTHON.sub("\ufffd", source)
            yield Cell(index, code, code == source)


def _is_in_python(cell: dict[str, Any]) -> bool:
    metadata = cell.get("metadata")
    editor = metadata.get("vscode") if isinstance(metadata, dict) else None
    said = editor.get("languageId") if isinstance(editor, dict) else None
    return not isinstance(said, str) or said == "python"


def _joined(codes: Sequence[str], mark: str) -> str:
    """The cells' code, each followed by a line break, with a mark on a line of its own between two."""
    return f"{mark}\n".join(code + "\n" for code in codes)


def _parted(text: str, mark: str) -> list[str]:
    """The other way: the code of each cell."""
    return [part.removesuffix("\n") for part in re.split(rf"(?m)^{re.escape(mark)}\n", text)]


def _table(cells: Sequence[Cell]) -> Cells:
    starts: list[int] = []
    line = 1
    for cell in cells:
        starts.append(line)
        line += len(NEWLINE.findall(cell.code)) + 2
    return Cells(tuple(cell.index + 1 for cell in cells), tuple(starts))


def _piece(file: str, cells: tuple[Cell, ...], mark: str, shown: str) -> tuple[Notebook, tuple[SourceError, ...]]:
    lines = tuple(shown.split("\n"))
    hidden = dict(_all_escaped(cells))
    text = _hide(lines, hidden, mark)
    faults: list[SourceError] = []
    if is_about_attention(text) and is_torch(text) and not _parses(text):
        rows = text.split("\n")
        for cell, start in zip(cells, _table(cells).starts):
            behind = start + cell.code.count("\n")
            fault = _fault(rows[start - 1 : behind], start)
            if fault is not None:
                faults.append(fault)
                hidden |= dict.fromkeys(range(start - 1, behind), "")
        text = _hide(lines, hidden, mark)
    return Notebook(file, cells, mark, text, lines), tuple(faults)


def _all_escaped(cells: Sequence[Cell]) -> Iterator[tuple[int, str]]:
    """The lines of the joined code (from 0) that IPython alone reads, with their stand-ins."""
    for cell, start in zip(cells, _table(cells).starts):
        for number, stand_in in escaped_lines(cell.code).items():
            yield start - 1 + number, stand_in


def _hide(lines: Sequence[str], hidden: dict[int, str], mark: str) -> str:
    """The text in which the hidden lines are their stand-ins, with a comment that says which line it was."""
    return "\n".join(
        f"{hidden[number]}{'  ' if hidden[number] else ''}{mark}{number}" if number in hidden else line
        for number, line in enumerate(lines)
    )


def _parses(text: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _fault(rows: Sequence[str], start: int) -> SourceError | None:
    """Why the lines of a cell are no Python, at its place in the joined code, where they begin at line `start`."""
    try:
        outline("\n".join(rows) + "\n")
    except SourceError as error:
        line, column = error.position
        if line > len(rows):
            line, column = len(rows), len(rows[-1]) + 1
        return SourceError(str(error), Position(start + line - 1, column))
    except TooDeep:
        return None
    return None


def _sources(file: str) -> list[Value]:
    """Where the source of each cell stands in the file."""
    cells = child(file, whole(file), "cells")
    found = [] if cells is None else [child(file, cell, "source") for cell in children(file, cells)]
    return [value or Value(0, 0) for value in found]
