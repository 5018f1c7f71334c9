"""What is at stake in a condition: how much of attention stands in the code that it decides about."""

from __future__ import annotations

import re
from collections.abc import Iterable

from msalint.syntax import nodes as n

_WORDS = frozenset(
    "softmax matmul bmm einsum baddbmm scaled_dot_product_attention masked_fill masked_fill_ flash_attn_func "
    "memory_efficient_attention flex_attention view reshape transpose permute rearrange cat repeat_kv "
    "repeat_interleave attention_interface where dropout tril triu".split()
)
_HEAVY = frozenset("softmax matmul bmm einsum baddbmm scaled_dot_product_attention masked_fill masked_fill_".split())


_CENTRAL = _HEAVY | frozenset(
    "tril triu tril_ triu_ MultiheadAttention TransformerEncoderLayer TransformerDecoderLayer TransformerEncoder "
    "TransformerDecoder flash_attn_func memory_efficient_attention flex_attention attention_interface Softmax "
    "generate_square_subsequent_mask reveal_shape".split()
)


def stake_of(node: object) -> int:
    """A rank for the other answer: 3 where scores or weights are formed, 2 where shapes change, 1 for a call, 0."""
    if isinstance(node, n.If):
        parts: tuple[n.Node, ...] = (*node.body, *node.orelse)
    elif isinstance(node, n.IfExp):
        parts = (node.body, node.orelse)
    else:
        return 1
    calls = n.calls_in(parts)
    if not calls:
        acts = any(isinstance(inner, (n.Return, n.Assign)) for part in parts for inner in part.walk())
        return 1 if acts else 0
    if "@" in calls or not calls.isdisjoint(_HEAVY):
        return 3
    return 1 if calls.isdisjoint(_WORDS) else 2


def takes_images(node: n.Stmt) -> bool:
    """Whether a class has a two-dimensional convolution: then an input may well be (batch, channels, height, width)."""
    return "Conv2d" in node.calls()


def is_central(node: n.Stmt) -> bool:
    """Whether attention, or a mask for it, is formed in a definition itself, not only in what it calls."""
    calls = node.calls()
    return "@" in calls or not calls.isdisjoint(_CENTRAL)


_LAYERS = frozenset(
    "MultiheadAttention TransformerEncoderLayer TransformerDecoderLayer TransformerEncoder TransformerDecoder "
    "Transformer".split()
)


def attention_attributes(cls: n.ClassDef) -> frozenset[str]:
    """The attributes that a class keeps torch's attention layers under: `self.encoder = nn.TransformerEncoder(...)`."""
    kept: set[str] = set()
    if cls.calls().isdisjoint(_LAYERS):
        return frozenset()
    for node in cls.walk():
        if isinstance(node, n.Assign) and isinstance(node.value, n.Call) and node.value.called in _LAYERS:
            kept |= {target.name for target in node.targets if isinstance(target, n.Attr)}
    return frozenset(kept)


_CENTRAL_TEXT = re.compile(r" @ |\.mT\b|\b(?:" + "|".join(sorted(_CENTRAL)) + r")\b")
_OUTER_LINES = 150
_SHORT = 12
_HANDS_ON = re.compile(r"\(.*\*\*(\w+)\b.*\).*:\s[\s\S]*\*\*\1\)")
"""A factory hands on its caller's settings: what it builds is not known before it is called."""
_HANDS_OVER = re.compile(
    r"mask|Mask|causal|\bqkv?\b|transpose|permute|\.view\(|reshape|rearrange|Dropout\(|ModuleList|\[i\]"
    r"|Parameter|[Pp]osition|\bpe\b|register_buffer"
)


def worth_reading(text: str, function: bool = False) -> bool:
    """Whether a definition is to be read, told by its text before it is parsed.

    One that forms attention or masks itself always is. One that only calls such definitions is read where it is short
    enough to be somebody's module and not a whole backbone, or hands over masks or moves axes; a factory is not.
    """
    if _CENTRAL_TEXT.search(text):
        return True
    lines = text.count("\n")
    if lines > _OUTER_LINES:
        return False
    if function and _HANDS_ON.search(text):
        return False
    return lines <= _SHORT or _HANDS_OVER.search(text) is not None


def script_is_worth_reading(statements: Iterable[n.Stmt], wanted: Iterable[str]) -> bool:
    """Whether statements outside of definitions form attention, build or call what does, or what is named for it."""
    calls = n.calls_in(statements)
    if "@" in calls or not calls.isdisjoint(_CENTRAL | set(wanted)):
        return True
    return any(name[:1].isupper() or "ttention" in name or "attn" in name for name in calls)
