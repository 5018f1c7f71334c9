"""Reading and writing by index: `x[:, None, :n]`, `qkv[0]`, `scores[mask] = -1e9`."""

from __future__ import annotations

from dataclasses import dataclass

from msalint.diagnostic import Site
from msalint.ops.axes import cut_axis, dense_like, distinct, drop_axis, insert_axis, new_axis, set_aside, vague
from msalint.ops.hiding import cleared_by
from msalint.ops.mask_order import tell_tiled_for_scores
from msalint.ops.masking import filled_cells
from msalint.ops.overlaps import tell_filled, tell_written
from msalint.shapes.axes import ShapeVar
from msalint.shapes.size import Size
from msalint.shapes.vocabulary import says
from msalint.state import State, axis_symbol
from msalint.values import Const, Int, Items, Many, MaskUse, Opaque, Real, ShapeValue, Tensor, Traits, Value, replace


@dataclass(frozen=True)
class Range:
    """A slice `lower:upper:step` in an index."""

    lower: Value | None
    upper: Value | None
    step: Value | None


Item = Value | Range


def is_full(item: Item) -> bool:
    return isinstance(item, Range) and item.lower is None and item.upper is None and item.step is None


def read(state: State, tensor: Tensor, items: list[Item]) -> Tensor:
    """`tensor[items]`."""
    taking = [item for item in items if not _is_none(item) and not _is_ellipsis(item)]
    ellipsis = any(_is_ellipsis(item) for item in items)
    if len(items) == 1 and isinstance(items[0], Tensor):
        return _by_tensor(state, tensor, items[0])
    if any(isinstance(item, Tensor) for item in items):
        return _advanced(state, tensor, items)
    if tensor.lead is not None:
        tensor = _settled(state, tensor, items, taking, ellipsis)
    if not ellipsis and tensor.lead is not None:
        return _front_only(tensor, items)
    if len(taking) > len(tensor.axes):
        return vague(tensor)
    return _walk(state, tensor, items, len(taking), ellipsis)


def _settled(state: State, tensor: Tensor, items: list[Item], taking: list[Item], ellipsis: bool) -> Tensor:
    """An index with as many parts as its shape is used with tells the rank: `mask[:, None, None, :]` is 2-D."""
    if ellipsis:
        after = len([item for item in items[_ellipsis_place(items) + 1 :] if not _is_none(item)])
        return state.with_trailing(tensor, after)
    if len(items) == 2 and _cuts_features(state, tensor, items[1]):
        return state.bind_rank(tensor, 2)
    tensor = state.with_rank(tensor)
    if tensor.lead is not None and any(_is_none(item) for item in items):
        return state.bind_rank(tensor, len(taking))
    if tensor.lead is not None and len(taking) >= 2:
        return _of_so_many_axes(state, tensor, len(taking))
    return tensor


def _cuts_features(state: State, tensor: Tensor, item: Item) -> bool:
    """`h[:, :width]` where the last axis of h is 2 * width: it is the features that are cut, and h has two axes."""
    if not isinstance(item, Range) or len(tensor.axes) != 1:
        return False
    whole = state.size_of(tensor.axes[-1]).symbols()
    bounds = [state.as_size(bound) for bound in (item.lower, item.upper) if bound is not None]
    return any(size is not None and not whole.isdisjoint(size.symbols()) for size in bounds)


def _of_so_many_axes(state: State, tensor: Tensor, number: int) -> Tensor:
    """The rank that an index of several parts tells: `out[:, 0]` of hidden states drops the sequence, not features."""
    activations = tensor.traits.attended or tensor.traits.projection is not None
    if number > 2 or (says(tensor.traits.name, "mask", "bias") and not activations):
        return state.bind_rank(tensor, max(number, len(tensor.axes)))
    if activations and len(tensor.axes) == 1:
        return state.bind_rank(tensor, 3)
    return tensor


def _front_only(tensor: Tensor, items: list[Item]) -> Tensor:
    """Something taken off the front of a tensor of unknown rank."""
    from_start = all(not isinstance(item, Range) or (item.lower is None and item.step is None) for item in items)
    traits = tensor.traits if from_start else _shifted(tensor.traits)
    return replace(tensor, lead=ShapeVar(), axes=(), layout=None, traits=traits)


def _ellipsis_place(items: list[Item]) -> int:
    return next(i for i, item in enumerate(items) if _is_ellipsis(item))


def _is_none(item: Item) -> bool:
    return isinstance(item, Const) and item.value is None


def _is_ellipsis(item: Item) -> bool:
    return isinstance(item, Const) and item.value is Ellipsis


def _walk(state: State, tensor: Tensor, items: list[Item], taking: int, ellipsis: bool) -> Tensor:
    place = 0
    for item in items:
        if _is_ellipsis(item):
            place += len(tensor.axes) - place - _left(items, item)
        elif _is_none(item):
            tensor = insert_axis(tensor, place)
            place += 1
        elif isinstance(item, Range):
            tensor = sliced(state, tensor, place, item)
            place += 1
        elif isinstance(item, (Items, Many)) and sum(isinstance(one, (Items, Many)) for one in items) == 1:
            tensor = _picked(tensor, place, item)
            place += 1
        elif _may_be_tensor(item) or isinstance(item, (Items, Many)):
            return vague(tensor)
        else:
            tensor = drop_axis(tensor, place)
    return tensor


def _picked(tensor: Tensor, place: int, item: Items | Many) -> Tensor:
    """One axis by a list of positions: so many of them, in the order of the list."""
    count = Size.of(len(item.items)) if isinstance(item, Items) else item.length
    without = drop_axis(tensor, place)
    axes = (*without.axes[:place], new_axis(count), *without.axes[place:])
    return replace(dense_like(without, axes, without.lead), traits=_shifted(without.traits))


def _may_be_tensor(item: Item) -> bool:
    """An index known by name only: one position, unless it is called like many (`src`, `ids`, `perm`)."""
    if not isinstance(item, Opaque) or item.hint == "int":
        return False
    return item.hint == "tensor" or not says(item.name, *_POSITIONS)


_POSITIONS = tuple("i j k h b n t idx id layer head step pos position token q row col depth level start end".split())


def _left(items: list[Item], ellipsis: Item) -> int:
    """How many axes the items behind the ellipsis take."""
    after = items[next(i for i, item in enumerate(items) if item is ellipsis) + 1 :]
    return len([item for item in after if not _is_none(item)])


def sliced(state: State, tensor: Tensor, place: int, item: Range) -> Tensor:
    """One axis cut by a slice."""
    axis = tensor.axes[place]
    if is_full(item):
        return tensor
    size = state.size_of(axis)
    low, high = item.lower, item.upper
    whole_step = item.step is None or state.as_int(item.step) == 1
    from_start = low is None or state.as_int(low) == 0
    if from_start and whole_step and high is not None:
        stop = state.as_size(high)
        if stop is not None and state.relations.compare(stop, size).certainly:
            return tensor
    length = _length(state, size, item) if whole_step else None
    kept = length if length is not None else Size.of(axis_symbol("?"))
    whole = whole_step and not _cuts_off(state, size, item)
    cut = cut_axis(tensor, place, kept, step=not whole_step, whole=whole)
    traits = replace(cut.traits, number=None)
    if not from_start or not whole_step:
        traits = _shifted(traits)
    return replace(cut, traits=traits if whole_step else replace(traits, ramp=False))


def _shifted(traits: Traits) -> Traits:
    """A cut that does not start at 0 moves a triangle's diagonal and a ramp's start."""
    return replace(set_aside(traits), ramp_from=None)


def _cuts_off(state: State, size: Size, item: Range) -> bool:
    """Whether a slice is known to leave something out: `[1:]` and `[:-1]` do, `[:n]` need not."""
    low = state.as_int(item.lower) if item.lower is not None else 0
    high = state.as_int(item.upper) if item.upper is not None else None
    if (low is not None and low > 0) or (high is not None and high < 0):
        return True
    length = _length(state, size, item)
    return length is not None and state.relations.compare(length, size).never


def _counts_from_end(bound: Size) -> bool:
    """A negative bound: `-1`, `-n`."""
    return bool(bound.terms) and all(coefficient < 0 for _, coefficient in bound.terms)


def _length(state: State, size: Size, item: Range) -> Size | None:
    low = Size.of(0) if item.lower is None else state.as_size(item.lower)
    high = size if item.upper is None else state.as_size(item.upper)
    if low is None or high is None:
        return None
    if _counts_from_end(low):
        return -low if item.upper is None else None
    if _counts_from_end(high):
        high = size + high
    length = high - low
    return length if length.constant is None or length.constant > 0 else None


def _by_tensor(state: State, tensor: Tensor, index: Tensor) -> Tensor:
    """Picked by one tensor: a boolean mask flattens, an integer one takes the first axis' place."""
    picked = replace(tensor, traits=_shifted(tensor.traits))
    counts = index.dtype == "int" or (index.dtype is None and not says(index.traits.name, "mask"))
    if not counts or tensor.lead is not None or index.lead is not None or not tensor.axes:
        return vague(picked)
    return dense_like(picked, distinct(index.axes + tensor.axes[1:]))


def _advanced(state: State, tensor: Tensor, items: list[Item]) -> Tensor:
    return replace(vague(tensor), traits=_shifted(tensor.traits))


def write(
    state: State,
    tensor: Tensor,
    items: list[Item],
    value: Value,
    at: Site,
    mask_site: Site | None = None,
    fill_site: Site | None = None,
) -> Tensor:
    """The tensor after `tensor[items] = value`: a fill under a mask is a mask put on scores."""
    real = state.as_real(value)
    fill = real.constant if real is not None else None
    mask = _written_under(state, items)
    if mask is not None and len(items) == 1:
        tell_filled(state, tensor, mask, at)
    elif not any(_is_none(item) or _is_ellipsis(item) or isinstance(item, Tensor) for item in items):
        tell_written(state, tensor, [isinstance(item, (Int, Range)) and not is_full(item) for item in items], at)
    if mask is None or fill is None:
        return tensor.with_traits(cells=None) if tensor.traits.cells is not None else tensor
    if mask.traits.finite_check:
        return tensor
    hidden = mask.traits.triangle
    if hidden is None and mask.traits.cells is not None:
        hidden = mask.traits.cells.where(bool)
    if tensor.traits.cells is not None:
        return tensor.with_traits(cells=filled_cells(tensor.traits.cells, hidden, fill, at))
    tell_tiled_for_scores(state, tensor, mask, at)
    how = "indices" if mask.traits.triangle is not None else "index"
    use = MaskUse(
        at,
        how,
        hidden,
        fill,
        mask,
        mask_site=mask_site,
        fill_site=fill_site,
        in_place=True,
        onto=tensor.axes if tensor.lead is None else (),
    )
    if tensor.traits.softmax is not None:
        if fill == 0:
            state.guarded.add(id(tensor.traits.softmax.at))
        if fill == 0 and hidden is not None:
            return replace(tensor, traits=cleared_by(state, tensor.traits, use))
        return tensor.with_traits(reweighted=True)
    return tensor.with_traits(masks=(*tensor.traits.masks, use))


def _written_under(state: State, items: list[Item]) -> Tensor | None:
    """What says where an index writes: one boolean mask, or the row and column numbers of a triangle."""
    if len(items) == 1 and isinstance(items[0], (Tensor, Opaque)):
        only = items[0]
        if isinstance(only, Opaque) and not says(only.name, "mask", "padding", "pad", "invalid"):
            return None
        return state.as_tensor(only)
    if len(items) < 2 or not all(is_full(item) or _is_ellipsis(item) for item in items[:-2]):
        return None
    rows, columns = items[-2:]
    if not isinstance(rows, Tensor) or not isinstance(columns, Tensor):
        return None
    return rows if rows.traits.triangle is not None and rows.traits.triangle == columns.traits.triangle else None


def of_sequence(state: State, value: Value, items: list[Item]) -> Value | None:
    """`value[items]` of a tuple, list, or shape."""
    if len(items) != 1:
        return None
    item = items[0]
    if isinstance(value, ShapeValue):
        return _of_shape(state, value, item)
    if isinstance(value, Many):
        if isinstance(item, Range):
            return Many(value.element, None, value.kind)
        return value.element
    if not isinstance(value, Items):
        return None
    if isinstance(item, Range):
        bounds = [None if b is None else state.as_int(b) for b in (item.lower, item.upper, item.step)]
        given = [b for b in (item.lower, item.upper, item.step) if b is not None]
        if len([b for b in bounds if b is not None]) != len(given):
            return None
        return Items(value.items[bounds[0] : bounds[1] : bounds[2]], value.kind)
    index = state.as_int(item)
    if index is None or not -len(value.items) <= index < len(value.items):
        return value.items[0] if value.items and index is None and _alike(value.items) else None
    return value.items[index]


def _alike(items: tuple[Value, ...]) -> bool:
    return all(item == items[0] for item in items[1:])


def _of_shape(state: State, shape: ShapeValue, item: Item) -> Value | None:
    lead, axes = state.resolve_lead(shape.lead, shape.axes)
    if isinstance(item, Range):
        return _slice_of_shape(state, lead, axes, item)
    index = state.as_int(item)
    holder = Tensor(lead, axes)
    if index is None:
        return None
    from msalint.ops.layout import size_at

    return size_at(state, holder, index)


def _slice_of_shape(state: State, lead: ShapeVar | None, axes: tuple, item: Range) -> Value | None:  # type: ignore[type-arg]
    bounds = [None if b is None else state.as_int(b) for b in (item.lower, item.upper)]
    if (item.lower is not None and bounds[0] is None) or (item.upper is not None and bounds[1] is None):
        return None
    low, high = bounds
    if lead is None:
        return ShapeValue(None, axes[low:high])
    if low in (None, 0) and high is not None and high < 0:
        holder = state.with_trailing(Tensor(lead, axes), -high)
        return ShapeValue(holder.lead, holder.axes[:high])
    if low is not None and low < 0 and high is None:
        holder = state.with_trailing(Tensor(lead, axes), -low)
        return ShapeValue(None, holder.axes[low:])
    if low in (None, 0) and high is not None and high > 0:
        holder = Tensor(lead, axes)
        front = [state.front_axis(holder, i) for i in range(high)]
        return ShapeValue(None, tuple(axis for axis in front if axis is not None))
    holder = state.with_rank(Tensor(lead, axes))
    return ShapeValue(None, holder.axes[low:high]) if holder.lead is None else None


def length_of(state: State, value: Value) -> Value | None:
    """`len(value)`."""
    if isinstance(value, Items):
        return Int(Size.of(len(value.items)))
    if isinstance(value, Many) and value.length is not None:
        return Int(value.length)
    if isinstance(value, ShapeValue):
        lead, axes = state.resolve_lead(value.lead, value.axes)
        return Int(Size.of(len(axes))) if lead is None else None
    if isinstance(value, Tensor):
        axis = state.front_axis(value, 0)
        return Int(state.size_of(axis)) if axis is not None else None
    if isinstance(value, (Opaque, Real)):
        return None
    return None
