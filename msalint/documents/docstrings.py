"""Code blocks in the docstrings of a Python file: fences, directives and examples with prompts."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator

from msalint.documents import markdown, restructured
from msalint.documents.block import Block, Line
from msalint.documents.doctests import Rows
from msalint.source import LineTable

_QUOTES = re.compile(r"([rRuU]?)(\"{3}|'{3})")
_HOLDERS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def blocks(text: str) -> Iterator[Block]:
    """The blocks of a file, those of one docstring after those of another; none where the file can't be parsed."""
    if not any(sign in text for sign in (">>>", "```", "~~~", "code", "::")):
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    table = LineTable(text)
    for node in ast.walk(tree):
        if isinstance(node, _HOLDERS) and node.body and isinstance(node.body[0], ast.Expr):
            string = node.body[0].value
            if isinstance(string, ast.Constant) and isinstance(string.value, str):
                yield from _inside(string, table)


def _inside(string: ast.Constant, table: LineTable) -> Iterator[Block]:
    """The blocks of one string of three quotes. In a plain one, those with a backslash are left: it is an escape."""
    first = table.line(string.lineno)
    column = len(first.encode()[: string.col_offset].decode("utf-8", "replace"))
    quotes = _QUOTES.match(first, column)
    if quotes is None or string.end_lineno is None or string.end_lineno == string.lineno:
        return
    rows = [(string.lineno, " " * quotes.end() + first[quotes.end() :])]
    rows += [(number, table.line(number)) for number in range(string.lineno + 1, string.end_lineno)]
    last = table.line(string.end_lineno).rsplit(quotes.group(2), 1)[0]
    if last.strip():
        rows.append((string.end_lineno, last))
    raw = quotes.group(1) in ("r", "R")
    forbidden = (quotes.group(2),) if raw else (quotes.group(2), "\\")
    for lines, prompts in _blocks(rows):
        block = Block(table, lines, prompts, forbidden)
        if not any(word in block.text for word in forbidden) and lines[0].number != string.lineno:
            yield block


def _blocks(rows: Rows) -> Iterator[tuple[tuple[Line, ...], bool]]:
    yield from markdown.blocks(rows)
    yield from restructured.blocks(markdown.outside(rows))
