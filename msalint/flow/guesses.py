"""Calls of things that can't be looked into: what their names promise, and no more."""

from __future__ import annotations

from msalint.facts import AttentionSite
from msalint.ops.axes import new_axis
from msalint.ops.contraction import project
from msalint.ops.table import Invocation
from msalint.shapes.axes import Layout
from msalint.shapes.vocabulary import says
from msalint.state import State, axis_symbol
from msalint.values import (
    UNKNOWN,
    Condition,
    Instance,
    Int,
    Items,
    Layer,
    Library,
    Method,
    Mod,
    Opaque,
    Tensor,
    Traits,
    Value,
    replace,
)

_KEEPING = ("norm", "ln", "layernorm", "rmsnorm", "drop", "dropout", "act", "activation", "identity", "gelu", "relu",
            "quant", "checkpoint", "gate")  # fmt: skip
_PROJECTIONS = frozenset(
    "to_q to_k to_v to_kv to_qkv q_proj k_proj v_proj qkv_proj kv_proj query_proj key_proj value_proj w_q w_k w_v "
    "wq wk wv add_q_proj add_k_proj add_v_proj linear_q linear_k linear_v q_linear k_linear v_linear".split()
)
_CHECKING = ("check", "assert", "ensure", "require", "validate", "enforce", "verify", "expect", "raise")
INTERFACES = frozenset("attention_interface attn_interface attention_function attention_fn attn_fn".split())


_KERNELS = frozenset(
    "scaled_dot_product_attention flash_attn_func flash_attn_varlen_func memory_efficient_attention "
    "flex_attention".split()
)
"""What a function of unknown origin takes queries, keys and values under: `kernels().flash_attn_func(q, k, v)`."""


def _is_eager(call: Invocation) -> bool:
    """Whether this path may take the default of a registry of kernels; from then on it is the one that was chosen."""
    chosen = call.args[0]
    if not isinstance(chosen, Opaque) or not chosen.key:
        return True
    decisions, prefix = call.state.decisions, f"eq:{chosen.key}:==:"
    if any(on and key.startswith(prefix) and key != prefix + "'eager'" for key, on in decisions.asked.items()):
        return False
    decisions.settle(prefix + "'eager'", True)
    return True


def guess_call(callee: Value, call: Invocation, receiver: Value | None) -> Value:
    """The result of a call whose callee is not known."""
    name = _name(callee, call.name)
    lowered = name.lower()
    if lowered in INTERFACES or "attention_functions" in lowered:
        return attention_interface(call)
    if name in _KERNELS and len(call.args) >= 3:
        return _attention_function(call, axes=3)
    if name in {"get_interface", "get"}:
        from msalint.values import Function

        for value in call.args:
            if isinstance(value, Function) and _is_eager(call):
                return value
        return Opaque(name="attention_interface") if name == "get_interface" else UNKNOWN
    if isinstance(callee, Library) and callee.path.startswith(("torch.linalg.", "torch.fft.", "torch.special.")):
        return UNKNOWN
    if says(name, "divide", "divides", "divisible", "divisibility"):
        return _divided(call)
    if call.args and isinstance(call.args[0], (Condition, Mod)) and says(name, *_CHECKING):
        call.state.learn(call.args[0], True)
        return UNKNOWN
    if says(name, "rotary", "rope", "rot") or "rotary" in lowered or "rope" in lowered:
        return _rotated(call)
    if (name == "update" and _names_cache(receiver)) or (says(name, "cache") and _ends_in_keys(call)):
        return _from_cache(call)
    if says(name, *_KEEPING) or lowered.endswith(("norm", "dropout")):
        return _kept(call, lowered)
    if lowered.strip("_") in _PROJECTIONS and isinstance(callee, Opaque) and len(call.args) == 1:
        return _projected(call, name)
    return UNKNOWN


def _projected(call: Invocation, name: str) -> Value:
    """`attn.to_q(x)`, whatever it is, maps the last axis; how wide it makes it is not known."""
    tensor = call.state.as_tensor(call.args[0])
    return UNKNOWN if tensor is None else project(call.state, tensor, None, None, call.at, name)


def _name(callee: Value, fallback: str) -> str:
    if isinstance(callee, Opaque):
        return callee.name or fallback
    if isinstance(callee, Library):
        return callee.path.rsplit(".", 1)[-1]
    if isinstance(callee, Layer):
        return callee.kind
    if isinstance(callee, Instance):
        return callee.cls.name
    if isinstance(callee, Method):
        return callee.name
    return fallback


def _divided(call: Invocation) -> Value:
    """`ensure_divisible(width, heads)`, `divide(width, heads)`: a helper that refuses a remainder."""
    sizes = [call.state.as_size(value) for value in call.args[:2]]
    if len(sizes) < 2 or sizes[0] is None or sizes[1] is None:
        return UNKNOWN
    call.state.relations.learn_exact(sizes[0], sizes[1])
    return Int(sizes[0] // sizes[1])


def _names_cache(receiver: Value | None) -> bool:
    name = (
        receiver.name if isinstance(receiver, Opaque) else receiver.cls.name if isinstance(receiver, Instance) else ""
    )
    return "cache" in name.lower() or "past" in name.lower()


def _kept(call: Invocation, name: str) -> Value:
    """A norm, an activation or a dropout keeps the shape; memory order is not known."""
    if not call.args:
        return UNKNOWN
    tensor = call.state.as_tensor(call.args[0])
    if tensor is None:
        return UNKNOWN
    traits = replace(tensor.traits, cells=None)
    if "norm" in name or name.startswith("ln"):
        traits = replace(traits, unit=traits.unit or traits.projection is not None)
    elif "drop" not in name and "identity" not in name:
        traits = replace(traits, projection=None, product=None)
    return replace(tensor, traits=traits, layout=None)


def _rotated(call: Invocation) -> Value:
    """Rotary embedding turns pairs of features: queries and keys keep their shape."""
    tensors = [call.state.as_tensor(value) for value in call.args[:2]]
    known = [t for t in tensors if t is not None]
    if not known:
        return UNKNOWN
    turned = tuple(replace(t, layout=None, traits=replace(t.traits, rotated=True)) for t in known)
    rotates_both = len(known) == 2 and _alike(known[0], known[1])
    return Items(turned) if rotates_both else turned[0] if len(call.args) > 1 or call.name != "__init__" else UNKNOWN


def _alike(first: Tensor, second: Tensor) -> bool:
    """Two projections of one rank: queries and keys."""
    both = first.traits.projection is not None and second.traits.projection is not None
    return both and len(first.axes) == len(second.axes)


def _ends_in_keys(call: Invocation) -> bool:
    """The last two arguments are keys and values: `self.kv_cache(input_pos, k, v)`."""
    last = [call.state.as_tensor(value) if isinstance(value, Tensor) else None for value in call.args[-2:]]
    return len(last) == 2 and all(t is not None and t.traits.projection is not None for t in last)


def _from_cache(call: Invocation) -> Value:
    """Keys and values joined with what was kept: the sequence is longer, by an amount that is not known."""
    given = call.args[-2:] if _ends_in_keys(call) else call.args[:2]
    tensors = [call.state.as_tensor(value) for value in given]
    if len(tensors) < 2 or tensors[0] is None or tensors[1] is None:
        return UNKNOWN
    return Items(tuple(_longer(call.state, t) for t in tensors if t is not None))


def _longer(state: State, tensor: Tensor) -> Tensor:
    tensor = state.with_trailing(tensor, 2)
    if len(tensor.axes) < 2:
        return tensor
    old = tensor.axes[-2]
    from msalint.shapes.size import Size

    grown = new_axis(Size.of(axis_symbol("past + new")), "place")
    if grown and old:
        grown = (replace(grown[0], ident=replace(grown[0].ident, parent=old[0].ident, relation="cat")),)
    axes = (*tensor.axes[:-2], grown, tensor.axes[-1])
    return replace(
        tensor, axes=axes, layout=Layout.dense(axes, tensor.lead), traits=replace(tensor.traits, cached=True)
    )


def attention_interface(call: Invocation) -> Value:
    """`interface(module, query, key, value, mask, scaling=..., dropout=...)`: the contract of a registry of kernels.

    Takes (batch, heads, seq, d_k) and gives (batch, seq, heads, d_k) with the weights.
    """
    state = call.state
    if call.args and isinstance(call.args[0], Tensor):
        return _attention_function(call)
    tensors = [state.as_tensor(value) for value in call.args[1:4]]
    if len(tensors) < 3 or any(t is None for t in tensors):
        state.emit(AttentionSite(call.at, False, "query, key or value is not known", "interface"))
        return UNKNOWN
    query, _, value = (state.with_trailing(t, 3) for t in tensors if t is not None)
    known = len(query.axes) >= 3
    state.emit(AttentionSite(call.at, known, "" if known else "rank of the query is not known", "interface"))
    if not known or not value.axes:
        return UNKNOWN
    heads, seq = query.axes[-3], query.axes[-2]
    axes = (*query.axes[:-3], seq, heads, value.axes[-1])
    context = Tensor(query.lead, axes, Layout.dense(axes, query.lead), query.dtype, Traits(attended=True))
    return Items((context, UNKNOWN))


def _attention_function(call: Invocation, axes: int = 0) -> Value:
    """`attention_fn(q, k, v, mask=...)`: a function in the place of `scaled_dot_product_attention`.

    `axes`: how many axes its arguments have at the least.
    """
    state = call.state
    tensors = [state.as_tensor(value) for value in call.args[:3]]
    tensors = [state.with_trailing(tensor, axes) if tensor is not None else None for tensor in tensors]
    query, _, value = (*tensors, None, None, None)[:3]
    reason = "" if len(tensors) == 3 and None not in tensors else "query, key or value is not known"
    if query is not None and query.lead is not None and len(query.axes) < 3:
        reason = reason or "rank of the query is not known"
    state.emit(AttentionSite(call.at, not reason, reason, "interface"))
    if query is None or value is None or not query.axes or not value.axes:
        return UNKNOWN
    result = (*query.axes[:-1], value.axes[-1])
    return Tensor(query.lead, result, None, query.dtype, Traits(attended=True))
