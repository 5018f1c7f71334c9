"""Attention sites by their spelling: what the count of understood sites is measured against."""

from __future__ import annotations

from collections.abc import Iterator

from msalint.syntax import nodes as n
from msalint.syntax.module import Module

_SOFTMAX = frozenset({"softmax"})
_PRODUCTS = frozenset({"matmul", "bmm", "einsum", "baddbmm"})
_CALLS = frozenset(
    "scaled_dot_product_attention flash_attn_func flash_attn_varlen_func memory_efficient_attention flex_attention "
    "attention_interface".split()
)


def unread_sites(module: Module) -> Iterator[n.Node]:
    """Calls in the wanted definitions that form attention by their spelling.

    A softmax counts where the same function multiplies matrices too; a call of an attention API counts by itself.
    """
    for name in module.wanted:
        definition = module.definition(name)
        if definition is not None:
            yield from _within(definition)


def _within(node: n.Node) -> Iterator[n.Node]:
    for function in _functions(node):
        softmaxes, products = [], False
        for part in _own_nodes(function):
            if isinstance(part, n.Binary) and part.op == "@":
                products = True
            if not isinstance(part, n.Call):
                continue
            called = part.called
            if called in _CALLS and _own_method(part):
                continue
            if called in _SOFTMAX:
                softmaxes.append(part)
            elif called in _PRODUCTS:
                products = True
            elif called in _CALLS:
                yield part
        if products:
            yield from softmaxes


def _functions(node: n.Node) -> Iterator[n.FunctionDef]:
    for part in node.walk():
        if isinstance(part, n.FunctionDef):
            yield part


def _own_nodes(function: n.FunctionDef) -> Iterator[n.Node]:
    """The nodes of a function without those of functions inside it."""
    waiting: list[n.Node] = list(function.body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (n.FunctionDef, n.ClassDef)):
            waiting.extend(node.children())


def _own_method(call: n.Call) -> bool:
    """`self.scaled_dot_product_attention(...)` is the class's own method, which is read by itself."""
    func = call.func
    if not isinstance(func, n.Attr):
        return False
    receiver = func.value.func if isinstance(func.value, n.Call) else func.value
    return isinstance(receiver, n.Name) and receiver.id in {"self", "super"}
