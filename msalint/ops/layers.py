"""torch.nn modules: what they are built with, and what they do when called."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from msalint.diagnostic import Site
from msalint.facts import AttentionSite, Dropout, IndivisibleHeads, LayersShared, MaskArgument, MhaCalled
from msalint.ops import einops as einops_ops
from msalint.ops.attending import role_of_axis
from msalint.ops.attention import hidden_by, is_additive, layer_rate, tell_numbers, wrong_way
from msalint.ops.axes import copied_layout, elementwise_layout, forget_content, new_axis, vague, weigh_hearsay
from msalint.ops.contraction import project
from msalint.ops.devices import tell_off_device
from msalint.ops.mask_order import tell_tiled_for_layer
from msalint.ops.mode import (
    is_callers_business,
    is_gated_number,
    is_zero,
    literally_true,
    only_in_training,
    said_to_drop,
)
from msalint.ops.softmax import normalise
from msalint.ops.table import Invocation, op, text_of
from msalint.shapes.axes import Axis, Ident, Layout, ShapeVar, axis_name
from msalint.shapes.size import Size
from msalint.shapes.vocabulary import BATCH, SEQ, role_of_name
from msalint.state import State
from msalint.values import (
    UNKNOWN,
    AttentionTuple,
    Const,
    Dropped,
    Int,
    Items,
    Layer,
    Many,
    Mapping_,
    Opaque,
    Tensor,
    Traits,
    Value,
    replace,
)

_serials = count(1)


def next_serial() -> int:
    """A number that no other layer has."""
    return next(_serials)


_CONV = ("in_channels", "out_channels", "kernel_size", "stride", "padding", "dilation", "groups", "bias")
_MHA = ("embed_dim", "num_heads", "dropout", "bias", "add_bias_kv", "add_zero_attn", "kdim", "vdim", "batch_first")
_ENCODER_LAYER = (
    "d_model", "nhead", "dim_feedforward", "dropout", "activation", "layer_norm_eps", "batch_first", "norm_first",
)  # fmt: skip
_TRANSFORMER = (
    "d_model", "nhead", "num_encoder_layers", "num_decoder_layers", "dim_feedforward", "dropout", "activation",
    "custom_encoder", "custom_decoder", "layer_norm_eps", "batch_first",
)  # fmt: skip

PARAMETERS: dict[str, tuple[str, ...]] = {
    "Linear": ("in_features", "out_features", "bias"),
    "LazyLinear": ("out_features", "bias"),
    "NonDynamicallyQuantizableLinear": ("in_features", "out_features", "bias"),
    "Dropout": ("p", "inplace"),
    "Dropout1d": ("p",),
    "Dropout2d": ("p",),
    "AlphaDropout": ("p",),
    "Softmax": ("dim",),
    "LogSoftmax": ("dim",),
    "Softmax2d": (),
    "LayerNorm": ("normalized_shape", "eps"),
    "RMSNorm": ("normalized_shape", "eps"),
    "Embedding": ("num_embeddings", "embedding_dim", "padding_idx"),
    "Conv1d": _CONV,
    "Conv2d": _CONV,
    "Conv3d": _CONV,
    "MultiheadAttention": _MHA,
    "TransformerEncoderLayer": _ENCODER_LAYER,
    "TransformerDecoderLayer": _ENCODER_LAYER,
    "TransformerEncoder": ("encoder_layer", "num_layers", "norm"),
    "TransformerDecoder": ("decoder_layer", "num_layers", "norm"),
    "Transformer": _TRANSFORMER,
    "ModuleList": ("modules",),
    "ModuleDict": ("modules",),
    "ParameterList": ("values",),
    "Flatten": ("start_dim", "end_dim"),
    "Unflatten": ("dim", "unflattened_size"),
    "LSTM": ("input_size", "hidden_size", "num_layers", "bias", "batch_first", "dropout", "bidirectional"),
    "GRU": ("input_size", "hidden_size", "num_layers", "bias", "batch_first", "dropout", "bidirectional"),
}
"""Layers that are understood, with the positional parameters of their `__init__`."""

SHAPE_KEEPING = frozenset(
    "Identity ReLU GELU SiLU ELU SELU LeakyReLU Tanh Sigmoid Softplus PReLU Mish Hardswish BatchNorm1d BatchNorm2d "
    "BatchNorm3d GroupNorm InstanceNorm1d InstanceNorm2d SyncBatchNorm ReLU6 Hardtanh QuickGELU".split()
)
PARAMETERS.update(dict.fromkeys(SHAPE_KEEPING, ()))
_SIZES = (
    "in_features", "out_features", "embedding_dim", "num_embeddings", "in_channels", "out_channels", "normalized_shape",
    "embed_dim", "d_model", "hidden_size",
)  # fmt: skip
"""Parameters that layers make weights of."""
ATTENTION_LAYERS = frozenset(
    "MultiheadAttention TransformerEncoderLayer TransformerDecoderLayer TransformerEncoder TransformerDecoder "
    "Transformer".split()
)


def build(call: Invocation, kind: str) -> Value:
    """`nn.Kind(...)`: the layer with its arguments by name."""
    names = PARAMETERS.get(kind, ())
    if kind == "Sequential":
        return Layer(kind, children=_children(call.args), serial=next(_serials), built_at=call.at)
    given = dict(zip(names, call.args))
    given.update(call.kwargs)
    children: tuple[Value, ...] = ()
    if kind in {"ModuleList", "ParameterList"}:
        listed = given.get("modules") or given.get("values")
        _tell_shared(call, listed)
        if isinstance(listed, Items):
            return Items(listed.items, "modules")
        if isinstance(listed, Many):
            return Many(listed.element, listed.length, "modules")
        return Items((), "modules") if listed is None else Opaque()
    modules = given.get("modules")
    if kind == "ModuleDict" and isinstance(modules, Mapping_):
        return replace(modules, kind="modules")
    for name in _SIZES:
        call.state.refuse_float(given.get(name), call.at)
    _tell_indivisible(call, kind, given)
    return Layer(kind, tuple(given.items()), children, next(_serials), built_at=call.at)


def _tell_shared(call: Invocation, listed: Value | None) -> None:
    """A module list whose elements are one layer, or were all given one."""
    if not isinstance(listed, (Items, Many)) or listed.at is None:
        return
    alone = len(listed.items) < 2 if isinstance(listed, Items) else listed.length is not None and listed.length.is_one
    shared = call.state.shared.get(id(listed.at))
    if shared is not None and not alone:
        call.state.emit(LayersShared(listed.at, shared[0], shared[1], call.state.purpose()))


def _tell_indivisible(call: Invocation, kind: str, given: dict[str, Value]) -> None:
    """torch's attention layers assert that the heads divide the width."""
    if kind not in {"MultiheadAttention", "TransformerEncoderLayer", "TransformerDecoderLayer", "Transformer"}:
        return
    width_name, heads_name = PARAMETERS[kind][:2]
    width, heads = call.state.as_int(given.get(width_name)), call.state.as_int(given.get(heads_name))
    if width is not None and heads and width % heads:
        call.state.emit(IndivisibleHeads(call.at, "literals", str(width), str(heads)))


def _children(args: list[Value]) -> tuple[Value, ...]:
    flat: list[Value] = []
    for value in args:
        flat += value.items if isinstance(value, Items) else (value,)
    return tuple(flat)


_TELLING = frozenset("Linear LazyLinear Conv1d Conv2d Conv3d Embedding".split())
"""Layers whose result has axes that they alone tell, whatever they are given."""


def apply(call: Invocation, layer: Layer, call_value: Callable[[Value, list[Value]], Value]) -> Value | None:
    """A layer called: its first argument is `call.args[0]`."""
    if layer.kind in ATTENTION_LAYERS:
        return attention_layer(call, layer)
    if layer.kind == "Sequential":
        value: Value = call.args[0] if call.args else Opaque()
        for child in layer.children:
            if isinstance(child, Many):
                value = _run_by_many(call.state, child, value, call_value)
            else:
                value = call_value(child, [value])
        return value
    handler = _HANDLERS.get(layer.kind)
    tensor = call.state.some_tensor(call.get(0)) if layer.kind in _TELLING else call.tensor(0)
    if tensor is None:
        return None
    if handler is not None:
        return handler(call, layer, tensor)
    if layer.kind in SHAPE_KEEPING:
        return _kept(call, layer, tensor)
    return None


def _run_by_many(state: State, layers: Many, value: Value, call_value: Callable[[Value, list[Value]], Value]) -> Value:
    """What comes out of layers of unknown number, all alike: what one gives, where it keeps the shape."""
    result = call_value(layers.element, [value])
    before, after = state.as_tensor(value), state.as_tensor(result) if isinstance(result, Tensor) else None
    if before is None or after is None:
        return Opaque()
    same = before.lead is after.lead and len(before.axes) == len(after.axes)
    sizes = [(state.size_of(a), state.size_of(b)) for a, b in zip(before.axes, after.axes)]
    return after if same and all(state.relations.compare(a, b).certainly for a, b in sizes) else vague(after)


def _kept(call: Invocation, layer: Layer, tensor: Tensor) -> Tensor:
    if layer.kind == "Identity":
        return tensor
    if "Norm" in layer.kind:
        return replace(_normed(tensor), layout=copied_layout(tensor.axes, tensor.lead, [tensor]))
    bounded = layer.kind in {"Tanh", "Sigmoid", "Softmax2d"}
    traits = replace(forget_content(tensor.traits), bounded=bounded, additive=tensor.traits.additive)
    return replace(tensor, layout=elementwise_layout(tensor), traits=traits)


def _linear(call: Invocation, layer: Layer, tensor: Tensor) -> Tensor:
    into = call.state.as_size(layer.get("in_features"))
    out = call.state.as_size(layer.get("out_features"))
    return project(call.state, tensor, into, out, call.at, layer.name, layer.serial)


def _dropout(call: Invocation, layer: Layer, tensor: Tensor) -> Tensor:
    rate = layer_rate(layer)
    alive = layer.built_in_call and not only_in_training(call.state) and not is_gated_number(rate)
    return dropped(call, tensor, rate, built_at=layer.built_at, always_on=alive and not is_zero(call.state, rate))


def _softmax(call: Invocation, layer: Layer, tensor: Tensor) -> Value:
    if layer.kind == "LogSoftmax":
        return normalise(replace(call, name="log_softmax"), tensor, layer.get("dim"), None, built_at=layer.built_at)
    dim = layer.get("dim")
    dim = Int(Size.of(-3)) if layer.kind == "Softmax2d" else dim
    return normalise(call, tensor, dim, None, built_at=layer.built_at)


def _norm(call: Invocation, layer: Layer, tensor: Tensor) -> Tensor:
    tensor = call.state.with_trailing(tensor, 1)
    shape = call.state.as_size(layer.get("normalized_shape"))
    if shape is not None and tensor.axes and tensor.axes[-1] and len(tensor.axes[-1]) == 1:
        call.state.unify(call.state.size_of(tensor.axes[-1]), shape)
    layout = copied_layout(tensor.axes, tensor.lead, [tensor])
    return replace(_normed(tensor), layout=layout)


def _normed(tensor: Tensor) -> Tensor:
    """A norm on queries or keys makes their product a cosine with a learned size; on an input it does not."""
    traits = tensor.traits
    return tensor.with_traits(unit=traits.unit or traits.projection is not None, moved=None, cells=None)


def _embedding(call: Invocation, layer: Layer, tensor: Tensor) -> Tensor:
    width = call.state.as_size(layer.get("embedding_dim"))
    axes = (*tensor.axes, new_axis(width, "feature"))
    traits = Traits(parameter=tensor.traits.ramp)  # rows of a position table
    return Tensor(tensor.lead, axes, Layout.dense(axes, tensor.lead), None, traits)


def _conv(call: Invocation, layer: Layer, tensor: Tensor) -> Tensor:
    """Channels are made anew; positions stay where kernel, stride and padding keep their number."""
    spatial = int(layer.kind[4])
    tensor = call.state.bind_rank(tensor, spatial + 2)
    if tensor.lead is not None or len(tensor.axes) != spatial + 2:
        return vague(tensor)
    out = call.state.as_size(layer.get("out_channels"))
    into = call.state.as_size(layer.get("in_channels"))
    if into is not None:
        call.state.unify(call.state.size_of(tensor.axes[1]), into)
    places: list[Axis] = list(tensor.axes[2:])
    if layer.get("padding") != Const("same"):
        places = [_convolved(call.state, layer, axis, place) for place, axis in enumerate(places)]
    axes = (tensor.axes[0], new_axis(out, "feature"), *places)
    projected = project(call.state, replace(tensor, axes=(*axes[:1], *axes[2:], tensor.axes[1])), into, out, call.at,
                        layer.name, layer.serial)  # fmt: skip
    made = projected.traits.projection
    traits = replace(projected.traits, projection=replace(made, kind=layer.kind) if made else None)
    # What a kernel left may be channels last, and then so is the result.
    layout = None if tensor.traits.implementation_layout else copied_layout(axes, None, [tensor])
    return Tensor(None, axes, layout, tensor.dtype, traits)


def _convolved(state: State, layer: Layer, axis: Axis, place: int) -> Axis:
    """The positions of one axis behind a convolution: kept, taken patch by patch, or of a number not worked out."""
    numbers = {name: _along(layer.get(name), place) for name in ("kernel_size", "stride", "padding", "dilation")}
    kernel = state.as_size(numbers["kernel_size"])
    stride = Size.of(1) if numbers["stride"] is None else state.as_size(numbers["stride"])
    padding = Size.of(0) if numbers["padding"] is None else state.as_size(numbers["padding"])
    plain = numbers["dilation"] is None or state.as_int(numbers["dilation"]) == 1
    if kernel is None or stride is None or padding is None or not plain:
        return new_axis(None, "place")
    if stride.is_one and state.relations.compare(padding * 2, kernel - 1).certainly:
        return axis
    if kernel == stride and padding.constant == 0:
        # Patches: a kernel as wide as its stride takes each position once.
        return new_axis(state.size_of(axis) // kernel, "place")
    return new_axis(None, "place")


def _along(value: Value | None, place: int) -> Value | None:
    """An argument that is given for all axes at once, or one by one."""
    if isinstance(value, Items):
        return value.items[place] if place < len(value.items) else UNKNOWN
    return value


def _recurrent(call: Invocation, layer: Layer, tensor: Tensor) -> Value:
    tensor = call.state.bind_rank(tensor, 3)
    weigh_hearsay(tensor, call.state.as_size(layer.get("input_size")))
    width = call.state.as_size(layer.get("hidden_size"))
    both = call.state.truth(layer.get("bidirectional") or Const(False))
    if width is not None and both:
        width = width * 2
    known = width if both is not None else None
    if batch_first_of(call.state, layer) is False and len(tensor.axes) == 3:
        _name_batch(tensor.axes[1], tensor.axes[0])
    axes = (*tensor.axes[:-1], new_axis(known, "feature"))
    return Items((Tensor(tensor.lead, axes, None), Opaque()))


def _name_batch(axis: Axis, seq: Axis) -> None:
    """The layer's contract says which axis is the batch, where names don't say otherwise."""
    names = [name for atom in (*axis, *seq) for name in (atom.name, *atom.ident.names)]
    if len(axis) == 1 and not any(role_of_name(name) in {BATCH, SEQ} for name in names):
        axis[0].ident.learn("batch")


def _flatten(call: Invocation, layer: Layer, tensor: Tensor) -> Value | None:
    from msalint.ops.layout import flatten

    start = layer.get("start_dim") or Int(Size.of(1))
    end = layer.get("end_dim") or Int(Size.of(-1))
    return flatten(replace(call, args=[tensor, start, end], kwargs={}, name="flatten"))


def _unflatten(call: Invocation, layer: Layer, tensor: Tensor) -> Value | None:
    from msalint.ops.layout import unflatten

    given = [layer.get("dim") or UNKNOWN, layer.get("unflattened_size") or UNKNOWN]
    return unflatten(replace(call, args=[tensor, *given], kwargs={}, name="unflatten"))


def _rearrange(call: Invocation, layer: Layer, tensor: Tensor) -> Value:
    pattern = layer.get("pattern")
    if not isinstance(pattern, Const) or not isinstance(pattern.value, str):
        return vague(tensor)
    sizes = {k: v for k, v in layer.args if k not in {"pattern", "reduction"}}
    kind = "rearrange" if layer.kind == "Rearrange" else "reduce"
    return einops_ops.apply(replace(call, kwargs=sizes), tensor, pattern.value, kind)


_HANDLERS: dict[str, Callable[[Invocation, Layer, Tensor], Value | None]] = {
    "Linear": _linear,
    "LazyLinear": _linear,
    "NonDynamicallyQuantizableLinear": _linear,
    "Dropout": _dropout,
    "Dropout1d": _dropout,
    "Dropout2d": _dropout,
    "AlphaDropout": _dropout,
    "Softmax": _softmax,
    "Softmax2d": _softmax,
    "LogSoftmax": _softmax,
    "LayerNorm": _norm,
    "RMSNorm": _norm,
    "Embedding": _embedding,
    "Conv1d": _conv,
    "Conv2d": _conv,
    "Conv3d": _conv,
    "LSTM": _recurrent,
    "GRU": _recurrent,
    "Flatten": _flatten,
    "Unflatten": _unflatten,
    "Rearrange": _rearrange,
    "Reduce": _rearrange,
}
PARAMETERS["Sequential"] = ()
PARAMETERS["Rearrange"] = PARAMETERS["Reduce"] = ("pattern",)


# --- dropout -----------------------------------------------------------------------------------------------------


def dropped(
    call: Invocation,
    tensor: Tensor,
    rate: Value,
    *,
    always_on: bool,
    switched_on: bool = False,
    built_at: Site | None = None,
) -> Tensor:
    """A dropout of `tensor`, by a layer (built at `built_at`) or by a function."""
    state = call.state
    traits = tensor.traits
    state.emit(
        Dropout(
            call.at,
            functional=built_at is None,
            always_on=always_on,
            rate=text_of(rate),
            zero=is_zero(state, rate),
            in_module=state.in_module,
            on_weights=traits.softmax is not None,
            said_so=said_to_drop(state.purpose()),
            on_scores=traits.product is not None and traits.softmax is None,
            switched_on=switched_on,
            module_name=state.module_name,
            built_at=built_at,
        )
    )
    fresh = elementwise_layout(tensor)
    # In eval mode dropout gives back what it got, holes in memory and all.
    layout = fresh if fresh == tensor.layout else None
    return replace(tensor, layout=layout, traits=replace(traits, dropped=Dropped(call.at, rate), cells=None))


@op("dropout dropout1d dropout2d alpha_dropout feature_dropout dropout_", on="F")
@op("dropout", on="torch")
def functional_dropout(call: Invocation) -> Value | None:
    tensor = call.tensor(0, "input")
    if tensor is None:
        return None
    state = call.state
    rate = call.get(1, "p") or Opaque()
    training = call.get(2, "training")
    alive = not is_callers_business(rate) if training is None else literally_true(training)
    told = only_in_training(state) or is_gated_number(rate) or is_zero(state, rate) or call.unknown_arguments
    return dropped(call, tensor, rate, always_on=alive and not told, switched_on=training is not None)


# --- nn.MultiheadAttention and nn.Transformer* -------------------------------------------------------------------

_CALLS: dict[str, tuple[str, ...]] = {
    "MultiheadAttention": (
        "query", "key", "value", "key_padding_mask", "need_weights", "attn_mask", "average_attn_weights", "is_causal",
    ),
    "TransformerEncoderLayer": ("src", "src_mask", "src_key_padding_mask", "is_causal"),
    "TransformerEncoder": ("src", "mask", "src_key_padding_mask", "is_causal"),
    "TransformerDecoderLayer": (
        "tgt", "memory", "tgt_mask", "memory_mask", "tgt_key_padding_mask", "memory_key_padding_mask",
        "tgt_is_causal", "memory_is_causal",
    ),
    "TransformerDecoder": (
        "tgt", "memory", "tgt_mask", "memory_mask", "tgt_key_padding_mask", "memory_key_padding_mask",
        "tgt_is_causal", "memory_is_causal",
    ),
    "Transformer": (
        "src", "tgt", "src_mask", "tgt_mask", "memory_mask", "src_key_padding_mask", "tgt_key_padding_mask",
        "memory_key_padding_mask", "src_is_causal", "tgt_is_causal", "memory_is_causal",
    ),
}  # fmt: skip

_BESIDE_QUERY = {"MultiheadAttention": 2, "TransformerDecoderLayer": 2, "TransformerDecoder": 2, "Transformer": 2}
"""How many of a layer's first arguments lie in memory alike (query and key, target and memory); 1 for the others."""


def _stacked(layer: Layer) -> Value | None:
    """The layer that nn.TransformerEncoder or nn.TransformerDecoder repeats."""
    return layer.get("encoder_layer") or layer.get("decoder_layer")


def _told_batch_first_at(layer: Layer) -> Site | None:
    """Where the layer that has the argument `batch_first` was built."""
    inner = _stacked(layer)
    return inner.built_at if isinstance(inner, Layer) else layer.built_at


def batch_first_of(state: State, layer: Layer) -> bool | None:
    """Whether the layer takes the batch first: its own argument, or that of the layer it stacks."""
    inner = _stacked(layer)
    if layer.kind in {"TransformerEncoder", "TransformerDecoder"}:
        return batch_first_of(state, inner) if isinstance(inner, Layer) else None
    given = layer.get("batch_first")
    if given is None:
        return None if "**" in dict(layer.args) else False
    return state.truth(given)


def attention_layer(call: Invocation, layer: Layer) -> Value | None:
    state = call.state
    names = _CALLS[layer.kind]
    query = call.tensor(0, names[0])
    if query is not None and query.rank is None and len(query.axes) == 3:
        query = state.bind_rank(query, 3)
    masks = []
    for place, name in enumerate(names):
        if "mask" not in name:
            continue
        value, site = call.get(place, name), call.site(place, name)
        if value is None or site is None or state.is_none(value) is True:
            continue
        tell_numbers(state, value, call.at, site, name, keep_true=False)
        if query is not None and not query.traits.made_by_default:
            tell_off_device(state, value, call.at)
        hidden = hidden_by(state, value, keep_true=False)
        tensor = state.as_tensor(value)
        made_at = tensor.traits.cells.at if tensor is not None and tensor.traits.cells is not None else None
        label = tensor.traits.name if tensor is not None else ""
        additive = is_additive(state, value)
        if layer.kind == "MultiheadAttention" and name == "attn_mask":
            tell_tiled_for_layer(state, state.as_size(layer.get("num_heads")), query, value, call.at)
        taken = call.taken_at(site) if wrong_way(hidden) else None
        masks.append(MaskArgument(name, site, hidden, wrong_way(hidden), label, made_at, (), additive, taken))
    first = batch_first_of(state, layer)
    inputs = [call.tensor(i, names[i]) for i in range(_BESIDE_QUERY.get(layer.kind, 1))]
    layout, batch_name, seq_name = common_layout(state, inputs)
    weights = call.get(4, "need_weights") if layer.kind == "MultiheadAttention" else None
    causal = call.kwargs.get("is_causal")
    state.emit(
        MhaCalled(
            call.at,
            kind=layer.kind,
            batch_first=first,
            input_layout=layout,
            built_at=_told_batch_first_at(layer),
            batch_name=batch_name,
            seq_name=seq_name,
            masks=tuple(masks),
            need_weights=True if weights is None else state.truth(weights),
            causal=False if causal is None else state.truth(causal),
            query_site=call.site(0, names[0]),
            unbatched=query is not None and query.rank == 2,
            second_axis=_axis_from_left(state, query, 1),
            first_axis=_axis_from_left(state, query, 0),
            hints_alone=_hints_alone(call, names),
            purpose=(*state.purpose(), layer.name),
        )
    )
    known = query is not None
    state.emit(AttentionSite(call.at, known, "" if known else "query is not known", layer.kind))
    output = _output(state, layer, query)
    if layer.kind != "MultiheadAttention":
        return output
    return AttentionTuple(output or Opaque(), _weights(call, layer, query, first), call.at, call)


def _weights(call: Invocation, layer: Layer, query: Tensor | None, batch_first: bool | None) -> Value:
    """The second result: (batch, query, key), with the heads behind the batch if they are not averaged."""
    state = call.state
    if call.kwargs.get("need_weights") == Const(False):
        return Const(None)
    key = call.tensor(1, "key")
    averaged = state.truth(call.get(6, "average_attn_weights") or Const(True))
    if averaged is True and not call.unknown_arguments:
        weights = _averaged(state, query, key, batch_first).with_traits(averaged=call.at)
        state.averaged[id(call.at)] = weights
        return weights
    if query is None or key is None or query.rank != 3 or key.rank != 3 or batch_first is None or averaged is None:
        return Tensor(ShapeVar(), (), None)
    seq = 1 if batch_first else 0
    heads = new_axis(state.as_size(layer.get("num_heads")))
    return Tensor(None, (query.axes[1 - seq], heads, query.axes[seq], key.axes[seq]), None)


def _averaged(state: State, query: Tensor | None, key: Tensor | None, batch_first: bool | None) -> Tensor:
    """(batch, query, key), as far as it is known."""
    if query is None or key is None or query.rank != 3 or key.rank != 3 or batch_first is None:
        return Tensor(ShapeVar(), (), None)
    seq = 1 if batch_first else 0
    return Tensor(None, (query.axes[1 - seq], query.axes[seq], key.axes[seq]), None)


def _axis_from_left(state: State, query: Tensor | None, place: int) -> Ident | None:
    axis = state.front_axis(query, place) if query is not None else None
    if query is not None and axis is not None and place == 1:
        query = state.resolve(query)
        last = query.axes[-2] if query.lead is not None and len(query.axes) > 1 else ()
        if last and state.relations.compare(state.size_of(last), state.size_of(axis)).certainly:
            axis = last  # `x.size(1)` is asked for: the input has a batch, and this is its second axis
    return axis[0].ident if axis is not None and len(axis) == 1 else None


def _hints_alone(call: Invocation, names: tuple[str, ...]) -> tuple[tuple[str, Site], ...]:
    """Causal flags that are on though the mask that they speak of is not given: (the mask's parameter, the flag)."""
    alone = []
    for place, name in enumerate(names):
        flag, site = call.get(place, name), call.site(place, name)
        if "is_causal" not in name or flag is None or site is None or call.state.truth(flag) is not True:
            continue
        masks = [n for n in names if n == name.replace("is_causal", "mask") or n in {"attn_mask", "src_mask", "mask"}]
        mask = call.get(names.index(masks[-1]), masks[-1])
        missing = not call.unknown_arguments if mask is None else call.state.is_none(mask) is True
        if missing:
            alone.append((masks[-1], site))
    return tuple(alone)


def _output(state: State, layer: Layer, query: Tensor | None) -> Tensor | None:
    if query is None:
        return None
    query = state.with_trailing(query, 1)
    width = state.as_size(layer.get("embed_dim") or layer.get("d_model"))
    if not query.axes:
        return vague(query)
    axes = (*query.axes[:-1], new_axis(width, "feature") if width is not None else query.axes[-1])
    return Tensor(query.lead, axes, None, query.dtype, Traits(attended=True))


def common_layout(state: State, inputs: list[Tensor | None]) -> tuple[str | None, str, str]:
    """The layout that the inputs' names tell, as `input_layout`; none where two of them disagree."""
    told = [found for found in (input_layout(state, tensor) for tensor in inputs) if found[0] is not None]
    return told[0] if told and all(found[0] == told[0][0] for found in told) else (None, "", "")


def input_layout(state: State, tensor: Tensor | None) -> tuple[str | None, str, str]:
    """ "batch" or "seq": which stands first in an input of three axes, as its names tell; then the two names."""
    if tensor is None:
        return None, "", ""
    tensor = state.resolve(tensor)
    if tensor.rank != 3 or not all(tensor.axes[:2]):
        return None, "", ""
    first, second = tensor.axes[:2]
    roles = [_layout_role(axis) for axis in (first, second)]
    if (roles[0] == BATCH and roles[1] != BATCH) or (roles[0] is None and roles[1] == SEQ):
        return "batch", axis_name(first), axis_name(second)
    if (roles[1] == BATCH and roles[0] != BATCH) or (roles[1] is None and roles[0] == SEQ):
        return "seq", axis_name(second), axis_name(first)
    return None, "", ""


def _layout_role(axis: Axis) -> str | None:
    """The role of an axis by its names. One that the batch was folded into, (batch * frames), is the batch."""
    symbols = [symbol.name for atom in axis for symbol in atom.size.symbols()]
    roles = {role_of_name(name) for name in (*symbols, *(name for atom in axis for name in atom.ident.names))}
    if BATCH in roles:
        return BATCH
    if len(axis) != 1 or len(symbols) > 1:
        return None
    role, _ = role_of_axis(axis, ())
    return role or (SEQ if SEQ in roles else None)
