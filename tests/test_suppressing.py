"""Comments are added where they hide what they should and change nothing else."""

from __future__ import annotations

import textwrap

import pytest

from msalint import registry, suppress
from msalint.diagnostic import Diagnostic, Level, Position, Span
from msalint.suppressing import Comments, suppressed

IGNORE, NOQA = Comments(), Comments(noqa=True)


def at(line: int, code: str = "MSA101") -> Diagnostic:
    return Diagnostic(code, "a-rule", Level.ERROR, "words", "a.py", Span(Position(line, 1), Position(line, 2)))


def added(text: str, *findings: Diagnostic, comments: Comments = IGNORE) -> str:
    """The text with comments; every finding must then be hidden, and no comment be idle."""
    done = suppressed(text, findings, comments)
    assert done.left == ()
    outcome = suppress.apply(findings, suppress.find(done.text), registry.load().codes)
    assert outcome.kept == ()
    again = suppressed(done.text, outcome.kept, comments)
    assert (again.text, again.lines) == (done.text, 0)
    return done.text


@pytest.mark.parametrize(
    ("before", "line", "after"),
    [
        ("x = 1\ny = 2\n", 1, "x = 1  # msalint: ignore[MSA101]\ny = 2\n"),
        ("x = 1", 1, "x = 1  # msalint: ignore[MSA101]"),
        ("x = 1  \r\ny = 2\r\n", 1, "x = 1  # msalint: ignore[MSA101]\r\ny = 2\r\n"),
        ("x = 1  # why\n", 1, "x = 1  # why  # msalint: ignore[MSA101]\n"),
        ("x = 1  # noqa: E501\n", 1, "x = 1  # noqa: E501  # msalint: ignore[MSA101]\n"),
        ("x = '#'\n", 1, "x = '#'  # msalint: ignore[MSA101]\n"),
        ("x = \"it's\"  # a 'b\n", 1, "x = \"it's\"  # a 'b  # msalint: ignore[MSA101]\n"),
        (
            "x = 1  # msalint: ignore[MSA201] -- known\n",
            1,
            "x = 1  # msalint: ignore[MSA201, MSA101] -- known\n",
        ),
        ("x = f(\n    1,\n    2,\n)\n", 2, "x = f(\n    1,  # msalint: ignore[MSA101]\n    2,\n)\n"),
        ("x = 1 + \\\n    2\n", 1, "x = 1 + \\\n    2  # msalint: ignore[MSA101]\n"),
        ('x = """\na\n"""\n', 1, 'x = """\na\n"""  # msalint: ignore[MSA101]\n'),
        ('x = f("""\na\n""", 1,\n2)\n', 1, 'x = f("""\na\n""", 1,  # msalint: ignore[MSA101]\n2)\n'),
        ('x = f"""\n{y}\n"""\n', 2, 'x = f"""\n{y}\n"""  # msalint: ignore[MSA101]\n'),
        ("def f(\n    x,\n): return x\n", 1, "def f(  # msalint: ignore[MSA101]\n    x,\n): return x\n"),
        ("@a\ndef f():\n    pass\n", 1, "@a  # msalint: ignore[MSA101]\ndef f():\n    pass\n"),
    ],
)
def test_where_a_comment_stands(before: str, line: int, after: str) -> None:
    assert added(before, at(line)) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = 1\n", "x = 1  # noqa: MSA101, MSA201\n"),
        ("x = 1  # noqa: E501\n", "x = 1  # noqa: E501, MSA101, MSA201\n"),
        ("x = 1  # noqa:E501,F401 why\n", "x = 1  # noqa:E501,F401, MSA101, MSA201 why\n"),
        ("x = 1  # why\n", "x = 1  # why  # noqa: MSA101, MSA201\n"),
    ],
)
def test_noqa(before: str, after: str) -> None:
    assert added(before, at(1, "MSA201"), at(1), at(1), comments=NOQA) == after


def test_a_reason_is_written_behind() -> None:
    assert added("x = 1\n", at(1), comments=Comments(reason="see #7".replace("#", "no. "))) == (
        "x = 1  # msalint: ignore[MSA101] -- see no. 7\n"
    )


def test_several_lines_of_one_text() -> None:
    text = textwrap.dedent("""\
        import torch

        def f(x):
            y = x.view(1)
            return y
        """)
    done = suppressed(text, [at(5), at(4, "MSA102"), at(4)], IGNORE)
    assert done.lines == 2
    assert done.text == text.replace("view(1)", "view(1)  # msalint: ignore[MSA101, MSA102]").replace(
        "return y", "return y  # msalint: ignore[MSA101]"
    )


@pytest.mark.parametrize("code", ["MSA901", "MSA902", "MSA903"])
def test_what_is_wrong_with_the_check_itself_is_not_hidden(code: str) -> None:
    done = suppressed("x = 1  # noqa: MSA101\n", [at(1, code)], IGNORE)
    assert (done.text, done.lines, len(done.left)) == ("x = 1  # noqa: MSA101\n", 0, 1)


@pytest.mark.parametrize("text", ["def f(:\n", "x = (\n", "\n\n# only a comment\n"])
def test_where_no_comment_can_stand_the_text_is_left_as_it_is(text: str) -> None:
    done = suppressed(text, [at(1)], IGNORE)
    assert (done.text, done.lines, len(done.left)) == (text, 0, 1)
