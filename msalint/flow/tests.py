"""Conditions: what comparisons of abstract values say, and the keys under which their answers are remembered."""

from __future__ import annotations

import builtins
import operator
from typing import Any

from msalint.ops.mode import speaks_of_mode
from msalint.shapes.vocabulary import says
from msalint.state import State
from msalint.syntax import nodes as n
from msalint.values import (
    FALSE,
    TRUE,
    UNKNOWN,
    Condition,
    Const,
    DType,
    Int,
    Items,
    Library,
    Mod,
    Opaque,
    Rank,
    Real,
    ShapeValue,
    Tensor,
    Value,
)

_SIGNS: dict[str, Any] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def key_of(value: Value, node: n.Node) -> str:
    """The key that ties two tests of one thing together."""
    if isinstance(value, Condition):
        return value.key
    if isinstance(value, Opaque) and value.key:
        return f"true:{value.key}"
    if isinstance(value, Mod):
        return f"mod:{value.numerator.key}:{value.denominator.key}"
    if isinstance(value, Int):
        return f"true:{value.size.key}"
    # `if not module.is_training():` is told by its text, since nothing is known of its value.
    words = node.words()
    return f"node:{id(node)}" + (f".{words}" if speaks_of_mode(words) else "")


def comparison(state: State, sign: str, left: Value, right: Value, node: n.Node) -> Value:
    """A comparison that is no tensor: known, or a condition to decide."""
    if sign in {"is", "is not"}:
        return _identity(state, sign == "is not", left, right, node)
    if sign in {"in", "not in"}:
        return _membership(sign == "not in", left, right, node)
    if isinstance(left, Const) and isinstance(right, Const) and sign in {"==", "!="}:
        return TRUE if _SIGNS[sign](left.value, right.value) else FALSE
    for one, other in ((left, right), (right, left)):
        if isinstance(one, Mod) and state.as_int(other) == 0 and sign in {"==", "!=", ">"}:
            return _divides(one, negated=sign != "==")
        if isinstance(one, Rank):
            number = state.as_int(other)
            if number is not None and sign in {"==", "!="}:
                key = f"rank:{id(one.tensor.lead)}:{number}"
                return Condition(key, negated=sign == "!=", learn=("rank", one.tensor, number))
    a, b = state.as_size(left), state.as_size(right)
    if a is not None and b is not None:
        x, y = a.constant, b.constant
        if x is not None and y is not None:
            return TRUE if _SIGNS[sign](x, y) else FALSE
        if sign in {"==", "!="}:
            return Condition(f"eq:{a.key}:{b.key}", negated=sign == "!=", learn=("equal", a, b))
        if (sign, y) in {(">", 1), (">=", 2)}:
            return Condition(f"{sign}:{a.key}:{b.key}", learn=("several", a))
        return Condition(f"{sign}:{a.key}:{b.key}")
    if isinstance(left, Real) and isinstance(right, Real):
        p, q = left.constant, right.constant
        if p is not None and q is not None:
            return TRUE if _SIGNS[sign](p, q) else FALSE
    if isinstance(left, (DType, Library)) and left == right and sign in {"==", "!="}:
        return TRUE if sign == "==" else FALSE
    if isinstance(left, DType) and isinstance(right, DType) and sign in {"==", "!="}:
        x_kind, y_kind = left.kind, right.kind
        if x_kind is not None and y_kind is not None and not x_kind == y_kind == "int":
            return TRUE if (x_kind == y_kind) == (sign == "==") else FALSE
    texts = [_text(value) for value in (left, right)]
    if all(texts):
        positive = sign.replace("!=", "==")
        key = f"eq:{texts[0]}:{positive}:{texts[1]}"
        if positive == "==" and isinstance(right, Const) and _is_another(state, key):
            return TRUE if sign == "!=" else FALSE
        return Condition(key, negated=sign == "!=")
    return Condition(f"node:{id(node)}")


def is_special_size(value: Value) -> bool:
    """An equality of a size with a number, `heads == 1`: the case apart, not the one that code is written for."""
    if not isinstance(value, Condition) or not value.learn or value.learn[0] != "equal":
        return False
    return (value.learn[1].constant is None) != (value.learn[2].constant is None)


def _is_another(state: State, key: str) -> bool:
    """Whether this path took a value to be another constant than the one that `key` compares it with."""
    value = key[: key.index(":==:") + 4]
    return any(on and other != key and other.startswith(value) for other, on in state.decisions.asked.items())


def _identity(state: State, negated: bool, left: Value, right: Value, node: n.Node) -> Value:
    if isinstance(left, Const) and left.value is None:
        left, right = right, left
    if isinstance(right, Const) and right.value is None:
        none = state.is_none(left)
        if none is not None:
            return TRUE if none != negated else FALSE
        key = left.key if isinstance(left, Opaque) and left.key else ""
        return Condition(f"none:{key}" if key else f"node:{id(node)}", negated=negated)
    if isinstance(left, Const) and isinstance(right, Const):
        return TRUE if (left.value is right.value) != negated else FALSE
    if isinstance(right, Const) and isinstance(right.value, bool):
        condition = Condition(key_of(left, node))
        return condition if right.value != negated else condition.inverted()
    if isinstance(left, Opaque) and isinstance(right, Opaque) and left.key and right.key:
        return Condition(f"same:{min(left.key, right.key)}:{max(left.key, right.key)}", negated=negated)
    return Condition(f"node:{id(node)}", negated=negated)


def _membership(negated: bool, left: Value, right: Value, node: n.Node) -> Value:
    if isinstance(left, Const) and isinstance(right, Items) and all(isinstance(v, Const) for v in right.items):
        return TRUE if (left in right.items) != negated else FALSE
    name = _text(left)
    return Condition(f"in:{name}:{id(node)}" if name else f"node:{id(node)}", negated=negated)


def _divides(mod: Mod, negated: bool) -> Condition:
    key = f"exact:{mod.numerator.key}:{mod.denominator.key}"
    return Condition(key, negated=negated, learn=("exact", mod.numerator, mod.denominator))


def _text(value: Value) -> str:
    if isinstance(value, Opaque):
        return value.key
    if isinstance(value, Const):
        return repr(value.value)
    if isinstance(value, Int):
        return value.size.key
    if isinstance(value, (Library, DType)):
        return str(value)
    return ""


def compared_as_tensor(value: Opaque, other: Value) -> bool:
    """A comparison that makes a mask: of token ids with a padding id, or of a mask with a number."""
    if value.hint == "tensor" or says(value.name, "mask", "ids", "tokens", "src", "tgt", "trg"):
        number = isinstance(other, (Int, Real)) or (isinstance(other, Const) and isinstance(other.value, bool))
        pad = isinstance(other, Opaque) and says(other.name, "pad", "padding")
        return number or pad or isinstance(other, Tensor)
    return isinstance(other, Opaque) and says(other.name, "pad", "padding") and value.hint not in {"int", "str"}


def builtin(name: str) -> Value:
    """A builtin function by its name, or an unknown value."""
    return Library(f"builtins.{name}") if hasattr(builtins, name) else UNKNOWN


def shape_like(value: Value) -> bool:
    return isinstance(value, (ShapeValue, Items))
