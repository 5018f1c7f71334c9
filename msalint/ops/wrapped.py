"""A new nn.Parameter and what becomes of it before a module takes it in: a copy of it is no parameter."""

from __future__ import annotations

from dataclasses import replace

from msalint.ops.table import Invocation
from msalint.values import Const, DType, Tensor, Value

_MOVES = frozenset("to cuda xpu npu mps half bfloat16 double type".split())


def moved_copy(call: Invocation, before: Tensor, after: Value) -> Value:
    """The result of a method, which for another device or dtype than the parameter's own is a copy of it."""
    wrapped = before.traits.wrapped
    if wrapped is None or not isinstance(after, Tensor):
        return after
    if call.name in _MOVES and not _stays(call):
        return after.with_traits(wrapped=replace(wrapped, moved=call.at))
    return after


def _stays(call: Invocation) -> bool:
    """A move to where every new parameter is: float32 on the CPU."""
    given = [*call.args[1:], *call.kwargs.values()]
    if call.name in {"to", "type"} and (not given or call.unknown_arguments):
        return True
    return bool(given) and all(
        value == Const("cpu") or (isinstance(value, DType) and value.kind in {"float32", None}) for value in given
    )
