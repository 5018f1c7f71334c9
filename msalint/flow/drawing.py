"""`msalint shapes`: the flow as a reader would draw it, line by line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from msalint.diagnostic import Position
from msalint.documents.cells import Cells
from msalint.documents.document import Piece
from msalint.documents.kinds import read_document
from msalint.documents.usual_names import with_usual_imports
from msalint.facts import Bound, Fact, Multiplied, SdpaCalled, Softmaxed, Weighted
from msalint.flow.interpreter import Interpreter
from msalint.flow.paths import Analysis, Checkpoint, Entry
from msalint.flow.program import Program
from msalint.shapes.axes import Atom, Axis, Layout, axis_name
from msalint.shapes.size import Quotient, Size, Symbol
from msalint.source import SourceError
from msalint.syntax import nodes as n
from msalint.syntax.depth import TooDeep
from msalint.syntax.module import Module
from msalint.values import ClassValue, Function, Tensor

if TYPE_CHECKING:
    from msalint.state import State


@dataclass(frozen=True)
class Drawing:
    """A file drawn, and what of it was left out: cells that are no Python, each with its place and why."""

    text: str
    left_out: tuple[str, ...] = ()


def draw(text: str, filename: str, target: str | None = None) -> Drawing:
    """Each line of a function or module that binds a tensor: its axes by name, and what is known of it.

    `target` is `function`, `Class` or `Class.method`; without one, every definition with attention in it is drawn,
    along its likeliest path. A notebook's lines are those of its cells. Raises LookupError for a target that the file
    does not have, SourceError and TooDeep where it can't be read as what its name says.
    """
    document = read_document(text, filename)
    cells = document.cells
    blocks: list[str] = []
    names: list[str] = []
    for piece in document.pieces:
        module = _module(piece, filename)
        if module is None:
            continue
        names += module.wanted
        if target is None or target.partition(".")[0] in module.names:
            blocks += _blocks(module, filename, target, partial(numbered, piece, cells))
    if target is not None and not blocks:
        raise _missing(target, names)
    left_out = tuple(f"{filename}:{_place_of(fault.position, cells)}: {fault}" for fault in document.faults)
    return Drawing("\n".join(blocks) if blocks else f"{filename}: nothing that binds a tensor\n", left_out)


def _module(piece: Piece, filename: str) -> Module | None:
    """A piece as the flow reads it. An example in prose that is no Python is passed over."""
    if not piece.prose:
        return Module.from_text(piece.text, filename)
    try:
        return Module.from_text(with_usual_imports(piece.text), filename)
    except (SourceError, TooDeep):
        return None


def numbered(piece: Piece, cells: Cells | None, line: int) -> str:
    """A line of a piece as the reader of the file counts it: `12`, `cell 3:12`."""
    position = piece.outward(Position(line, 1))
    if cells is None:
        return str(position.line)
    place = cells.place(position)
    return f"cell {place.cell}:{place.line}"


def _place_of(position: Position, cells: Cells | None) -> str:
    return f"{position.line}:{position.column}" if cells is None else str(cells.place(position))


def _blocks(module: Module, filename: str, target: str | None, numbered: Callable[[int], str]) -> Iterator[str]:
    from msalint.project import Project

    program = Program(module, Project([filename]))
    analysis = Analysis(program, trace=True)
    for title, entry in _entries(program, module, target):
        interpreter = analysis.run(entry, {})
        lines = list(
            {(line.number, line.name, line.shape): line for line in _lines(interpreter.state, filename)}.values()
        )
        if lines or target is not None:
            yield _block(title, filename, lines, numbered)


def drawn_paths(text: str, filename: str, target: str) -> list[list[DrawnLine]]:
    """The lines of every path through one definition, the likeliest path first; a line for each time it is passed.

    Raises LookupError for a target that the file does not have.
    """
    from msalint.project import Project

    module = Module.from_text(text, filename)
    program = Program(module, Project([filename]))
    analysis = _EveryRun(program, trace=True)
    for _, entry in _entries(program, module, target):
        for _ in analysis.entry_facts(entry):
            pass
    return [list(_lines(run.state, filename)) for run in analysis.runs]


class _EveryRun(Analysis):
    """The analysis, with the interpreter of each path kept."""

    def __init__(self, program: Program, trace: bool = False) -> None:
        super().__init__(program, trace)
        self.runs: list[Interpreter] = []

    def run(self, entry: Entry, given: dict[str, bool], checkpoints: list[Checkpoint] | None = None) -> Interpreter:
        interpreter = super().run(entry, given, checkpoints)
        self.runs.append(interpreter)
        return interpreter


def _entries(program: Program, module: Module, target: str | None) -> Iterator[tuple[str, Entry]]:
    names = [target] if target else list(module.wanted)
    for name in names:
        head, _, method = name.partition(".")
        value = program.value(module, head)
        if isinstance(value, ClassValue):
            wanted = method or "forward"
            found = program.member(value, wanted)
            if found is not None and isinstance(found[0], n.FunctionDef):
                yield f"{head}.{wanted}", Entry(module, value, found[0])
                continue
        elif isinstance(value, Function) and not method and isinstance(value.node, n.FunctionDef):
            yield head, Entry(module, function=value.node)
            continue
        if target is not None:
            raise _missing(target, module.wanted)


def _missing(target: str, names: Sequence[str]) -> LookupError:
    return LookupError(f"no function or method {target!r} here; there are {', '.join(names) or 'none'}")


@dataclass(frozen=True)
class DrawnLine:
    """What a line binds, axes by name, or a step of attention that binds nothing (then `name` is empty)."""

    number: int
    name: str
    axes: tuple[str, ...]
    remarks: tuple[str, ...]
    strided: bool | None = None
    """Whether the axes run in memory in another order than they stand, None if that is not known for sure."""

    @property
    def shape(self) -> str:
        return f"({', '.join(self.axes)}{',' if len(self.axes) == 1 else ''})" if self.name else ""


def _lines(state: State, filename: str) -> Iterator[DrawnLine]:
    """The lines of one file in the order that the path went by."""
    names = _Names(state)
    for fact in state.facts:
        if fact.at.filename != filename:
            continue
        if isinstance(fact, Bound):
            tensor = state.as_tensor(fact.value)
            if tensor is not None:
                strided = _is_strided(state, tensor)
                remarks = (*(["strided"] if strided else []), *_remarks(state, tensor))
                yield DrawnLine(fact.at.span.start.line, fact.name, tuple(names.of(tensor)), remarks, strided)
        else:
            remark = _event(fact)
            if remark:
                yield DrawnLine(fact.at.span.start.line, "", (), (remark,))


def _event(fact: Fact) -> str:
    """The steps of attention that bind no name of their own."""
    if isinstance(fact, Softmaxed) and fact.axis:
        return f"softmax over {fact.axis}"
    if isinstance(fact, Weighted):
        return f"weights times values, summed over {fact.contracted}"
    if isinstance(fact, Multiplied):
        return f"queries times keys, summed over {axis_name(fact.product.contracted[0])}"
    if isinstance(fact, SdpaCalled):
        return f"attention over {fact.over_name or 'an axis that is not known'} ({fact.api})"
    return ""


class _Names:
    """The axes of one path by the names that the code gives their sizes, no name for two sizes.

    A second size of the same name, such as the `n` of another function, is `n_2`.
    """

    def __init__(self, state: State) -> None:
        self.state = state
        self.owners: dict[str, Size] = {}

    def of(self, tensor: Tensor) -> Iterator[str]:
        tensor = self.state.resolve(tensor)
        if tensor.lead is not None:
            yield "..."
        for axis in tensor.axes:
            yield self._axis(axis)

    def _axis(self, axis: Axis) -> str:
        whole = self.state.size_of(axis)
        alias = self.state.aliases.get(whole.key)
        if alias:
            return self._alone(alias, whole)
        if len(axis) == 1:
            return self._atom(axis[0])
        parts = [self._atom(atom) for atom in axis]
        return "*".join(_grouped(part) for part in parts) if parts else "1"

    def _atom(self, atom: Atom) -> str:
        size = self.state.relations.resolve(atom.size)
        alias = self.state.aliases.get(size.key)
        if alias:
            return self._alone(alias, size)
        return self._size(size) if size.constant is None else axis_name((atom,))

    def _size(self, size: Size) -> str:
        """The text of a size, every symbol in it by a name of its own."""
        if size.symbol is not None and not isinstance(size.symbol, Quotient):
            return self._alone(size.symbol.name, size)
        return str(size.renamed(self._symbol))

    def _symbol(self, symbol: Symbol) -> str:
        return self._alone(self.state.aliases.get(Size.of(symbol).key, symbol.name), Size.of(symbol))

    def _alone(self, name: str, size: Size) -> str:
        number, spelled = 1, name
        while name.isidentifier() and self.owners.setdefault(spelled, size) != size:
            number += 1
            spelled = f"{name}_{number}"
        return spelled


def _grouped(part: str) -> str:
    return part if part.replace("_", "").replace(".", "").isalnum() else f"({part})"


def _is_strided(state: State, tensor: Tensor) -> bool | None:
    tensor = state.resolve(tensor)
    layout = tensor.layout
    if layout is None or layout.doubts or tensor.traits.implementation_layout:
        return None
    dense = Layout.dense(tensor.axes, tensor.lead)
    # A gap is none where the slice took all there was.
    return None if layout.order == dense.order and layout.gaps else layout != dense


def _remarks(state: State, tensor: Tensor) -> Iterator[str]:
    traits = tensor.traits
    if traits.scale:
        values = [str(f.value) if f.value is not None else "a factor" for f in traits.scale]
        yield "scaled by " + " and ".join(_renamed(state, value) for value in values)
    for use in traits.masks:
        yield (
            "masked"
            if use.hidden is None or use.hidden.meaning_or_triangle() != "hide"
            else f"masked ({'/'.join(sorted(use.hidden.kinds))})"
        )
    if traits.cells is not None and traits.cells.region is not None:
        region = traits.cells.region
        meaning = {"keep": ", true keeps", "hide": ", true hides"}.get(region.meaning or "", "")
        yield f"mask, {region.side} {region.offset}" if region.side else f"mask{meaning}"
    if traits.softmax is not None:
        yield "weights"
    if traits.dropped is not None:
        yield "dropped out"
    if traits.cached:
        yield "with the cache"
    if traits.rotated:
        yield "rotated"


def _renamed(state: State, text: str) -> str:
    for key, name in state.aliases.items():
        for spelling in state.spellings.get(key, ()):
            text = text.replace(f"({spelling})", name).replace(spelling, name)
    return text


def _block(title: str, filename: str, lines: Sequence[DrawnLine], numbered: Callable[[int], str]) -> str:
    numbers = [numbered(line.number) for line in lines]
    margin = max([6, *map(len, numbers)])
    width = max((len(line.name) for line in lines), default=0)
    shapes = max((len(line.shape) for line in lines), default=0)
    rows = [
        f"{number:>{margin}}  {line.name:<{width}}  {line.shape:<{shapes}}  {', '.join(line.remarks)}"
        for number, line in zip(numbers, lines)
    ]
    return "\n".join([f"{title}  {filename}", *(row.rstrip() for row in rows)]) + "\n"
