"""Which kind of document a file is, by its name, and how it is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from msalint.documents.document import Document, Piece, Whole

PYTHON = ".py"
NOTEBOOK = ".ipynb"
MARKDOWN = (".md", ".markdown", ".mdx")
RESTRUCTURED = (".rst",)
PROSE = MARKDOWN + RESTRUCTURED

Result = TypeVar("Result")


def read_document(text: str, filename: str, docs: bool = False) -> Document:
    """The pieces of a file by its name; `docs` asks for the code in docstrings too. Raises SourceError."""
    name = filename.lower()
    if name.endswith(NOTEBOOK):
        from msalint.documents.notebook import read

        return read(text)
    if name.endswith(PROSE):
        return Document(text, tuple(_blocks_in_prose(text, name)))
    if docs:
        from msalint.documents.docstrings import blocks

        return Document(text, (Whole(text), *blocks(text)))
    return Document(text, (Whole(text),))


def _blocks_in_prose(text: str, name: str) -> Iterator[Piece]:
    from msalint.documents import block, markdown, restructured
    from msalint.source import LineTable

    table = LineTable(text)
    rows = [(number, table.line(number)) for number in range(1, len(table) + 1)]
    found = restructured.blocks(rows) if name.endswith(RESTRUCTURED) else markdown.blocks(rows)
    for lines, prompts in found:
        yield block.Block(table, lines, prompts)


def rewritten(
    text: str, filename: str, mend: Callable[[Piece], tuple[str, Result]], docs: bool = False
) -> tuple[str, list[Result]]:
    """A file whose pieces were mended one after another, and what `mend` has to say of each that is as it left it.

    `mend` takes a piece and gives its new text. A new text that the file has no room for is dropped, and the piece
    stays as it was. Raises SourceError where the file can't be read.
    """
    said: list[Result] = []
    number = 0
    while number < len(pieces := read_document(text, filename, docs).pieces):
        piece = pieces[number]
        new, result = mend(piece)
        changed = text if new == piece.text else piece.rewritten(new)
        if changed is not None:
            text = changed
            said.append(result)
        number += 1
    return text, said
