"""What a node says of its place and text is what the interpreter's own parser says of it."""

from __future__ import annotations

import ast
import asyncio
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from msalint.syntax import nodes as n
from msalint.syntax.module import Module

KINDS = '''\
"""Every kind of expression and statement."""
import a.b, a.c as d; from . import x as y
a, *b = c = 1, 2
X: int = 5; Z = 0x1F; W = 1_000; F = 1e-3; J = 2j; B = 0b1; O = 0o17; H = .5; E = ...
@dec(1)
@plain
class C(Base, mixin.Other):
    """Doc."""
    field: int
    @property
    def m(self): return f"{self.x!r:{w}.{p}} {f'{y}'}" "tail" f"{z}"
    async def am(self, a, /, b: int = 1, *args: "str", c=(2), **kw) -> dict[str, int]:
        async with a as b, (c) as (d, e): pass
        async for i in x: await (i)
        return [i async for i in x if i for j in i if (j)]
def gen(x, *, y=lambda z=1, *a, **k: (z, a)):
    global G
    v = yield x
    yield from (v)
    (yield)
    del x, (y[0], G.attr)
    assert x, "message"
    raise X(1) from e
try:
    pass
except (A, B) as e:
    pass
except C: pass
else: pass
finally: pass
if a: pass
elif (b): pass
else:
    if c: pass
while x: break
else: pass
for (i, j), *k in x, y: continue
else: pass
with (open(a)) as f, g: pass
with (open(a) as f, open(b)): pass
match v:
    case [1, x, *rest]: pass
    case {"a": aa, **kw} if kw > (1): pass
    case C(1, k=vv) | (D() as ww): pass
    case _: pass
{**a, 'b': 1, (c): (d)}; {1, *a}; {k: v for k, v in x}; {i for i in x}; (i for i in x); f(i for i in x)
x[1:2, ..., None]; x[(a, b)]; x[a, b]; x[*a, b]; x[()]; x[::(2)]; x[a,]; x[-1]; x[lambda: 1]
not a; -a; ~(a); +a; a if b else (c); a and b or (c) and not d; a < b <= (c) is not d not in e in f is g
a + b - c * d / e // f % g ** h @ i << j >> k & l ^ m | o; a - (b - c); (a - b) - c; a ** -b ** c
x += 1; x @= y; x[0] //= (z); x.y >>= 1
print(*a, **k, s=1); (f)(x); (f(x)); ((a @ b)).c; (a).b[(c)](d)(e); f((a, b), (c))
(w := x); f(w := x); [w := 1, 2]; [*a, *b]; (1,); (); []; {}; ((a), b)
b'a' b'b'; r'\\d' '\\n'; """t
t"""; ''; u'u'; ("a"
  "b")
result = (
    first
    .view(1, 2)   # with a comment
    .transpose(1, 2)
)
short = a \\
    + b
'''


if sys.version_info < (3, 11):
    KINDS = KINDS.replace("x[*a, b]; ", "")

LEFT_OUT: dict[type[ast.AST], tuple[str, ...]] = {
    ast.JoinedStr: ("values",),
    ast.ClassDef: ("keywords", "type_params"),
    ast.FunctionDef: ("type_params",),
    ast.match_case: ("pattern",),
    ast.Raise: ("cause",),
}
"""What the reader's tree does not keep, and the inside of f-strings: its places are wrong before Python 3.12."""


def expressions_of(tree: ast.AST) -> Iterator[ast.expr]:
    """The expressions that the reader's tree keeps."""
    for field, value in ast.iter_fields(tree):
        if any(isinstance(tree, kind) and field in left_out for kind, left_out in LEFT_OUT.items()):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from expressions_of(child)
    if isinstance(tree, ast.expr):
        yield tree


def statements_of(text: str) -> Iterator[n.Stmt]:
    module = Module.from_text(text)
    for stretch in module.outline.stretches:
        yield from module.read_stretch(stretch)
    assert not module.gave_up


def below(node: n.Node, chain: str = "") -> Iterator[n.Node]:
    """All nodes but those inside f-strings; `a and b and c` is one node, as it is to the interpreter."""
    if not (isinstance(node, n.BoolOp) and node.op == chain and not node.text.startswith("(")):
        yield node
    if not isinstance(node, n.FString):
        for child in node.children():
            yield from below(child, node.op if isinstance(node, n.BoolOp) else "")


def columns(text: str) -> list[str]:
    return text.split("\n")


def ast_place(lines: list[str], node: ast.expr) -> tuple[int, int, int, int]:
    """The place of a node, columns from 1 in characters."""
    assert node.end_lineno is not None and node.end_col_offset is not None
    start = len(lines[node.lineno - 1].encode()[: node.col_offset].decode())
    end = len(lines[node.end_lineno - 1].encode()[: node.end_col_offset].decode())
    return node.lineno, start + 1, node.end_lineno, end + 1


EXACT: dict[type[n.Node], type[ast.expr]] = {
    n.Name: ast.Name,
    n.Attr: ast.Attribute,
    n.Call: ast.Call,
    n.Index: ast.Subscript,
}


def check_places(text: str) -> int:
    """Names, attributes, calls and subscripts stand just where the interpreter's parser has them. How many."""
    lines = columns(text)
    theirs: Counter[tuple[str, tuple[int, int, int, int]]] = Counter()
    for expression in expressions_of(ast.parse(text)):
        if type(expression) in EXACT.values():
            theirs[type(expression).__name__, ast_place(lines, expression)] += 1
    ours: Counter[tuple[str, tuple[int, int, int, int]]] = Counter()
    for statement in statements_of(text):
        for node in below(statement):
            if type(node) in EXACT:
                span = node.span
                ours[EXACT[type(node)].__name__, (*span.start, *span.end)] += 1
    assert ours == theirs
    return sum(ours.values())


def check_texts(text: str) -> int:
    """The text of an expression, parsed alone, is the very expression that the file has at that place. How many."""
    lines = columns(text)
    theirs: dict[tuple[int, int, int, int], list[str]] = {}
    for expression in expressions_of(ast.parse(text)):
        theirs.setdefault(ast_place(lines, expression), []).append(_dump(expression))
    count = 0
    for statement in statements_of(text):
        for node in below(statement):
            if isinstance(node, n.Expr) and not isinstance(node, (n.Slice, n.Star, n.FString)):
                _check_text(node, theirs)
                count += 1
    return count


def _check_text(node: n.Expr, theirs: dict[tuple[int, int, int, int], list[str]]) -> None:
    text, start = node.text, node.span.start
    wrapped = "(\n" + text + "\n)"
    alone = ast.parse(wrapped, mode="eval").body
    first, left, last, right = ast_place(columns(wrapped), alone)
    if isinstance(alone, ast.GeneratorExp) and first == 1:
        # As the only argument of a call it has no parentheses of its own.
        assert any(_dump(alone) in dumps for dumps in theirs.values())
        return
    if isinstance(alone, ast.Tuple) and first == 1:
        assert _dump(alone) in theirs[start + node.span.end]
        return
    shift = start.column - 1
    place = (
        first - 2 + start.line,
        left + (shift if first == 2 else 0),
        last - 2 + start.line,
        right + (shift if last == 2 else 0),
    )
    assert _dump(alone) in theirs[place], text


def _dump(node: ast.AST) -> str:
    """A dump that does not tell a target from a value."""
    return ast.dump(node).replace("Store()", "Load()").replace("Del()", "Load()")


def files() -> list[Path]:
    return sorted(Path(asyncio.__file__).parent.glob("*.py"))


def test_every_kind_of_expression_has_its_text() -> None:
    assert check_texts(KINDS) > 300


def test_every_kind_of_expression_has_its_place() -> None:
    assert check_places(KINDS) > 150


@pytest.mark.parametrize("path", files(), ids=lambda path: path.stem)
def test_the_standard_library_keeps_texts_and_places(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_places(text)
        check_texts(text)


def test_statements_stand_where_the_interpreter_has_them() -> None:
    """Simple statements and definitions (at `def`, behind their decorators)."""
    lines = columns(KINDS)
    theirs = Counter(
        (node.lineno, len(lines[node.lineno - 1].encode()[: node.col_offset].decode()) + 1)
        for node in ast.walk(ast.parse(KINDS))
        if isinstance(node, ast.stmt)
    )
    ours = Counter(
        tuple(node.span.start)
        for statement in statements_of(KINDS)
        for node in below(statement)
        if isinstance(node, n.Stmt) and not isinstance(node, (n.Handler, n.Case))
    )
    assert ours == theirs
