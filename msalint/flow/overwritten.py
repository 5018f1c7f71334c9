"""Settings of a module that its forward assigns on some way through, so that they stay changed for the next call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msalint.shapes.vocabulary import says
from msalint.syntax import nodes as n
from msalint.values import Const, Int, Opaque, Real, Value

_SETTINGS = ("dropout", "drop", "p", "prob", "rate", "scale", "scaling", "causal", "temperature")


def is_setting(name: str, stored: Value | None) -> bool:
    """What `__init__` was given, or a number or flag of its own, under the name of a hyper-parameter."""
    if not says(name, *_SETTINGS):
        return False
    given = isinstance(stored, Opaque) and stored.source in {"init", "config"}
    return given or isinstance(stored, (Real, Int)) or (isinstance(stored, Const) and isinstance(stored.value, bool))


def is_fixed(value: Value) -> bool:
    """A number or flag that is known."""
    if isinstance(value, Const):
        return isinstance(value.value, bool)
    return (isinstance(value, Real) and value.constant is not None) or (
        isinstance(value, Int) and value.size.constant is not None
    )


def condition_of(body: Sequence[n.Stmt], statement: n.Assign, target: n.Attr) -> n.Expr | None:
    """The test that alone decides whether a body assigns `self.name`; None where it is assigned in other ways too.

    A test of the attribute itself (`if self.scale is None`) settles it once and for all.
    """
    if sum(_sets(other, target) for top in body for other in top.walk()) != 1:
        return None
    tests = list(_tests_above(body, statement))
    if not tests and isinstance(statement.value, n.IfExp) and _reads(statement.value, target):
        tests = [statement.value.test]
    if not tests or any(target.name in test.words() for test in tests):
        return None
    return tests[-1]


def _sets(node: n.Node, target: n.Attr) -> bool:
    written = node.targets if isinstance(node, n.Assign) else (node.target,) if isinstance(node, n.AugAssign) else ()
    parts = (part for whole in written for part in (whole.items if isinstance(whole, n.Sequence_) else (whole,)))
    return any(isinstance(part, n.Attr) and part.name == target.name for part in parts)


def _reads(expression: n.Expr, target: n.Attr) -> bool:
    return any(isinstance(part, n.Attr) and part.name == target.name for part in expression.walk())


def _tests_above(body: Sequence[n.Stmt], statement: n.Stmt) -> Iterator[n.Expr]:
    """The tests of the `if`s around a statement, outermost first."""
    for top in body:
        if top is statement or all(inner is not statement for inner in top.walk()):
            continue
        if isinstance(top, n.If):
            yield top.test
        for part in top.children():
            if isinstance(part, n.Stmt):
                yield from _tests_above([part], statement)
