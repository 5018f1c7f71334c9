"""Which layers of a module torch knows of, and which are kept in plain lists where it can't see them."""

from __future__ import annotations

from dataclasses import dataclass, field

from msalint.diagnostic import Site
from msalint.facts import PlainList
from msalint.values import Instance, Items, Layer, Many, Mapping_, Value


@dataclass
class Registry:
    """Layers by identity: registered ones, and containers that hold some without registering them."""

    registered: set[object] = field(default_factory=set)
    hidden: dict[tuple[str, str], tuple[Site, str, Value]] = field(default_factory=dict)

    def copied(self) -> Registry:
        return Registry(set(self.registered), dict(self.hidden))

    def note(self, owner: str, attribute: str, value: Value, at: Site) -> None:
        """An attribute of a module was set."""
        self.hidden.pop((owner, attribute), None)
        kind = container_kind(value)
        if kind is None:
            self.register(value)
        elif any(identity(item) is not None for item in elements(value)):
            self.hidden[(owner, attribute)] = (at, kind, value)

    def register(self, value: Value) -> None:
        """A layer, or a list that registers what it holds, became known to torch."""
        mine = identity(value)
        if mine is not None:
            self.registered.add(mine)
        for item in elements(value):
            self.register(item)
        if isinstance(value, Layer):
            for child in value.children:
                self.register(child)

    def plain_lists(self) -> list[PlainList]:
        """What stayed hidden."""
        found = []
        for (_, attribute), (at, kind, value) in self.hidden.items():
            layers = [item for item in elements(value) if identity(item) is not None]
            loose = [item for item in layers if identity(item) not in self.registered]
            if loose:
                found.append(PlainList(at, attribute, kind, name_of(loose[0])))
        return found


def container_kind(value: Value) -> str | None:
    """ "list", "tuple" or "dict" for a plain container; None for a module list or anything else."""
    if isinstance(value, (Items, Many)):
        return value.kind if value.kind in {"list", "tuple"} else None
    return "dict" if isinstance(value, Mapping_) else None


def elements(value: Value) -> tuple[Value, ...]:
    if isinstance(value, Items):
        return value.items
    if isinstance(value, Many):
        return (value.element,)
    if isinstance(value, Mapping_):
        return tuple(item for _, item in value.entries)
    return ()


def identity(value: Value) -> object | None:
    """What tells one layer from another; None for what is no layer with weights."""
    if isinstance(value, Layer):
        weightless = {"Dropout", "Softmax", "Identity", "ReLU", "GELU", "Flatten", "Rearrange", "SiLU", "Tanh"}
        return None if value.kind in weightless else value.serial
    return value.key if isinstance(value, Instance) and value.key else None


def name_of(value: Value) -> str:
    if isinstance(value, Layer):
        return value.kind
    return value.cls.name if isinstance(value, Instance) else ""
