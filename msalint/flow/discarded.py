"""Results that an expression statement throws away: what was called on what, and whether that is read later on."""

from __future__ import annotations

from collections.abc import Iterator

from msalint.syntax import nodes as n
from msalint.values import Layer, Library, Tensor, Value

OPERATIONS = frozenset(
    "masked_fill softmax log_softmax transpose permute contiguous view reshape unsqueeze squeeze expand swapaxes "
    "flatten masked_scatter".split()
)
"""Operations that return a new tensor and leave the one they are called on as it is."""

_LAYERS = {"Softmax": "softmax", "LogSoftmax": "log_softmax"}


def named_operation(expression: n.Expr) -> bool:
    """Whether a statement may be an operation whose result is lost, as far as its spelling tells."""
    if isinstance(expression, n.Binary):
        return expression.op in {"+", "-", "*"}
    plain = isinstance(expression, n.Call) and isinstance(expression.func, (n.Attr, n.Name))
    return plain and not any(arg.keyword == "out" for arg in getattr(expression, "args", ()))


def lost_operation(expression: n.Expr, callee: Value) -> tuple[str, n.Expr] | None:
    """The operation by name and the expression that it leaves unchanged."""
    if isinstance(expression, n.Binary):
        turned = expression.op == "+" and not assignable(expression.left) and assignable(expression.right)
        return expression.op, expression.right if turned else expression.left
    if not isinstance(expression, n.Call):
        return None
    first = expression.args[0].value if expression.args and not expression.args[0].star else None
    if isinstance(callee, Layer):
        return (_LAYERS[callee.kind], first) if callee.kind in _LAYERS and first is not None else None
    if isinstance(callee, Library):
        name = callee.path.rsplit(".", 1)[-1]
        known = callee.path.startswith("torch.") and name in OPERATIONS
        return (name, first) if known and first is not None else None
    func = expression.func
    if isinstance(func, n.Attr) and func.name == "add" and len(expression.args) == 1:
        return "+", func.value
    return (func.name, func.value) if isinstance(func, n.Attr) and func.name in OPERATIONS else None


def assignable(node: n.Expr) -> str:
    """The text of an expression that can stand left of `=`."""
    return node.text if isinstance(node, (n.Name, n.Attr)) else ""


def table_in(expression: n.Expr, target: str) -> n.Expr | None:
    """What may be a table in a sum with `target`, without the index that cuts it: `self.pe` in `x + self.pe[:, :n]`."""
    if isinstance(expression, n.Call) and isinstance(expression.func, n.Attr) and expression.func.name == "add":
        other = expression.args[0].value
    elif isinstance(expression, n.Binary) and expression.op == "+":
        other = expression.right if assignable(expression.left) == target else expression.left
    else:
        return None
    while isinstance(other, n.Index):
        other = other.value
    return other


def masked_before(tensor: Tensor) -> bool:
    """Weights whose scores were masked: another fill of them would change nothing that counts."""
    softmax = tensor.traits.softmax
    return softmax is not None and bool(softmax.scores.traits.masks)


def read_after(body: n.Node, statement: n.Stmt, target: str) -> bool:
    """Whether a name is read behind a statement, before it is assigned anew, by more than another lost operation."""
    behind = False
    for other in _statements(body):
        if other is statement:
            behind = True
        elif behind and not (isinstance(other, n.ExprStmt) and named_operation(other.value) and _lost(other, target)):
            if _reads(other, target):
                return True
            if isinstance(other, n.Assign) and any(assignable(t) == target for t in other.targets):
                return False
    return False


def _lost(statement: n.ExprStmt, target: str) -> bool:
    """Whether a statement is itself an operation on the name whose result is lost."""
    expression = statement.value
    if isinstance(expression, n.Binary):
        return assignable(expression.left) == target
    if not isinstance(expression, n.Call) or not isinstance(expression.func, n.Attr):
        return False
    on_it = [expression.func.value, *(arg.value for arg in expression.args[:1])]
    return expression.func.name in OPERATIONS and any(assignable(node) == target for node in on_it)


def _statements(body: n.Node) -> Iterator[n.Stmt]:
    return (node for node in body.walk() if isinstance(node, n.Stmt) and node is not body)


def _reads(statement: n.Stmt, target: str) -> bool:
    """Whether the statement's own expressions (not those of the statements inside it) read the name."""
    written = statement.targets if isinstance(statement, (n.Assign, n.With, n.Delete)) else ()
    waiting = [node for node in statement.children() if node not in written]
    waiting += [index for index in written if isinstance(index, n.Index)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, (n.Name, n.Attr)) and node.text == target:
            return True
        if not isinstance(node, n.Stmt):
            waiting.extend(node.children())
    return False
