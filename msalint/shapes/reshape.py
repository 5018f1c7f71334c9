"""What `view` and `reshape` do to axes: aligned, merged, split, or scrambled.

Memory is read in row-major order, so a target shape is right only if it takes the source's atoms in the order they
stand in. The two ends are matched first, then what is left in the middle:

    (B) (L) (H d)  ->  B, L, H, d      every target takes the next atoms: aligned
    (B) (L) (H d)  ->  B, H, L, d      the middle holds L H and wants H L: the same sizes in another order: scrambled
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from msalint.shapes.axes import Atom, Axis, Ident, Layout, fresh_axis, split_atom
from msalint.shapes.relations import Division, Relations
from msalint.shapes.size import Quotient, Size, product

Target = Size | None
"""A size of the wanted shape; None stands for -1."""


@dataclass(frozen=True)
class Scramble:
    """The same atoms in another order: what the code takes for axis `wanted` is a run of `found`.

    `before`: the atoms in memory order; `after`: the atoms that the target names, in its order. `inferred`: those that
    were left for a -1.
    """

    before: tuple[Atom, ...]
    after: tuple[Axis, ...]
    inferred: Axis = ()


@dataclass(frozen=True)
class Reshaped:
    """The outcome of a reshape.

    `axes`: the result's; `splits`: which atoms fell into which parts; `relies`: divisions taken to be exact without a
    proof; `aligned`: every result atom is one of the source's, or a part of one; `mismatch`: the element counts can
    never agree; `left_over`: atoms that the target has no room for, all others being matched.
    """

    axes: tuple[Axis, ...]
    splits: dict[Ident, tuple[Ident, ...]] = field(default_factory=dict)
    relies: frozenset[Division] = frozenset()
    aligned: bool = False
    scramble: Scramble | None = None
    mismatch: bool = False
    left_over: Axis = ()


class _Matching:
    """One reshape at work: the atoms still to be taken, and the target's axes found so far."""

    def __init__(self, atoms: Sequence[Atom], target: Sequence[Target], relations: Relations) -> None:
        self.atoms = list(atoms)
        self.target = list(target)
        self.relations = relations
        self.axes: list[Axis | None] = [None] * len(target)
        self.relies: set[Division] = set()
        self.parts: dict[Ident, tuple[Atom, ...]] = {}
        self.unproved: set[Ident] = set()
        """What is left of a feature after a size that is not known to divide it."""

    def take(self, size: Size, from_right: bool) -> Axis | None:
        """Take atoms from one end that make up exactly `size`; None (and nothing taken) if they don't."""
        atoms, relies, parts = list(self.atoms), set(self.relies), dict(self.parts)
        taken: list[Atom] = []
        rest = self.relations.resolve(size)
        while not rest.is_one:
            if not self.atoms:
                break
            atom = self.atoms.pop(-1 if from_right else 0)
            verdict = self.relations.compare(atom.size, rest)
            if verdict.certainly:
                self.relies |= verdict.relies
                taken.append(atom)
                return tuple(reversed(taken)) if from_right else tuple(taken)
            whole = self.relations.divide(rest, atom.size)
            if whole is not None:
                rest, relied = whole
                self.relies |= relied
                taken.append(atom)
                continue
            piece = self.relations.divide(atom.size, rest)
            if piece is None:
                break
            other, relied = piece
            self.relies |= relied
            sizes = (other, rest) if from_right else (rest, other)
            left, right = self.split(atom, sizes)
            mine, remaining = (right, left) if from_right else (left, right)
            self.atoms.insert(len(self.atoms) if from_right else 0, remaining)
            taken.append(mine)
            return tuple(reversed(taken)) if from_right else tuple(taken)
        else:
            return tuple(reversed(taken)) if from_right else tuple(taken)
        self.atoms, self.relies, self.parts = atoms, relies, parts
        return None

    def split(self, atom: Atom, sizes: Sequence[Size]) -> tuple[Atom, ...]:
        pieces = split_atom(atom, sizes)
        self.parts[atom.ident] = pieces
        return pieces

    def ends(self) -> tuple[int, int]:
        """Match the target from the left, then from the right; the range of targets that are left."""
        low, high = 0, len(self.target)
        while low < high:
            size = self.target[low]
            axis = None if size is None else self.take(size, from_right=False)
            if axis is None:
                break
            self.axes[low] = axis
            low += 1
        while high > low:
            size = self.target[high - 1]
            axis = None if size is None else self.take(size, from_right=True)
            if axis is None:
                break
            self.axes[high - 1] = axis
            high -= 1
        return low, high


def reshape(axes: Sequence[Axis], target: Sequence[Target], relations: Relations) -> Reshaped:
    """Match a target shape against axes, as `view` and `reshape` read them."""
    work = _Matching([a for axis in axes for a in axis if not relations.resolve(a.size).is_one], target, relations)
    low, high = work.ends()
    middle = list(range(low, high))
    if not middle:
        if work.atoms and product(atom.size for atom in work.atoms).constant != 1:
            return replace(_lost(axes, target, work), left_over=tuple(work.atoms))
        return _settled(work)
    if len(middle) == 1:
        size = target[middle[0]]
        if size is None or _may_equal(work, size):
            work.axes[middle[0]] = tuple(work.atoms)
            return _settled(work)
        return _lost(axes, target, work)
    if len(work.atoms) == 1:
        return _split_last(axes, target, work, middle)
    scramble = _reordered(work, middle)
    if scramble is not None:
        lost = _lost(axes, target, work)
        return Reshaped(lost.axes, relies=frozenset(work.relies), scramble=scramble)
    return _lost(axes, target, work)


def _may_equal(work: _Matching, size: Size) -> bool:
    """One target is left for all atoms that are left: the element count says they are equal, if the code runs."""
    if not work.atoms:
        return False
    return not work.relations.compare(product(atom.size for atom in work.atoms), size).never


def _split_last(axes: Sequence[Axis], target: Sequence[Target], work: _Matching, middle: list[int]) -> Reshaped:
    """One atom is left for several targets: it is taken apart by them."""
    atom = work.atoms[0]
    sizes = [target[i] for i in middle]
    if None in sizes:
        known = product(size for size in sizes if size is not None)
        division = work.relations.divide(atom.size, known)
        if division is None:
            rest = atom.size // known
            if isinstance(rest.symbol, Quotient):
                work.relies |= work.relations._unproved(frozenset({(rest.symbol.numerator, rest.symbol.denominator)}))
        else:
            rest = division[0]
            work.relies |= division[1]
        sizes = [rest if size is None else size for size in sizes]
    settled = [size for size in sizes if size is not None]
    if work.relations.compare(product(settled), atom.size).never:
        return _lost(axes, target, work)
    kept = [size for size in settled if not size.is_one]
    pieces = iter(work.split(atom, kept))
    for i, size in zip(middle, settled):
        work.axes[i] = () if size.is_one else (next(pieces),)
    return _settled(work)


def _reordered(work: _Matching, middle: list[int]) -> Scramble | None:
    """Whether the targets in the middle name the atoms in the middle, all of them, in another order."""
    remaining = list(work.atoms)
    named: dict[int, Axis] = {}
    for i in middle:
        size = work.target[i]
        if size is None:
            continue
        axis = _named_by(work, size, remaining)
        if axis is None:
            return None
        named[i] = axis
    wildcards = [i for i in middle if work.target[i] is None]
    if wildcards:
        if len(remaining) > 1 and any(atom.ident in work.unproved for atom in remaining):
            return None
        named[wildcards[0]] = tuple(remaining)
    elif remaining:
        return None
    wanted = tuple(named[i] for i in middle)
    order = [atom.ident for axis in wanted for atom in axis]
    before = tuple(leaf for atom in work.atoms for leaf in _fallen(work, atom))
    sizes = [atom.size for atom in before]
    if len(order) != len(before) or len(set(sizes)) != len(sizes):
        return None
    if _known_order(order) == _known_order([atom.ident for atom in before]):
        return None
    return Scramble(before, wanted, named[wildcards[0]] if wildcards else ())


def _known_order(idents: Sequence[Ident]) -> list[Ident]:
    """The identities whose place among the elements is known: what was regrouped may hold any of them."""
    return [ident for ident in idents if ident.kind != "regrouped"]


def _named_by(work: _Matching, size: Size, remaining: list[Atom]) -> Axis | None:
    """The atoms whose product a target is, taken out of `remaining`; the last feature is taken apart if need be."""
    order = list(remaining)
    rest, taken, progress = size, [], True
    while progress and not rest.is_one:
        progress = False
        for atom in list(remaining):
            division = work.relations.divide(rest, atom.size)
            if division is not None:
                rest, progress = division[0], True
                taken.append(atom)
                remaining.remove(atom)
                if rest.is_one:
                    break
    taken.sort(key=order.index)
    if rest.is_one:
        return tuple(taken)
    last = remaining[-1] if remaining else None
    if last is None or last.ident.kind != "feature" or rest.symbol is None:
        return None
    division = work.relations.divide(last.size, rest)
    if division is None and last.ident.relation == "split":
        return None
    other = division[0] if division is not None else last.size // rest
    piece, left = work.split(last, (rest, other))
    if division is None:
        work.unproved.add(left.ident)
    remaining[-1] = left
    return (*taken, piece)


def _fallen(work: _Matching, atom: Atom) -> tuple[Atom, ...]:
    """The parts that an atom fell into, itself if it did not."""
    if atom.ident not in work.parts:
        return (atom,)
    return tuple(leaf for part in work.parts[atom.ident] for leaf in _fallen(work, part))


def _settled(work: _Matching) -> Reshaped:
    axes = tuple(axis if axis is not None else () for axis in work.axes)
    return Reshaped(axes, _leaves(work.parts), frozenset(work.relies), aligned=True)


def _lost(axes: Sequence[Axis], target: Sequence[Target], work: _Matching) -> Reshaped:
    """The result's sizes are known, its relation to the source is not."""
    relations = work.relations
    total = product(atom.size for axis in axes for atom in axis)
    known = product(size for size in target if size is not None)
    mismatch = False
    rest: Size | None = None
    if None in target:
        division = relations.divide(total, known)
        rest = division[0] if division is not None else total // known
        a, b = total.constant, known.constant
        mismatch = a is not None and b is not None and b > 0 and a % b != 0
    else:
        mismatch = relations.compare(total, known).never
    result = []
    for size in target:
        settled = rest if size is None else size
        assert settled is not None
        result.append(fresh_axis(settled, "regrouped"))
    return Reshaped(tuple(result), relies=frozenset(work.relies), mismatch=mismatch)


def _leaves(parts: dict[Ident, tuple[Atom, ...]]) -> dict[Ident, tuple[Ident, ...]]:
    """Splits of splits written out: each source atom to the last parts that it fell into."""
    return {ident: _leaves_of(ident, parts) for ident in parts}


def _leaves_of(ident: Ident, parts: dict[Ident, tuple[Atom, ...]]) -> tuple[Ident, ...]:
    if ident not in parts:
        return (ident,)
    return tuple(leaf for atom in parts[ident] for leaf in _leaves_of(atom.ident, parts))


@dataclass(frozen=True)
class Broken:
    """Two atoms that a view merges though they don't lie next to each other in memory."""

    outer: Atom
    inner: Atom


def first_broken_merge(axes: Sequence[Axis], layout: Layout) -> Broken | None:
    """The first merge that memory order does not allow, None if a view is legal."""
    for axis in axes:
        for outer, inner in zip(axis, axis[1:]):
            if not layout.follows(outer.ident, inner.ident):
                return Broken(outer, inner)
    return None
