"""Fenced blocks of Python in Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msalint.documents.block import Line
from msalint.documents.doctests import Rows, code_in

_FENCE = re.compile(r"[ \t]*(?:[-*+>][ \t]+|\d+[.)][ \t]+)?(?P<fence>`{3,}|~{3,})[ \t]*(?P<info>[^`]*)$")
_PYTHON = re.compile(
    r"(?:\{(?:code-block|code-cell|code|sourcecode)\}[ \t]*)?\{?\.?(?:python3?|py3?|pycon|ipython3?)(?![\w+-])",
    re.IGNORECASE,
)


def blocks(rows: Rows) -> Iterator[tuple[tuple[Line, ...], bool]]:
    """The lines of each block of Python, and whether they have prompts in front."""
    for inside, info in _fenced(rows):
        if _PYTHON.match(info) is not None:
            yield from code_in(inside)


def outside(rows: Rows) -> Rows:
    """The rows that no fence holds."""
    held = {number for inside, _ in _fenced(rows) for number, _ in inside}
    return [row for row in rows if row[0] not in held]


def _fenced(rows: Rows) -> Iterator[tuple[Rows, str]]:
    """The lines between two fences, and what is said behind the first."""
    fence = ""
    info = ""
    inside: list[tuple[int, str]] = []
    for number, text in rows:
        match = _FENCE.match(text)
        if not fence:
            if match is not None:
                fence, info, inside = match.group("fence"), match.group("info"), []
        elif match is not None and match.group("fence").startswith(fence) and not match.group("info").strip():
            yield inside, info
            fence = ""
        else:
            inside.append((number, text))
    if fence:
        yield inside, info
