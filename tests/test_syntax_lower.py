"""What the reader's tree keeps of each kind of code: values, operators, parameters, imports, comments."""

from __future__ import annotations

import ast
import warnings
from pathlib import Path
from typing import Any, TypeVar

import pytest

from msalint.syntax import nodes as n
from msalint.syntax.module import Module

Kind = TypeVar("Kind", bound=n.Node)


def first(text: str, kind: type[Kind]) -> Kind:
    """The first node of a kind in a text, outermost and in the order of writing."""
    module = Module.from_text(text)
    for stretch in module.outline.stretches:
        for statement in module.read_stretch(stretch):
            for node in statement.walk():
                if isinstance(node, kind):
                    return node
    raise AssertionError(f"no {kind.__name__} in {text!r}; {module.gave_up}")


def value(text: str) -> n.Expr:
    return first(text, n.ExprStmt).value


LITERALS = [
    "0", "12", "1_000", "0x1F", "0b101", "0o17", "0XfF", "1.5", ".5", "1e-9", "1_0.0_1", "2j", "1.5e3J",
    "True", "False", "None", "...", "''", "'a'", '"a\'b"', r"'a\n\x41\u00e9'", r"r'\d'", "u'x'", "b'a\\x00'", "Rb'\\d'",
    "'''a\nb'''", '"""a"b"""', "'a' 'b'", "('a'\n \"b\"\n 'c')", "b'a' b'b'", "'' ''", "'\\\n'",
]  # fmt: skip


@pytest.mark.parametrize("literal", LITERALS)
def test_a_literal_has_its_value(literal: str) -> None:
    found = value(f"({literal})\n")
    assert isinstance(found, n.Const)
    expected = ast.literal_eval(literal)
    assert found.value == expected
    assert type(found.value) is type(expected)


def test_a_number_longer_than_the_interpreter_converts_is_unknown() -> None:
    text = "x = " + "9" * 5000 + "\n"
    try:
        ast.parse(text)
    except SyntaxError:
        pytest.skip("this Python refuses the number in the file")
    assert isinstance(first(text, n.Assign).value, n.Opaque)


@pytest.mark.parametrize("op", ["+", "-", "*", "/", "//", "%", "**", "@", "&", "|", "^", "<<", ">>"])
def test_operators_keep_their_spelling(op: str) -> None:
    product = value(f"a {op} b\n")
    assert isinstance(product, n.Binary) and product.op == op
    assert first(f"a {op}= b\n", n.AugAssign).op == op


def test_comparisons_keep_their_spelling() -> None:
    text = "a < b <= c > d >= e == f != g is h is  not i in j not  in k\n"
    found = value(text)
    assert isinstance(found, n.Compare)
    assert found.ops == ("<", "<=", ">", ">=", "==", "!=", "is", "is not", "in", "not in")
    assert len(found.rights) == 10


def test_a_long_sum_leans_to_the_left() -> None:
    total = value(" + ".join(f"x{i}" for i in range(400)) + "\n")
    depth = 0
    while isinstance(total, n.Binary):
        assert isinstance(total.right, n.Name) and total.right.id == f"x{399 - depth}"
        total, depth = total.left, depth + 1
    assert depth == 399 and total.text == "x0"


def test_precedence_and_parentheses_shape_the_tree() -> None:
    found = value("a - (b - c) * -d ** e\n")
    assert isinstance(found, n.Binary) and isinstance(found.right, n.Binary)
    assert found.right.left.text == "(b - c)"
    negated = found.right.right
    assert isinstance(negated, n.Unary) and negated.text == "-d ** e"


def test_an_index_with_a_tuple_has_the_items_of_the_tuple() -> None:
    for text in ("x[a, 1:2, ...]", "x[(a, 1)]", "x[a,]", "x[()]"):
        found = value(text + "\n")
        assert isinstance(found, n.Index)
        assert len(found.items) == {"x[a, 1:2, ...]": 3, "x[(a, 1)]": 2, "x[a,]": 1, "x[()]": 0}[text]
    starred = first("x = y[*a, b]\n", n.Index)
    assert isinstance(starred.items[0], n.Star) and starred.items[0].text == "*a"
    part = first("x[:, 1:, ::2]\n", n.Index).items[2]
    assert isinstance(part, n.Slice) and part.lower is None and part.step is not None and part.text == "::2"


def test_arguments_tell_position_keyword_and_star() -> None:
    call = value("f(a, *b, c=d, **e)\n")
    assert isinstance(call, n.Call)
    assert [(arg.keyword, arg.star, arg.value.text) for arg in call.args] == [
        (None, "", "a"), (None, "*", "b"), ("c", "", "d"), (None, "**", "e"),
    ]  # fmt: skip
    assert [arg.text for arg in call.args] == ["a", "*b", "c=d", "**e"]


PARAMS = """\
def attend(
    query,  # (B, L, d)
    /,
    key: Tensor,  # (B, S, d)
    value=None  # last before the star
    , *args: int,
    heads: int = 8,
    scale=1.0,  # d_k ** -0.5
    **options  # rest
) -> Tensor:  # (B, L, d)
    return query
"""


def test_parameters_tell_kind_default_annotation_and_comment() -> None:
    function = first(PARAMS, n.FunctionDef)
    assert [(p.name, p.kind, p.comment) for p in function.params] == [
        ("query", "pos", "(B, L, d)"),
        ("key", "pos", "(B, S, d)"),
        ("value", "pos", "last before the star"),
        ("args", "*", ""),
        ("heads", "kw", ""),
        ("scale", "kw", "d_k ** -0.5"),
        ("options", "**", "rest"),
    ]
    assert [p.text for p in function.params][1:5] == ["key: Tensor", "value=None", "*args: int", "heads: int = 8"]
    assert function.returns is not None and function.returns.text == "Tensor"
    assert function.comment == "(B, L, d)"


def test_a_lambda_has_parameters_too() -> None:
    found = value("lambda x, *y, z=1: x\n")
    assert isinstance(found, n.Lambda)
    assert [(p.name, p.kind) for p in found.params] == [("x", "pos"), ("y", "*"), ("z", "kw")]


COMMENTS = [
    ("x = f(a)  # (B, L)\n", n.Assign, "(B, L)"),
    ("x = f(a)  #(B, L)#\n", n.Assign, "(B, L)#"),
    ("x = f(a)\n# not this one\n", n.Assign, ""),
    ("x = f(  # first\n    a,  # second\n)  # last\n", n.Assign, "first"),
    ("x = f(\n    a,  # second\n)  # last\n", n.Assign, "last"),
    ("x = f(\n    # on its own\n    a,\n)  # last\n", n.Assign, "last"),
    ("x = (a +  # first\n     b)  # last\n", n.Assign, "first"),
    ("x = (  # first\n    a @ b\n)\n", n.Assign, "first"),
    ("x = (a  # first\n    .view(1))\n", n.Assign, "first"),
    ("x = q.view(b, l,  # first\n           h)\n", n.Assign, "first"),
    ("x[a,  # first\n  b] = c\n", n.Assign, "first"),
    ("x = [a for a in b  # first\n     if a]\n", n.Assign, "first"),
    ("x = {a: b,  # first\n     c: d}\n", n.Assign, "first"),
    ("x = y = {  # first\n     c: d}\n", n.Assign, "first"),
    ("return_ = '''a\n# no comment\n'''  # last\n", n.Assign, "last"),
    ("x = '#'\n", n.Assign, ""),
    ("a = 1; b = 2  # both\n", n.Assign, "both"),
    ("if a:  # head\n    b\n", n.If, "head"),
    ("if (a and  # first\n    b):  # head\n    c\n", n.If, "first"),
    ("if a: b  # body\n", n.If, "body"),
    ("for i in x:  # head\n    b\n", n.For, "head"),
    ("while a:  # head\n    b\n", n.While, "head"),
    ("with f(a,  # first\n       b):\n    c\n", n.With, "first"),
    ("try:  # head\n    a\nexcept E:  # other\n    b\n", n.Try, "head"),
    ("try:\n    a\nexcept E:  # other\n    b\n", n.Handler, "other"),
    ("match a:  # head\n    case 1:  # other\n        pass\n", n.Match, "head"),
    ("match a:\n    case 1:  # other\n        pass\n", n.Case, "other"),
    ("class A:  # head\n    pass\n", n.ClassDef, "head"),
    ("def f(a,  # of a\n      b):  # head\n    pass\n", n.FunctionDef, "head"),
    ("import a  # why\n", n.Import, "why"),
    ("assert (a ==  # first\n        b)\n", n.Assert, "first"),
]


@pytest.mark.parametrize(("text", "kind", "comment"), COMMENTS, ids=[text.split("\n")[0] for text, _, _ in COMMENTS])
def test_a_statement_has_its_comment(text: str, kind: type[n.Stmt], comment: str) -> None:
    assert first(text, kind).comment == comment


def test_an_elif_chain_nests_in_orelse() -> None:
    branch = first("if a:\n    x\nelif b:  # second\n    y\nelif c:\n    z\nelse:\n    w\n", n.If)
    second = branch.orelse[0]
    assert isinstance(second, n.If) and second.comment == "second" and second.text.startswith("elif b")
    third = second.orelse[0]
    assert isinstance(third, n.If) and third.test.text == "c" and third.orelse[0].text == "w"


def test_a_match_keeps_the_names_it_binds() -> None:
    text = "match v:\n case [1, x, *rest]: pass\n case {'a': y, **kw} if y: pass\n"
    text += " case C(1, k=z) | (D() as w): pass\n case _: pass\n"
    cases = first(text, n.Match).cases
    assert [case.names for case in cases] == [("x", "rest"), ("y", "kw"), ("z", "w"), ()]
    assert cases[1].guard is not None


def test_imports_pair_local_and_dotted_names() -> None:
    assert first("import a.b, c as d, e.f as g\n", n.Import).names == (("a", "a"), ("d", "c"), ("g", "e.f"))
    assert first("from m.k import x, y as z\n", n.Import).names == (("x", "m.k.x"), ("z", "m.k.y"))
    assert first("from . import x\n", n.Import).names == (("x", ".x"),)
    assert first("from ..m import (x, y,)\n", n.Import).names == (("x", "..m.x"), ("y", "..m.y"))
    assert first("from m import *\n", n.Import).names == (("*", "m.*"),)


def test_f_strings_keep_the_expressions_in_them() -> None:
    found = value("f'{a!r:{w}.{p}} {f\"{b}\"}' 'tail' f'{c=}'\n")
    assert isinstance(found, n.FString)
    parts = [part.text for part in found.parts]
    assert parts == ["a", "w", "p", 'f"{b}"', "c"]


def test_docstrings_are_read() -> None:
    assert first("class A:\n    'one' 'two'\n", n.ClassDef).docstring == "onetwo"
    assert first('def f():\n    """(B, L)\n    d"""\n', n.FunctionDef).docstring == "(B, L)\n    d"
    assert first("def f(): 'same line'\n", n.FunctionDef).docstring == "same line"
    assert first("def f():\n    f'{x}'\n", n.FunctionDef).docstring == ""
    assert first("def f():\n    b'bytes'\n", n.FunctionDef).docstring == ""


def test_deletions_loops_and_handlers_keep_their_parts() -> None:
    assert [target.text for target in first("del a, (b), c[0]\n", n.Delete).targets] == ["a", "b", "c[0]"]
    loop = first("[a for b in c if d for e in f]\n", n.Comprehension)
    assert [(part.target.text, part.iter.text, len(part.conditions)) for part in loop.loops] == [
        ("b", "c", 1), ("e", "f", 0),
    ]  # fmt: skip
    star = first("try:\n    a\nexcept* E as e:\n    b\nelse:\n    c\nfinally:\n    d\n", n.Try)
    assert star.handlers[0].name == "e" and star.orelse and star.final


def everything(node: n.Node) -> None:
    """Every node knows the piece and what it came from, and every statement a comment."""
    for inner in node.walk():
        assert inner.filename == node.filename and inner.origin is not None
        assert inner.span.start < inner.span.end, inner
        if isinstance(inner, (n.Stmt, n.Param)):
            assert isinstance(inner.comment, str)
            assert "\n" not in inner.comment


def test_every_node_of_the_interpreters_tests_is_placed() -> None:
    """The interpreter's own grammar tests, where they are installed, else this file."""
    folder = Path(ast.__file__).parent / "test"
    names = ["test_fstring.py", "test_patma.py", "test_unpack_ex.py", "test_named_expressions.py"]
    paths = [folder / name for name in names if (folder / name).exists()] or [Path(__file__)]
    for path in paths:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = Module.from_text(path.read_text(encoding="utf-8"), str(path))
        for stretch in module.outline.stretches:
            for statement in module.read_stretch(stretch):
                everything(statement)
        assert not module.gave_up, path


def test_a_kind_that_is_not_known_is_opaque_and_its_parts_are_read() -> None:
    from msalint.syntax import lower

    known: dict[type, Any] = lower._EXPRESSIONS
    made = known.pop(ast.IfExp)
    try:
        found = value("a if b else c[d]\n")
    finally:
        known[ast.IfExp] = made
    assert isinstance(found, n.Opaque)
    assert sorted(part.text for part in found.parts) == ["a", "b", "c[d]"]


def test_what_a_statement_calls_is_what_a_search_finds() -> None:
    text = """
class Net(Base("x")):
    @wrapped(1)
    def forward(self, x, mask=made()):
        y = [f(q @ k) for q in x if g(q)]
        if x.ok():
            y = x @ y @ z + h(1)
        elif a():
            with torch.no_grad() as b:
                y = (lambda: b.c())()
        else:
            try:
                y = f"{i(1)}"
            except j() as error:
                k()
        match l():
            case [m] if o():
                p()
"""
    net = Module.from_text(text, "net.py").definition("Net")
    assert net is not None
    statements = [node for node in net.walk() if isinstance(node, n.Stmt)]
    assert len(statements) > 10
    for statement in statements:
        assert statement.known_calls == n.calls_in(statement.children()), statement.text
        assert statement.known_calls == {
            *(node.called for node in statement.walk() if isinstance(node, n.Call)),
            *("@" for node in statement.walk() if isinstance(node, n.Binary) and node.op == "@"),
        }
