"""Masks made and put on: triangles, fills, choices, and the repair of rows that a mask left empty."""

from __future__ import annotations

from dataclasses import replace

from msalint.facts import Fact, MaskAdded, MaskedAfterSoftmax, MaskFilled
from msalint.ops.axes import elementwise_layout, forget_content
from msalint.ops.elementwise import broadcast
from msalint.ops.table import Invocation, op
from msalint.state import State
from msalint.values import Cells, Const, MaskUse, Opaque, Real, Region, Tensor, Traits, Value


@op("tril triu tril_ triu_")
def triangle(call: Invocation) -> Value | None:
    """Keeps one side of a diagonal, zeros elsewhere."""
    tensor = call.tensor()
    if tensor is None:
        return None
    given = call.get(1, "diagonal")
    offset = call.state.as_int(given) if given is not None else 0
    side = "lower" if call.name.startswith("tril") else "upper"
    cells = tensor.traits.cells
    made = None
    if cells is not None and cells.region is None:
        region = Region(frozenset({"causal"}), None, side if offset is not None else None, offset)
        made = Cells(cells.inside, 0.0, region, call.at)
    elif cells is not None and cells.region is not None and cells.outside == 0.0:
        region = cells.region.joined(Region(frozenset({"causal"}), None, side, offset))
        made = Cells(cells.inside, 0.0, region, call.at)
    traits = tensor.traits
    if traits.softmax is not None:
        call.state.emit(
            MaskedAfterSoftmax(call.at, traits.softmax, call.at, masked_before=bool(traits.softmax.scores.traits.masks))
        )
        return tensor.with_traits(reweighted=True)
    return replace(tensor, layout=elementwise_layout(tensor), traits=replace(forget_content(traits), cells=made))


@op("masked_fill masked_fill_")
def masked_fill(call: Invocation) -> Value | None:
    tensor, mask = call.tensor(), call.get(1, "mask")
    if tensor is None:
        return None
    return filled(call, tensor, mask, call.get(2, "value"), "masked_fill", mask_place=1, fill_place=2, holds=True)


def filled(
    call: Invocation,
    tensor: Tensor,
    mask: Value | None,
    value: Value | None,
    how: str,
    mask_place: int,
    fill_place: int,
    holds: bool,
) -> Tensor:
    """A tensor with one value written where a mask holds (or does not, for `holds` False)."""
    state = call.state
    mask_tensor = state.as_tensor(mask)
    real = state.as_real(value)
    fill = real.constant if real is not None else None
    region = None
    if mask_tensor is not None and mask_tensor.traits.cells is not None:
        region = mask_tensor.traits.cells.where(bool if holds else lambda x: not x)
    traits = tensor.traits
    if mask_tensor is not None and mask_tensor.traits.finite_check:
        _repair(state, traits)
        return tensor
    if traits.cells is not None and traits.product is None:
        return tensor.with_traits(cells=_filled_cells(traits.cells, region, fill, call))
    tensor = _broadcast_by_mask(state, tensor, mask_tensor, call)
    if traits.softmax is not None:
        if fill == 0:
            earlier = bool(traits.softmax.scores.traits.masks)
            site = call.site(mask_place, "mask") or call.at
            state.emit(MaskedAfterSoftmax(call.at, traits.softmax, site, masked_before=earlier))
            _repair(state, traits)
        return tensor.with_traits(reweighted=True)
    use = MaskUse(
        call.at,
        how,
        region,
        fill,
        mask_tensor or mask or Opaque(),
        mask_site=call.site(mask_place, "mask"),
        fill_site=call.site(fill_place, "value"),
        in_place=call.name.endswith("_"),
        fill_name=_fill_name(value),
    )
    return replace(tensor, layout=elementwise_layout(tensor), traits=replace(traits, masks=(*traits.masks, use)))


def _broadcast_by_mask(state: State, tensor: Tensor, mask: Tensor | None, call: Invocation) -> Tensor:
    """A mask of more axes gives the result its shape."""
    if mask is None or tensor.lead is not None or mask.lead is not None or len(mask.axes) <= len(tensor.axes):
        return tensor
    axes, _ = broadcast(state, tensor, mask, call.at, call.name)
    return replace(tensor, axes=axes, layout=None)


def _fill_name(value: Value | None) -> str:
    if isinstance(value, Opaque):
        return value.name
    if isinstance(value, Real):
        return value.name
    if isinstance(value, Tensor):
        return value.traits.name
    return ""


def _filled_cells(cells: Cells, region: Region | None, fill: float | None, call: Invocation) -> Cells | None:
    if region is None or fill is None:
        return None
    if cells.region is None:
        return Cells(fill, cells.inside, region, cells.at or call.at)
    hidden = cells.where(lambda x: x < 0)
    if hidden is not None and fill < 0:
        return Cells(fill, 0.0, hidden.joined(region), cells.at or call.at)
    return None


def _repair(state: State, traits: Traits) -> None:
    if traits.softmax is not None:
        state.guarded.add(id(traits.softmax.at))


@op("nan_to_num nan_to_num_")
def nan_to_num(call: Invocation) -> Value | None:
    tensor = call.tensor()
    if tensor is None:
        return None
    _repair(call.state, tensor.traits)
    return replace(tensor, layout=elementwise_layout(tensor))


@op("where", on="torch method")
def where(call: Invocation) -> Value | None:
    if len(call.args) + len(call.kwargs) < 3:
        return None
    state = call.state
    if call.args and isinstance(call.at, object) and _is_method(call):
        condition, kept, other = call.get(1, "condition"), call.get(0), call.get(2, "other")
        places = (1, 0, 2)
    else:
        condition, kept, other = call.get(0, "condition"), call.get(1, "input"), call.get(2, "other")
        places = (0, 1, 2)
    mask = state.as_tensor(condition)
    first, second = state.as_tensor(kept), state.as_tensor(other)
    a, b = state.as_real(kept), state.as_real(other)
    region = mask.traits.cells.where(bool) if mask is not None and mask.traits.cells else None
    one = _plain(kept, a)
    two = _plain(other, b)
    if one is not None and two is not None:
        cells = Cells(one, two, region, call.at) if region is not None else None
        return replace(mask, dtype=None, traits=Traits(cells=cells)) if mask is not None else None
    if first is not None and two is not None and not _constant_tensor(first):
        return filled(call, first, condition, other, "where", places[0], places[2], holds=False)
    if second is not None and one is not None and not _constant_tensor(second):
        return filled(call, second, condition, kept, "where", places[0], places[1], holds=True)
    main = first if first is not None and (second is None or len(first.axes) >= len(second.axes)) else second
    return replace(main, layout=None, traits=replace(main.traits, cells=None)) if main is not None else None


def _is_method(call: Invocation) -> bool:
    """`scores.where(mask, other)`: the receiver is what is kept."""
    return call.name == "where" and bool(call.kwargs.get("__method__", Const(False)) != Const(False))


def _constant_tensor(tensor: Tensor) -> bool:
    return tensor.traits.number is not None or (tensor.traits.cells is not None and tensor.traits.cells.region is None)


def _plain(value: Value | None, real: Real | None) -> float | None:
    """The number that a choice of `where` is, plain or as a tensor of one value."""
    if isinstance(value, Tensor):
        if value.traits.number is not None:
            return value.traits.number.constant
        return value.traits.cells.constant if value.traits.cells is not None else None
    return real.constant if real is not None and not isinstance(value, Opaque) else None


@op("masked_scatter masked_scatter_ scatter scatter_ index_fill index_fill_ index_copy_ index_add_ index_add scatter_add scatter_add_")
def scattered(call: Invocation) -> Value | None:
    tensor = call.tensor()
    if tensor is None:
        return None
    return replace(tensor, layout=elementwise_layout(tensor), traits=replace(tensor.traits, cells=None))


@op("pad", on="F")
def pad(call: Invocation) -> Value | None:
    """Axes grown at their ends; which ones is told by the pairs, last axis first."""
    from msalint.ops.axes import dense_like, new_axis
    from msalint.values import Items

    tensor, given = call.tensor(), call.get(1, "pad")
    if tensor is None:
        return None
    if not isinstance(given, Items):
        return replace(forget_axes(tensor), traits=replace(tensor.traits, cells=None))
    amounts = [call.state.as_int(item) for item in given.items]
    tensor = call.state.with_trailing(tensor, len(amounts) // 2)
    axes = list(tensor.axes)
    for i in range(len(amounts) // 2):
        low, high = amounts[2 * i], amounts[2 * i + 1]
        if low == 0 and high == 0:
            continue
        place = len(axes) - 1 - i
        if place < 0:
            return forget_axes(tensor)
        size = call.state.size_of(axes[place])
        grown = size + (low + high) if low is not None and high is not None else None
        axes[place] = new_axis(grown, axes[place][0].ident.kind if axes[place] else "new")
    return dense_like(tensor, axes, tensor.lead, cells=None)


def forget_axes(tensor: Tensor) -> Tensor:
    from msalint.ops.axes import vague

    return vague(tensor)


class NaNGuards:
    """Repairs that came after the softmax: the masks before it leave no NaN behind."""

    def __init__(self, guarded: set[int]) -> None:
        self.guarded = guarded

    def applied(self, facts: list[Fact]) -> list[Fact]:
        """The facts, with `guarded` set where a later repair covers them."""
        if not self.guarded:
            return facts
        return [self._one(fact) for fact in facts]

    def _one(self, fact: Fact) -> Fact:
        if isinstance(fact, (MaskFilled, MaskAdded)) and id(fact.softmaxed_at) in self.guarded:
            return replace(fact, guarded=True)
        return fact
