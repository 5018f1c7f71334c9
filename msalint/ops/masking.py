"""Masks made and put on: triangles, fills, choices, and the repair of rows that a mask left empty."""

from __future__ import annotations

from msalint.diagnostic import Site
from msalint.ops.axes import (
    copied_layout,
    dense_like,
    elementwise_layout,
    forget_content,
    joint_layout,
    new_axis,
    vague,
)
from msalint.ops.devices import tell_off_device
from msalint.ops.elementwise import broadcast, wider_open
from msalint.ops.hiding import cleared_by
from msalint.ops.overlaps import tell_filled
from msalint.ops.table import Invocation, op
from msalint.state import State, dense
from msalint.values import Cells, Const, Items, MaskUse, Opaque, Real, Region, Tensor, Traits, Value, replace


@op("tril triu tril_ triu_")
@op("", on="numpy.tril numpy.triu")
def triangle(call: Invocation) -> Value | None:
    """Keeps one side of a diagonal, zeros elsewhere."""
    tensor = call.tensor()
    if tensor is None:
        return None
    given = call.get(1, "diagonal") or call.kwargs.get("k")
    offset = call.state.as_int(given) if given is not None else 0
    side = "lower" if call.name.startswith("tril") else "upper"
    cells = tensor.traits.cells
    made = None
    region = _drawn(side, offset, call)
    if cells is not None and cells.region is None:
        made = Cells(cells.inside, 0.0, region, call.at)
    elif cells is not None and cells.region is not None and cells.outside == 0.0:
        made = Cells(cells.inside, 0.0, cells.region.joined(region, union=False), call.at)
    traits = tensor.traits
    use = MaskUse(call.at, "multiplied", region.complement(), 0.0, Opaque())
    if traits.softmax is not None:
        return replace(tensor, traits=cleared_by(call.state, traits, use))
    if traits.product is not None:
        return tensor.with_traits(masks=(*traits.masks, use))
    return replace(dense_like(tensor, tensor.axes, tensor.lead), traits=replace(forget_content(traits), cells=made))


def _drawn(side: str, offset: int | None, call: Invocation) -> Region:
    """A triangle; a diagonal that is worked out (cached keys, a window) is taken to leave every row a key."""
    if offset is not None:
        return Region(frozenset({"causal"}), None, side, offset, made_at=call.at)
    return Region(frozenset({"causal"}), fed=frozenset({"inside", "outside"}), made_at=call.at)


@op("tril_indices triu_indices", on="torch")
def triangle_indices(call: Invocation) -> Value | None:
    """The row and the column numbers of a triangle, as a pair."""
    given = call.get(2, "offset")
    offset = call.state.as_int(given) if given is not None else 0
    region = _drawn("lower" if call.name.startswith("tril") else "upper", offset, call)
    numbers = dense((new_axis(None),), None, "int", triangle=region)
    return Items((numbers, numbers))


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
    fill = _plain(value, state.as_real(value))
    region = _where_filled(mask_tensor, holds)
    traits = tensor.traits
    if call.name == "masked_fill_":
        tell_filled(state, tensor, mask_tensor, call.at)
    tensor = _covered(state, tensor, mask_tensor, call)
    if mask_tensor is not None and mask_tensor.traits.finite_check:
        _repair(state, traits)
        return tensor
    if traits.cells is not None and traits.product is None:
        if traits.device_given:
            tell_off_device(state, mask_tensor, call.at)
        return tensor.with_traits(cells=filled_cells(traits.cells, region, fill, call.at))
    rest = 3 - mask_place - fill_place
    mask_site = call.site(mask_place, "mask" if how == "masked_fill" else "condition")
    use = MaskUse(
        call.at,
        how,
        region,
        fill,
        mask_tensor or mask or Opaque(),
        mask_site=mask_site,
        taken_at=call.taken_at(mask_site) if region is not None and region.meaning == "keep" else None,
        fill_site=call.site(fill_place, "value" if how == "masked_fill" else "other"),
        in_place=call.name.endswith("_"),
        fill_name=_fill_name(value),
        scores_site=call.site(rest, "input"),
        onto=tensor.axes if tensor.lead is None else (),
    )
    if traits.softmax is not None:
        if fill != 0:
            return tensor.with_traits(reweighted=True)
        _repair(state, traits)
        cleared = (*traits.cleared, use) if region is not None else traits.cleared
        return tensor.with_traits(reweighted=True, cleared=cleared)
    return tensor.with_traits(masks=(*traits.masks, use))


def _where_filled(mask: Tensor | None, holds: bool) -> Region | None:
    """The region that a boolean mask gives over to a fill."""
    if mask is None or mask.traits.cells is None:
        return None
    return mask.traits.cells.where(bool if holds else lambda x: not x)


def _covered(state: State, tensor: Tensor, mask: Tensor | None, call: Invocation) -> Tensor:
    """The shape of a tensor with a mask broadcast over it; masked_fill copies it into order, `where` may not."""
    axes = tensor.axes
    closed = mask is not None and tensor.lead is None and mask.lead is None
    if closed and mask is not None:
        axes, _ = broadcast(state, tensor, mask, call.at, call.name)
    if call.name != "where":
        return dense_like(tensor, axes, tensor.lead)
    return replace(
        tensor, axes=axes, layout=joint_layout(axes, [mask, tensor]) if closed and mask is not None else None
    )


def _fill_name(value: Value | None) -> str:
    if isinstance(value, Opaque):
        return value.name
    if isinstance(value, Real):
        return value.name if all(power > 0 for _, power in value.powers) else ""
    if isinstance(value, Tensor):
        return value.traits.name
    return ""


def filled_cells(cells: Cells, region: Region | None, fill: float | None, at: Site) -> Cells | None:
    """The values of a mask after a fill."""
    if region is None or fill is None:
        return None
    if cells.region is None:
        return Cells(fill, cells.inside, region, at)
    if cells.region == region:
        return Cells(fill, cells.outside, region, at)
    if cells.region == region.complement():
        return Cells(fill, cells.inside, region, at)
    hidden = cells.where(lambda x: x < 0)
    if hidden is not None and fill < 0:
        return Cells(fill, 0.0, hidden.joined(region, union=True), at)
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


@op("where", on="method")
def where_method(call: Invocation) -> Value | None:
    """`scores.where(mask, other)`: the receiver is what is kept."""
    return _choice(call, call.get(1, "condition"), call.get(0), call.get(2, "other"), (1, 0, 2))


@op("where", on="torch")
def where(call: Invocation) -> Value | None:
    return _choice(call, call.get(0, "condition"), call.get(1, "input"), call.get(2, "other"), (0, 1, 2))


def _choice(
    call: Invocation, condition: Value | None, kept: Value | None, other: Value | None, places: tuple[int, int, int]
) -> Value | None:
    """`kept` where a condition holds, `other` elsewhere; `places` are those of the three in the call."""
    if len(call.args) + len(call.kwargs) < 3:
        return None
    state = call.state
    mask = state.as_tensor(condition)
    first, second = state.as_tensor(kept), state.as_tensor(other)
    a, b = state.as_real(kept), state.as_real(other)
    region = mask.traits.cells.where(bool) if mask is not None and mask.traits.cells else None
    one = _plain(kept, a)
    two = _plain(other, b)
    if one is not None and two is not None:
        cells = Cells(one, two, region, call.at) if region is not None else None
        if mask is None:
            return None
        traits = Traits(cells=cells, made_by_default=mask.traits.made_by_default)
        return replace(_chosen(state, call, mask, first, second), dtype=None, traits=traits)
    if first is not None and two is not None and not _constant_tensor(first):
        return filled(call, first, condition, other, "where", places[0], places[2], holds=False)
    if second is not None and one is not None and not _constant_tensor(second):
        return filled(call, second, condition, kept, "where", places[0], places[1], holds=True)
    main = first if first is not None and (second is None or len(first.axes) >= len(second.axes)) else second
    if main is None:
        return None
    return replace(_chosen(state, call, mask, first, second), dtype=None, traits=replace(main.traits, cells=None))


def _chosen(state: State, call: Invocation, *tensors: Tensor | None) -> Tensor:
    """The shape of a choice between tensors: all of them broadcast."""
    known = [tensor for tensor in tensors if tensor is not None]
    result = known[0]
    for tensor in known[1:]:
        if result.lead is not None or tensor.lead is not None:
            result, _ = wider_open(result, tensor)
        else:
            axes, _ = broadcast(state, result, tensor, call.at, call.name)
            result = replace(result, axes=axes)
    told = len(known) == len(tensors) and all(tensor.lead is None for tensor in known)
    return replace(result, layout=joint_layout(result.axes, known) if told else None)


def _constant_tensor(tensor: Tensor) -> bool:
    return tensor.traits.number is not None or (tensor.traits.cells is not None and tensor.traits.cells.region is None)


def _plain(value: Value | None, real: Real | None) -> float | None:
    """The number that a choice of `where` is, plain or as a tensor of one value."""
    if isinstance(value, Tensor):
        if value.traits.number is not None:
            return value.traits.number.constant
        return value.traits.cells.constant if value.traits.cells is not None else None
    return real.constant if real is not None and not isinstance(value, Opaque) else None


@op(
    "masked_scatter masked_scatter_ scatter scatter_ scatter_add scatter_add_ index_fill index_fill_ index_copy_ "
    "index_add index_add_"
)
def scattered(call: Invocation) -> Value | None:
    tensor = call.tensor()
    if tensor is None:
        return None
    mask = call.tensor(1, "mask") if call.name.startswith("masked") else None
    if mask is not None:
        return _covered(call.state, tensor, mask, call).with_traits(cells=None)
    layout = elementwise_layout(tensor) if call.name.startswith("index") and "add" not in call.name else None
    return replace(tensor, layout=layout, traits=replace(tensor.traits, cells=None))


@op("pad", on="F")
def pad(call: Invocation) -> Value | None:
    """Axes grown at their ends; which ones is told by the pairs, last axis first."""
    tensor, given = call.tensor(), call.get(1, "pad")
    if tensor is None:
        return None
    if not isinstance(given, Items):
        return replace(forget_axes(tensor), traits=replace(tensor.traits, cells=None))
    amounts = [call.state.as_int(item) for item in given.items]
    source = tensor
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
    layout = None if all(n == 0 for n in amounts) else copied_layout(axes, tensor.lead, [source])
    cells = _padded_cells(call, tensor.traits.cells, amounts)
    return replace(dense_like(tensor, axes, tensor.lead, cells=cells), layout=layout)


@op("unfold", on="F")
def unfolded(call: Invocation) -> Value | None:
    """The windows of an image, (batch, channels * window, windows); a border of zeros is no part of the image."""
    tensor = call.tensor()
    if tensor is None:
        return None
    tensor = call.state.with_trailing(tensor, 3)
    if tensor.lead is None and len(tensor.axes) != 4:
        return forget_axes(tensor)
    front = tensor.axes[:1] if tensor.lead is None else ()
    axes = (*front, new_axis(None), new_axis(None, "place"))
    border = call.get(3, "padding")
    cells = tensor.traits.cells
    if (
        border is not None
        and call.state.as_int(border) != 0
        and cells is not None
        and cells.constant not in {None, 0.0}
    ):
        inside = Region(frozenset({"padding"}), "keep", made_at=call.at)
        return dense_like(tensor, axes, tensor.lead, cells=Cells(cells.inside, 0.0, inside, call.at))
    return dense_like(tensor, axes, tensor.lead)


def _padded_cells(call: Invocation, cells: Cells | None, amounts: list[int | None]) -> Cells | None:
    """A mask with more cells at its ends: of new keys that are kept, or of places where there is nothing real."""
    if cells is None or call.get(2, "mode") not in (None, Const("constant")):
        return None
    given = call.get(3, "value")
    real = call.state.as_real(given) if given is not None and given != Const(None) else Real(0.0)
    value = real.constant if real is not None else None
    if value is None or cells.inside is None:
        return None
    if cells.region is None:
        edge = Region(frozenset({"padding"}), "keep", made_at=call.at)
        return Cells(cells.inside, value, edge, call.at) if value != cells.inside else cells
    if value not in {cells.inside, cells.outside}:
        return None
    side = "inside" if value == cells.inside else "outside"
    on_keys = any(amount is None or amount > 0 for amount in amounts[:2])
    fed = cells.region.fed | {side} if on_keys else cells.region.fed
    return replace(cells, region=replace(cells.region.aside(), fed=frozenset(fed)))


def forget_axes(tensor: Tensor) -> Tensor:
    return vague(tensor)
