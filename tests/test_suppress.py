"""Suppression comments cover a statement, a block or a file; what they don't hide is told."""

from __future__ import annotations

import pytest

from msalint.diagnostic import Diagnostic, Level, Position, Span
from msalint.suppress import Suppression, apply, find

NAMES = {"view-needs-contiguous": "MSA101", "missing-scale": "MSA201"}


def codes(word: str) -> frozenset[str]:
    word = NAMES.get(word.lower(), word.upper())
    return frozenset(code for code in ("MSA101", "MSA103", "MSA201") if code.startswith(word))


def at(line: int, code: str = "MSA101") -> Diagnostic:
    span = Span(Position(line, 1), Position(line, 2))
    return Diagnostic(code, "a-rule", Level.ERROR, "words", "x.py", span)


def hidden(text: str, code: str = "MSA101") -> list[int]:
    """The lines of a text on which a finding would be hidden."""
    lines = range(1, text.count("\n") + 2)
    return [one.span.start.line for one in apply([at(n, code) for n in lines], find(text), codes).hidden]


def words(text: str) -> list[list[str] | None]:
    return [None if one.words is None else [word.text for word in one.words] for one in find(text)]


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ("# noqa: MSA101", ["MSA101"]),
        ("# noqa:MSA101,MSA103", ["MSA101", "MSA103"]),
        ("#noqa : MSA101 MSA103", ["MSA101", "MSA103"]),
        ("# NOQA: msa101", ["msa101"]),
        ("# noqa: E501, MSA101, F401", ["MSA101"]),
        ("# type: ignore  # noqa: MSA101", ["MSA101"]),
        ("# msalint: ignore[MSA101]", ["MSA101"]),
        ("# msalint: ignore[MSA101, missing-scale] -- the view only splits", ["MSA101", "missing-scale"]),
        ("#msalint:ignore[ MSA101 ]", ["MSA101"]),
        ("# msalint: ignore -- shown on purpose", None),
        ("# noqa", None),
    ],
)
def test_what_a_comment_names(comment: str, expected: list[str] | None) -> None:
    assert words(f"x = 1  {comment}\n") == [expected]


@pytest.mark.parametrize("comment", ["# noqa: E501", "# noqa-file", "# msalint", "# ignore[MSA101]", "# noqanything"])
def test_what_is_no_suppression_of_ours(comment: str) -> None:
    assert words(f"x = 1  {comment}\n") == []


def test_words_in_a_string_are_no_comment() -> None:
    assert words('x = "# noqa: MSA101"\n') == []


def test_words_keep_their_place() -> None:
    (one,) = find("a = b  # noqa: E501, MSA101\n")
    assert one.span == Span(Position(1, 8), Position(1, 28))
    assert one.words is not None and one.words[0].span == Span(Position(1, 22), Position(1, 28))
    assert one.foreign


def test_a_comment_covers_its_line() -> None:
    assert hidden("a = 1\nb = 2  # noqa: MSA101\nc = 3\n") == [2]


def test_only_the_codes_named_are_hidden() -> None:
    assert hidden("b = 2  # msalint: ignore[MSA101]\n", "MSA201") == []
    assert hidden("b = 2  # msalint: ignore[missing-scale]\n", "MSA201") == [1]
    assert hidden("b = 2  # msalint: ignore[MSA1]\n", "MSA103") == [1]
    assert hidden("b = 2  # noqa\n", "MSA103") == [1]


def test_a_comment_on_any_line_of_a_statement_covers_all_of_it() -> None:
    text = "a = 1\nb = call(\n    x,  # noqa: MSA101\n    y,\n)\nc = 3\n"
    assert hidden(text) == [2, 3, 4, 5]
    assert hidden(text.replace("  # noqa: MSA101", "").replace(")\n", ")  # noqa: MSA101\n")) == [2, 3, 4, 5]


def test_a_comment_within_a_statement_on_its_own_line_covers_the_statement() -> None:
    assert hidden("b = call(\n    # noqa: MSA101\n    y,\n)\nc = 3\n") == [1, 2, 3, 4]


def test_a_comment_behind_a_header_covers_the_header() -> None:
    assert hidden("def f(x):  # noqa: MSA101\n    return x\n") == [1]


def test_a_comment_above_covers_the_whole_statement_below() -> None:
    body = "def f(x):\n    y = x\n\n    if y:\n        return x\n    z = 1\n"
    text = f"a = 1\n# msalint: ignore[MSA101] -- why\n{body}\nb = 2\n"
    assert hidden(text) == [2, 3, 4, 5, 6, 7, 8]


def test_a_comment_above_a_simple_statement_covers_just_that() -> None:
    assert hidden("# msalint: ignore[MSA101]\n\n# words\na = (\n    1\n)\nb = 2\n") == [1, 2, 3, 4, 5, 6]


def test_a_comment_above_a_decorator_covers_the_function() -> None:
    assert hidden("# noqa: MSA101\n@wraps(g)\n@cached\ndef f():\n    return 1\nb = 2\n") == [1, 2, 3, 4, 5]


def test_a_comment_above_an_if_covers_its_else() -> None:
    assert hidden("# noqa: MSA101\nif a:\n    b = 1\nelse:\n    b = 2\nc = 3\n") == [1, 2, 3, 4, 5]


def test_a_comment_above_an_inner_statement_ends_with_its_block() -> None:
    text = "def f():\n    # noqa: MSA101\n    for x in y:\n        z = x\n    return z\ndef g():\n    return 1\n"
    assert hidden(text) == [2, 3, 4]


def test_a_comment_for_the_file_covers_the_file() -> None:
    assert hidden("a = 1\nb = 2\n# msalint: ignore-file[MSA101]\nc = 3\n") == [1, 2, 3, 4, 5]
    assert hidden("# msalint: ignore-file\na = 1\n") == [1, 2, 3]


def test_a_text_that_does_not_parse_is_read_line_by_line() -> None:
    assert hidden("def f(:\n  b = 2  # noqa: MSA101\n c = (\n") == [2]


def test_newlines_of_windows_are_newlines() -> None:
    assert hidden("a = 1\r\nb = 2  # noqa: MSA101\r\nc = 3\r\n") == [2]


def left(text: str, *found: Diagnostic) -> list[tuple[int, list[str]]]:
    outcome = apply(found, find(text), codes)
    return [(one.span.start.line, [word.text for word in idle]) for one, idle in outcome.unused]


def test_what_hid_nothing_is_told() -> None:
    assert left("a = 1  # noqa: MSA101\nb = 1  # msalint: ignore\n") == [(1, ["MSA101"]), (2, [])]


def test_of_several_codes_only_the_idle_ones_are_told() -> None:
    assert left("a = 1  # noqa: MSA101, MSA201\n", at(1)) == [(1, ["MSA201"])]


def test_a_bare_noqa_is_not_ours_to_call_unused() -> None:
    assert left("a = 1  # noqa\n") == []


def test_two_comments_that_hide_the_same_are_both_used() -> None:
    assert left("# msalint: ignore-file[MSA101]\na = 1  # noqa: MSA101\n", at(2)) == []


def test_what_is_kept_keeps_its_order() -> None:
    found = [at(3), at(1), at(2)]
    assert apply(found, [], codes).kept == tuple(found)


def test_it_is_a_pure_function() -> None:
    comments: list[Suppression] = find("a = 1  # noqa: MSA101\n")
    assert apply([at(1)], comments, codes) == apply([at(1)], comments, codes)
