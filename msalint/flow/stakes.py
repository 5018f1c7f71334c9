"""What is at stake in a condition: how much of attention stands in the code that it decides about."""

from __future__ import annotations

from msalint.syntax import nodes as n

_WORDS = frozenset(
    "softmax matmul bmm einsum baddbmm scaled_dot_product_attention masked_fill masked_fill_ flash_attn_func "
    "memory_efficient_attention flex_attention view reshape transpose permute rearrange cat repeat_kv "
    "repeat_interleave attention_interface where dropout".split()
)
_HEAVY = frozenset("softmax matmul bmm einsum baddbmm scaled_dot_product_attention masked_fill masked_fill_".split())


_CENTRAL = _HEAVY | frozenset(
    "tril triu tril_ triu_ MultiheadAttention TransformerEncoderLayer TransformerDecoderLayer TransformerEncoder "
    "TransformerDecoder flash_attn_func memory_efficient_attention flex_attention attention_interface Softmax "
    "generate_square_subsequent_mask reveal_shape".split()
)


def called(call: n.Call) -> str:
    """The last name of what is called."""
    return call.func.name if isinstance(call.func, n.Attr) else getattr(call.func, "id", "")


def stake_of(node: object) -> int:
    """A rank for the other answer: 3 where scores or weights are formed, 2 where shapes change, 1 for a call, 0."""
    if isinstance(node, n.If):
        parts: tuple[n.Node, ...] = (*node.body, *node.orelse)
    elif isinstance(node, n.IfExp):
        parts = (node.body, node.orelse)
    else:
        return 1
    best = 0
    for part in parts:
        for inner in part.walk():
            if isinstance(inner, n.Binary) and inner.op == "@":
                return 3
            if isinstance(inner, n.Call):
                name = called(inner)
                best = max(best, 3 if name in _HEAVY else 2 if name in _WORDS else 1)
            elif isinstance(inner, (n.Return, n.Assign)):
                best = max(best, 1)
    return best


def is_central(node: n.Node) -> bool:
    """Whether attention, or a mask for it, is formed in a definition itself, not only in what it calls."""
    for inner in node.walk():
        if isinstance(inner, n.Binary) and inner.op == "@":
            return True
        if isinstance(inner, n.Call) and called(inner) in _CENTRAL:
            return True
    return False
