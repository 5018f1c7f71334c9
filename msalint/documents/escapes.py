"""What IPython reads in a cell and Python doesn't: magics, shell lines, help. Found, so that it can be set aside."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msalint.source import NEWLINE

PYTHON_MAGICS = frozenset({"capture", "debug", "prun", "pypy", "python", "python3", "time", "timeit"})
"""The cell magics whose cell is Python below its first line."""

_CELL_MAGIC = re.compile(r"\s*%%(\w+)")
_SIGNS = re.compile(r"^[ \t]*[!%?,;/]|\?[ \t]*\r?$|=[ \t]*[!%]", re.MULTILINE)
"""Signs without which a text holds nothing of IPython's. Strings and operators have them too."""
_BEGINS = re.compile(r"[ \t]*[!%?,;/]")
_HELP = re.compile(r"[ \t]*[\w.*%\[\]]+\?{1,2}[ \t]*")
_ASSIGNS = re.compile(r"([ \t]*[^#\"'=!%?]+=[ \t]*)[!%](?!=)")
_TOKEN = re.compile(
    r"""(?P<string>\"{3}(?:[^\\]|\\.)*?(?:\"{3}|\Z)|'{3}(?:[^\\]|\\.)*?(?:'{3}|\Z)"""
    r"""|"(?:[^"\\\r\n]|\\(?:\r\n|.))*"?|'(?:[^'\\\r\n]|\\(?:\r\n|.))*'?)"""
    r"""|(?P<comment>\#[^\r\n]*)|(?P<open>[\[({])|(?P<close>[\])}])"""
    r"""|(?P<continued>\\[ \t]*(?:\r\n|\r|\n))|(?P<newline>\r\n|\r|\n)""",
    re.DOTALL,
)


def cell_magic(cell: str) -> str | None:
    """`time` of a cell that begins with `%%time`."""
    found = _CELL_MAGIC.match(cell)
    return None if found is None else found.group(1)


def is_python(cell: str) -> bool:
    """Whether the code of a cell is Python, as far as its magic tells."""
    magic = cell_magic(cell)
    return magic is None or magic in PYTHON_MAGICS


def escaped_lines(cell: str) -> dict[int, str]:
    """The lines (from 0) of a cell that are IPython's own, and what Python may read in their place.

    `%matplotlib inline` may be nothing at all, `files = !ls` an assignment of something unknown, and an indented line
    has to be a statement. Lines inside of strings and brackets are never IPython's.
    """
    if _SIGNS.search(cell) is None:
        return {}
    found: dict[int, str] = {}
    number, at = 0, 0
    magic = _CELL_MAGIC.match(cell)
    if magic is not None:
        number = len(NEWLINE.findall(cell, 0, magic.end()))
        found[number], at = "", _line_end(cell, magic.end())
        number += 1
    while at < len(cell):
        end = _line_end(cell, at)
        stand_in = _stand_in(cell[at:end].rstrip("\r\n"))
        if stand_in is None:
            end = _statement_end(cell, at)
            number += len(NEWLINE.findall(cell, at, end))
        else:
            for line in _continued(cell, at):
                found[number], stand_in, end = stand_in, "", line
                number += 1
        at = end
    return found


def _stand_in(line: str) -> str | None:
    """What Python may read instead of the line that begins a statement; None where it is Python already."""
    assigns = _ASSIGNS.match(line)
    if assigns is not None:
        return assigns.group(1) + "get_ipython()"
    if _BEGINS.match(line) or _HELP.fullmatch(line):
        indent = line[: len(line) - len(line.lstrip())]
        return indent + "pass" if indent else ""
    return None


def _continued(text: str, at: int) -> Iterator[int]:
    """The ends of the lines that a line goes on over, its own first: a backslash at the end goes on."""
    while at < len(text):
        end = _line_end(text, at)
        yield end
        if not text[at:end].rstrip().endswith("\\"):
            return
        at = end


def _line_end(text: str, at: int) -> int:
    found = NEWLINE.search(text, at)
    return len(text) if found is None else found.end()


def _statement_end(text: str, at: int) -> int:
    """The offset behind the line break that ends the logical line beginning at `at`."""
    depth = 0
    for token in _TOKEN.finditer(text, at):
        kind = token.lastgroup
        if kind == "open":
            depth += 1
        elif kind == "close":
            depth = max(0, depth - 1)
        elif kind == "newline" and depth == 0:
            return token.end()
    return len(text)
