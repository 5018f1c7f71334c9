"""Where a variable took the value that it has at a place: what a reader would change to change that value there."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from msalint.diagnostic import Site
from msalint.syntax import nodes as n

_COMPARES = frozenset("eq ne lt le gt ge logical_not logical_and logical_or isin".split())


def taken_at(body: object, use: Site | None, passed: AbstractSet[int], imported: Mapping[str, str]) -> Site | None:
    """The expression last assigned to the name that is used, if it takes another value over and is read nowhere else.

    `mask = self.causal[:n, :n]`, then `attention(q, k, v, mask)`. A name that other code reads too has two meanings,
    and a value made on the spot (`keep = ids != pad`) may well be what its name says. `passed`: the expressions that
    this path ran.
    """
    if not isinstance(use, n.Name) or not isinstance(body, n.FunctionDef):
        return None
    found: n.Expr | None = None
    reads = 0
    written: set[int] = set()
    for node in body.walk():
        if isinstance(node, n.Assign):
            written.update(id(target) for target in node.targets)
            named = any(isinstance(target, n.Name) and target.id == use.id for target in node.targets)
            if named and node.value is not None and id(node.value) in passed and not reads:
                found = node.value
        elif isinstance(node, n.Compare) and node.ops[0] in {"is", "is not"}:
            written.add(id(node.left))
        elif isinstance(node, n.Name) and node.id == use.id and id(node) not in written:
            reads += found is not None and not _within(found, node)
    return found if found is not None and reads == 1 and _is_derived(found, imported) else None


def _within(expression: n.Expr, node: n.Node) -> bool:
    return any(part is node for part in expression.walk())


def _is_derived(expression: n.Expr, imported: Mapping[str, str]) -> bool:
    """`self.mask[:n, :n]`, `keep.view(n, 1, 1, s)`: another value in another form, not one made here or by a call."""
    if isinstance(expression, n.Name):
        return False
    while not isinstance(expression, n.Name):
        if isinstance(expression, (n.Index, n.Attr)):
            expression = expression.value
        elif isinstance(expression, n.Call) and isinstance(expression.func, n.Name) and expression.args:
            if not imported.get(expression.func.id, "").startswith("einops."):
                return False
            expression = expression.args[0].value
        elif isinstance(expression, n.Call) and isinstance(expression.func, n.Attr):
            called, expression = expression.func.name, expression.func.value
            if called in _COMPARES or (isinstance(expression, n.Name) and expression.id == "self"):
                return False
        else:
            return False
    return expression.id not in imported
