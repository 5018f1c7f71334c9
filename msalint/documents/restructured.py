"""Code blocks of Python in reStructuredText: `.. code-block:: python` and its kin, and examples with prompts."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msalint.documents.block import Line
from msalint.documents.doctests import Rows, code_in, examples

_DIRECTIVE = re.compile(
    r"(?P<indent>[ \t]*)\.\.[ \t]+"
    r"(?:(?:code-block|code|sourcecode)::[ \t]*(?:python3?|py3?|pycon|ipython3?)|testcode::.*)[ \t]*$",
    re.IGNORECASE,
)
_OPTION = re.compile(r"[ \t]*:[\w-]+:")


def blocks(rows: Rows) -> Iterator[tuple[tuple[Line, ...], bool]]:
    """The lines of each block of Python, and whether they have prompts in front."""
    held: set[int] = set()
    for inside in _directives(rows):
        held.update(number for number, _ in inside)
        yield from code_in(inside)
    for run in examples([row for row in rows if row[0] not in held]):
        yield run, True


def _directives(rows: Rows) -> Iterator[Rows]:
    """What is indented below a directive, without the directive's options."""
    inside: list[tuple[int, str]] = []
    indent: int | None = None
    for number, text in rows:
        if indent is not None:
            if not text.strip() or len(text) - len(text.lstrip()) > indent:
                if inside or _OPTION.match(text) is None:
                    inside.append((number, text))
                continue
            yield inside
            indent, inside = None, []
        match = _DIRECTIVE.match(text)
        if match is not None:
            indent = len(match.group("indent"))
    if indent is not None:
        yield inside
