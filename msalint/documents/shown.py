"""The texts that the positions of a report count in, read when they are asked for."""

from __future__ import annotations

from msalint.bytes_of import is_gone
from msalint.documents.cells import Cells
from msalint.documents.document import Document
from msalint.documents.kinds import NOTEBOOK, read_document
from msalint.source import SourceError, read


class Shown:
    """Files as reports show them, by name; `given` are the files that come from elsewhere than the disk."""

    def __init__(self, given: dict[str, str] | None = None) -> None:
        self._given = given or {}
        self._notebooks: dict[str, Document] = {}

    def text(self, filename: str) -> str:
        """The text of a file, or the code of a notebook's cells; "" where it can't be had."""
        return self._notebook(filename).shown if filename.lower().endswith(NOTEBOOK) else self._file(filename)

    def cells(self, filename: str) -> Cells | None:
        """Which lines of that text are which cell; None for what is no notebook, or a broken one."""
        return self._notebook(filename).cells if filename.lower().endswith(NOTEBOOK) else None

    def file_line(self, filename: str, line: int) -> int:
        """The line of the file on which a line of that text is written."""
        return self._notebook(filename).file_line(line) if filename.lower().endswith(NOTEBOOK) else line

    def _notebook(self, filename: str) -> Document:
        if filename not in self._notebooks:
            text = self._file(filename)
            try:
                self._notebooks[filename] = read_document(text, filename)
            except SourceError:
                self._notebooks[filename] = Document(text, ())
        return self._notebooks[filename]

    def _file(self, filename: str) -> str:
        if filename in self._given:
            return self._given[filename]
        if is_gone(filename):
            return ""
        try:
            return read(filename).text
        except SourceError:
            return ""
