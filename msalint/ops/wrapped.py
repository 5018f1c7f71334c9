"""What methods make of a tensor's place in autograd: a moved nn.Parameter is none, a detached tensor has no graph."""

from __future__ import annotations

import re
from itertools import accumulate

from msalint.diagnostic import Site
from msalint.ops.table import Invocation
from msalint.shapes.axes import axis_size
from msalint.values import Const, DType, Tensor, Value, replace

_MOVES = frozenset("to cuda xpu npu mps half bfloat16 double type".split())

_FREEZES = frozenset("detach detach_ requires_grad_ numpy".split())
"""What makes a constant of it, or says whether it is one."""


_CUTS = frozenset("detach detach_ numpy tolist item".split())


def cut_off(call: Invocation, after: Value) -> Value:
    """The result of a method, which for `detach` and its kin has no graph behind it."""
    if call.name in _CUTS and isinstance(after, Tensor):
        return after.with_traits(detached=True)
    return after


def moved_copy(call: Invocation, before: Tensor, after: Value) -> Value:
    """The result of a method, which for another device or dtype than the parameter's own is a copy of it."""
    wrapped = before.traits.wrapped
    if wrapped is None or not isinstance(after, Tensor):
        return after
    if call.name in _FREEZES:
        return after.with_traits(wrapped=None)
    if call.name in _MOVES and not _stays(call):
        return after.with_traits(wrapped=replace(wrapped, moved=call.at))
    return after


_RAW = re.compile(r"(?:torch\.)?(?:empty|Tensor|FloatTensor)\((?P<given>.*)\)", re.DOTALL)


def holds_raw_memory(data: Site | None, value: Tensor) -> bool:
    """Whether an expression is just `torch.empty(sizes)` or `torch.Tensor(sizes)`, and holds any element.

    One name alone may be a list of values: `torch.Tensor(data)`.
    """
    written = _RAW.fullmatch(data.text) if data is not None else None
    if data is None or written is None or value.lead is not None:
        return False
    if any(axis_size(axis).constant == 0 for axis in value.axes):
        return False
    given = written["given"]
    depths = list(accumulate({"(": 1, ")": -1}.get(letter, 0) for letter in given))
    one_call = min(depths, default=-1) >= 0
    sizes = "," in given or given.strip().isdigit() or "empty(" in data.text
    return one_call and sizes and not re.search(r"[\[\]*]|\bmeta\b|\bdevice\b", given.replace(" * ", ""))


def _stays(call: Invocation) -> bool:
    """A move to where every new parameter is: float32 on the CPU."""
    given = [*call.args[1:], *call.kwargs.values()]
    if call.name in {"to", "type"} and (not given or call.unknown_arguments):
        return True
    return bool(given) and all(
        value == Const("cpu") or (isinstance(value, DType) and value.kind in {"float32", None}) for value in given
    )
