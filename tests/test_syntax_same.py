"""The interpreter's own parser and libcst give the same reader's tree: parts, constants, comments, places, texts.

One place differs on purpose: `for x in y` of a comprehension is a node to libcst, with the blanks before it, and
none to the interpreter. Only what is in it is compared.
"""

from __future__ import annotations

import ast
import asyncio
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from msalint.syntax import nodes as n
from msalint.syntax import tokens
from msalint.syntax.lower_libcst import lower as lower_libcst
from msalint.syntax.module import Module
from msalint.syntax.outline import line_starts
from msalint.syntax.piece_libcst import parse_piece
from tests.test_syntax_round_trip import KINDS

ROOT = Path(__file__).parent.parent


PARENTHESES = """\
x = f(a + b), f((a + b)), (f(a + b)), (f)(a + b), f[0](a + b), f(a)(a + b), f(a if b else c), f(-a,)
x = f(*(a + b), k=(-a))
y = ((a @ b)).c, ((a, b)), ((1)), (...), (None), ('a'), ('a' 'b'), (f'{a}' 'b'), (yield_), ((a := b)), (lambda: (a))
z = (  # one ) of
    # two ) of (
    (  # three
        a + b  # four (
        # five )
    )
)
(a + b)
(c or d)
w = g \\
    (a + b)
(
    a < b)
class A(B + C): pass
class D((B + C)): pass
with (a + b): pass
with ((a + b)): pass
with (a + b) as c: pass
with (a + b as c): pass
with (a + b), c: pass
with (a := b): pass
with (a or b,): pass
match (a + b):
    case (1): pass
    case (  # case 2
        -1
    ) if (a - b): pass
match((a + b))
print(x for x in y); print((x for x in y)); print( (x) for x in (y or z) if (x and y) )
print(k=1, *a, **b)
def f(a=(1), *b, c: (A or B) = (2), ** d): return (a + b)
@(a + b)
def g(): return not (a) and (b) and (c or d)
x[(a, b),], x[(a, b)], x[(a + b)], x[(a):(b)], x[(a), ...]
del (a), (b)
del (a, b)
for x in (a + b): pass
for (x) in a, (b): pass
async def h(): return (await x), await (x)
"""

STRINGS = """\
é = f'é {é + 1!r:>{é}} {(é + 2)}' f"{x['#']}" 'é'; ü = f(é)  # ü
a = f'{{{b}}}' rf'\\{c}' f'\\N{EM DASH}{d}' f'{e=}' f'{g != h}' f'{ i :=^{j}}' f'{(lambda: k)()}'
b = f'''
é {
  l + m
} {n}'''  # behind
c = f"{f'{o + p}' + q}" 'f"{no}"'; d = f''; e = 'a' f'b'; g = f"{r[1:2]:{s}}", f'{t,}', f'{*u, v}'
h = ('# no'  # yes
     "# no" f'# {w}'  # second
     )
i = '''#
''' + f(  # after the string
    1)
j = 'it\\'s # no'; k = r'\\\\'  # yes
"""

COMMENTS = """\
from a import (  # why
    b)
x = await_ + \\
    f(  # behind a backslash
        1)
if a: f(  # inner
        1)  # outer
if (a or
        b):  # head
    pass
elif c:  # second
    pass
else:  # not kept
    if d:  # third
        pass
for x in (a,
          b,): pass  # body
while f(
    a
): pass
with open(a) as b, \\
        open(c) as d:  # head
    pass
class A(B,  # base
        metaclass=C):  # head
    pass
class D:  # head
    @dec  # not of a statement
    def f(
        self,  # self
        a: T,  # (B, L)
        b=(1)  # before the comma
        , *,
        c,  # c
        d=(
            2
        ),  # d
    ) -> (
        T
    ):  # head of f

        return a  # value
    def g(self): return 1  # g
    def h(): pass
    def i(
    ):  # i
        pass
try:  # try
    pass
except (A,  # first
        B) as e:  # second
    pass
except C: pass  # C
finally:
    pass
match (a,  # subject
       b):  # head
    case 1 | \\
        2:  # case
        pass
    case (
        3
    ): pass  # three
y = [
    1,  # one
    2,  #
]  # last
z = f(  #
    1)  # last
"""

TEXTS = {"kinds": KINDS, "parentheses": PARENTHESES, "strings": STRINGS, "comments": COMMENTS}


def corpus() -> list[Path]:
    """The code of this project with its fixtures, and a package of the standard library."""
    own = [path for folder in ("fixtures", "msalint", "tests") for path in sorted((ROOT / folder).rglob("*.py"))]
    return [*own, *sorted(Path(asyncio.__file__).parent.glob("*.py"))]


def by_host(text: str) -> Iterator[n.Stmt]:
    module = Module.from_text(text)
    assert module.outline.whole is None
    for stretch in module.outline.stretches:
        yield from module.read_stretch(stretch)
    assert not module.gave_up


def by_libcst(text: str) -> tuple[n.Stmt, ...]:
    starts = line_starts(text)
    return lower_libcst(parse_piece("<text>", text, starts, 1, len(starts)))


def differences(ours: Any, theirs: Any, where: str = "") -> Iterator[str]:
    """What tells two trees apart, in words."""
    if isinstance(ours, tuple) and isinstance(theirs, tuple) and len(ours) == len(theirs):
        for one, other in zip(ours, theirs, strict=True):
            yield from differences(one, other, where)
        return
    if not isinstance(ours, n.Node) or type(ours) is not type(theirs):
        if type(ours) is not type(theirs) or repr(ours) != repr(theirs):
            yield f"{where}: {ours!r} is not {theirs!r}"
        return
    where = f"{type(ours).__name__} at {ours.span.start}"
    if not isinstance(ours, n.For_) and (ours.span, ours.text) != (theirs.span, theirs.text):
        yield f"{where}: {ours.span} {ours.text!r} is not {theirs.span} {theirs.text!r}"
    for name in dict.fromkeys((*ours.__slots__, *(("comment",) if isinstance(ours, n.Stmt) else ()))):
        yield from differences(getattr(ours, name), getattr(theirs, name), f"{where}, {name}")


def check(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert list(differences(tuple(by_host(text)), by_libcst(text))) == []


@pytest.mark.parametrize("path", corpus(), ids=lambda path: "-".join(path.parts[-2:]))
def test_a_file_is_the_same_to_both(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    try:
        ast.parse(text)
    except (SyntaxError, ValueError):
        pytest.skip("not Python to this interpreter")
    check(text)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
def test_an_odd_way_of_writing_is_the_same_to_both(text: str, newline: str) -> None:
    check(text.replace("\n", newline))


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_comments_are_where_the_tokenizer_has_them(text: str) -> None:
    starts = line_starts(text)
    assert tokens.comments(text, starts, 0, len(text)) == tokens.by_tokenizer(text, starts, 0, len(text))


def test_a_difference_is_seen() -> None:
    """The comparison itself: another operator, another constant, another comment, another place."""
    for one, other in [("a + b", "a - b"), ("1", "1.0"), ("a  # b", "a  # c"), ("f(a)", "f( a)"), ("f(a)", "f(a, b)")]:
        assert list(differences(tuple(by_host(one + "\n")), by_libcst(other + "\n"))), one
