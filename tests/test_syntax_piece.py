"""Lines and columns count characters, from 1, whatever the newlines, tabs and alphabets of a file."""

from __future__ import annotations

import pytest

from msalint.diagnostic import Position, Span
from msalint.source import LineTable, SourceError
from msalint.syntax import nodes as n
from msalint.syntax.module import Module
from msalint.syntax.outline import line_starts
from msalint.syntax.piece_libcst import parse_piece


def calls(text: str) -> list[n.Call]:
    module = Module.from_text(text, "some.py")
    return [
        node
        for stretch in module.outline.stretches
        for statement in module.read_stretch(stretch)
        for node in statement.walk()
        if isinstance(node, n.Call)
    ]


def span(first: int, left: int, last: int, right: int) -> Span:
    return Span(Position(first, left), Position(last, right))


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
def test_every_newline_counts_one_line(newline: str) -> None:
    text = newline.join(["# first", "def f():", "\tx = g(1,", "\t\t2)", "", "y = h()", ""])
    inner, outer = calls(text)
    assert inner.span == span(3, 6, 4, 5) and inner.text == f"g(1,{newline}\t\t2)"
    assert outer.span == span(6, 5, 6, 8) and outer.line == 6
    assert inner.filename == "some.py"


def test_mixed_newlines_and_form_feeds() -> None:
    text = "a = 1\r\n\x0cb = 2\n\n\x0c\nc = f('''x\r\ny''')\r\n  # \u2028 is no newline\nd = g()\n"
    first, second = calls(text)
    assert first.span == span(5, 5, 6, 6)
    assert second.line == 8


def test_columns_count_characters_not_bytes() -> None:
    text = "s = 'äöü𝔸' + f(s)  # ü\nπ = g(π)\n"
    first, second = calls(text)
    assert first.span == span(1, 14, 1, 18)
    assert second.span == span(2, 5, 2, 9)
    assert LineTable(text).slice(first.span) == "f(s)"


def test_a_file_without_a_last_newline() -> None:
    for text in ("x = f(a)", "def g():\n    return f(a)", "if f(a): pass # end"):
        assert calls(text)[0].text == "f(a)"


def test_parentheses_are_in_the_span_where_code_behind_it_would_bind_to_a_part() -> None:
    cases = {
        "(a @ b)": "(a @ b)", "((a @ b))": "((a @ b))", "(-a)": "(-a)", "(1)": "(1)", "(a, b)": "(a, b)",
        "(a if b else c)": "(a if b else c)", "(lambda: a)": "(lambda: a)", "(a < b)": "(a < b)",
        "(a for a in b)": "(a for a in b)", "(a := b)": "(a := b)", "('a' 'b')": "('a' 'b')",
        "(a)": "a", "(a.b)": "a.b", "(a(b))": "a(b)", "(a[b])": "a[b]", "([a])": "[a]", "({a: b})": "{a: b}",
        "('a')": "'a'", "(a\n .b())": "a\n .b()",
    }  # fmt: skip
    for written, expected in cases.items():
        module = Module.from_text(f"x = {written}\n")
        (assignment,) = module.statements()
        assert isinstance(assignment, n.Assign) and assignment.value is not None
        assert assignment.value.text == expected, written


def test_statements_have_no_comment_semicolon_or_newline_in_their_span() -> None:
    text = "# above\nx = 1 ; y = 2 ;  # behind\n\n# above\nif x:\n    # inside\n    y\n    # below\n"
    module = Module.from_text(text)
    assert [statement.text for statement in module.statements()] == ["x = 1", "y = 2", "if x:\n    # inside\n    y"]


def test_a_decorated_definition_starts_at_def() -> None:
    module = Module.from_text("import a\n\n@a.b\n# between\n@c\nasync def f(x): return x\n")
    function = module.definition("f")
    assert isinstance(function, n.FunctionDef) and function.is_async
    assert function.span == span(6, 1, 6, 25)
    assert [decorator.text for decorator in function.decorators] == ["a.b", "c"]
    assert [decorator.line for decorator in function.decorators] == [3, 5]


def test_pieces_agree_with_the_line_table() -> None:
    text = "\ufeff"[1:] + "x = 1\r\n\r\ny = f(\r\n  a)\r"
    assert len(line_starts(text)) == len(LineTable(text))
    for call in calls(text):
        assert LineTable(text).slice(call.span) == call.text


def test_a_piece_that_is_no_python_says_where_in_the_file() -> None:
    text = "a = 1\nb = 2\nc = = 3\n"
    with pytest.raises(SourceError) as caught:
        parse_piece("some.py", text, line_starts(text), 3, 3)
    assert caught.value.position.line == 3


def test_places_in_a_tree_too_deep_to_write_out_fall_back_to_the_first_line() -> None:
    text = "x = (\n    " + "\n    + ".join(["a"] * 590) + "\n)\n"
    (assignment,) = Module.from_text(text).statements()
    assert isinstance(assignment, n.Assign)
    deepest: n.Expr | None = assignment.value
    while isinstance(deepest, n.Binary):
        deepest = deepest.left
    assert deepest is not None
    assert deepest.span.start in (Position(2, 5), Position(1, 1))
