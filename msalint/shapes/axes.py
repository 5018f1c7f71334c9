"""Axes made of atoms: each with a size, an identity, and a place in memory.

    x: (B, L, d_model)          axes  (B) (L) (d_model)      memory  B L d_model
    .view(B, L, H, d)           axes  (B) (L) (H) (d)        memory  B L H d        d_model was taken apart
    .transpose(1, 2)            axes  (B) (H) (L) (d)        memory  B L H d        only the axes moved
    .reshape(B * H, L, d)       axes  (B H) (L) (d)          memory  B H L d        merged: copied into order

An axis of no atoms has size 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

from msalint.shapes.size import Size, Symbol, product

_serials = count(1)


@dataclass(eq=False)
class Ident:
    """Where an atom was born. Two atoms are the same axis of the same thing if their identities are one object.

    `kind`: "place" (a position, a sample, a pixel), "feature" (made by a projection, or the last axis of an input),
    "regrouped" (a size that a view asked for, made of elements of several axes), or "new" (nothing is known).
    `parent`: the identity that this one was split from, or whose rows or columns it is. `part`: for a split, which part
    of how many, and `whole` the size that was split. `names` are the names people gave it, first come first;
    of those in `hearsay` only a docstring says so.
    """

    kind: str = "new"
    parent: Ident | None = None
    relation: str = ""
    part: tuple[int, int] = (0, 1)
    whole: Size | None = None
    names: list[str] = field(default_factory=list)
    hearsay: frozenset[str] = frozenset()
    serial: int = field(default_factory=lambda: next(_serials))

    def learn(self, name: str) -> None:
        """Note a name that the code itself uses; it adds to what is known and never changes it."""
        self.hearsay -= {name}
        if name and name != "_" and name not in self.names:
            self.names.append(name)

    def hear(self, name: str) -> None:
        """Note a name that a docstring uses."""
        if name not in self.names:
            self.learn(name)
            self.hearsay |= {name}

    def forget_hearsay(self) -> None:
        """The code speaks against the docstring: none of its names stays."""
        self.names[:] = [name for name in self.names if name not in self.hearsay]
        self.hearsay = frozenset()

    @property
    def root(self) -> Ident:
        """The identity that this one goes back to, through splits and products."""
        here = self
        while here.parent is not None:
            here = here.parent
        return here

    def __repr__(self) -> str:
        return f"<{self.kind} {'/'.join(self.names) or self.relation or '?'} #{self.serial}>"


@dataclass(frozen=True)
class Atom:
    """A piece of an axis that is not known to fall apart further."""

    size: Size
    ident: Ident

    @property
    def name(self) -> str:
        """What a reader calls it: the size's own name, or the first name people gave it."""
        if self.size.constant is not None and self.ident.names:
            return self.ident.names[0]
        return str(self.size)


Axis = tuple[Atom, ...]
"""Atoms in order, outermost first. An axis of no atoms has size 1."""


class ShapeVar:
    """Leading axes of unknown number: one per value whose rank the code has not told yet."""

    __slots__ = ("hint", "serial")

    def __init__(self, hint: str = "") -> None:
        self.hint, self.serial = hint, next(_serials)

    def __repr__(self) -> str:
        return f"*{self.hint or 'lead'}#{self.serial}"


MemoryItem = Ident | ShapeVar


@dataclass(frozen=True)
class Layout:
    """The order of atoms in memory, outermost first, and after which of them the next does not follow directly.

    An expanded atom takes no memory and is left out. A gap after an atom says that its stride is not the size times
    the stride of what follows, as behind a slice or an index of an inner axis. A doubt says that this may be so: behind
    `mask[:n, :n]` there is a gap unless n is all of it.
    """

    order: tuple[MemoryItem, ...]
    gaps: frozenset[MemoryItem] = frozenset()
    doubts: frozenset[MemoryItem] = frozenset()

    @staticmethod
    def dense(axes: Iterable[Axis], lead: ShapeVar | None = None) -> Layout:
        """The contiguous layout of these axes."""
        front: tuple[MemoryItem, ...] = () if lead is None else (lead,)
        return Layout(front + tuple(atom.ident for axis in axes for atom in axis))

    def follows(self, first: MemoryItem, second: MemoryItem) -> bool:
        """Whether `second` lies, or may lie, right behind `first`, so that the two can be one axis."""
        for here, after in zip(self.order, self.order[1:]):
            if here is first:
                return after is second and first not in self.gaps
        return False

    def splits(self, parts: Mapping[Ident, tuple[Ident, ...]]) -> Layout:
        """The layout with atoms replaced by the parts they fell into; a gap stays behind the last part."""
        layout = self
        for item in self.order if parts else ():
            pieces = parts.get(item) if isinstance(item, Ident) else None
            if pieces:
                layout = layout._replaced(item, pieces)
        return layout

    def without(self, item: MemoryItem) -> Layout:
        """The layout once one position of `item` is picked: what lay around it no longer touches."""
        before = self._before(item)
        layout = self._replaced(item, ())
        return layout if before is None else layout.parted(before)

    def squeezed(self, items: Iterable[MemoryItem]) -> Layout:
        """The layout without atoms of size 1, which take no place in memory and part nothing."""
        layout = self
        for item in items:
            layout = layout._replaced(item, ())
        return layout

    def cut(self, old: MemoryItem, new: MemoryItem, step: bool = False, whole: bool = False) -> Layout:
        """The layout once only part of `old` is kept, under a new identity; `whole`: it may well be all of it."""
        before = self._before(old)
        layout = self._replaced(old, (new,))
        if before is not None:
            layout = layout.parted(before, doubtful=whole)
        return layout.parted(new) if step else layout

    def parted(self, item: MemoryItem, doubtful: bool = False) -> Layout:
        """The layout with a gap, or a doubt, after an item that is in it."""
        if item not in self.order or item in self.gaps:
            return self
        if doubtful:
            return Layout(self.order, self.gaps, self.doubts | {item})
        return Layout(self.order, self.gaps | {item}, self.doubts - {item})

    def renamed(self, names: Mapping[MemoryItem, MemoryItem]) -> Layout:
        """The layout with atoms under other identities."""
        order, gaps, doubts = ([names.get(i, i) for i in items] for items in (self.order, self.gaps, self.doubts))
        return Layout(tuple(order), frozenset(gaps), frozenset(doubts))

    def expand_lead(self, lead: ShapeVar, replacement: Sequence[MemoryItem]) -> Layout:
        """The layout once the axes that `lead` stands for are known."""
        return self._replaced(lead, replacement)

    def closed(self) -> Layout:
        """The dense layout of the same order, which an elementwise operation gives its result."""
        return Layout(self.order) if self.gaps or self.doubts else self

    def _before(self, item: MemoryItem) -> MemoryItem | None:
        place = self.order.index(item) if item in self.order else 0
        return self.order[place - 1] if place > 0 else None

    def _replaced(self, item: MemoryItem, by: Sequence[MemoryItem]) -> Layout:
        """Other items in the place of one; the gap behind it then stands behind the last of them."""
        if item not in self.order:
            return self
        place = self.order.index(item)
        order = (*self.order[:place], *by, *self.order[place + 1 :])
        heir = {order[place + len(by) - 1]} if place + len(by) > 0 else set()
        gaps = self.gaps - {item} | heir if item in self.gaps else self.gaps
        doubts = self.doubts - {item} | heir if item in self.doubts else self.doubts
        return Layout(order, frozenset(gaps), frozenset(doubts - gaps))


def axis_size(axis: Axis) -> Size:
    """The size of an axis: the product of its atoms."""
    return Size.of(axis[0].size) if len(axis) == 1 else product(atom.size for atom in axis)


def axis_name(axis: Axis) -> str:
    """What a reader would write for an axis: `H*d` for a merged one, `1` for one of no atoms."""
    if not axis:
        return "1"
    names = []
    for atom in axis:
        name = atom.name
        plain = name.replace("_", "").replace(".", "").isalnum()
        names.append(name if plain or len(axis) == 1 else f"({name})")
    return "*".join(names)


def shape_text(axes: Sequence[Axis], lead: ShapeVar | None = None) -> str:
    """`(B, H, L, d)`, with `...` for leading axes of unknown number."""
    names = [axis_name(axis) for axis in axes]
    if lead is not None:
        names.insert(0, "...")
    return f"({', '.join(names)}{',' if len(names) == 1 else ''})"


def fresh(size: Size | Symbol | int, kind: str = "new", *names: str, **more: object) -> Atom:
    """A new atom of a new identity."""
    ident = Ident(kind, names=[name for name in names if name], **more)  # type: ignore[arg-type]
    return Atom(Size.of(size), ident)


def fresh_axis(size: Size | Symbol | int, kind: str = "new", *names: str, **more: object) -> Axis:
    """An axis of one new atom, or of none for size 1."""
    size = Size.of(size)
    return () if size.is_one else (fresh(size, kind, *names, **more),)


def split_atom(atom: Atom, sizes: Sequence[Size]) -> tuple[Atom, ...]:
    """An atom taken apart into parts of these sizes, each a child of its identity."""
    total = len(sizes)
    return tuple(
        Atom(size, Ident(atom.ident.kind, parent=atom.ident, relation="split", part=(i, total), whole=atom.size))
        for i, size in enumerate(sizes)
    )
