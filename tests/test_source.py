"""Bytes become text as Python itself would read them, or a reason in words."""

from __future__ import annotations

import codecs
from pathlib import Path

import pytest

from msalint.diagnostic import Position, Span
from msalint.source import LineTable, SourceError, decode, read


def reason(data: bytes) -> SourceError:
    with pytest.raises(SourceError) as caught:
        decode(data, "x.py")
    return caught.value


def test_a_byte_order_mark_is_taken_off_and_put_back() -> None:
    source = decode(codecs.BOM_UTF8 + b"x = 1\n", "x.py")
    assert source.text == "x = 1\n" and source.bom
    assert source.encode("y = 2\n") == codecs.BOM_UTF8 + b"y = 2\n"


def test_a_coding_line_is_followed() -> None:
    source = decode("# -*- coding: latin-1 -*-\nx = 'é'\n".encode("latin-1"), "x.py")
    assert "é" in source.text
    assert source.encode(source.text) == "# -*- coding: latin-1 -*-\nx = 'é'\n".encode("latin-1")


def test_newlines_are_kept_as_they_are() -> None:
    assert decode(b"x = 1\r\ny = 2\r\n", "x.py").text == "x = 1\r\ny = 2\r\n"


def test_undeclared_bytes_are_told_with_the_place() -> None:
    error = reason(b"x = 1\n" * 3 + b"y = '\xe9'\n")
    assert str(error) == "byte 0xe9 is not valid utf-8"
    assert error.position == Position(4, 6)


def test_undeclared_bytes_in_the_first_line_are_told() -> None:
    assert "byte 0xe9 is not valid utf-8" in str(reason(b"y = '\xe9'\n"))


def test_an_unknown_encoding_is_told() -> None:
    assert "unknown encoding: nonsense" in str(reason(b"# coding: nonsense\n"))


def test_a_nul_character_is_told_with_the_place() -> None:
    error = reason(b"x = 1\ny = \x00\n")
    assert "NUL" in str(error) and error.position == Position(2, 5)


def test_utf16_is_told_apart() -> None:
    assert "UTF-16" in str(reason("x = 1\n".encode("utf-16")))


def test_a_codec_that_is_no_text_encoding_is_told() -> None:
    assert str(reason(b"# coding: rot13\nx = 1\n"))


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="can't read this file"):
        read(tmp_path / "none.py")


def test_lines_end_where_python_ends_them() -> None:
    table = LineTable("a\x0cb\r\nc\u2028d\re\nf")
    assert [table.line(number) for number in range(1, len(table) + 1)] == ["a\x0cb", "c\u2028d", "e", "f"]
    assert table.line(0) == table.line(99) == ""


def test_positions_and_offsets_agree() -> None:
    table = LineTable("ab\ncdé\n")
    assert table.slice(Span(Position(2, 2), Position(2, 4))) == "dé"
    assert table.offset(Position(2, 99)) == len("ab\ncdé\n")
    assert table.offset(Position(9, 1)) == len("ab\ncdé\n")
