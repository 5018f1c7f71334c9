"""Bytes to text: encoding, byte order mark and newlines of a Python file, and where its lines begin."""

from __future__ import annotations

import codecs
import hashlib
import io
import re
import tokenize
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from msalint.bytes_of import bytes_of
from msalint.diagnostic import Position, Span

NEWLINE = re.compile(r"\r\n|\r|\n")
"""What ends a line of Python. `str.splitlines` also breaks at form feeds and at U+2028, which Python does not."""


def newline_of(text: str) -> str:
    """How a text ends its lines, by the first of them."""
    found = NEWLINE.search(text)
    return found.group() if found else "\n"


class SourceError(Exception):
    """A file that can't be read as Python: `str(error)` says why, `position` where, as far as that is known."""

    def __init__(self, message: str, position: Position | None = None) -> None:
        super().__init__(message)
        self.position = position or Position(1, 1)


class LineTable:
    """The lines of a text and the way between offsets (from 0) and positions (from 1, in characters)."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts = [0, *(match.end() for match in NEWLINE.finditer(text))]

    def __len__(self) -> int:
        return len(self._starts)

    def line(self, number: int) -> str:
        """Line `number` without its newline, or "" where there is no such line."""
        if not 1 <= number <= len(self._starts):
            return ""
        start = self._starts[number - 1]
        end = self._starts[number] if number < len(self._starts) else len(self.text)
        return self.text[start:end].rstrip("\r\n")

    def offset(self, position: Position) -> int:
        """The offset of a position; one past the end of a line is allowed, anything further is cut to it."""
        if position.line > len(self._starts):
            return len(self.text)
        start = self._starts[position.line - 1]
        limit = self._starts[position.line] if position.line < len(self._starts) else len(self.text)
        return min(start + position.column - 1, limit)

    def start(self, line: int) -> int:
        """The offset where a line begins; the end of the text for lines that it lacks."""
        return self._starts[line - 1] if line <= len(self._starts) else len(self.text)

    def slice(self, span: Span) -> str:
        return self.text[self.offset(span.start) : self.offset(span.end)]


@dataclass(frozen=True)
class Source:
    """One file as text. Newlines are kept as they are; a byte order mark is taken off and remembered."""

    filename: str
    text: str
    encoding: str = "utf-8"
    bom: bool = False

    @cached_property
    def lines(self) -> LineTable:
        return LineTable(self.text)

    def encode(self, text: str) -> bytes:
        """The bytes of a changed text, in the file's own encoding and with its byte order mark."""
        return (b"\xef\xbb\xbf" if self.bom else b"") + text.encode(self.encoding)


def digest_of(data: bytes) -> str:
    """What some bytes are known by: equal for equal bytes, and for no others."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def read(path: str | Path) -> Source:
    """Read a file. Raises SourceError where it can't be opened, decoded, or holds NUL characters."""
    try:
        data = bytes_of(str(path))
    except OSError as error:
        raise SourceError(f"can't read this file: {error.strerror or error}") from error
    return decode(data, str(path))


NO_CODING_LINE = (".ipynb", ".md", ".markdown", ".mdx", ".rst")
"""Files that hold Python and are none: they are UTF-8, and a heading such as "# Coding: basics" is only a heading."""


def decode(data: bytes, filename: str) -> Source:
    """Decode by the byte order mark or the coding line (PEP 263). Raises SourceError, see `read`."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise SourceError("the file is UTF-16, which Python doesn't read: save it as UTF-8")
    head = data
    if filename.lower().endswith(NO_CODING_LINE):
        head = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(head).readline)
    except SyntaxError as error:
        raise SourceError(_coding_line(data, str(error))) from error
    bom = encoding == "utf-8-sig"
    encoding = "utf-8" if bom else encoding
    body = data[3:] if bom else data
    try:
        text = body.decode(encoding)
    except UnicodeDecodeError as error:
        where = _position(body[: error.start].decode(encoding, "replace"))
        raise SourceError(f"byte 0x{body[error.start]:02x} is not valid {encoding}", where) from error
    except (LookupError, ValueError) as error:
        raise SourceError(f"can't decode the file: {error}") from error
    nul = text.find("\0")
    if nul >= 0:
        raise SourceError("the file holds a NUL character, which Python doesn't read", _position(text[:nul]))
    return Source(filename, text, encoding, bom)


def _coding_line(data: bytes, reason: str) -> str:
    """`detect_encoding` says "unknown encoding: xyz" or, for undeclared bytes, "invalid or missing encoding"."""
    if "unknown encoding" in reason or "encoding problem" in reason:
        return reason.replace("encoding problem", "unknown encoding")
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        return f"byte 0x{data[error.start]:02x} is not valid utf-8, and no coding line names another encoding"
    return reason


def _position(before: str) -> Position:
    """The place right behind a stretch of text that begins the file."""
    lines = NEWLINE.split(before)
    return Position(len(lines), len(lines[-1]) + 1)
