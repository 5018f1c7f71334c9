"""Reductions: an axis summed, averaged, or searched."""

from __future__ import annotations

from dataclasses import replace

from msalint.ops.attending import contract_weights
from msalint.ops.axes import dense_like, elementwise_layout, forget_content, locate, vague
from msalint.ops.table import Invocation, op
from msalint.shapes.axes import Axis, Layout
from msalint.values import Const, Items, Real, Tensor, Value


def reduced_axes(call: Invocation, tensor: Tensor, position: int = 1) -> tuple[Tensor, list[int]] | None:
    """The tensor and the places of the axes that `dim=` names; None where they are not known."""
    value = call.get(position, "dim")
    if value is None:
        value = call.kwargs.get("axis")
    if value is None or value == Const(None):
        return None
    listed = list(value.items) if isinstance(value, Items) else [value]
    places = []
    for item in listed:
        found = locate(call.state, tensor, call.state.as_int(item))
        if found is None:
            return None
        tensor = found[0]
        places.append(call.state.as_int(item) or 0)
    settled = [place % len(tensor.axes) if place < 0 or tensor.lead is None else place for place in places]
    return tensor, settled


def reduce_over(call: Invocation, tensor: Tensor, places: list[int], keep: bool) -> Tensor:
    axes: list[Axis] = []
    for i, axis in enumerate(tensor.axes):
        if i not in places:
            axes.append(axis)
        elif keep:
            axes.append(())
    return dense_like(tensor, axes, tensor.lead)


@op("sum mean amax amin prod logsumexp norm std var all any nansum nanmean median mode argmax argmin count_nonzero")
@op("logsumexp", on="special")
def reduce(call: Invocation) -> Value | None:
    tensor = call.tensor()
    if tensor is None:
        return None
    position = 2 if call.name == "norm" else 1
    found = reduced_axes(call, tensor, position)
    keep = call.flag(position + 1, "keepdim", False)
    content = replace(forget_content(tensor.traits), name=tensor.traits.name)
    if found is None:
        if call.get(position, "dim") is None and "axis" not in call.kwargs:
            return Tensor(None, (), Layout(()), tensor.dtype, replace(content, number=None))
        return replace(vague(tensor), traits=content)
    located, places = found
    if call.name == "sum" and located.traits.weighted and located.traits.softmax is not None:
        contract_weights(call, located, places)
        content = replace(content, attended=True)
    result = reduce_over(call, located, places, bool(keep))
    return replace(result, traits=content)


@op("max min topk sort kthvalue cummax")
def with_indices(call: Invocation) -> Value | None:
    tensor = call.tensor()
    if tensor is None:
        return None
    if call.name in {"sort", "topk"}:
        plain = replace(vague(tensor), traits=forget_content(tensor.traits))
        return Items((plain, plain))
    if call.get(1, "dim") is None:
        return Tensor(None, (), Layout(()), tensor.dtype)
    other = call.args[1] if len(call.args) > 1 else None
    if isinstance(other, Tensor):
        return replace(tensor, traits=forget_content(tensor.traits), layout=None)
    result = reduce(replace(call, name="amax"))
    return Items((result, result)) if result is not None else None


@op("cumsum cumprod logcumsumexp diff")
def running(call: Invocation) -> Value | None:
    tensor = call.tensor()
    if tensor is None:
        return None
    return replace(tensor, traits=forget_content(tensor.traits), layout=elementwise_layout(tensor))


@op("item tolist", on="method")
def item(call: Invocation) -> Value | None:
    tensor = call.tensor()
    return tensor.traits.number if tensor is not None and tensor.traits.number is not None else Real(None)
