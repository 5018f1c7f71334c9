"""Lists of layers that are one layer over and over, or that were all given one: `[layer] * n`, `[layer for ...]`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msalint.facts import LayersShared
from msalint.flow.program import Program
from msalint.flow.stakes import is_central
from msalint.state import State
from msalint.syntax import nodes as n
from msalint.values import ClassValue, Instance, Items, Layer, Value

_ATTENDING = frozenset(
    "MultiheadAttention TransformerEncoderLayer TransformerDecoderLayer TransformerEncoder TransformerDecoder "
    "Transformer".split()
)


class Shared:
    """Noting what a list shares, for the ModuleList that may take it in."""

    state: State
    program: Program

    if TYPE_CHECKING:

        def eval(self, node: n.Expr) -> Value: ...

    def note_repeated(self, listed: Value, written: n.Node, at: n.Node) -> None:
        """`[layer] * n`."""
        if isinstance(listed, Items) and len(listed.items) == 1 and self._attends(listed.items[0]):
            only = written.items[0] if isinstance(written, n.Sequence_) and written.items else written
            self.state.shared[id(at)] = (only.text, True)

    def note_shared(self, node: n.Comprehension) -> None:
        """`[layer for _ in range(n)]`, `[Block(width, layer) for _ in range(n)]`."""
        mine = {part.id for loop in node.loops for part in loop.target.walk() if isinstance(part, n.Name)}
        element = node.element
        if _root(element) is not None:
            candidates, whole = [element], True
        elif isinstance(element, n.Call) and self._makes_module(element):
            candidates, whole = [arg.value for arg in element.args if not arg.star], False
        else:
            return
        for candidate in candidates:
            root = _root(candidate)
            if root is None or root in mine:
                continue
            value = self.eval(candidate)
            if self._attends(value) or (not whole and _is_feed_forward(value)):
                self.state.shared[id(node)] = (candidate.text, whole)
                return

    def tell_unpacked(self, call: n.Call) -> None:
        """`nn.Sequential(*[layer] * n)`: the layers in a row are one layer."""
        for arg in call.args if isinstance(call.func, (n.Attr, n.Name)) else ():
            shared = self.state.shared.get(id(arg.value)) if arg.star == "*" else None
            if shared is not None:
                self.state.emit(LayersShared(arg.value, shared[0], shared[1], self.state.purpose()))

    def _makes_module(self, call: n.Call) -> bool:
        made = self.eval(call.func) if _root(call.func) is not None else None
        return isinstance(made, ClassValue) and self.program.is_module(made)

    def _attends(self, value: Value, around: frozenset[str] = frozenset()) -> bool:
        """Whether a value is a layer of a stack: one that forms attention, or keeps one that does.

        What many depths share on purpose is none: prediction heads, embeddings, norms, rotary tables. `around`: the
        objects that it was found in, which it may know in turn.
        """
        if isinstance(value, Layer):
            return value.kind in _ATTENDING or any(self._attends(child, around) for child in value.children)
        if not isinstance(value, Instance) or value.key in around or not self.program.is_module(value.cls):
            return False
        kept = [one for (key, _), one in self.state.attributes.items() if key == value.key]
        return is_central(value.cls.node) or any(self._attends(one, around | {value.key}) for one in kept)


def _is_feed_forward(value: Value) -> bool:
    """Linear layers in a row."""
    children = value.children if isinstance(value, Layer) else ()
    return sum(isinstance(child, Layer) and child.kind == "Linear" for child in children) > 1


def _root(node: n.Expr) -> str | None:
    """The name that a path begins with; None for any other expression."""
    while isinstance(node, n.Attr):
        node = node.value
    return node.id if isinstance(node, n.Name) else None
