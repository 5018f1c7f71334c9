"""New tensors: constants, ramps, random values, parameters, and what is like another tensor."""

from __future__ import annotations

import math

from msalint.diagnostic import Site
from msalint.ops.axes import new_axis
from msalint.ops.devices import placed
from msalint.ops.table import Invocation, op
from msalint.ops.wrapped import holds_raw_memory
from msalint.shapes.axes import Axis, Ident, Layout, ShapeVar, axis_size, fresh
from msalint.shapes.size import Size
from msalint.shapes.vocabulary import says
from msalint.state import dense
from msalint.values import Cells, Const, Int, Items, Many, Opaque, Real, Region, Tensor, Traits, Value, Wrapped, replace

_FILLS = {"zeros": 0.0, "ones": 1.0, "new_zeros": 0.0, "new_ones": 1.0, "zeros_like": 0.0, "ones_like": 1.0}


def made(call: Invocation, start: int, keyword: str = "size", cells: Cells | None = None) -> Tensor | None:
    """A contiguous tensor of the sizes that the arguments give; of unknown shape where they are not known."""
    from msalint.ops.layout import target_of

    target = target_of(call, start, keyword)
    only = call.args[start] if len(call.args) == start + 1 else None
    if isinstance(only, Opaque) and says(only.name, "shape", "shapes", "sizes", "dims"):
        target = None
    if target is None or any(size is None for size in target[1]):
        listed = only.items if isinstance(only, Items) else tuple(call.args[start:])
        if (
            target is None
            and not call.unknown_arguments
            and len(listed) > 1
            and all(_is_one_size(value) for value in listed)
        ):
            return dense([_axis_of(call, value) for value in listed], None, call.dtype(), cells=cells)
        var = ShapeVar()
        return Tensor(var, (), Layout((var,)), call.dtype(), Traits(cells=cells))
    lead, sizes = target
    axes = tuple(_sized(size) for size in sizes if size is not None)
    return dense(axes, lead, call.dtype(), cells=cells)


def _is_one_size(value: Value) -> bool:
    """A value that stands for one axis, known or not, where several are given."""
    return isinstance(value, (Int, Real, Tensor, Opaque))


def _axis_of(call: Invocation, value: Value) -> Axis:
    size = call.state.as_size(value)
    return _sized(size) if size is not None else new_axis(None)


def _sized(size: Size) -> Axis:
    if size.is_one:
        return ()
    name = str(size) if size.symbol is not None else ""
    return (fresh(size, "new", name.rsplit(".", 1)[-1]),)


@op("zeros ones empty rand randn", on="torch")
@op("", on="numpy.zeros numpy.ones numpy.empty")
@op("new_zeros new_ones new_empty", on="method")
def of_size(call: Invocation) -> Value | None:
    start = 1 if call.name.startswith("new_") else 0
    fill = _FILLS.get(call.name)
    cells = Cells(fill, None, None, call.at) if fill is not None else None
    tensor = made(call, start, cells=cells)
    floating = tensor is not None and start == 0 and "dtype" not in call.kwargs and not call.unknown_arguments
    tensor = replace(tensor, dtype="float32") if tensor is not None and floating else tensor
    if tensor is not None and call.name.endswith("empty"):
        return _raw(tensor)
    return placed(call, tensor) if start == 0 and fill is not None else tensor


@op("full", on="torch")
@op("new_full", on="method")
def full(call: Invocation) -> Value | None:
    start = 1 if call.name == "new_full" else 0
    real = call.state.as_real(call.get(start + 1, "fill_value"))
    fill = real.constant if real is not None else None
    inner = replace_args(call, call.args[: start + 1])
    tensor = made(inner, start, cells=Cells(fill, None, None, call.at) if fill is not None else None)
    return placed(call, tensor) if start == 0 else tensor


def replace_args(call: Invocation, args: list[Value]) -> Invocation:
    """The call with other positional arguments."""
    return replace(call, args=args)


@op("zeros_like ones_like empty_like rand_like randn_like full_like", on="torch")
def like(call: Invocation) -> Value | None:
    tensor = call.tensor()
    if tensor is None:
        return None
    fill = _FILLS.get(call.name)
    if call.name == "full_like":
        real = call.state.as_real(call.get(1, "fill_value"))
        fill = real.constant if real is not None else None
    cells = Cells(fill, None, None, call.at) if fill is not None else None
    dtype = call.dtype(tensor.dtype)
    from msalint.ops.axes import elementwise_layout

    made = Tensor(tensor.lead, tensor.axes, elementwise_layout(tensor), dtype, Traits(cells=cells))
    return _raw(made) if call.name == "empty_like" else made


def _raw(tensor: Tensor) -> Tensor:
    """Memory that is still to be written, in whatever order its writer takes it: only the sizes are known."""
    axes = tuple(new_axis(axis_size(axis), "regrouped") if axis else axis for axis in tensor.axes)
    dense = tensor.layout == Layout.dense(tensor.axes, tensor.lead)
    return replace(tensor, axes=axes, layout=Layout.dense(axes, tensor.lead) if dense else None)


@op("arange range", on="torch")
def arange(call: Invocation) -> Value | None:
    state = call.state
    given = list(call.args)
    start, stop, step = Size.of(0), None, 1
    if len(given) == 1 or "end" in call.kwargs:
        stop = state.as_size(call.kwargs.get("end") or given[0])
        first = call.kwargs.get("start")
        start_size = state.as_size(first) if first is not None else Size.of(0)
    else:
        start_size = state.as_size(given[0]) if given else None
        stop = state.as_size(given[1]) if len(given) > 1 else None
        step = (state.as_int(given[2]) or 0) if len(given) > 2 else 1
    length: Size | None = None
    if stop is not None and start_size is not None:
        start = start_size
        length = stop - start
        if step != 1:
            division = length.exact_quotient(Size.of(step)) if step > 1 else None
            length = (
                division if division is not None else ((length + (step - 1)) // Size.of(step) if step > 1 else None)
            )
    reals = any(isinstance(value, Real) for value in (*given, *call.kwargs.values()))
    if reals or call.name == "range":
        length = None if reals or length is None else length + 1
        return dense((new_axis(length, "place"),), None, call.dtype())
    if length is not None and length.constant is not None and length.constant < 0:
        length = None
    axis = new_axis(length, "place")
    ramp = dense((axis,), None, call.dtype("int"), ramp=step == 1, ramp_from=start_size if step == 1 else None)
    return placed(call, ramp)


@op("linspace logspace hann_window randperm", on="torch")
def ramp_like(call: Invocation) -> Value | None:
    place = 0 if call.name in {"randperm", "hann_window"} else 2
    return dense((new_axis(call.state.as_size(call.get(place, "steps"))),))


@op("eye", on="torch")
def eye(call: Invocation) -> Value | None:
    rows = call.state.as_size(call.get(0, "n"))
    columns = call.state.as_size(call.get(1, "m")) or rows
    region = Region(frozenset({"diagonal"}), fed=frozenset({"outside"}), made_at=call.at, diagonal="inside")
    return dense((new_axis(rows), new_axis(columns)), None, call.dtype(), cells=Cells(1.0, 0.0, region, call.at))


@op("tensor as_tensor FloatTensor LongTensor scalar_tensor BoolTensor HalfTensor", on="torch")
@op("new_tensor", on="method")
def tensor(call: Invocation) -> Value | None:
    start = 1 if call.name == "new_tensor" else 0
    value = call.get(start, "data")
    if isinstance(value, Tensor):
        return value
    if call.name.endswith("Tensor") and len(call.args) >= 1 and isinstance(value, Int):
        return made(call, 0)
    if isinstance(value, Items):
        if len(value.items) == 1 and not isinstance(value.items[0], (Items, Many, Tensor)):
            inner = call.state.as_real(value.items[0])
            return dense(((),), None, call.dtype(), number=inner, cells=_constant_cells(inner))
        sizes = _nested_sizes(value)
        return dense([new_axis(Size.of(size)) for size in sizes], None, call.dtype()) if sizes is not None else None
    if isinstance(value, Many):
        return dense((new_axis(value.length),), None, call.dtype()) if isinstance(value.element, (Int, Real)) else None
    real = call.state.as_real(value)
    if real is None or (isinstance(value, Opaque) and not value.key):
        return None
    if isinstance(value, Opaque) and value.hint not in {"int", "float", "bool"}:
        # `torch.tensor(config.mean)` holds a number or a list of them.
        return Tensor(ShapeVar(), (), None, call.dtype(), Traits(number=real))
    return dense((), None, call.dtype(), number=real, cells=_constant_cells(real))


def _nested_sizes(value: Value) -> list[int] | None:
    """The sizes of lists of lists of numbers; None where they can't be told."""
    if isinstance(value, (Int, Real)) or (isinstance(value, Const) and isinstance(value.value, bool)):
        return []
    if not isinstance(value, Items):
        return None
    inner = [_nested_sizes(item) for item in value.items]
    if not inner or any(sizes is None or sizes != inner[0] for sizes in inner):
        return [0] if not inner else None
    return [len(inner), *(inner[0] or [])]


def _constant_cells(real: Real | None) -> Cells | None:
    return Cells(real.constant, None) if real is not None and real.constant is not None else None


@op("", on="torch.nn.Parameter torch.nn.parameter.Parameter torch.nn.Buffer")
def parameter(call: Invocation) -> Value | None:
    value = call.tensor(0, "data")
    if value is None:
        return Tensor(ShapeVar(), (), None, traits=Traits(parameter=True))
    # What its first values were scaled with says nothing of those it learns.
    frozen = call.name == "Buffer" or call.flag(1, "requires_grad", True) is not True
    data = call.site(0, "data")
    wrapped = None if frozen else Wrapped(call.at, data, raw=holds_raw_memory(data, value))
    traits = replace(value.traits, parameter=True, cells=None, number=None, scale=(), wrapped=wrapped)
    return replace(value, traits=traits)


@op("Tensor", on="torch")
def raw_tensor(call: Invocation) -> Value | None:
    if call.args and all(isinstance(v, (Int, Opaque)) for v in call.args):
        return made(call, 0)
    return tensor(call)


@op("meshgrid", on="torch")
def meshgrid(call: Invocation) -> Value | None:
    from msalint.ops.layout import tensors_of

    given = call.args[0] if len(call.args) == 1 and isinstance(call.args[0], Items) else Items(tuple(call.args))
    tensors = tensors_of(call, given)
    if tensors is None or any(t.rank != 1 for t in tensors):
        return None
    axes = tuple(t.axes[0] for t in tensors)
    indexing = call.kwargs.get("indexing", Const("ij"))
    if indexing not in {Const("ij"), Const("xy")}:
        return None
    if indexing == Const("xy"):
        order = Layout.dense(axes[1::-1] + axes[2:]) if len(axes) > 1 else Layout.dense(axes)
        return Items(tuple(Tensor(None, (*axes[1::-1], *axes[2:]), _alone(order, t), t.dtype) for t in tensors))
    return Items(tuple(Tensor(None, axes, _alone(Layout.dense(axes), t), t.dtype) for t in tensors))


def _alone(order: Layout, tensor: Tensor) -> Layout:
    """A tensor of one axis expanded along all others: only its own takes memory."""
    own = {atom.ident for axis in tensor.axes for atom in axis}
    return Layout(tuple(item for item in order.order if item in own))


@op("bernoulli multinomial normal randint poisson", on="torch")
def random_values(call: Invocation) -> Value | None:
    if call.name in {"bernoulli", "poisson"}:
        tensor = call.tensor()
        return None if tensor is None else Tensor(tensor.lead, tensor.axes, None, tensor.dtype)
    if call.name == "randint":
        places = [i for i, value in enumerate(call.args) if isinstance(value, Items)]
        if places:
            return made(replace_args(call, [call.args[places[0]]]), 0)
    return None


@op("fill_ zero_ normal_ uniform_ copy_ exponential_ bernoulli_ random_ trunc_normal_", on="method")
def filled(call: Invocation) -> Value | None:
    target = call.tensor()
    if target is None:
        return None
    cells = None
    if call.name == "zero_":
        cells = Cells(0.0, None)
    elif call.name == "fill_":
        real = call.state.as_real(call.get(1, "value"))
        cells = Cells(real.constant, None, None, call.at) if real is not None and real.constant is not None else None
    return target.with_traits(cells=cells)


@op("one_hot", on="F")
def one_hot(call: Invocation) -> Value | None:
    index = call.tensor()
    size = call.state.as_size(call.get(1, "num_classes"))
    if index is None:
        return None
    return dense((*index.axes, new_axis(size)), index.lead, "int")


def parameter_like(axes: tuple[Axis, ...], dtype: str | None = None) -> Tensor:
    """A weight of these axes."""
    return dense(axes, None, dtype, parameter=True)


def generated_causal(size: Size | None, at: Site) -> Tensor:
    """What nn.Transformer.generate_square_subsequent_mask makes: -inf above the diagonal, 0 elsewhere."""
    region = Region(frozenset({"causal"}), None, "upper", 1, made_at=at)
    axes = (new_axis(size, "place"), new_axis(size, "place"))
    return dense(axes, None, None, cells=Cells(-math.inf, 0.0, region, at))


@op("", on="torch.nn.Transformer.generate_square_subsequent_mask")
def generate_square_subsequent_mask(call: Invocation) -> Value | None:
    return placed(call, generated_causal(call.state.as_size(call.get(0, "sz")), call.at))


def unknown_like(name: str) -> Tensor:
    var = ShapeVar(name)
    return Tensor(var, (), Layout((var,)), None, Traits(name=name))


def born(kind: str) -> Ident:
    return Ident(kind)


NO_VALUE = Const(None)
