"""The building blocks of fixes that rules use."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from msalint.diagnostic import Fix, Position, Safety, Span
from msalint.fix import apply
from msalint.rule import Level, Meta, Rule, append_argument, insert_after, replace, wrap
from msalint.source import LineTable


@dataclass(frozen=True)
class Place:
    span: Span
    text: str
    filename: str = "x.py"


def place(text: str, part: str, filename: str = "x.py") -> Place:
    """The place of `part` in a text."""
    lines = LineTable(text)
    begin = text.index(part)
    ends = []
    for offset in (begin, begin + len(part)):
        line = text[:offset].count("\n") + 1
        ends.append(Position(line, offset - lines.start(line) + 1))
    return Place(Span(ends[0], ends[1]), part, filename)


class Some(Rule):
    meta = Meta("MSA199", "some", Level.ERROR, "0.1.0")


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("f()", "f(a=1)"),
        ("f(x)", "f(x, a=1)"),
        ("f(x, )", "f(x, a=1 )"),
        ("f( x )", "f( x, a=1 )"),
        ("f(g(x)[0])", "f(g(x)[0], a=1)"),
        ("f(\n    x,\n    y\n)", "f(\n    x,\n    y, a=1\n)"),
        ("f(\n    x,\n    y,\n)", "f(\n    x,\n    y, a=1\n)"),
        ("f(\n    x,  # why, (this)\n)", "f(\n    x, a=1  # why, (this)\n)"),
        ("f(\n    x  # why\n    # and this\n)", "f(\n    x, a=1  # why\n    # and this\n)"),
        ("f(  # none\n)", "f(a=1  # none\n)"),
        ("f(x\n  .g(y))", "f(x\n  .g(y), a=1)"),
        ("x.f(\n)", "x.f(a=1\n)"),
        ("x\\\n.f(y)", "x\\\n.f(y, a=1)"),
        ("f('#', \"),\")", "f('#', \"),\", a=1)"),
    ],
)
@pytest.mark.parametrize("before", ["", "  y = g(1, ", "é = ["])
def test_an_argument_stands_behind_the_last_one_and_before_its_comments(call: str, expected: str, before: str) -> None:
    text = f"# first\n{before}{call}\n"
    at = place(text, call)
    one = Some().report(at, "", fix=Fix("", (append_argument(at, "a=1"),), Safety.SAFE))
    assert apply(text, [one]).text == f"# first\n{before}{expected}\n"


def test_a_fix_that_reaches_into_another_file_is_told_and_not_offered() -> None:
    here, there = place("x = y\n", "y"), place("z = y\n", "z", "other.py")
    fixes = [replace(there, "q"), insert_after(there, "q"), wrap(there, "q", "q")[0], append_argument(there_call, "q")]
    for edit in fixes:
        one = Some().report(here, "words", fix=Fix("mend it over there", (replace(here, "q"), edit), Safety.SAFE))
        assert one.fix is None and one.help == "mend it over there"
    assert Some().report(here, "words", fix=Fix("mend it", (replace(here, "q"),), Safety.SAFE)).fix


there_call = place("f(x)\n", "f(x)", "other.py")
