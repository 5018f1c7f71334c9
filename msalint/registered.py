"""Which layers of a module torch knows of, and which are kept in plain lists where it can't see them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from msalint.diagnostic import Site
from msalint.values import ClassValue, Instance, Items, Layer, Many, Mapping_, Tensor, Value


@dataclass(frozen=True)
class Plain:
    """A plain container that a module of `owner` keeps: where it was made, its kind, and what it holds by now."""

    owner: ClassValue
    attribute: str
    at: Site
    kind: str
    value: Value

    @property
    def made_at(self) -> Site | None:
        return self.value.at if isinstance(self.value, (Items, Many, Mapping_)) else None


@dataclass
class Registry:
    """Layers by identity: registered ones, and containers that hold some without registering them.

    `handed` are layers that an `__init__` was given in a container: whoever built them may have registered them.
    """

    registered: set[object] = field(default_factory=set)
    plain: dict[tuple[str, str], Plain] = field(default_factory=dict)
    handed: set[object] = field(default_factory=set)

    def copied(self) -> Registry:
        return Registry(set(self.registered), dict(self.plain), set(self.handed))

    def hand(self, value: Value) -> None:
        """A container was given to the `__init__` of an object."""
        for item in elements(value):
            mine = identity(item)
            if mine is not None:
                self.handed.add(mine)
            self.hand(item)

    def note(self, receiver: Instance, attribute: str, value: Value, at: Site) -> None:
        """An attribute of a module was set. A container that only grew stays where it was made."""
        before = self.plain.pop((receiver.key, attribute), None)
        kind = container_kind(value)
        if kind is None:
            self.register(value)
            return
        now = Plain(receiver.cls, attribute, at, kind, value)
        if before is not None and now.made_at is not None and before.made_at is now.made_at:
            now = Plain(receiver.cls, attribute, before.at, kind, value)
        self.plain[(receiver.key, attribute)] = now

    def regard(self, owner: str, attribute: str, value: Value) -> None:
        """A container that holds more than was known when it was noted."""
        before = self.plain.get((owner, attribute))
        if before is not None:
            self.plain[(owner, attribute)] = replace(before, value=value)

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

    def unregistered(self, attributes: Mapping[tuple[str, str], Value]) -> list[tuple[Plain, str]]:
        """The containers with layers that stayed hidden, and what the first of those is.

        `attributes` are those of all objects, by object and name.
        """
        found = []
        seen = self.registered | self.handed
        for one in self.plain.values():
            layers = [item for item in elements(one.value) if identity(item) is not None]
            loose = [item for item in layers if identity(item) not in seen and has_weights(item, attributes)]
            if loose:
                found.append((one, name_of(loose[0])))
        return found


def container_kind(value: Value) -> str | None:
    """ "list", "tuple" or "dict" for a plain container; None for a module list or anything else."""
    if isinstance(value, (Items, Many)):
        return value.kind if value.kind in {"list", "tuple"} else None
    return "dict" if isinstance(value, Mapping_) and value.kind == "dict" else None


def elements(value: Value) -> tuple[Value, ...]:
    if isinstance(value, Items):
        return value.items
    if isinstance(value, Many):
        return (value.element,)
    if isinstance(value, Mapping_):
        return (*(item for _, item in value.entries), *((value.other,) if value.other is not None else ()))
    return ()


def identity(value: Value) -> object | None:
    """What tells one layer from another; None for what is no layer with weights."""
    if isinstance(value, Layer):
        return None if _is_weightless(value) else value.serial
    return value.key if isinstance(value, Instance) and value.key else None


_WEIGHTLESS = frozenset(
    "Softmax LogSoftmax Softmax2d Softmin Identity Flatten Unflatten Rearrange Reduce Fold Unfold Upsample "
    "PixelShuffle PixelUnshuffle ChannelShuffle UpsamplingNearest2d UpsamplingBilinear2d CosineSimilarity "
    "PairwiseDistance ReLU ReLU6 RReLU LeakyReLU GELU SiLU ELU SELU CELU GLU Mish Tanh Sigmoid LogSigmoid Softplus "
    "Softshrink Softsign Hardtanh Hardswish Hardsigmoid Hardshrink Tanhshrink Threshold QuickGELU".split()
)


def _is_weightless(layer: Layer) -> bool:
    """Whether a layer has nothing to train, save or move."""
    if layer.kind == "Sequential":
        return all(isinstance(child, Layer) and _is_weightless(child) for child in layer.children)
    return layer.kind in _WEIGHTLESS or any(word in layer.kind for word in ("Dropout", "Pool", "Pad", "Loss"))


def has_weights(
    value: Value, attributes: Mapping[tuple[str, str], Value], inside: frozenset[str] = frozenset()
) -> bool:
    """Whether a layer, an object or a container is known to hold something to train, save or move.

    `inside`: the objects that are being asked, which may hold one another.
    """
    if isinstance(value, Layer):
        return not _is_weightless(value)
    if isinstance(value, Tensor):
        return value.traits.parameter or value.traits.buffer
    if isinstance(value, Instance):
        if value.key in inside:
            return False
        kept = [held for (owner, _), held in attributes.items() if owner == value.key]
        return any(has_weights(held, attributes, inside | {value.key}) for held in kept)
    return any(has_weights(item, attributes, inside) for item in elements(value))


def name_of(value: Value) -> str:
    if isinstance(value, Layer):
        return value.kind
    return value.cls.name if isinstance(value, Instance) else ""
