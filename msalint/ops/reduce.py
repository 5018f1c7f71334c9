"""Reductions: an axis summed, averaged, or searched."""

from __future__ import annotations

from msalint.ops.attending import contract_weights, count_weights
from msalint.ops.axes import dense_like, forget_content, locate, new_axis, vague
from msalint.ops.table import Invocation, op
from msalint.shapes.axes import Axis, Layout
from msalint.shapes.size import Size
from msalint.values import PLAIN, Cells, Const, Int, Items, Real, Region, Tensor, Total, Value, replace


def reduced_axes(call: Invocation, tensor: Tensor, position: int = 1) -> tuple[Tensor, list[int]] | None:
    """The tensor and the places of the axes that `dim=` names; None where they are not known."""
    value = call.get(position, "dim")
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


_DTYPES = {"all": "bool", "any": "bool", "argmax": "int", "argmin": "int", "count_nonzero": "int"}
"""Reductions that give a dtype of their own; the others keep a floating one, and make of integers what they need."""


def reduced_dtype(name: str, dtype: str | None) -> str | None:
    """The dtype of a sum, a mean or another reduction; None where it is not known."""
    if name in _DTYPES:
        return "uint8" if dtype == "uint8" and name in {"all", "any"} else _DTYPES[name]
    keeps = dtype not in {"bool", "int", "uint8"} or name in {"amax", "amin", "max", "min", "median", "mode"}
    return dtype if keeps else None


@op("sum mean amax amin prod logsumexp norm std var all any nansum nanmean argmax argmin count_nonzero")
@op("logsumexp", on="special")
@op("norm vector_norm", on="linalg")
def reduce(call: Invocation) -> Value | None:
    tensor = call.tensor()
    if tensor is None:
        return None
    position = 2 if call.name in {"norm", "vector_norm"} else 1
    place = call.integer(position, "dim")
    if place is not None and place >= 0:
        call.state.pool(tensor, place, call.at)
    found = reduced_axes(call, tensor, position)
    keep = call.flag(position + 1, "keepdim", False)
    content = replace(forget_content(tensor.traits), name=tensor.traits.name)
    if call.name == "amax":
        content = replace(content, peak_of=tensor.traits.product)
    if found is None:
        tensor = replace(tensor, dtype=reduced_dtype(call.name, tensor.dtype))
        if call.get(position, "dim") is None:
            return Tensor(None, (), Layout(()), tensor.dtype, replace(content, number=None))
        return replace(vague(tensor), traits=content)
    located, places = found
    if call.name == "sum":
        count_weights(call.state, located, places)
    if call.name == "sum" and located.traits.weighted and located.traits.softmax is not None:
        contract_weights(call, located, places)
        content = replace(content, attended=True)
    if call.name == "sum" and tensor.traits.exponent is not None and len(places) == 1:
        content = replace(content, total=Total(tensor.traits.exponent, places[0] - len(located.axes)))
    if call.name in {"any", "all"} and located.traits.cells is not None:
        content = replace(content, cells=Cells(1.0, 0.0, Region(frozenset({"row"}), made_at=call.at), call.at))
    result = reduce_over(call, located, places, bool(keep))
    return replace(result, traits=content, dtype=reduced_dtype(call.name, tensor.dtype))


@op("max min median mode nanmedian topk sort kthvalue cummax cummin")
def with_indices(call: Invocation) -> Value | None:
    tensor = call.tensor()
    if tensor is None:
        return None
    if call.name in {"sort", "topk", "cummax", "cummin"}:
        shape = vague(tensor) if call.name == "topk" else tensor
        plain = replace(shape, layout=None, traits=forget_content(tensor.traits))
        return Items((plain, replace(plain, dtype="int")))
    if call.name in {"kthvalue", "mode"}:
        place = 2 if call.name == "kthvalue" else 1
        rest = call.args[place:] or [Int(Size.of(-1))]
        call = replace(call, args=[tensor, *rest], name="median")
    if call.get(1, "dim") is None:
        peak = replace(PLAIN, detached=tensor.traits.detached, peak_of=tensor.traits.product)
        return Tensor(None, (), Layout(()), tensor.dtype, peak if call.name == "max" else PLAIN)
    other = call.args[1] if len(call.args) > 1 else None
    if isinstance(other, Tensor):
        return replace(tensor, traits=forget_content(tensor.traits), layout=None)
    result = reduce(replace(call, name="amax"))
    return Items((result, replace(result, dtype="int"))) if isinstance(result, Tensor) else None


@op("cumsum cumprod logcumsumexp")
def running(call: Invocation) -> Value | None:
    tensor = call.tensor()
    if tensor is None:
        return None
    dtype = call.dtype(reduced_dtype("sum", tensor.dtype))
    return replace(dense_like(tensor, tensor.axes, tensor.lead), dtype=dtype, traits=forget_content(tensor.traits))


@op("diff")
def diff(call: Invocation) -> Value | None:
    """Neighbours' differences: one step shorter along the axis for each round."""
    tensor = call.tensor()
    if tensor is None:
        return None
    dim = call.integer(2, "dim") if call.get(2, "dim") is not None else -1
    rounds = call.integer(1, "n") if call.get(1, "n") is not None else 1
    found = locate(call.state, tensor, dim)
    if found is None or rounds is None or "prepend" in call.kwargs or "append" in call.kwargs:
        return vague(tensor)
    tensor, place = found
    size = call.state.size_of(tensor.axes[place]) - rounds
    known = size if size.constant is None or size.constant >= 0 else None
    axes = (*tensor.axes[:place], new_axis(known), *tensor.axes[place + 1 :])
    return replace(tensor, axes=axes, layout=None, traits=forget_content(tensor.traits))


@op("item tolist", on="method")
def item(call: Invocation) -> Value | None:
    tensor = call.tensor()
    return tensor.traits.number if tensor is not None and tensor.traits.number is not None else Real(None)
