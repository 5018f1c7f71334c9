"""Projections that were mixed up: a value made by the key's layer, while the value's own stands idle."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from msalint.facts import Fact, MixedUp, Projected
from msalint.shapes.vocabulary import slot_of_name
from msalint.syntax import nodes as n
from msalint.values import Layer, Projection, replace

if TYPE_CHECKING:
    from msalint.flow.interpreter import Interpreter


def with_mixed_up(facts: Iterable[Fact], interpreter: Interpreter) -> Iterator[Fact]:
    """The facts, with what is known of mixed-up projections at each attention."""
    for fact in facts:
        if isinstance(fact, Projected):
            slots = (("query", fact.query), ("key", fact.key), ("value", fact.value))
            found = [_mixed_up(interpreter, slot, made) for slot, made in slots if made is not None]
            fact = replace(fact, mixed_up=tuple(one for one in found if one is not None))
        yield fact


def _mixed_up(interpreter: Interpreter, slot: str, made: Projection) -> MixedUp | None:
    """A projection by the layer of another slot, though the module has one of this slot that nothing calls."""
    if made.at is None or slot_of_name(made.layer) in {slot, None}:
        return None
    attributes = interpreter.state.attributes
    layers = {place: value for place, value in attributes.items() if isinstance(value, Layer)}
    mine = [(owner, layer) for (owner, _), layer in layers.items() if layer.serial == made.serial]
    if not mine:
        return None
    owner, used = mine[0]
    own = [
        name
        for (key, name), layer in layers.items()
        if key == owner and slot_of_name(name) == slot and layer.serial != used.serial and layer.kind == used.kind
    ]
    if len(own) != 1 or _is_used(interpreter, owner, own[0]):
        return None
    return MixedUp(slot, made.layer, own[0], made.at)


def _is_used(interpreter: Interpreter, owner: str, name: str) -> bool:
    """Whether a class speaks of an attribute but to make and to initialise it; yes where that can't be told."""
    cls = interpreter.objects.get(owner)
    if cls is None:
        return True
    lineage = interpreter.program.lineage(cls)
    return any(_speaks_of(one.node, name) for one in lineage or [cls])


def _speaks_of(node: n.Node, name: str) -> bool:
    if isinstance(node, n.Attr) and node.name == name:
        return True
    if isinstance(node, n.Const):
        return isinstance(node.value, str) and node.value == name
    if isinstance(node, n.Name):
        return node.id in {"getattr", "setattr"}
    if isinstance(node, n.Call) and "init" in node.func.words():
        return False
    if isinstance(node, n.Assign):
        targets = _written(node.targets)
        others = [target for target in targets if not (isinstance(target, n.Attr) and target.name == name)]
        parts: list[n.Node] = [*others, *([node.value] if node.value is not None else [])]
        return any(_speaks_of(part, name) for part in parts)
    return any(_speaks_of(child, name) for child in node.children())


def _written(targets: Iterable[n.Expr]) -> Iterator[n.Expr]:
    """What an assignment writes to, tuples taken apart."""
    for target in targets:
        if isinstance(target, n.Sequence_):
            yield from _written(target.items)
        else:
            yield target
