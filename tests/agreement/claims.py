"""What the flow claims of each assignment, path by path, and whether a run agrees with one of the paths."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from msalint.facts import Bound, shape_of
from msalint.flow.interpreter import Interpreter
from msalint.flow.paths import Analysis, Checkpoint, Entry
from msalint.flow.program import Program
from msalint.gate import candidates
from msalint.project import Project
from msalint.shapes.axes import Layout, MemoryItem
from msalint.shapes.size import Quotient, Size, Symbol
from msalint.state import State
from msalint.syntax.module import Module
from msalint.values import Tensor
from tests.agreement.watch import Outermost, Seen

Place = tuple[int, str]
"""A line and a name that is bound on it."""


@dataclass
class Path_:
    """One path through one entry: what it claims at each place, in the order it went by."""

    state: State
    claims: dict[Place, list[Tensor]] = field(default_factory=dict)
    entry_line: int = 0


class _Recording(Analysis):
    """The analysis, with the interpreter of each path kept."""

    def __init__(self, program: Program) -> None:
        super().__init__(program, trace=True)
        self.runs: list[tuple[Entry, Interpreter]] = []

    def run(self, entry: Entry, given: dict[str, bool], checkpoints: list[Checkpoint] | None = None) -> Interpreter:
        interpreter = super().run(entry, given, checkpoints)
        self.runs.append((entry, interpreter))
        return interpreter


def paths_of(file: Path) -> list[Path_]:
    """Every path through a file, with its claims about tensors in that file."""
    text = file.read_text(encoding="utf-8")
    outline = candidates(text, str(file))
    if outline is None:
        return []
    analysis = _Recording(Program(Module(outline, str(file)), Project([str(file.parent)])))
    for _ in analysis.facts():
        pass
    found = []
    for entry, interpreter in analysis.runs:
        path = Path_(interpreter.state, entry_line=entry.function.line if entry.function is not None else 0)
        for fact in interpreter.state.facts:
            if isinstance(fact, Bound) and isinstance(fact.value, Tensor) and fact.at.filename == str(file):
                place = (fact.at.span.start.line, fact.name)
                path.claims.setdefault(place, []).append(interpreter.state.resolve(fact.value))
        found.append(path)
    return found


# --- sizes under a binding ---------------------------------------------------------------------------------------


@dataclass
class Equations:
    """Symbolic sizes with the integers they were in a run; symbols are solved for as soon as one is left."""

    state: State
    values: dict[Symbol, int] = field(default_factory=dict)
    open: list[tuple[Size, int]] = field(default_factory=list)

    def copy(self) -> Equations:
        return Equations(self.state, dict(self.values), list(self.open))

    def hold(self, more: Sequence[tuple[Size, int]]) -> bool:
        """Whether the equations still have a solution with these; symbols that they settle are settled."""
        self.open += [(self.state.relations.resolve(size), value) for size, value in more]
        progress = True
        while progress:
            progress = False
            waiting, self.open = self.open, []
            for size, value in waiting:
                answer = self._settle(size, value)
                if answer is None:
                    self.open.append((size, value))
                elif not answer:
                    return False
                else:
                    progress = True
        return True

    def _settle(self, size: Size, value: int) -> bool | None:
        """True or False for an equation that is decided (or decides a symbol), None for one that stays open."""
        unknown = {symbol for symbol in _leaves(size) if symbol not in self.values}
        if not unknown:
            known = self.worth(size)
            return known is None or known == value
        parts = size.factors()
        if len(unknown) == 1 and parts is not None and not any(isinstance(symbol, Quotient) for symbol in parts[0]):
            symbol = unknown.pop()
            others = parts[1]
            for factor in parts[0]:
                others *= self.values.get(factor, 1)
            if parts[0].count(symbol) == 1 and others:
                self.values[symbol] = value // others
                return value % others == 0
        return None

    def worth(self, size: Size) -> int | None:
        total = 0
        for monomial, coefficient in size.terms:
            product = coefficient
            for symbol in monomial:
                if isinstance(symbol, Quotient):
                    top, bottom = self.worth(symbol.numerator), self.worth(symbol.denominator)
                    if top is None or not bottom:
                        return None
                    product *= top // bottom
                elif symbol in self.values:
                    product *= self.values[symbol]
                else:
                    return None
            total += product
        return total


def _leaves(size: Size) -> Iterator[Symbol]:
    for symbol in size.symbols():
        if isinstance(symbol, Quotient):
            yield from _leaves(symbol.numerator)
            yield from _leaves(symbol.denominator)
        else:
            yield symbol


# --- one call against one path -----------------------------------------------------------------------------------


def contradiction(path: Path_, call: Outermost) -> str:
    """The first thing in a call that no claim of the path allows, in words; "" if there is none."""
    equations = Equations(path.state)
    turns: dict[Place, int] = {}
    layouts: list[tuple[Tensor, Seen]] = []
    for seen in call.seen:
        place = (seen.line, seen.name)
        claims = path.claims.get(place)
        if not claims:
            continue
        turn = turns.get(place, 0)
        turns[place] = turn + 1
        ordered = [*claims[turn % len(claims) :], *claims[: turn % len(claims)]]
        for claim in ordered:
            trial = equations.copy()
            if fits(trial, claim, seen):
                equations = trial
                layouts.append((claim, seen))
                break
        else:
            return f"line {seen.line}: {seen.name} is {seen.shape}, claimed {' or '.join(map(shape_of, claims))}"
    for claim, seen in layouts if call.dense else ():
        problem = misplaced(equations, claim, seen)
        if problem:
            return problem
    return ""


def fits(equations: Equations, claim: Tensor, seen: Seen) -> bool:
    """Whether a claim's rank and sizes can be those of a tensor; the equations learn its sizes."""
    number = len(claim.axes)
    if number > len(seen.shape) or (claim.lead is None and number != len(seen.shape)):
        return False
    behind = seen.shape[len(seen.shape) - number :]
    state = equations.state
    pairs = [(state.size_of(axis), size) for axis, size in zip(claim.axes, behind)]
    return equations.hold(pairs)


def misplaced(equations: Equations, claim: Tensor, seen: Seen) -> str:
    """What is wrong with a claimed memory order, in words; "" where it agrees, or claims nothing for sure."""
    layout = claim.layout
    if layout is None or claim.lead is not None or claim.traits.implementation_layout or 0 in seen.shape:
        return ""
    strides: dict[MemoryItem, tuple[int, int]] = {}
    for axis, stride in zip(claim.axes, seen.stride):
        step = stride
        for atom in reversed(axis):
            size = equations.worth(equations.state.relations.resolve(atom.size))
            if size is None:
                return ""
            strides[atom.ident] = (size, step)
            step *= size
    if any(len(axis) > 1 and any(strides[atom.ident][0] == 1 for atom in axis) for axis in claim.axes):
        return ""  # axes are merged without a copy where one of them turns out to be of size 1
    moving, gaps, doubts = _larger_than_one(layout, strides)
    wrong = f"line {seen.line}: {seen.name} {seen.shape} has strides {seen.stride}, claimed otherwise: {layout}"
    for here, after in zip(moving, moving[1:]):
        size, step = strides[after]
        if here in doubts:
            continue
        if (strides[here][1] == size * step) == (here in gaps):
            return wrong
    last = moving[-1] if moving else None
    return wrong if last and last not in doubts and (strides[last][1] == 1) == (last in gaps) else ""


def _larger_than_one(
    layout: Layout, strides: dict[MemoryItem, tuple[int, int]]
) -> tuple[list[MemoryItem], set[MemoryItem], set[MemoryItem]]:
    """The memory order without what turned out to be of size 1, whose gap (or doubt) then stands before it."""
    moving: list[MemoryItem] = []
    gaps: set[MemoryItem] = set()
    doubts: set[MemoryItem] = set()
    for item in layout.order:
        if strides.get(item, (1, 0))[0] != 1:
            moving.append(item)
        if item in layout.gaps and moving:
            gaps.add(moving[-1])
        if item in layout.doubts and moving:
            doubts.add(moving[-1])
    return moving, gaps, doubts
