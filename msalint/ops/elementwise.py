"""Operations element by element: arithmetic, comparisons, logic, casts, and functions of one number."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable

from msalint.diagnostic import Site
from msalint.facts import MaskCleared, SizesDisagree, ZeroTimesInfinity
from msalint.ops.attending import tell_late_scale
from msalint.ops.axes import copied_layout, distinct, elementwise_layout, forget_content, joint_layout, new_axis, vague
from msalint.ops.devices import joined, moved
from msalint.ops.hiding import FAR_BELOW, cleared_by
from msalint.ops.scalars import arithmetic
from msalint.ops.table import Invocation, op
from msalint.shapes.axes import Axis, Layout, axis_name
from msalint.shapes.vocabulary import says
from msalint.state import State
from msalint.values import (
    Cells,
    Const,
    DType,
    Factor,
    Int,
    Library,
    MaskUse,
    Opaque,
    Real,
    Region,
    Tensor,
    Traits,
    Value,
    replace,
)

_ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": lambda a, b: a / b if b else math.copysign(math.inf, a) if a else math.nan,
    "**": lambda a, b: a**b,
    "//": operator.floordiv,
    "%": operator.mod,
}
_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def broadcast(state: State, left: Tensor, right: Tensor, at: Site, what: str) -> tuple[tuple[Axis, ...], bool]:
    """The axes of two closed shapes put together from the right, and whether the left alone has all of them."""
    rank = max(len(left.axes), len(right.axes))
    axes: list[Axis] = []
    left_full = len(left.axes) == rank
    masks = left.traits.cells is not None and right.traits.cells is not None
    for i in range(-rank, 0):
        a = left.axes[i] if -i <= len(left.axes) else ()
        b = right.axes[i] if -i <= len(right.axes) else ()
        axes.append(b if a and masks and _better_known(b, a) else a or b)
        left_full = left_full and (bool(a) or not b)
        if a and b:
            x, y = state.size_of(a).constant, state.size_of(b).constant
            # Functions that try things out meet their own numbers in loops and results of calls that nobody followed.
            if state.in_module and x is not None and y is not None and x != y and 1 not in (x, y):
                message = f"{what} meets axes of size {x} and {y}"
                state.emit(SizesDisagree(at, what, axis_name(a), axis_name(b), message))
    return tuple(axes), left_full


def _better_known(one: Axis, other: Axis) -> bool:
    """Of two masks combined, one is made of an input, the other of numbers: the first tells whose axis it is."""
    return len(one) == len(other) == 1 and one[0].ident.kind != "new" and other[0].ident.kind == "new"


def binary(
    state: State, sign: str, left: Value, right: Value, at: Site, left_site: Site, right_site: Site
) -> Value | None:
    """`left sign right`, for numbers, tensors, or one of each; None if nothing is known of it."""
    left, right = _as_mask(state, left), _as_mask(state, right)
    tensors = isinstance(left, Tensor) or isinstance(right, Tensor)
    if not tensors:
        known = sign in _ARITHMETIC and not (_nothing_known(left) or _nothing_known(right))
        return arithmetic(state, sign, left, right) if known else None
    a = state.as_tensor(left) if not _is_number(state, left) else None
    b = state.as_tensor(right) if not _is_number(state, right) else None
    if a is not None and b is not None:
        return _of_tensors(state, sign, a, b, at, left_site, right_site)
    if a is not None:
        return _with_number(state, sign, _spread(a, right), right, at, left_site, flipped=False)
    if b is not None:
        return _with_number(state, sign, _spread(b, left), left, at, right_site, flipped=True)
    number = arithmetic(state, sign, left, right) if sign in _ARITHMETIC else None
    holder = left if isinstance(left, Tensor) else right
    if isinstance(number, (Int, Real)) and isinstance(holder, Tensor):
        return holder.with_traits(number=state.as_real(number), cells=None)
    return number


def _spread(tensor: Tensor, other: Value) -> Tensor:
    """Beside something unknown, the shape of a tensor that was made to be broadcast is not the result's."""
    narrow = tensor.lead is None and len(tensor.axes) < 2
    return vague(tensor) if _nothing_known(other) and (narrow or is_made_to_broadcast(tensor)) else tensor


def _nothing_known(value: Value) -> bool:
    """It may be a number or a tensor of any rank."""
    return isinstance(value, Opaque) and not value.key and not value.hint


def _as_mask(state: State, value: Value) -> Value:
    """A value known by name that is a tensor for sure, or a mask: `1 - attention_mask`."""
    if not isinstance(value, Opaque) or not value.key or value.hint in {"int", "float", "bool", "str"}:
        return value
    used = value.key in state.tensors and value.source != "init"
    known = value.hint == "tensor" or used or says(value.name, "mask")
    return (state.as_tensor(value) or value) if known else value


def _is_number(state: State, value: Value) -> bool:
    """A plain number, or a tensor that holds one."""
    if isinstance(value, Tensor):
        return value.traits.number is not None
    if isinstance(value, Opaque):
        return not value.key or value.hint in {"int", "float", "bool"} or not _tensor_like(value)
    return state.as_real(value) is not None


def _tensor_like(value: Opaque) -> bool:
    """An unknown value that is likelier a tensor than a number, by its name."""
    return value.hint == "tensor" or says(
        value.name,
        "mask",
        "bias",
        "x",
        "states",
        "emb",
        "embedding",
        "embeddings",
        "pos",
        "cos",
        "sin",
        "weights",
        "ids",
    )


def is_made_to_broadcast(tensor: Tensor) -> bool:
    """A weight, a bias, a mask, positions: what stands beside it may well have more axes."""
    traits = tensor.traits
    if traits.product is not None or traits.softmax is not None or traits.projection is not None or traits.attended:
        return False
    return traits.parameter or traits.buffer or traits.ramp or traits.cells is not None or () in tensor.axes


# --- a tensor and a number ---------------------------------------------------------------------------------------


def _with_number(state: State, sign: str, tensor: Tensor, other: Value, at: Site, site: Site, flipped: bool) -> Value:
    real = state.as_real(other)
    constant = real.constant if real is not None else None
    traits = _counting_on(state, sign, tensor.traits, other, flipped)
    if traits.triangle is not None:
        traits = replace(traits, triangle=None)  # `i, j = triu_indices(n, n)`, then `j + k`
    cells = traits.cells
    if cells is not None:
        function = _ARITHMETIC.get(sign)
        cells = _map_cells(state, cells, function, constant, at, flipped, sign) if function else None
    if sign in {"*", "/"}:
        traits = _scaled(state, traits, sign, real, at, flipped)
    elif traits.softmax is not None and sign in {"+", "-", "**"}:
        traits = replace(traits, reweighted=True)
    number = None
    if sign == "**":
        traits = replace(traits, projection=None, product=None)
    if sign in {"-"} and flipped:
        traits = replace(traits, scale=traits.scale)
    traits = replace(traits, cells=cells, number=number)
    if isinstance(other, Opaque) and other.hint not in {"int", "float", "bool"} and is_made_to_broadcast(tensor):
        tensor = vague(tensor)
    dtype = _with_number_dtype(sign, tensor.dtype, other)
    return replace(tensor, layout=elementwise_layout(tensor), traits=traits, dtype=dtype)


def _with_number_dtype(sign: str, dtype: str | None, other: Value) -> str | None:
    """What arithmetic with a number makes of a dtype: truths and integers may become anything but by an integer."""
    if dtype not in {"bool", "int", "uint8"}:
        return dtype
    if sign == "/" or not isinstance(other, Int):
        return None
    return "int" if dtype == "bool" else dtype


def _counting_on(state: State, sign: str, traits: Traits, other: Value, flipped: bool) -> Traits:
    """A count that begins later: `torch.arange(n) + past`. Anything else done to positions makes them none."""
    if not traits.ramp and not traits.distance:
        return traits
    shift = state.as_size(other)
    if not traits.ramp or sign not in {"+", "-"} or (sign == "-" and flipped):
        return replace(traits, ramp=False, ramp_from=None, distance="")
    if shift is None or traits.ramp_from is None:
        return replace(traits, ramp_from=None)
    start = traits.ramp_from + shift if sign == "+" else traits.ramp_from - shift
    return replace(traits, ramp_from=start)


def _map_cells(
    state: State,
    cells: Cells,
    function: Callable[[float, float], float],
    constant: float | None,
    at: Site,
    flipped: bool,
    sign: str,
) -> Cells | None:
    if constant is None:
        return None
    mapped = cells.map(lambda x: function(constant, x) if flipped else function(x, constant))
    _tell_nan(state, cells, mapped, constant, at, sign)
    return replace(mapped, at=cells.at or at)


def _tell_nan(state: State, before: Cells, after: Cells, factor: float, at: Site, sign: str) -> None:
    """0 * inf: the multiplication that was to put -inf in some places puts NaN in all the others."""
    if sign != "*" or not math.isinf(factor) or before.region is None:
        return
    born_nan = [
        x is not None and x == 0 and y is not None and math.isnan(y)
        for x, y in ((before.inside, after.inside), (before.outside, after.outside))
    ]
    if any(born_nan):
        region = before.region if born_nan[0] else before.region.complement()
        where = "where the mask is 0"
        if region.side == "lower":
            where = "on and below the diagonal" if (region.offset or 0) >= 0 else "below the diagonal"
        elif region.side == "upper":
            where = "on and above the diagonal" if (region.offset or 0) <= 0 else "above the diagonal"
        state.emit(ZeroTimesInfinity(at, made_at=before.at, zeros=where))


def _scaled(state: State, traits: Traits, sign: str, real: Real | None, at: Site, flipped: bool) -> Traits:
    if traits.cells is not None and traits.projection is None and traits.product is None:
        return traits
    factor = real
    if real is not None and sign == "/":
        factor = real.inverse() if not flipped else None
    if real is not None and real.coefficient is None:
        factor = None
    late = traits.softmax or traits.context_of
    if late is not None and factor is not None and factor.powers:
        tell_late_scale(state, late, Factor(factor, at), "weights" if traits.softmax is not None else "context")
    if traits.softmax is not None:
        return replace(traits, reweighted=True)
    return replace(traits, scale=(*traits.scale, Factor(factor, at, real.at if real is not None else None)))


# --- two tensors -------------------------------------------------------------------------------------------------


def _leads(tensor: Tensor) -> bool:
    """A tensor that others are fitted to, not the reverse: scores, weights, projections."""
    traits = tensor.traits
    return traits.product is not None or traits.softmax is not None or traits.projection is not None


def _of_tensors(
    state: State, sign: str, left: Tensor, right: Tensor, at: Site, left_site: Site, right_site: Site
) -> Tensor:
    total = right.traits.total
    if sign == "/" and total is not None and total.exponent is left.traits.exponent:
        from msalint.ops.softmax import divided_by_sum

        return divided_by_sum(state, left, total, at, left_site)
    main, other = (left, right) if _weight(left) >= _weight(right) else (right, left)
    other_site = right_site if other is right else left_site
    if left.lead is not None or right.lead is not None:
        shape, beside = wider_open(main, other)
        lead, axes = shape.lead, _widened(shape, beside)
        layout = elementwise_layout(shape) if shape is left and axes == shape.axes else None
    else:
        axes, _ = broadcast(state, left, right, at, sign)
        axes = distinct(axes)
        lead, layout = None, joint_layout(axes, [left, right])
    traits = _joint_traits(state, sign, main, other, at, other_site, left, right)
    moved = main.traits.moved if layout is not None else None
    by_kernel = layout is not None and (left.traits.implementation_layout or right.traits.implementation_layout)
    dtype = _joint_dtype(sign, main.dtype, other.dtype)
    traits = replace(traits, moved=moved, implementation_layout=by_kernel)
    return joined(left, right, Tensor(lead, axes, layout, dtype, traits))


def wider_open(main: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    """Of two shapes, one of which is open, the one to take for the result of broadcasting, and the other."""
    shape = main if main.lead is None or len(main.axes) >= len(other.axes) else other
    beside = other if shape is main else main
    may_widen = is_made_to_broadcast(shape) or not (_leads(shape) or _is_mask_alone(beside, shape))
    if shape.lead is None and beside.lead is not None and may_widen:
        return beside, shape
    return shape, beside


def _is_mask_alone(tensor: Tensor, other: Tensor) -> bool:
    """Whether the first of two is a mask, laid on the other: its axes may well be of size 1."""
    return tensor.traits.cells is not None and other.traits.cells is None


def _joint_dtype(sign: str, main: str | None, other: str | None) -> str | None:
    """What torch promotes two dtypes to, as far as it is known; a main operand of unknown make is taken to be wider."""
    if main == other:
        return None if sign == "/" and main in _WHOLE else main
    if main in _WHOLE and (other is None or other in _WHOLE or sign == "/"):
        return None
    return main if other in {"bool", "int", None} else other


_WHOLE = frozenset({"bool", "int", "uint8"})


def _widened(shape: Tensor, beside: Tensor) -> tuple[Axis, ...]:
    """The axes of an open shape after broadcasting: one of size 1 takes the size of what stands beside it."""
    axes = list(shape.axes)
    for i in range(-len(axes), 0):
        if axes[i]:
            continue
        if -i <= len(beside.axes):
            axes[i] = beside.axes[i]
        elif beside.lead is not None:
            axes[i] = new_axis(None)
    return tuple(axes)


def _weight(tensor: Tensor) -> int:
    """How much an operand has to say about the result: scores and projections before masks and biases."""
    traits = tensor.traits
    return (
        8 * (traits.product is not None)
        + 8 * (traits.softmax is not None)
        + 4 * (traits.projection is not None)
        + 2 * (traits.cells is None)
        + (tensor.lead is None)
    )


def _joint_traits(
    state: State, sign: str, main: Tensor, other: Tensor, at: Site, other_site: Site, left: Tensor, right: Tensor
) -> Traits:
    a, b = main.traits, other.traits
    if a.cells is not None and b.cells is not None:
        return replace(Traits(), name=a.name or b.name, cells=_joint_cells(state, sign, a.cells, b.cells, at))
    if sign in {"+", "-"} and a.ramp and b.ramp:
        return replace(Traits(), distance=_distance(left, right) if sign == "-" else "")
    if sign in {"+", "-"}:
        return _sum_traits(main, other, at, sign)
    if sign in {"*", "/"}:
        return _product_traits(state, sign, main, other, at, other_site)
    return forget_content(a)


def _joint_cells(state: State, sign: str, a: Cells, b: Cells, at: Site) -> Cells | None:
    function = _ARITHMETIC.get(sign)
    if function is None:
        return None
    if b.region is None and b.inside is not None:
        value = b.inside
        mapped = a.map(lambda x: function(x, value))
        _tell_nan(state, a, mapped, value, at, sign)
        return mapped
    if a.region is None and a.inside is not None:
        first = a.inside
        mapped = b.map(lambda x: function(first, x))
        _tell_nan(state, b, mapped, first, at, sign)
        return mapped
    if a.region is None or b.region is None:
        return None
    if sign == "*":
        _tell_cleared(state, a, b, at)
        _tell_cleared(state, b, a, at)
    zero_one = {a.inside, a.outside} == {b.inside, b.outside} == {0.0, 1.0}
    if sign == "*" and zero_one:
        return _combined(a, b, union=False)
    hides = [cells.where(lambda x: x <= FAR_BELOW) for cells in (a, b)]
    if sign == "+" and hides[0] is not None and hides[1] is not None:
        lowest = min(v for v in (a.inside, a.outside) if v is not None)
        return Cells(lowest, 0.0, hides[0].joined(hides[1], union=True), at)
    return None


def _tell_cleared(state: State, additive: Cells, factor: Cells, at: Site) -> None:
    """An additive mask times a 0/1 mask of what is kept: 0 clears what was hidden there, 1 keeps it hidden."""
    hidden = additive.where(lambda x: x <= FAR_BELOW)
    kept = factor.where(bool) if {factor.inside, factor.outside} == {0.0, 1.0} else None
    if hidden is None or kept is None or not kept.strong or kept.meaning_or_triangle() != "keep":
        return
    if kept.side == "lower" and (kept.offset or 0) < 0:
        return
    infinite = -math.inf in {additive.inside, additive.outside}
    state.emit(MaskCleared(at, additive.at or hidden.made_at, kept.made_at or factor.at, infinite, said=hidden.said))


def _combined(a: Cells | None, b: Cells | None, union: bool) -> Cells | None:
    """Two 0/1 masks combined by `|` (a union) or by `&` or a product.

    What hides, or of what is kept, only more (or less) is left when a mask that is not known joins in.
    """
    first, second = (cells.where(bool) if cells is not None else None for cells in (a, b))
    if first is not None and second is not None:
        return Cells(1.0, 0.0, first.joined(second, union), a.at or b.at if a and b else None)
    known = first or second
    if known is None or known.meaning_or_triangle() != ("hide" if union else "keep"):
        return None
    other = Region(frozenset({"other"}), known.meaning_or_triangle(), strong=known.strong)
    at = (a.at if a is not None else None) if known is first else (b.at if b is not None else None)
    return Cells(1.0, 0.0, known.joined(other, union), at)


def _sum_traits(main: Tensor, other: Tensor, at: Site, sign: str) -> Traits:
    a, b = main.traits, other.traits
    cells = b.cells if sign == "+" or b.cells is None else b.cells.map(operator.neg)
    hidden = cells.where(lambda x: x <= FAR_BELOW) if cells is not None else None
    if a.product is not None or (a.softmax is None and (a.masks or hidden is not None)):
        truths = other.dtype == "bool"
        if hidden is not None or ((says(b.name, "mask") or truths) and sign == "+"):
            fill = _lowest(cells) if cells is not None and hidden is not None else None
            use = MaskUse(at, "added", hidden, fill, other, onto=main.axes if main.lead is None else ())
            return replace(a, masks=(*a.masks, use), biased=a.biased or (truths and not says(b.name, "mask")))
        if b.product is not None:
            a = replace(a, masks=tuple(use for use in a.masks if use in b.masks))
        if b.product is not None and len(b.scale) != len(a.scale):
            return replace(a, scale=(*a.scale, Factor(None, at)))
        shifted = sign == "-" and bool(other.axes) and not other.axes[-1]  # less the row's maximum: the same softmax
        return a if b.product is not None or shifted else replace(a, biased=True)
    if a.softmax is not None:
        return replace(a, reweighted=True)
    if a.projection is not None:
        both = b.projection is not None and b.projection.serial != a.projection.serial
        return replace(a, additive=both or a.additive, scale=a.scale if a.scale == b.scale or not both else ())
    return replace(forget_content(a), attended=a.attended or b.attended, name="", additive=a.additive or b.additive)


def _lowest(cells: Cells) -> float | None:
    """The lower of two values; nan counts as neither."""
    return min((v for v in (cells.inside, cells.outside) if v is not None and not math.isnan(v)), default=None)


def _product_traits(state: State, sign: str, main: Tensor, other: Tensor, at: Site, other_site: Site) -> Traits:
    a, b = main.traits, other.traits
    zero_one = b.cells is not None and {b.cells.inside, b.cells.outside} == {0.0, 1.0} and b.cells.region is not None
    mask = sign == "*" and zero_one
    hidden = b.cells.where(lambda x: x == 0) if b.cells is not None else None
    if a.softmax is not None:
        if mask:
            return cleared_by(state, a, MaskUse(at, "multiplied", hidden, 0.0, other, mask_site=other_site))
        if sign == "/":
            return replace(a, reweighted=True, cleared=())
        if b.softmax is None and sign == "*" and not says(b.name, "scale", "gate"):
            return replace(a, weighted=True)
        return replace(a, reweighted=True)
    if mask:
        use = MaskUse(at, "multiplied", hidden, 0.0, other, mask_site=other_site)
        return replace(a, masks=(*a.masks, use))
    if says(b.name, "cos", "sin") or _spans_features(main, other):
        return replace(a, rotated=a.rotated or says(b.name, "cos", "sin"))
    return replace(a, scale=(*a.scale, Factor(None, at)), unit=a.unit)


def _spans_features(main: Tensor, other: Tensor) -> bool:
    """The other varies along the last axis, so it is no scalar per row."""
    if not main.axes or not other.axes or main.traits.product is not None:
        return False
    return bool(other.axes[-1]) and bool(main.axes[-1]) and not other.traits.parameter


# --- comparisons and logic ---------------------------------------------------------------------------------------


def compare(state: State, sign: str, left: Value, right: Value, at: Site) -> Tensor | None:
    """An elementwise comparison of a tensor; None if neither side is one."""
    a, b = state.as_tensor(left), state.as_tensor(right)
    if not isinstance(left, Tensor) and not isinstance(right, Tensor):
        return None
    if isinstance(left, Tensor) and isinstance(right, Tensor) and a is not None and b is not None:
        shape = _of_tensors(state, "<", a, b, at, at, at)
        return _truths(shape, _ramps(sign, a, b, at) or _lengths(sign, a, b, at), at)
    tensor, other, flipped = (a, right, False) if isinstance(left, Tensor) else (b, left, True)
    assert tensor is not None
    return _truths(tensor, _against_number(state, sign, tensor, other, flipped, at), at)


def _truths(shape: Tensor, cells: Cells | None, at: Site) -> Tensor:
    cells = replace(cells, at=cells.at or at) if cells else None
    old = shape.traits
    traits = Traits(name=old.name, cells=cells, made_by_default=old.made_by_default, plain=old.plain, buffer=old.buffer)
    return replace(shape, dtype="bool", traits=traits, layout=elementwise_layout(shape))


def _against_number(state: State, sign: str, tensor: Tensor, other: Value, flipped: bool, at: Site) -> Cells | None:
    real = state.as_real(other)
    constant = real.constant if real is not None else None
    cells = tensor.traits.cells
    if cells is not None and constant is not None:
        function = _COMPARISONS[sign]
        value = constant
        return cells.map(lambda x: float(function(value, x) if flipped else function(x, value)))
    if tensor.traits.distance:
        return _near(sign, tensor.traits.distance, constant, flipped, at)
    name = other.name if isinstance(other, Opaque) else ""
    named = says(name, "pad", "padding")
    ids = constant == 0 and says(tensor.traits.name, "ids", "tokens")
    if ids and sign in {">", "<"}:
        sign = "!=" if (sign == ">") != flipped else sign
    if sign in {"==", "!="} and (named or ids):
        # Token 0 is the padding by habit only.
        meaning = "hide" if sign == "==" else "keep"
        return Cells(1.0, 0.0, Region(frozenset({"padding"}), meaning, strong=named, name=name, made_at=at), at)
    return None


def _distance(left: Tensor, right: Tensor) -> str:
    """What the difference of two tensors of positions is; "" where they do not run along the last two axes."""
    places = (_ramp_place(left), _ramp_place(right))
    if left.traits.ramp_from is None or left.traits.ramp_from != right.traits.ramp_from:
        return ""
    if places == (-1, -2):
        return "key - query"
    return "query - key" if places == (-2, -1) else ""


def _near(sign: str, distance: str, bound: float | None, flipped: bool, at: Site) -> Cells | None:
    """Positions less (or more) than some way apart: a window, or a triangle where the distance has a sign."""
    if flipped:
        sign = _MIRRORED.get(sign, sign)
    if sign not in _MIRRORED:
        return None
    if distance != "absolute" and bound is not None and float(bound).is_integer():
        if distance == "query - key":
            sign, bound = _MIRRORED[sign], -bound
        return _triangle(sign, int(bound), at)
    near = Region(frozenset({"window"}), made_at=at, diagonal="inside")
    return Cells(1.0, 0.0, near if sign in {"<", "<="} else near.complement(), at)


_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _triangle(sign: str, bound: int | None, at: Site) -> Cells | None:
    """Where key - query (sign) bound; a bound that is not known is taken to be that of cached keys."""
    if sign not in _MIRRORED:
        return None
    upper = sign in {">", ">="}
    if bound is None:
        region = Region(frozenset({"causal"}), "hide" if upper else "keep", made_at=at)
        fed = frozenset({"outside" if upper else "inside"})
        return Cells(1.0, 0.0, replace(region, fed=fed), at)
    offset = bound + {">": 1, "<": -1}.get(sign, 0)
    return Cells(1.0, 0.0, Region(frozenset({"causal"}), None, "upper" if upper else "lower", offset, made_at=at), at)


def _ramps(sign: str, left: Tensor, right: Tensor, at: Site) -> Cells | None:
    """Positions compared with positions: `j > i` is what a causal mask hides."""
    if not (left.traits.ramp and right.traits.ramp):
        return None
    keys, queries = _ramp_place(left), _ramp_place(right)
    begins = (left.traits.ramp_from, right.traits.ramp_from)
    if (keys, queries) == (-2, -1):
        sign, begins = _MIRRORED.get(sign, sign), (begins[1], begins[0])
    elif (keys, queries) != (-1, -2):
        return None
    first_key, first_query = begins
    bound = first_query - first_key if first_key is not None and first_query is not None else None
    # Now first_key + column (sign) first_query + row.
    return _triangle(sign, bound.constant if bound is not None else None, at)


def _ramp_place(tensor: Tensor) -> int | None:
    """Along which of the last two axes the positions run."""
    axes = tensor.axes
    if axes and axes[-1]:
        return -1 if all(not axis for axis in axes[:-1]) else None
    if len(axes) > 1 and axes[-2]:
        return -2
    return None


_COUNTS = ("lengths", "length", "lens", "len", "seqlens", "counts", "count", "sizes", "num", "valid")

_NOT_KEPT = (
    "masked",
    "mask",
    "pad",
    "padded",
    "padding",
    "hidden",
    "skip",
    "skipped",
    "left",
    "front",
    "start",
    "past",
)
"""Words of a count that say something else than how many tokens there are: `num_masked` of them stand in front."""


def _lengths(sign: str, left: Tensor, right: Tensor, at: Site) -> Cells | None:
    """Positions compared with lengths: `arange(n) < lengths[:, None]` are the real tokens."""
    ramp, other = (left, right) if left.traits.ramp else (right, left)
    if not ramp.traits.ramp or not says(other.traits.name, *_COUNTS) or says(other.traits.name, *_NOT_KEPT):
        return None
    if ramp is right:
        sign = _MIRRORED.get(sign, sign)
    meaning = {"<": "keep", ">=": "hide", "<=": "keep", ">": "hide"}.get(sign)
    return Cells(1.0, 0.0, Region(frozenset({"padding"}), meaning, made_at=at)) if meaning else None


def logic(state: State, sign: str, left: Value, right: Value, at: Site) -> Value | None:
    """`&`, `|` and `^` of masks."""
    a, b = state.as_tensor(left), state.as_tensor(right)
    if a is None or b is None:
        return None
    shape = _of_tensors(state, sign, a, b, at, at, at)
    first, second = a.traits.cells, b.traits.cells
    cells = _combined(first, second, union=sign == "|") if sign != "^" else None
    both = a.dtype == b.dtype == "bool"
    traits = Traits(cells=cells, made_by_default=shape.traits.made_by_default)
    return replace(shape, dtype="bool" if both else None, traits=traits)


@op("logical_and logical_or logical_xor bitwise_and bitwise_or __and__ __or__")
def logical(call: Invocation) -> Value | None:
    if len(call.args) < 2:
        return None
    sign = "&" if "and" in call.name else "^" if "xor" in call.name else "|"
    result = logic(call.state, sign, call.args[0], call.args[1], call.at)
    return replace(result, dtype="bool") if isinstance(result, Tensor) and "logical" in call.name else result


@op("logical_not bitwise_not logical_not_ bitwise_not_")
def logical_not(call: Invocation) -> Value | None:
    tensor = call.tensor()
    return None if tensor is None else inverted(tensor, logical="logical" in call.name)


def inverted(tensor: Tensor, logical: bool = False) -> Tensor:
    """`~mask`, or `logical_not`, which makes a boolean of anything."""
    cells = tensor.traits.cells
    bits = None if logical else {"uint8": 255.0, "int": -1.0}.get(tensor.dtype or "")
    flipped = cells.map(lambda x: float(not x) if bits is None else bits - x) if cells is not None else None
    dtype = "bool" if logical else tensor.dtype
    return replace(tensor, dtype=dtype, traits=replace(tensor.traits, cells=flipped), layout=elementwise_layout(tensor))


_NAMED = {
    "add": "+", "sub": "-", "subtract": "-", "mul": "*", "multiply": "*", "div": "/", "divide": "/", "true_divide": "/",
    "pow": "**", "floor_divide": "//",
}  # fmt: skip


@op("add sub subtract mul multiply div divide true_divide pow floor_divide")
@op("add_ sub_ mul_ div_ pow_", on="method")
def named_arithmetic(call: Invocation) -> Value | None:
    if len(call.args) < 2:
        return call.tensor()
    sign = _NAMED[call.name.rstrip("_")]
    if sign == "/" and isinstance(call.kwargs.get("rounding_mode"), Const):
        sign = "//"
    sites = [*call.sites, call.at, call.at]
    return binary(call.state, sign, call.args[0], call.args[1], call.at, sites[0], sites[1])


_NAMED_COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "less": "<", "greater": ">",
                      "less_equal": "<=", "greater_equal": ">=", "not_equal": "!="}  # fmt: skip


@op("eq ne lt le gt ge less greater less_equal greater_equal not_equal")
def named_comparison(call: Invocation) -> Value | None:
    if len(call.args) < 2:
        return None
    left = call.tensor() or call.args[0]
    return compare(call.state, _NAMED_COMPARISONS[call.name], left, call.args[1], call.at)


# --- functions of one tensor -------------------------------------------------------------------------------------


def _mapped(call: Invocation, function: Callable[[float], float] | None, **changes: object) -> Tensor | None:
    tensor = call.tensor()
    if tensor is None:
        return None
    cells = tensor.traits.cells
    traits = replace(forget_content(tensor.traits), cells=cells.map(function) if cells and function else None)
    traits = replace(traits, **changes) if changes else traits
    dtype = None if tensor.dtype in _WHOLE else tensor.dtype
    return replace(tensor, layout=elementwise_layout(tensor), traits=traits, dtype=dtype)


@op("relu gelu silu elu selu leaky_relu softplus sigmoid mish hardswish relu6 sin cos tan reciprocal square "
    "erf floor ceil round sign logit celu hardsigmoid sinh cosh expm1 log1p log2 log10 rsqrt "
    "relu_ sigmoid_ softsign tanhshrink softshrink hardtanh angle digamma lgamma trunc frac "
    "exp2 exp2_ square_ reciprocal_ rsqrt_ erf_ sin_ cos_ floor_ ceil_ round_")  # fmt: skip
@op("relu gelu silu elu selu leaky_relu softplus sigmoid mish hardswish relu6", on="F")
def unary(call: Invocation) -> Value | None:
    return _mapped(call, None)


@op("logsigmoid", on="F")
def logsigmoid(call: Invocation) -> Value | None:
    tensor = _mapped(call, None)
    return tensor if tensor is None else replace(tensor, layout=Layout.dense(tensor.axes, tensor.lead))


@op("conj", on="torch method")
def conj(call: Invocation) -> Value | None:
    """A real tensor's conjugate is the tensor."""
    return call.tensor()


@op("tanh tanh_")
@op("tanh", on="F")
def tanh(call: Invocation) -> Value | None:
    tensor = call.tensor()
    if tensor is None:
        return None
    traits = replace(tensor.traits, bounded=True, cells=None)
    if traits.additive:
        traits = replace(traits, projection=None)
    return replace(tensor, layout=elementwise_layout(tensor), traits=traits)


@op("clamp clip clamp_ clamp_min clamp_max clamp_min_")
def clamp(call: Invocation) -> Value | None:
    tensor = call.tensor()
    if tensor is None:
        return None
    return replace(tensor, layout=elementwise_layout(tensor), traits=replace(tensor.traits, bounded=True, cells=None))


@op("exp exp_", on="torch method")
@op("exp", on="special")
def exp(call: Invocation) -> Value | None:
    """What softmax by hand begins with; exp of log_softmax gives the weights back."""
    tensor = call.tensor()
    if tensor is None:
        return None
    if tensor.traits.logarithm is not None:
        return _mapped(call, None, softmax=tensor.traits.logarithm)
    return _mapped(call, math.exp, exponent=tensor)


@op("log log_")
def log(call: Invocation) -> Value | None:
    return _mapped(call, lambda x: math.log(x) if x > 0 else -math.inf if x == 0 else math.nan)


@op("neg negative neg_")
def neg(call: Invocation) -> Value | None:
    tensor = call.tensor()
    return None if tensor is None else negated_tensor(tensor)


def negated_tensor(tensor: Tensor) -> Tensor:
    """`-x`; scores keep what they are."""
    cells = tensor.traits.cells
    number = tensor.traits.number
    traits = replace(
        tensor.traits,
        cells=cells.map(operator.neg) if cells else None,
        number=Real(-1.0) * number if number else None,
    )
    return replace(tensor, layout=elementwise_layout(tensor), traits=traits)


@op("sqrt sqrt_")
def sqrt(call: Invocation) -> Value | None:
    tensor = call.tensor()
    if tensor is not None and tensor.traits.number is not None:
        from fractions import Fraction

        return tensor.with_traits(number=tensor.traits.number.power(Fraction(1, 2)))
    if tensor is None:
        from msalint.ops.scalars import sqrt as of_number

        return of_number(call)
    return _mapped(call, math.sqrt)


@op("abs absolute")
def absolute(call: Invocation) -> Value | None:
    tensor = call.tensor()
    apart = "absolute" if tensor is not None and tensor.traits.distance else ""
    return _mapped(call, abs, distance=apart)


@op("isnan isinf isfinite isneginf")
def finite_check(call: Invocation) -> Value | None:
    result = _mapped(call, None, finite_check=True)
    return replace(result, dtype="bool") if result else None


@op("normalize", on="F")
def normalize(call: Invocation) -> Value | None:
    """Unit vectors: what is multiplied next is a cosine. With p=1 weights sum to 1 again."""
    tensor = call.tensor()
    if tensor is None:
        return None
    if tensor.traits.softmax is not None:
        traits = replace(tensor.traits, cleared=(), reweighted=True)
        return replace(tensor, layout=elementwise_layout(tensor), traits=traits)
    return replace(tensor, layout=elementwise_layout(tensor), traits=replace(tensor.traits, unit=True, cells=None))


@op("layer_norm rms_norm group_norm", on="F")
def functional_norm(call: Invocation) -> Value | None:
    tensor = call.tensor()
    if tensor is None:
        return None
    traits = replace(tensor.traits, unit=True, cells=None, moved=None)
    return replace(tensor, layout=copied_layout(tensor.axes, tensor.lead, [tensor]), traits=traits)


# --- casts -------------------------------------------------------------------------------------------------------


def cast(tensor: Tensor, dtype: str | None) -> Tensor:
    """The tensor in another dtype; a cast to bool asks which cells are not 0."""
    cells = tensor.traits.cells
    if dtype == "bool" and cells is not None:
        cells = cells.map(lambda x: float(x != 0))
    traits = replace(tensor.traits, cells=cells, said_bool=False)
    return replace(tensor, dtype=dtype, layout=_cast_layout(tensor, dtype), traits=traits)


def _cast_layout(tensor: Tensor, dtype: str | None) -> Layout | None:
    """A cast to the dtype that a tensor has gives back the tensor itself; "int" stands for several."""
    fresh = elementwise_layout(tensor)
    if fresh == tensor.layout:
        return fresh
    if None in {dtype, tensor.dtype} or dtype == tensor.dtype == "int":
        return None
    return tensor.layout if dtype == tensor.dtype else fresh


@op("astype", on="method")
def astype(call: Invocation) -> Value | None:
    """numpy's cast: to a dtype, or to one named by a string."""
    from msalint.values import Const, dtype_kind

    tensor, wanted = call.tensor(), call.get(1, "dtype")
    if tensor is None:
        return None
    if isinstance(wanted, Const) and isinstance(wanted.value, str):
        return cast(tensor, dtype_kind(wanted.value))
    return cast(tensor, wanted.kind if isinstance(wanted, DType) else None)


@op("float half bfloat16 double bool int long short byte", on="method")
def named_cast(call: Invocation) -> Value | None:
    from msalint.values import dtype_kind

    tensor = call.tensor()
    kind = "uint8" if call.name == "byte" else dtype_kind(call.name)
    return None if tensor is None else cast(tensor, kind)


@op("to type", on="method")
def to(call: Invocation) -> Value | None:
    tensor = call.tensor()
    if tensor is None:
        return None
    given = [*call.args[1:], *call.kwargs.values()]
    tensor = tensor if all(isinstance(value, DType) for value in given) else moved(tensor)
    for value in given:
        if isinstance(value, DType):
            return cast(tensor, value.kind)
        if call.name == "type" or isinstance(value, Tensor) or (isinstance(value, Opaque) and _may_be_dtype(value)):
            return replace(tensor, dtype=None, traits=replace(tensor.traits, said_bool=False))
    return tensor


def _may_be_dtype(value: Opaque) -> bool:
    """An argument of `to` that is not called a device or a flag."""
    return value.hint != "bool" and not says(value.name, "device", "dev", "rank", "cuda", "gpu", "accelerator")


@op("type_as", on="method")
def type_as(call: Invocation) -> Value | None:
    tensor, other = call.tensor(), call.tensor(1)
    return None if tensor is None else cast(moved(tensor), other.dtype if other else None)


@op("detach cuda cpu requires_grad_ detach_ pin_memory data numpy share_memory_ xpu mps npu retain_grad align_as "
    "refine_names rename nan_to_num_ set_", on="method")  # fmt: skip
@op("detach from_numpy", on="torch")
def same_value(call: Invocation) -> Value | None:
    tensor = call.tensor()
    return tensor if tensor is None or call.name not in {"cuda", "cpu", "xpu", "mps", "npu"} else moved(tensor)


@op("", on="torch.amp.custom_fwd torch.utils.checkpoint.checkpoint")
def called_through(call: Invocation) -> Value | None:
    if call.call is None or not call.args:
        return None
    return call.call(call.args[0], call.args[1:])


def library_path(value: Value | None) -> str:
    return value.path if isinstance(value, Library) else ""
