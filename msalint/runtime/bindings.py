"""Which axis name stands for which size during one call, where each was learned, and whether a shape fits them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msalint.shapes.notation import ELLIPSIS, Operation, Term, TypedAxis, parse_term


@dataclass(frozen=True)
class Binding:
    """A size, or the sizes of a variadic axis, and the place it was learned at: "axis 1 of argument `x`"."""

    size: int | tuple[int, ...]
    origin: str


Lookup = Callable[[str], "Binding | None"]


class Bindings:
    """The names bound in one call. `outer` answers for names that the instance knows (its d_model, its d_k)."""

    __slots__ = ("bound", "outer", "owned")

    def __init__(self, outer: Lookup | None = None) -> None:
        self.bound: dict[str, Binding] = {}
        self.owned: dict[str, Binding] = {}
        self.outer = outer

    def get(self, name: str) -> Binding | None:
        binding = self.owned.get(name) or self.bound.get(name)
        if binding is None and self.outer is not None:
            binding = self.outer(name)
            if binding is not None:
                self.owned[name] = binding
        return binding

    def all(self) -> dict[str, Binding]:
        """Every name in use: the instance's own, then those learned in the call."""
        return {**self.owned, **self.bound}

    def size_of(self, name: str) -> int | None:
        binding = self.get(name)
        return binding.size if binding is not None and isinstance(binding.size, int) else None

    def fit(self, axes: Sequence[TypedAxis], shape: tuple[int, ...], origin: str) -> str | None:
        """Match a shape with what is known and learn from it; the reason in words, and nothing learned, if it can't."""
        before = dict(self.bound)
        reason = self._fit(axes, shape, origin)
        if reason is not None:
            self.bound = before
        return reason

    def _fit(self, axes: Sequence[TypedAxis], shape: tuple[int, ...], origin: str) -> str | None:
        split = next((index for index, axis in enumerate(axes) if axis.kind == "variadic"), None)
        least = len(axes) - (split is not None)
        if len(shape) < least or (split is None and len(shape) != least):
            few = "at least " if split is not None else ""
            return f"it has {_count(len(shape))}, not {few}{least}"
        paired = _pair(axes, shape, split)
        late: list[tuple[TypedAxis, int, int]] = []
        for axis, size, index in paired:
            if axis.kind == "expression":
                # Its names may be bound by an axis behind it: "seq+1 seq".
                late.append((axis, size, index))
                continue
            reason = self._fit_axis(axis, size, index, origin)
            if reason is not None:
                return reason
        if split is not None:
            reason = self._fit_variadic(axes[split], shape[split : len(shape) - (len(axes) - split - 1)], origin)
            if reason is not None:
                return reason
        for axis, size, index in late:
            expected = evaluate(axis.term, self.size_of)
            if expected is not None and expected != size and not (axis.broadcast and size == 1):
                return f"axis {index} is {size}, not {axis.term} = {expected}"
        return None

    def _fit_axis(self, axis: TypedAxis, size: int, index: int, origin: str) -> str | None:
        if axis.kind == "anonymous" or (axis.broadcast and size == 1):
            return None
        if isinstance(axis.term, int):
            return None if size == axis.term else f"axis {index} is {size}, not {axis.term}"
        name = str(axis.term)
        known = self.get(name)
        if known is None:
            self.bound[name] = Binding(size, f"axis {index} of {origin}")
        elif known.size != size:
            return f"axis {index} is {size}, not {name} = {known.size}"
        return None

    def _fit_variadic(self, axis: TypedAxis, sizes: tuple[int, ...], origin: str) -> str | None:
        if axis.term == ELLIPSIS:
            return None
        name = f"*{axis.term}"
        known = self.get(name)
        if known is None:
            self.bound[name] = Binding(sizes, f"the leading axes of {origin}")
            return None
        if known.size == sizes or (axis.broadcast and _broadcasts(sizes, known.size)):
            return None
        return f"axes {sizes} are not {name} = {known.size}"


def _pair(axes: Sequence[TypedAxis], shape: tuple[int, ...], split: int | None) -> list[tuple[TypedAxis, int, int]]:
    """Each axis but the variadic one with its size and index, counted from both ends towards the variadic one."""
    front = len(axes) if split is None else split
    pairs = [(axes[index], shape[index], index) for index in range(front)]
    if split is not None:
        behind = range(len(axes) - split - 1, 0, -1)
        pairs.extend((axes[-back], shape[-back], len(shape) - back) for back in behind)
    return pairs


def _broadcasts(sizes: tuple[int, ...], known: int | tuple[int, ...]) -> bool:
    if not isinstance(known, tuple):
        return False
    return all(a == b or 1 in (a, b) for a, b in zip(reversed(sizes), reversed(known), strict=False))


def _count(axes: int) -> str:
    return "1 axis" if axes == 1 else f"{axes} axes"


def evaluate(term: Term, size_of: Callable[[str], int | None]) -> int | None:
    """The value of a size, None as long as one of its names is not known."""
    if isinstance(term, int):
        return term
    if isinstance(term, str):
        return size_of(term)
    left, right = evaluate(term.left, size_of), evaluate(term.right, size_of)
    if left is None or right is None or (term.op == "//" and right == 0):
        return None
    return _compute(term, left, right)


def _compute(term: Operation, left: int, right: int) -> int:
    if term.op == "+":
        return left + right
    if term.op == "-":
        return left - right
    return left * right if term.op == "*" else left // right


# --- the dimensions of a class ----------------------------------------------------------------------------------------

_ALIASES = (
    ("head", "heads", "num_heads", "n_heads", "n_head", "nhead", "num_attention_heads"),
    ("d_k", "head_dim", "dim_head", "d_head", "head_size", "attention_head_size"),
    ("d_model", "embed_dim", "hidden_size", "model_dim", "n_embd"),
)
_ALIASES_OF: Mapping[str, tuple[str, ...]] = {name: group for group in _ALIASES for name in group}
"""Other names under which a class may keep the size of an axis."""


@dataclass(frozen=True)
class ClassDimensions:
    """What a class says of its own sizes: `relations` such as d_model = num_heads * d_k, and names to `pin`.

    A pinned name takes its size from the first tensor that has it, and keeps it for the life of the instance.
    """

    relations: tuple[tuple[str, Term], ...] = ()
    pinned: frozenset[str] = frozenset()

    def value(self, instance: object, name: str) -> Binding | None:
        """The size the instance has for an axis name: by relation, or as an attribute of that name or an alias."""
        for axis, term in self.relations:
            if axis == name:
                size = evaluate(term, lambda part: _attribute(instance, part))
                if size is not None:
                    return Binding(size, _spell(term, instance))
        for attribute in (name, *_ALIASES_OF.get(name, ())):
            size = _attribute(instance, attribute)
            if size is not None:
                return Binding(size, f"self.{attribute}")
        return None

    def broken(self, instance: object) -> str | None:
        """The first relation that the instance's attributes contradict, in words."""
        for name, term in self.relations:
            left = _attribute(instance, name)
            right = evaluate(term, lambda part: _attribute(instance, part))
            if left is not None and right is not None and left != right:
                return f"self.{name} is {left}, but {_spell(term, instance)} is {right}"
        return None


def parse_dimensions(text: str) -> ClassDimensions:
    """Reads "d_model = num_heads * d_k, head = num_heads, vocab"; a bare name is pinned by its first tensor.

    Raises `NotationError` (a ValueError) for anything that is no name or arithmetic.
    """
    relations: list[tuple[str, Term]] = []
    pinned: set[str] = set()
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = (piece.strip() for piece in part.replace("==", "=").partition("="))
        if not name.isidentifier():
            raise ValueError(f"{name!r} in dims={text!r} is no axis name")
        if equals:
            relations.append((name, parse_term(value)))
        else:
            pinned.add(name)
    return ClassDimensions(tuple(relations), frozenset(pinned))


def inferred_dimensions(init_parameters: Sequence[str]) -> ClassDimensions:
    """What follows from a constructor that takes a width and a number of heads but no head width: the head width was
    derived, so width = heads * head width has to hold afterwards, whatever names the three go by."""
    heads, head_widths, widths = _ALIASES
    given = set(init_parameters)
    width = next((name for name in widths if name in given), None)
    count = next((name for name in heads if name in given), None)
    if width is None or count is None or given & set(head_widths):
        return ClassDimensions()
    return ClassDimensions(tuple((width, Operation("*", count, derived)) for derived in head_widths))


def _attribute(instance: object, name: str) -> int | None:
    """An int of the instance or its class. A module's `__getattr__` is never asked: it is slow and has no ints."""
    value: Any = getattr(instance, "__dict__", {}).get(name)
    if value is None:
        value = getattr(type(instance), name, None)
    return value if type(value) is int else None


def _spell(term: Term, instance: object) -> str:
    if isinstance(term, int):
        return str(term)
    if isinstance(term, str):
        return f"self.{term}"
    return f"{_spell(term.left, instance)} {term.op} {_spell(term.right, instance)}"
