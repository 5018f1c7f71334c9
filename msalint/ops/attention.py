"""Attention as one call: F.scaled_dot_product_attention, flash_attn, xformers, flex_attention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from msalint.diagnostic import Site
from msalint.facts import AttentionSite, NumbersAsMask, Scaling, SdpaCalled
from msalint.ops.attending import meets_tokens, role_of_axis, scaling_of, tell_projections
from msalint.ops.devices import tell_off_device
from msalint.ops.hiding import FAR_BELOW
from msalint.ops.layout import is_head
from msalint.ops.mask_place import tell_batch_elsewhere
from msalint.ops.mode import drops_in_eval, said_to_drop
from msalint.ops.table import Invocation, op, text_of
from msalint.shapes.axes import Axis, Layout, axis_name
from msalint.state import State
from msalint.values import NONE, Factor, Layer, Opaque, Real, Region, Tensor, Traits, Value


@dataclass(frozen=True)
class Signature:
    """How one API takes its arguments: names by position, where the sequence stands, and which parameter is what."""

    api: str
    names: tuple[str, ...]
    seq_place: int = -2
    mask: str = "attn_mask"
    dropout: str = "dropout_p"
    causal: str = "is_causal"
    scale: str = "scale"
    keep_true: bool = True


SDPA = Signature("sdpa", ("query", "key", "value", "attn_mask", "dropout_p", "is_causal", "scale", "enable_gqa"))
FLASH = Signature(
    "flash", ("q", "k", "v", "dropout_p", "softmax_scale", "causal"), -3, "", "dropout_p", "causal", "softmax_scale"
)
XFORMERS = Signature(
    "xformers", ("query", "key", "value", "attn_bias", "p", "scale"), -3, "attn_bias", "p", "", "scale", keep_true=False
)
FLEX = Signature(
    "flex",
    ("query", "key", "value", "score_mod", "block_mask", "scale", "enable_gqa"),
    -2,
    "block_mask",
    "",
    "",
    "scale",
)


@op("scaled_dot_product_attention", on="F")
def sdpa(call: Invocation) -> Value | None:
    return attend(call, SDPA)


@op("", on="flash_attn.flash_attn_func flash_attn.flash_attn_interface.flash_attn_func")
def flash(call: Invocation) -> Value | None:
    return attend(call, FLASH)


@op("", on="xformers.ops.memory_efficient_attention xformers.ops.fmha.memory_efficient_attention")
def xformers(call: Invocation) -> Value | None:
    return attend(call, XFORMERS)


@op("", on="torch.nn.attention.flex_attention.flex_attention")
def flex(call: Invocation) -> Value | None:
    return attend(call, FLEX)


@op("", on="flash_attn.flash_attn_varlen_func flash_attn.flash_attn_interface.flash_attn_varlen_func "
    "flash_attn.flash_attn_qkvpacked_func flash_attn.flash_attn_with_kvcache "
    "flash_attn.flash_attn_varlen_qkvpacked_func")  # fmt: skip
def flash_packed(call: Invocation) -> Value | None:
    """Packed sequences: (tokens, heads, d_k), no axis of its own to check."""
    query = call.tensor(0)
    call.state.emit(AttentionSite(call.at, query is not None, "" if query is not None else "query not known", "flash"))
    if query is None or "qkvpacked" in call.name:
        return None
    return Tensor(query.lead, query.axes, Layout.dense(query.axes, query.lead), query.dtype, Traits(attended=True))


def argument(call: Invocation, signature: Signature, name: str) -> tuple[Value | None, Site | None]:
    """An argument by its name in the signature, with its place."""
    if not name:
        return None, None
    place = signature.names.index(name) if name in signature.names else -1
    return call.get(place, name), call.site(place, name)


def attend(call: Invocation, signature: Signature) -> Value | None:
    state = call.state
    tensors = []
    for i in range(3):
        tensor = call.tensor(i, signature.names[i])
        tensors.append(state.with_trailing(tensor, 3) if tensor is not None else None)
    query, key, value = alike(state, tensors)
    sites = [call.site(i, signature.names[i]) for i in range(3)]
    mask, mask_site = argument(call, signature, signature.mask)
    causal, causal_site = argument(call, signature, signature.causal)
    rate, rate_site = argument(call, signature, signature.dropout)
    scale, scale_site = argument(call, signature, signature.scale)
    given = None if call.unknown_arguments and mask is None else _given(state, mask)
    region = hidden_by(state, mask, signature.keep_true)
    mask_tensor = state.as_tensor(mask) if given is not False else None
    over, over_name, strong, tokens = _attended_axis(key, signature)
    joined_at, joined_under = _joined(state, query, key, signature)
    state.emit(
        SdpaCalled(
            call.at,
            api=signature.api,
            query=query,
            key=key,
            value=value,
            mask_given=given,
            causal=False if causal is None else state.truth(causal),
            mask_site=mask_site,
            causal_site=causal_site,
            mask_hidden=region,
            mask_inverted=wrong_way(region),
            mask_additive=is_additive(state, mask),
            mask_name=mask_tensor.traits.name if mask_tensor else "",
            mask_made_at=mask_tensor.traits.cells.at if mask_tensor and mask_tensor.traits.cells else None,
            mask_taken_at=call.taken_at(mask_site) if wrong_way(region) else None,
            scale_given=scale is not None and scale != NONE,
            scaling=_scaling(state, query, key, scale, scale_site),
            dropout_always_on=drops_in_eval(state, rate),
            dropout_site=rate_site,
            dropout_rate=text_of(rate),
            dropout_said_so=said_to_drop(state.purpose()),
            module_name=state.module_name,
            mask_parameter=isinstance(mask, Opaque) and mask.source == "parameter",
            head_axis=_head_in_place_of_seq(query, key, signature),
            layout_wrong=_head_in_place_of_seq(query, key, signature) is not None,
            layout=signature.api,
            over=over,
            over_name=over_name,
            batch_strong=strong,
            tokens=tokens,
            query_site=sites[0],
            key_site=sites[1],
            value_site=sites[2],
            joined_at=joined_at,
            guards=_own_guards(state, joined_under),
            purpose=state.purpose(),
        )
    )
    if signature.api == "sdpa" and mask_site is not None:
        tell_numbers(state, mask, call.at, mask_site, signature.mask, keep_true=True)
    if query is not None and not query.traits.made_by_default:
        tell_off_device(state, mask, call.at)
    tell_projections(state, call.at, query, key, value)
    _tell_site(call, query, key, value, signature)
    _tell_place(call, query, key, mask, mask_site, signature)
    return _context(query, value)


def alike(state: State, tensors: Sequence[Tensor | None]) -> list[Tensor | None]:
    """Queries, keys and values as a kernel takes them: of one rank, keys as wide as queries, as many as values."""
    ranks = [tensor.rank for tensor in tensors if tensor is not None and tensor.rank is not None]
    if ranks:
        tensors = [None if tensor is None else state.bind_rank(tensor, ranks[0]) for tensor in tensors]
    query, key, _ = tensors
    if query is not None and key is not None and query.axes and key.axes and query.axes[-1] and key.axes[-1]:
        state.unify(state.size_of(query.axes[-1]), state.size_of(key.axes[-1]))
    return [None if tensor is None else state.resolve(tensor) for tensor in tensors]


def _tell_place(
    call: Invocation,
    query: Tensor | None,
    key: Tensor | None,
    mask: Value | None,
    site: Site | None,
    signature: Signature,
) -> None:
    """What a mask lies on: (batch, heads, query, key), of which the first and the last are no other tensor's."""
    if signature.api != "sdpa" or mask is None or site is None or query is None or key is None:
        return
    query, key = call.state.resolve(query), call.state.resolve(key)
    if query.lead is None and key.lead is None and len(query.axes) == len(key.axes) > 2:
        tell_batch_elsewhere(call.state, (*query.axes[:-1], key.axes[-2]), mask, call.at, site, signature.api)


def _given(state: State, mask: Value | None) -> bool | None:
    none = state.is_none(mask)
    return None if none is None else not none


def _scaling(
    state: State, query: Tensor | None, key: Tensor | None, scale: Value | None, scale_site: Site | None
) -> Scaling | None:
    """What queries and keys were scaled with before the call, and the scale that the call is given."""
    if query is None or key is None or not query.axes or not query.axes[-1]:
        return None
    factors = (*query.traits.scale, *key.traits.scale)
    if scale is not None and scale != NONE:
        real = state.as_real(scale)
        known = real if real is not None and real.coefficient is not None else None
        factors = (*factors, Factor(known, scale_site, real.at if real is not None else None))
    return scaling_of(state, factors, query.axes[-1], (query, key))


def _attended_axis(key: Tensor | None, signature: Signature) -> tuple[str | None, str, bool, bool]:
    """The role of the keys' axis that the call sums over, its name, whether that is sure, and whether tokens stand by.

    With three axes the sequence is the second-last for all.
    """
    place = signature.seq_place if key is None or len(key.axes) > 3 else -2
    if key is None or len(key.axes) < -place:
        return None, "", False, True
    axis = key.axes[place]
    beside = [a for i, a in enumerate(key.axes) if i not in {len(key.axes) + place, len(key.axes) - 1}]
    role, strong = role_of_axis(axis, beside)
    return role, axis_name(axis), strong, key.lead is not None or meets_tokens(axis, None, key, beside)


def _own_guards(state: State, joined_under: tuple[Site, ...]) -> tuple[str, ...]:
    """The tests that a call stands under and the joining of its keys did not."""
    others = {test.text for test in joined_under}
    return tuple(text for test in state.guards if (text := test.text) not in others)


def _joined(
    state: State, query: Tensor | None, key: Tensor | None, signature: Signature
) -> tuple[Site | None, tuple[Site, ...]]:
    """Where the keys of other tokens were put in front of those of the queries' own, and under which tests."""
    place = signature.seq_place
    if query is None or key is None or len(query.axes) < -place or len(key.axes) < -place:
        return None, ()
    mine, others = query.axes[place], key.axes[place]
    if len(others) != 1 or others[0].ident not in state.joined or len(mine) > 1:
        return None, ()
    new = others[0].ident.parent
    own = mine[0].ident is new if mine else key.traits.cached
    equal = state.relations.compare(state.size_of(mine), state.size_of(others)).certainly
    return state.joined[others[0].ident] if own and not equal else (None, ())


def _head_in_place_of_seq(query: Tensor | None, key: Tensor | None, signature: Signature) -> str | None:
    """The heads' name, if they stand where the API takes the sequence, in queries and keys alike."""
    head_place = -3 if signature.seq_place == -2 else -2
    for tensor in (query, key):
        if tensor is None or len(tensor.axes) < 4 or tensor.lead is not None:
            return None
        seq, head = tensor.axes[signature.seq_place], tensor.axes[head_place]
        if not _is_heads(seq, tensor) or _is_heads(head, tensor) or not _is_place(head):
            return None
    assert query is not None
    return axis_name(query.axes[signature.seq_place])


def _is_heads(axis: Axis, tensor: Tensor) -> bool:
    return len(axis) >= 1 and is_head(axis[0], tensor.axes)


def _is_place(axis: Axis) -> bool:
    return bool(axis) and all(atom.ident.kind == "place" for atom in axis)


def _context(query: Tensor | None, value: Tensor | None) -> Tensor | None:
    """The result: the queries' axes with the values' features; how it lies in memory depends on the kernel."""
    if query is None or not query.axes:
        return None
    last = value.axes[-1] if value is not None and value.axes else query.axes[-1]
    axes = (*query.axes[:-1], last)
    traits = Traits(attended=True, implementation_layout=True)
    return Tensor(query.lead, axes, Layout.dense(axes, query.lead), query.dtype, traits)


def _tell_site(
    call: Invocation, query: Tensor | None, key: Tensor | None, value: Tensor | None, signature: Signature
) -> None:
    reason = ""
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        if tensor is None:
            reason = reason or f"{name} is not known"
        elif tensor.lead is not None and len(tensor.axes) < 3:
            reason = reason or f"rank of the {name} is not known"
    call.state.emit(AttentionSite(call.at, not reason, reason, signature.api))


# --- masks and dropout handed to an API --------------------------------------------------------------------------


def hidden_by(state: State, mask: Value | None, keep_true: bool) -> Region | None:
    """The region that a mask argument hides: where a boolean one says so, or where an additive one is far below 0."""
    if mask is None or state.is_none(mask) is True:
        return None
    tensor = state.as_tensor(mask)
    cells = tensor.traits.cells if tensor is not None else None
    if tensor is None or cells is None:
        return None
    additive = cells.where(lambda x: x <= FAR_BELOW)
    if additive is not None:
        return additive
    drawn = cells.region is not None and cells.region.side is not None
    if tensor.dtype != "bool" and (drawn or tensor.dtype is not None):
        return None
    if {cells.inside, cells.outside} != {0.0, 1.0}:
        return None
    return cells.where((lambda x: not x) if keep_true else bool)


_MASKING = frozenset({"causal", "padding", "given"})


def tell_numbers(state: State, mask: Value | None, at: Site, mask_site: Site, parameter: str, keep_true: bool) -> None:
    """Tell of a 0/1 mask of numbers where truths are taken, or numbers far below 0."""
    tensor = state.as_tensor(mask) if isinstance(mask, Tensor) else None
    cells = tensor.traits.cells if tensor is not None else None
    if tensor is None or cells is None or tensor.dtype in {None, "bool"}:
        return
    ones = cells.where(bool)
    if ones is None or {cells.inside, cells.outside} != {0.0, 1.0} or not ones.strong or not ones.kinds <= _MASKING:
        return
    made_at = ones.made_at or cells.at
    assert tensor.dtype is not None
    state.emit(NumbersAsMask(at, mask_site, parameter, tensor.dtype, ones, keep_true, ones.said, made_at))


def wrong_way(hidden: Region | None) -> bool:
    """What an API will hide is known to be what was to be attended."""
    if hidden is None or not hidden.strong:
        return False
    return hidden.hides_past if hidden.side is not None else hidden.meaning == "keep"


def is_additive(state: State, mask: Value | None) -> bool:
    """Whether a mask argument is known to be a float one, far below 0 where it hides."""
    tensor = state.as_tensor(mask)
    cells = tensor.traits.cells if tensor is not None else None
    return cells is not None and cells.where(lambda x: x <= FAR_BELOW) is not None


def layer_rate(layer: Layer) -> Value:
    """The `p` of a dropout layer."""
    return layer.get("p") or Real(0.5)
