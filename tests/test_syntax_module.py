"""A module knows its names at once, and reads a definition when it is asked for, not before."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from msalint.diagnostic import Position
from msalint.source import SourceError
from msalint.syntax import nodes as n
from msalint.syntax import outline as outline_file
from msalint.syntax.depth import MAX_DEPTH, TooDeep
from msalint.syntax.lower import lower
from msalint.syntax.module import Module
from msalint.syntax.outline import Outline, outline
from msalint.syntax.piece import HostPiece

FILE = """\
'''Doc.'''
import math, torch.nn as nn; import torch
from .layers import (attend as _attend,
                     Rotary)
from helpers import *
try:
    from flash_attn import flash_attn_func
    HAS_FLASH = True
except ImportError:
    flash_attn_func = None
    HAS_FLASH = False
if HAS_FLASH:
    def pick():
        return flash_attn_func
else:
    def pick():
        return _attend
SIZE: int = 4
width, (heads, *rest) = 8, (2, 3)
@torch.no_grad()
def helper(x):
    return x
class Attention(nn.Module):
    def forward(self, x):
        return helper(x)
def helper(x):
    return x + 1
layer = Attention()
for step in range(3):
    out = layer(step)
if __name__ == "__main__":
    import argparse
    def main():
        pass
    main()
"""


@pytest.fixture
def module() -> Module:
    return Module.from_text(FILE, "pkg/file.py")


def test_imports_are_known_conditional_ones_included(module: Module) -> None:
    assert module.imports == {
        "math": "math", "nn": "torch.nn", "torch": "torch", "_attend": ".layers.attend", "Rotary": ".layers.Rotary",
        "flash_attn_func": "flash_attn.flash_attn_func", "argparse": "argparse",
    }  # fmt: skip
    assert module.stars == ("helpers",)
    text = "from .m import *\nfrom . import *\nfrom ..n import *\nfrom .. import *\n"
    assert [f"{star}.x" for star in Module.from_text(text).stars] == [".m.x", ".x", "..n.x", "..x"]


def test_names_and_wanted_definitions_are_known_without_reading(module: Module) -> None:
    assert {
        "HAS_FLASH",
        "pick",
        "SIZE",
        "width",
        "heads",
        "rest",
        "helper",
        "Attention",
        "layer",
        "out",
        "main",
    } <= set(module.names)
    assert module.wanted == ("pick", "helper", "Attention", "main")
    assert module.read == ()


def test_only_the_definitions_asked_for_are_read(module: Module, monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[tuple[int, int]] = []

    def counted(piece: HostPiece) -> tuple[n.Stmt, ...]:
        lines.append((piece.first, piece.last))
        return lower(piece)

    monkeypatch.setattr("msalint.syntax.module.lower", counted)
    attention = module.definition("Attention")
    assert isinstance(attention, n.ClassDef) and attention.name == "Attention"
    assert module.definition("Attention") is attention
    assert lines == [(23, 25)]


def test_the_last_definition_of_a_name_counts_and_the_first_branch(module: Module) -> None:
    helper, pick, flag = module.definition("helper"), module.definition("pick"), module.definition("HAS_FLASH")
    assert helper is not None and helper.line == 26
    assert pick is not None and pick.line == 13
    assert isinstance(flag, n.Assign) and flag.value is not None and flag.value.text == "True"


def test_assignments_are_definitions_too(module: Module) -> None:
    for name in ("width", "heads", "rest"):
        found = module.definition(name)
        assert isinstance(found, n.Assign) and found.line == 19
    size = module.definition("SIZE")
    assert isinstance(size, n.Assign) and size.annotation is not None
    assert module.definition("math") is None and module.definition("nowhere") is None


def test_decorators_belong_to_the_definition() -> None:
    text = "x = 1\n@a\n@b(\n  1)\nclass C: pass\n@d\ndef f(): pass\n"
    module = Module.from_text(text)
    found = [module.definition(name) for name in "Cf"]
    assert [len(one.decorators) for one in found if isinstance(one, (n.ClassDef, n.FunctionDef))] == [2, 1]


def test_the_other_statements_come_in_order(module: Module) -> None:
    assert [type(statement).__name__ for statement in module.statements()] == [
        "ExprStmt", "Try", "If", "Assign", "Assign", "Assign", "For", "If",
    ]  # fmt: skip


def test_statements_are_read_one_by_one(module: Module) -> None:
    next(module.statements())
    assert len(module.read) == 1


def test_statements_that_share_a_line_are_read_together() -> None:
    module = Module.from_text("a = 1; b = '''\n'''; c = 2\nd = 3\n")
    assert [(s.first, s.last, s.names) for s in module.outline.stretches] == [(1, 2, ("a", "b", "c")), (3, 3, ("d",))]
    assert [statement.text for statement in module.statements()] == ["a = 1", "b = '''\n'''", "c = 2", "d = 3"]


def test_an_empty_file_has_nothing() -> None:
    for text in ("", "\n", "# only a comment", "\x0c\n"):
        module = Module.from_text(text)
        assert (module.names, module.wanted, list(module.statements())) == ((), (), [])


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("x = 1\nprint 'python 2'\n", 2, 1),
        ("x = 1\nclass A:\n    def f(self:\n        pass\n", 3, 10),
        ("exec 'a' in b\n", 1, 1),
        ("def f():\nreturn 1\n", 2, None),
        ("x = '''never closed\n", 1, 5),
        ("x = 1\n  y = 2\n", 2, None),
    ],
)
def test_a_file_that_is_no_python_says_where(text: str, line: int, column: int | None) -> None:
    """Where the host's parser has it; its columns differ by version for indentation."""
    with pytest.raises(SourceError) as caught:
        Module.from_text(text)
    position = caught.value.position
    assert position == Position(line, column or position.column) and str(caught.value)


@pytest.mark.parametrize("text", ["x = 1\0\n", "x = '\ud800'\n"], ids=["NUL", "surrogate"])
def test_characters_that_no_file_may_hold_are_refused(text: str) -> None:
    with pytest.raises(SourceError):
        Module.from_text(text)


def test_syntax_newer_than_the_host_is_read_whole_by_libcst(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = Module.from_text(FILE)

    def refuse(text: str) -> object:
        raise SyntaxError("newer than this Python", ("<text>", 1, 1, "", 1, 1))

    monkeypatch.setattr(outline_file, "_parse", refuse)
    module = Module.from_text(FILE)
    assert module.outline.whole is not None
    assert module.imports == expected.imports and module.stars == expected.stars
    assert module.wanted == expected.wanted and set(module.names) == set(expected.names)
    assert [(s.first, s.last, s.kind, s.names) for s in module.outline.stretches] == [
        (s.first, s.last, s.kind, s.names) for s in expected.outline.stretches
    ]
    for name in expected.names:
        ours, theirs = module.definition(name), expected.definition(name)
        assert repr(ours) == repr(theirs)
        assert ours is None or theirs is None or (ours.span, ours.text) == (theirs.span, theirs.text)
    assert [s.text for s in module.statements()] == [s.text for s in expected.statements()]


DEEP: dict[str, Callable[[int], str]] = {
    "brackets": lambda depth: "x = " + "(" * depth + "a" + ")" * depth,
    "a sum": lambda depth: "x = " + "+".join(["a"] * depth),
    "a sum over lines": lambda depth: "x = (a\n" + "+ a\n" * depth + ")",
    "signs": lambda depth: "x = " + "-" * depth + "a",
    "powers": lambda depth: "x = " + "**".join(["a"] * depth),
    "and": lambda depth: "x = " + " and ".join(["a"] * depth),
    "calls": lambda depth: "x = a" + ".b()" * depth,
    "lambdas": lambda depth: "x = " + "lambda: " * depth + "a",
    "conditions": lambda depth: "x = " + "a if b else " * depth + "c",
    "lists": lambda depth: "x = " + "[" * depth + "]" * depth,
    "elif": lambda depth: "if a:\n  x = 1\n" + "elif b:\n  x = 2\n" * depth,
    "blocks": lambda depth: "".join(" " * i + "if a:\n" for i in range(depth)) + " " * depth + "x = 1",
}


@pytest.mark.parametrize("kind", DEEP)
@pytest.mark.parametrize("depth", [90, 500, 3000, 20000])
def test_deep_nesting_is_read_or_given_up(kind: str, depth: int) -> None:
    """Never a RecursionError that is not TooDeep, and never a crash of the process."""
    text = "def f():\n    pass\n" + DEEP[kind](depth) + "\n"
    try:
        module = Module.from_text(text)
    except TooDeep:
        assert depth > 90
        return
    statements = list(module.statements())
    if module.gave_up:
        assert depth > 90 and not statements
        assert module.gave_up[0].line == 3 and "deep" in module.gave_up[0].reason
    else:
        assert depth <= MAX_DEPTH
        assert statements[0].line == 3
    assert module.definition("f") is not None


@pytest.mark.parametrize("kind", ["a sum", "a sum over lines", "and", "elif"])
def test_chains_of_five_hundred_are_read(kind: str) -> None:
    (statement,) = Module.from_text(DEEP[kind](500) + "\n").statements()
    assert sum(isinstance(node, (n.Name, n.If)) for node in statement.walk()) > 500


def test_brackets_beyond_reason_never_reach_libcst(monkeypatch: pytest.MonkeyPatch) -> None:
    """libcst takes the process down on them, on a Python whose own parser refuses something else first."""

    def refuse(text: str) -> object:
        raise SyntaxError("newer than this Python")

    monkeypatch.setattr(outline_file, "_parse", refuse)
    with pytest.raises(TooDeep):
        outline("x = " + "(" * 30000 + ")" * 30000)


def test_a_long_flat_table_is_not_deep() -> None:
    row = "    " + ", ".join(["-1.5"] * 600) + ",\n"
    module = Module.from_text("TABLE = [\n" + row * 3 + "]\n")
    table = module.definition("TABLE")
    assert isinstance(table, n.Assign) and isinstance(table.value, n.Sequence_)
    assert len(table.value.items) == 1800


def test_an_outline_keeps_a_module_of_its_own_choice() -> None:
    whole: Outline = outline(FILE)
    assert Module(whole, "a.py").wanted == whole.wanted
