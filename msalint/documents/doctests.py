"""Examples with prompts: `>>> x = 1`, their continuations, and what they print in between."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msalint.documents.block import Line, dedented

Rows = Sequence[tuple[int, str]]
"""Lines of a file by number."""

_PROMPT = re.compile(r"([ \t]*)(>>>|\.\.\.)(?: |$)")


def examples(rows: Rows) -> Iterator[tuple[Line, ...]]:
    """The code of each run of examples. A run ends where prose begins: a blank line, and then no prompt."""
    run: list[Line] = []
    blank = True
    going = False
    for number, text in rows:
        match = _PROMPT.match(text)
        if match is not None and (match.group(2) == ">>>" or going):
            going = True
            run.append(Line(number, match.end()))
        elif not text.strip():
            blank, going = True, False
            continue
        else:
            going = False
            if blank and run:
                yield tuple(run)
                run = []
        blank = False
    if run:
        yield tuple(run)


def code_in(rows: Rows) -> Iterator[tuple[tuple[Line, ...], bool]]:
    """The code of one block, and whether it has prompts in front: runs of examples, or all of its lines."""
    if _has_prompt(rows):
        yield from ((run, True) for run in examples(rows))
    elif lines := dedented(rows):
        yield lines, False


def _has_prompt(rows: Rows) -> bool:
    """Whether the first line that is not blank is an example."""
    first = next((text for _, text in rows if text.strip()), "")
    match = _PROMPT.match(first)
    return match is not None and match.group(2) == ">>>"
