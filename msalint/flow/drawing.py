"""`msalint shapes`: the flow as a reader would draw it, and how much of a folder's attention is understood."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from msalint.facts import AttentionSite, Bound, Fact, Multiplied, SdpaCalled, Softmaxed, Weighted
from msalint.flow.paths import Analysis, Entry
from msalint.flow.program import Program
from msalint.flow.sites import unread_sites
from msalint.shapes.axes import Axis, Layout, axis_name
from msalint.syntax import nodes as n
from msalint.syntax.module import Module
from msalint.values import ClassValue, Function, Tensor

if TYPE_CHECKING:
    from msalint.project import Project
    from msalint.state import State


# --- one definition drawn ----------------------------------------------------------------------------------------


def draw(text: str, filename: str, target: str | None = None) -> str:
    """Each line of a function or module that binds a tensor: its axes by name, and what is known of it.

    `target` is `function`, `Class` or `Class.method`; without one, every definition with attention in it is drawn,
    along its likeliest path. Raises LookupError for a target that the file does not have.
    """
    from msalint.project import Project

    module = Module.from_text(text, filename)
    program = Program(module, Project([filename]))
    analysis = Analysis(program, trace=True)
    blocks = []
    for title, entry in _entries(program, module, target):
        interpreter = analysis.run(entry, {})
        lines = list(_lines(interpreter.state))
        if lines or target is not None:
            blocks.append(_block(title, filename, lines))
    return "\n".join(blocks) if blocks else f"{filename}: nothing that binds a tensor\n"


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
            raise LookupError(f"no function or method {target!r} here; there are {', '.join(module.wanted) or 'none'}")


@dataclass(frozen=True)
class _Line:
    number: int
    name: str
    shape: str
    remarks: str


def _lines(state: State) -> Iterator[_Line]:
    told: set[tuple[int, str, str]] = set()
    for fact in state.facts:
        if isinstance(fact, Bound):
            tensor = state.as_tensor(fact.value)
            if tensor is None:
                continue
            line = _Line(
                fact.at.span.start.line, fact.name, shape_of(state, tensor), ", ".join(_remarks(state, tensor))
            )
        else:
            line_of = _event(fact)
            if line_of is None:
                continue
            line = line_of
        key = (line.number, line.name, line.shape)
        if key not in told:
            told.add(key)
            yield line


def _event(fact: Fact) -> _Line | None:
    """The steps of attention that bind no name of their own."""
    number = fact.at.span.start.line
    if isinstance(fact, Softmaxed) and fact.axis:
        return _Line(number, "", "", f"softmax over {fact.axis}")
    if isinstance(fact, Weighted):
        return _Line(number, "", "", f"weights times values, summed over {fact.contracted}")
    if isinstance(fact, Multiplied):
        left = axis_name(fact.product.contracted[0])
        return _Line(number, "", "", f"queries times keys, summed over {left}")
    if isinstance(fact, SdpaCalled):
        return _Line(number, "", "", f"attention over {fact.over_name or 'an axis that is not known'} ({fact.api})")
    return None


def shape_of(state: State, tensor: Tensor) -> str:
    """The axes by the names that the code gives their sizes."""
    tensor = state.resolve(tensor)
    names = [_axis(state, axis) for axis in tensor.axes]
    if tensor.lead is not None:
        names.insert(0, "...")
    return f"({', '.join(names)}{',' if len(names) == 1 else ''})"


def _axis(state: State, axis: Axis) -> str:
    whole = state.size_of(axis)
    alias = state.aliases.get(whole.key)
    if alias:
        return alias
    if len(axis) != 1:
        return axis_name(axis) if not axis else "*".join(_axis(state, (atom,)) for atom in axis)
    return state.aliases.get(state.relations.resolve(axis[0].size).key) or axis_name(axis)


def _remarks(state: State, tensor: Tensor) -> Iterator[str]:
    traits = tensor.traits
    tensor = state.resolve(tensor)
    if tensor.layout is not None and tensor.layout != Layout.dense(tensor.axes, tensor.lead):
        yield "strided"
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


def _block(title: str, filename: str, lines: Sequence[_Line]) -> str:
    width = max((len(line.name) for line in lines), default=0)
    shapes = max((len(line.shape) for line in lines), default=0)
    rows = [f"{line.number:>6}  {line.name:<{width}}  {line.shape:<{shapes}}  {line.remarks}" for line in lines]
    return "\n".join([f"{title}  {filename}", *(row.rstrip() for row in rows)]) + "\n"


# --- a folder counted --------------------------------------------------------------------------------------------


@dataclass
class Tally:
    """Attention sites of some files: how many, how many understood, and why not the others."""

    files: int = 0
    sites: int = 0
    understood: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)

    def add(self, other: Tally) -> None:
        self.files += other.files
        self.sites += other.sites
        self.understood += other.understood
        self.reasons += other.reasons
        for reason, place in other.examples.items():
            self.examples.setdefault(reason, place)


def tally(text: str, filename: str, project: Project | None = None) -> Tally:
    """The attention sites of one file."""
    from msalint.gate import candidates

    outline = candidates(text, filename)
    if outline is None:
        return Tally()
    module = Module(outline, filename)
    found: dict[tuple[str, int, int], str] = {}
    analysis = Analysis(Program(module, project))
    for fact in analysis.facts():
        place = _place(fact)
        if isinstance(fact, AttentionSite) and place[0] == filename:
            if not fact.understood and found.get(place) == "":
                continue
            found[place] = fact.reason
        elif isinstance(fact, Softmaxed) and fact.product is not None and fact.attention and place[0] == filename:
            found.setdefault(place, "weights were not followed to the values")
    for node in unread_sites(module):
        span = node.span
        found.setdefault((filename, span.start.line, span.start.column), "scores are not a product that was followed")
    result = Tally(files=1, sites=len(found), understood=sum(not reason for reason in found.values()))
    for (_, line, _), reason in found.items():
        if reason:
            result.reasons[reason] += 1
            result.examples.setdefault(reason, f"{filename}:{line}")
    return result


def _place(fact: Fact) -> tuple[str, int, int]:
    start = fact.at.span.start
    return fact.at.filename, start.line, start.column


def summarise(paths: Sequence[str]) -> str:
    """How many attention sites some files and folders hold, how many are understood, and why the others are not."""
    from msalint.files import File, find
    from msalint.project import Project
    from msalint.settings import SettingsFinder
    from msalint.source import SourceError, read

    total = Tally()
    project = Project(paths)
    for item in find(paths, SettingsFinder()):
        if not isinstance(item, File):
            continue
        try:
            total.add(tally(read(item.path).text, item.path, project))
        except (SourceError, RecursionError):
            continue
    share = f" ({total.understood / total.sites:.0%})" if total.sites else ""
    rows = [f"{total.files} files with attention code, {total.sites} sites, {total.understood} understood{share}"]
    for reason, number in total.reasons.most_common(10):
        rows.append(f"{number:>6}  {reason}  (as in {total.examples[reason]})")
    return "\n".join(rows) + "\n"
