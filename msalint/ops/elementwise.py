"""Operations element by element: arithmetic, comparisons, logic, casts, and functions of one number."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import replace

from msalint.facts import MaskedAfterSoftmax, ScaledAfterSoftmax, SizesDisagree, ZeroTimesInfinity
from msalint.ops.axes import elementwise_layout, forget_content
from msalint.ops.scalars import arithmetic
from msalint.ops.table import Invocation, op
from msalint.diagnostic import Site
from msalint.shapes.axes import Axis, axis_name
from msalint.shapes.vocabulary import says
from msalint.state import State
from msalint.values import (
    Cells,
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
FAR_BELOW = -50.0
"""A mask value at or below this hides a key, as opposed to a bias."""


def broadcast(state: State, left: Tensor, right: Tensor, at: Site, what: str) -> tuple[tuple[Axis, ...], bool]:
    """The axes of two closed shapes put together from the right, and whether the left alone has all of them."""
    rank = max(len(left.axes), len(right.axes))
    axes: list[Axis] = []
    left_full = len(left.axes) == rank
    for i in range(-rank, 0):
        a = left.axes[i] if -i <= len(left.axes) else ()
        b = right.axes[i] if -i <= len(right.axes) else ()
        axes.append(a or b)
        left_full = left_full and (bool(a) or not b)
        if a and b:
            x, y = state.size_of(a).constant, state.size_of(b).constant
            if x is not None and y is not None and x != y and 1 not in (x, y):
                message = f"{what} meets axes of size {x} and {y}"
                state.emit(SizesDisagree(at, what, axis_name(a), axis_name(b), message))
    return tuple(axes), left_full


def binary(
    state: State, sign: str, left: Value, right: Value, at: Site, left_site: Site, right_site: Site
) -> Value | None:
    """`left sign right`, for numbers, tensors, or one of each; None if nothing is known of it."""
    tensors = isinstance(left, Tensor) or isinstance(right, Tensor)
    if not tensors:
        return arithmetic(state, sign, left, right) if sign in _ARITHMETIC else None
    a = state.as_tensor(left) if not _is_number(state, left) else None
    b = state.as_tensor(right) if not _is_number(state, right) else None
    if a is not None and b is not None:
        return _of_tensors(state, sign, a, b, at, left_site, right_site)
    if a is not None:
        return _with_number(state, sign, a, right, at, left_site, flipped=False)
    if b is not None:
        return _with_number(state, sign, b, left, at, right_site, flipped=True)
    number = arithmetic(state, sign, left, right) if sign in _ARITHMETIC else None
    holder = left if isinstance(left, Tensor) else right
    if isinstance(number, (Int, Real)) and isinstance(holder, Tensor):
        return holder.with_traits(number=state.as_real(number), cells=None)
    return number


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
        value.name, "mask", "bias", "x", "states", "emb", "embedding", "embeddings", "pos", "cos", "sin", "weights", "ids"
    )


# --- a tensor and a number ---------------------------------------------------------------------------------------


def _with_number(
    state: State, sign: str, tensor: Tensor, other: Value, at: Site, site: Site, flipped: bool
) -> Value:
    real = state.as_real(other)
    constant = real.constant if real is not None else None
    traits = replace(tensor.traits, ramp=False)
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
    dtype = tensor.dtype
    if dtype in {"bool", "int"} and (sign == "/" or isinstance(other, Real)):
        dtype = None
    if dtype == "bool" and sign != "/":
        dtype = "int" if isinstance(other, Int) else dtype
    return replace(tensor, layout=elementwise_layout(tensor), traits=traits, dtype=dtype)


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
        state.emit(ZeroTimesInfinity(at, mended="", made_at=before.at, zeros=where))


def _scaled(state: State, traits: Traits, sign: str, real: Real | None, at: Site, flipped: bool) -> Traits:
    if traits.cells is not None and traits.projection is None and traits.product is None:
        return traits
    factor = real
    if real is not None and sign == "/":
        factor = real.inverse() if not flipped else None
    if real is not None and real.coefficient is None:
        factor = None
    if traits.softmax is not None:
        if factor is not None and factor.powers and not traits.attended:
            state.emit(ScaledAfterSoftmax(at, factor, traits.softmax))
        return replace(traits, reweighted=True)
    return replace(traits, scale=(*traits.scale, Factor(factor, at, real.at if real is not None else None)))


# --- two tensors -------------------------------------------------------------------------------------------------


def _of_tensors(
    state: State, sign: str, left: Tensor, right: Tensor, at: Site, left_site: Site, right_site: Site
) -> Tensor:
    main, other = (left, right) if _weight(left) >= _weight(right) else (right, left)
    other_site = right_site if other is right else left_site
    if left.lead is not None or right.lead is not None:
        shape = main if main.lead is None or len(main.axes) >= len(other.axes) else other
        lead, axes, layout = shape.lead, shape.axes, elementwise_layout(shape) if shape is left else None
    else:
        axes, left_full = broadcast(state, left, right, at, sign)
        lead = None
        if left_full:
            layout = elementwise_layout(left)
        elif len(right.axes) == len(axes) and all(b or not a for a, b in zip(axes, right.axes)):
            plain = len([axis for axis in left.axes if axis]) <= 1
            layout = elementwise_layout(right) if plain else None
        else:
            layout = None
        if len(left.axes) and left_full and layout is not None and axes != left.axes:
            layout = None
    traits = _joint_traits(state, sign, main, other, at, other_site)
    moved = main.traits.moved if layout is not None else None
    dtype = main.dtype if main.dtype == other.dtype or other.dtype in {"bool", "int", None} else other.dtype
    return Tensor(lead, axes, layout, dtype, replace(traits, moved=moved))


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


def _joint_traits(state: State, sign: str, main: Tensor, other: Tensor, at: Site, other_site: Site) -> Traits:
    a, b = main.traits, other.traits
    if a.cells is not None and b.cells is not None:
        return replace(Traits(), name=a.name or b.name, cells=_joint_cells(state, sign, a.cells, b.cells, at))
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
    zero_one = {a.inside, a.outside} == {b.inside, b.outside} == {0.0, 1.0}
    if sign == "*" and zero_one:
        return _combined(a, b)
    hides = [cells.where(lambda x: x <= FAR_BELOW) for cells in (a, b)]
    if sign == "+" and hides[0] is not None and hides[1] is not None:
        lowest = min(v for v in (a.inside, a.outside) if v is not None)
        return Cells(lowest, 0.0, hides[0].joined(hides[1]), at)
    return None


def _combined(a: Cells, b: Cells) -> Cells | None:
    """Two 0/1 masks multiplied or combined by a logical operator."""
    first, second = a.where(bool), b.where(bool)
    if first is None or second is None:
        return None
    return Cells(1.0, 0.0, first.joined(second), a.at or b.at)


def _sum_traits(main: Tensor, other: Tensor, at: Site, sign: str) -> Traits:
    a, b = main.traits, other.traits
    if a.product is not None or (a.masks and a.softmax is None):
        hidden = b.cells.where(lambda x: x <= FAR_BELOW) if b.cells and sign == "+" else None
        looks_like_mask = hidden is not None or says(b.name, "mask")
        if looks_like_mask and sign == "+":
            fill = min((v for v in (b.cells.inside, b.cells.outside) if v is not None), default=None) if b.cells and hidden else None
            return replace(a, masks=(*a.masks, MaskUse(at, "added", hidden, fill, other)))
        if b.product is not None and len(b.scale) != len(a.scale):
            return replace(a, scale=(*a.scale, Factor(None, at)))
        return a
    if a.softmax is not None:
        return replace(a, reweighted=True)
    if a.projection is not None:
        both = b.projection is not None and b.projection.serial != a.projection.serial
        return replace(a, additive=both or a.additive, scale=a.scale if a.scale == b.scale or not both else ())
    return replace(forget_content(a), attended=a.attended or b.attended, name="", additive=a.additive or b.additive)


def _product_traits(state: State, sign: str, main: Tensor, other: Tensor, at: Site, other_site: Site) -> Traits:
    a, b = main.traits, other.traits
    zero_one = b.cells is not None and {b.cells.inside, b.cells.outside} == {0.0, 1.0} and b.cells.region is not None
    mask = sign == "*" and (zero_one or says(b.name, "mask") or other.dtype == "bool")
    if a.softmax is not None:
        if mask:
            state.emit(MaskedAfterSoftmax(at, a.softmax, other_site, masked_before=bool(a.softmax.scores.traits.masks)))
            return replace(a, reweighted=True)
        if b.softmax is None and sign == "*" and not says(b.name, "scale", "gate"):
            return replace(a, weighted=True)
        return replace(a, reweighted=True)
    if mask and (a.product is not None or zero_one):
        hidden = b.cells.where(lambda x: x == 0) if b.cells else None
        return replace(a, masks=(*a.masks, MaskUse(at, "multiplied", hidden, 0.0, other)))
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
        return _truths(shape, _ramps(sign, a, b) or _lengths(sign, a, b), at)
    tensor, other, flipped = (a, right, False) if isinstance(left, Tensor) else (b, left, True)
    assert tensor is not None
    return _truths(tensor, _against_number(state, sign, tensor, other, flipped, at), at)


def _truths(shape: Tensor, cells: Cells | None, at: Site) -> Tensor:
    traits = Traits(name=shape.traits.name, cells=replace(cells, at=cells.at or at) if cells else None)
    return replace(shape, dtype="bool", traits=traits, layout=elementwise_layout(shape))


def _against_number(state: State, sign: str, tensor: Tensor, other: Value, flipped: bool, at: Site) -> Cells | None:
    real = state.as_real(other)
    constant = real.constant if real is not None else None
    cells = tensor.traits.cells
    if cells is not None and constant is not None:
        function = _COMPARISONS[sign]
        value = constant
        return cells.map(lambda x: float(function(value, x) if flipped else function(x, value)))
    name = other.name if isinstance(other, Opaque) else ""
    if sign in {"==", "!="} and says(name, "pad", "padding"):
        meaning = "hide" if sign == "==" else "keep"
        region = Region(frozenset({"padding"}), meaning, name=name)
        return Cells(1.0, 0.0, region, at)
    return None


def _ramps(sign: str, left: Tensor, right: Tensor) -> Cells | None:
    """Positions compared with positions: `j > i` is what a causal mask hides."""
    if not (left.traits.ramp and right.traits.ramp):
        return None
    columns, rows = _ramp_place(left), _ramp_place(right)
    if columns == -2 and rows == -1:
        sign = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(sign, sign)
    elif not (columns == -1 and rows == -2):
        return None
    # Now key (sign) query.
    sides = {">": ("upper", 1), ">=": ("upper", 0), "<=": ("lower", 0), "<": ("lower", -1)}
    if sign not in sides:
        return None
    side, offset = sides[sign]
    return Cells(1.0, 0.0, Region(frozenset({"causal"}), None, side, offset))


def _ramp_place(tensor: Tensor) -> int | None:
    """Along which of the last two axes the positions run."""
    axes = tensor.axes
    if axes and axes[-1]:
        return -1 if all(not axis for axis in axes[:-1]) else None
    if len(axes) > 1 and axes[-2]:
        return -2
    return None


def _lengths(sign: str, left: Tensor, right: Tensor) -> Cells | None:
    """Positions compared with lengths: `arange(n) < lengths[:, None]` are the real tokens."""
    ramp, other = (left, right) if left.traits.ramp else (right, left)
    if not ramp.traits.ramp or not says(other.traits.name, "lengths", "length", "lens", "len", "seqlens", "lengths"):
        return None
    if ramp is right:
        sign = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(sign, sign)
    meaning = {"<": "keep", ">=": "hide", "<=": "keep", ">": "hide"}.get(sign)
    return Cells(1.0, 0.0, Region(frozenset({"padding"}), meaning)) if meaning else None


def logic(state: State, sign: str, left: Value, right: Value, at: Site) -> Value | None:
    """`&`, `|` and `^` of masks."""
    a, b = state.as_tensor(left), state.as_tensor(right)
    if a is None or b is None:
        return None
    shape = _of_tensors(state, sign, a, b, at, at, at)
    first, second = a.traits.cells, b.traits.cells
    cells = _combined(first, second) if first and second and sign != "^" else None
    return replace(shape, dtype="bool", traits=Traits(name=a.traits.name or b.traits.name, cells=cells))


@op("logical_and logical_or logical_xor bitwise_and bitwise_or __and__ __or__")
def logical(call: Invocation) -> Value | None:
    if len(call.args) < 2:
        return None
    sign = "&" if "and" in call.name else "^" if "xor" in call.name else "|"
    return logic(call.state, sign, call.args[0], call.args[1], call.at)


@op("logical_not bitwise_not logical_not_ bitwise_not_")
def logical_not(call: Invocation) -> Value | None:
    tensor = call.tensor()
    return None if tensor is None else inverted(tensor)


def inverted(tensor: Tensor) -> Tensor:
    """`~mask`."""
    cells = tensor.traits.cells
    flipped = cells.map(lambda x: float(not x)) if cells is not None else None
    return replace(tensor, dtype="bool", traits=replace(tensor.traits, cells=flipped), layout=elementwise_layout(tensor))


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
    traits = replace(traits, **changes) if changes else traits  # type: ignore[arg-type]
    return replace(tensor, layout=elementwise_layout(tensor), traits=traits)


@op("relu gelu silu elu selu leaky_relu softplus sigmoid mish hardswish relu6 sin cos tan reciprocal square "
    "erf floor ceil round sign logit celu glu_ hardsigmoid sinh cosh expm1 log1p log2 log10 rsqrt "
    "relu_ sigmoid_ log_sigmoid logsigmoid softsign tanhshrink softshrink hardtanh angle real imag conj "
    "special_expit digamma lgamma trunc frac cumprod nanmean")  # fmt: skip
@op("relu gelu silu elu selu leaky_relu softplus sigmoid logsigmoid mish hardswish relu6", on="F")
def unary(call: Invocation) -> Value | None:
    return _mapped(call, None)


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
    return _mapped(call, abs)


@op("isnan isinf isfinite isneginf")
def finite_check(call: Invocation) -> Value | None:
    result = _mapped(call, None, finite_check=True)
    return replace(result, dtype="bool") if result else None


@op("normalize", on="F")
def normalize(call: Invocation) -> Value | None:
    """Unit vectors: what is multiplied next is a cosine."""
    tensor = call.tensor()
    if tensor is None:
        return None
    return replace(tensor, layout=elementwise_layout(tensor), traits=replace(tensor.traits, unit=True, cells=None))


@op("l2norm", on="torch")
def l2norm(call: Invocation) -> Value | None:
    return normalize(call)


@op("layer_norm rms_norm group_norm", on="F")
def functional_norm(call: Invocation) -> Value | None:
    tensor = call.tensor()
    if tensor is None:
        return None
    traits = replace(tensor.traits, unit=True, cells=None, moved=None)
    from msalint.shapes.axes import Layout

    return replace(tensor, layout=Layout.dense(tensor.axes, tensor.lead), traits=traits)


# --- casts -------------------------------------------------------------------------------------------------------


def cast(tensor: Tensor, dtype: str | None) -> Tensor:
    """The tensor in another dtype; a cast to bool asks which cells are not 0."""
    cells = tensor.traits.cells
    if dtype == "bool" and cells is not None:
        cells = cells.map(lambda x: float(x != 0))
    return replace(
        tensor, dtype=dtype, layout=elementwise_layout(tensor), traits=replace(tensor.traits, cells=cells)
    )


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
    for value in [*call.args[1:], *call.kwargs.values()]:
        if isinstance(value, DType):
            return cast(tensor, value.kind)
    return tensor


@op("type_as", on="method")
def type_as(call: Invocation) -> Value | None:
    tensor, other = call.tensor(), call.tensor(1)
    return None if tensor is None else cast(tensor, other.dtype if other else None)


@op("detach cuda cpu requires_grad_ detach_ pin_memory data numpy share_memory_ xpu mps npu retain_grad align_as "
    "refine_names rename nan_to_num_ set_", on="method")  # fmt: skip
@op("detach", on="torch")
def same_value(call: Invocation) -> Value | None:
    return call.tensor()


@op("", on="torch.amp.custom_fwd torch.utils.checkpoint.checkpoint")
def called_through(call: Invocation) -> Value | None:
    if call.call is None or not call.args:
        return None
    return call.call(call.args[0], call.args[1:])


def library_path(value: Value | None) -> str:
    return value.path if isinstance(value, Library) else ""
