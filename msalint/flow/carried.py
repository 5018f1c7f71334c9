"""Loops that hand each round what the round before made of their input: `query = q_map(query)`, head by head."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msalint.facts import Fact, LoopCarries, Projected
from msalint.syntax import nodes as n


def carried_inputs(loop: n.For, facts: Iterable[Fact]) -> Iterator[LoopCarries]:
    """Attention inside a loop whose queries, keys and values are all projections put in the place of their input.

    A stack of layers hands on its context instead, and then the values have another origin.
    """
    carried = dict(_carried(loop))
    for fact in facts:
        if not isinstance(fact, Projected):
            continue
        made = [projection.at if projection is not None else None for projection in (fact.query, fact.key, fact.value)]
        found = [carried.get(id(at)) for at in made]
        for name, statement in (one for one in found if one is not None) if None not in found else ():
            yield LoopCarries(statement, name, loop.target.text, fact.at)


def _carried(loop: n.For) -> Iterator[tuple[int, tuple[str, n.Stmt]]]:
    """The calls `layer(name)`, by id, that a loop assigns to `name` and nothing else; the layer is the round's own."""
    mine = {part.id for part in loop.target.walk() if isinstance(part, n.Name)}
    for statement in loop.body:
        if not isinstance(statement, n.Assign) or len(statement.targets) != 1:
            continue
        for target, value in _pairs(statement.targets[0], statement.value):
            if not isinstance(target, n.Name) or not isinstance(value, n.Call) or len(value.args) != 1:
                continue
            given = value.args[0].value
            own = any(isinstance(part, n.Name) and part.id in mine for part in value.func.walk())
            if own and isinstance(given, n.Name) and given.id == target.id and _times_set(loop, target.id) == 1:
                yield id(value), (target.id, statement)


def _pairs(target: n.Expr, value: n.Expr | None) -> Iterator[tuple[n.Expr, n.Expr]]:
    if value is None:
        return
    if isinstance(target, n.Sequence_) and isinstance(value, n.Sequence_) and len(target.items) == len(value.items):
        yield from zip(target.items, value.items)
    else:
        yield target, value


def _times_set(loop: n.For, name: str) -> int:
    written = 0
    for node in loop.walk():
        if not isinstance(node, (n.Assign, n.AugAssign)):
            continue
        for target in node.targets if isinstance(node, n.Assign) else (node.target,):
            parts = target.items if isinstance(target, n.Sequence_) else (target,)
            written += sum(isinstance(part, n.Name) and part.id == name for part in parts)
    return written
