"""Which definitions are read, and along which paths: every open condition is answered both ways, one run each.

The first run takes the likelier answer everywhere. Then each condition that came up gets one run with its other
answer and all earlier ones as they were, so that every branch is taken, and tests of one thing always agree.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from msalint.facts import Fact, GaveUp
from msalint.flow.calls import Arguments
from msalint.flow.clashes import Clashes
from msalint.flow.frame import Frame, GivenUp
from msalint.flow.hindsight import completed
from msalint.flow.interpreter import MAX_STEPS, Interpreter
from msalint.flow.list_uses import plain_lists
from msalint.flow.program import Program, class_members, decorator_names, is_kernel
from msalint.flow.projections import with_mixed_up
from msalint.flow.stakes import (
    attention_attributes,
    is_central,
    script_is_worth_reading,
    stake_of,
    takes_images,
    worth_reading,
)
from msalint.flow.validators import take_in_checks
from msalint.ops.hiding import NaNGuards
from msalint.shapes.vocabulary import stated_polarity
from msalint.state import Decisions, State
from msalint.syntax import nodes as n
from msalint.syntax.module import Module
from msalint.values import (
    UNKNOWN,
    ClassValue,
    Const,
    Function,
    Instance,
    Library,
    Opaque,
    Value,
)


@dataclass(frozen=True)
class Effort:
    """How far an entry is followed: runs, and steps over all of them; the same of those with nothing at stake.

    A run is begun while there are steps left, and ends when it ends.
    """

    runs: int
    steps: int
    idle_runs: int
    idle_steps: int


CENTRAL = Effort(runs=12, steps=16_000, idle_runs=2, idle_steps=1_000)
"""For a definition that forms attention or masks itself."""

AROUND = Effort(runs=2, steps=2_000, idle_runs=0, idle_steps=0)
"""For one that only calls such definitions: what it hands them matters, its own choices less."""


MAX_AROUND = 6_000
"""Steps over all the entries of a file that form no attention themselves."""

_ITSELF = frozenset({"self"})
"""What a method calls that runs its own module: `_, weights = self(x)`."""

MAX_BUILT = 6
"""Objects of one class that are kept as they were right after `__init__`, to begin further runs from."""

MAX_DOUBTING = 120_000
"""Steps over all the runs of a file that try to get by a clash of sizes; behind them no clash is told."""

MAX_FLIPS = 6
"""Runs that one condition may ask for in a file, over all entries that come to it."""


@dataclass
class Entry:
    """Where a run begins: a method of a class that is built first, a function on its own, or a script."""

    module: Module
    cls: ClassValue | None = None
    function: n.FunctionDef | None = None
    script: bool = False
    effort: Effort = CENTRAL


@dataclass(frozen=True)
class Checkpoint:
    """A path as it was before a statement of `__init__` or of its entry; others that go its way begin from here."""

    path: Interpreter
    statement: int
    building: bool
    """Whether the statement is one of `__init__`."""

    def precedes(self, key: str) -> bool:
        """Whether a condition had not come up yet."""
        return key not in self.path.state.decisions.asked


class Analysis:
    """All paths of one file."""

    def __init__(self, program: Program, trace: bool = False) -> None:
        self.program = program
        self.trace = trace
        self.reached: set[int] = set()
        self.flips: Counter[int] = Counter()
        self.doubting = 0
        self.around = 0
        self.built: dict[int, list[Interpreter]] = {}

    def facts(self) -> Iterator[Fact]:
        """The facts of every entry of the main module, path by path."""
        module = self.program.main
        classes, functions = [], []
        for name in module.wanted:
            if not worth_reading(module.written(name), function=module.kind(name) == "def"):
                continue
            value = self.program.value(module, name)
            if isinstance(value, ClassValue) and value.module is module:
                classes.append(value)
            elif isinstance(value, Function) and value.module is module and not is_kernel(value.node, module):
                functions.append(value.node)
        for cls in classes:
            yield from self.class_facts(cls)
        for function in functions:
            if id(function) not in self.reached:
                effort = CENTRAL if is_central(function) else AROUND
                yield from self.entry_facts(Entry(module, function=function, effort=effort))
        if module.outline.scripted and script_is_worth_reading(module.statements(), module.wanted):
            yield from self.entry_facts(Entry(module, script=True))

    def class_facts(self, cls: ClassValue) -> Iterator[Fact]:
        """A class: its forward first, then every method with attention in it that nothing reached."""
        members = class_members(cls)
        found = self.program.member(cls, "forward") or self.program.member(cls, "__call__")
        if found is not None and isinstance(found[0], n.FunctionDef):
            effort = CENTRAL if is_central(cls.node) or is_central(found[0]) else AROUND
            yield from self.entry_facts(Entry(cls.module, cls, found[0], effort=effort))
        kept = attention_attributes(cls.node)
        for name, member in members.items():
            if not isinstance(member, n.FunctionDef) or id(member) in self.reached or name.startswith("__"):
                continue
            if is_central(member) or not kept.isdisjoint(member.calls()):
                yield from self.entry_facts(Entry(cls.module, cls, member))
            elif kept and not member.calls().isdisjoint(_ITSELF):
                yield from self.entry_facts(Entry(cls.module, cls, member, effort=AROUND))
        init = members.get("__init__")
        if init is not None and id(init) not in self.reached and isinstance(init, n.FunctionDef):
            yield from self.entry_facts(Entry(cls.module, cls, None, effort=AROUND))

    def entry_facts(self, entry: Entry) -> Iterator[Fact]:
        """The facts of all paths through one entry, those into branches with attention in them first."""
        waiting: list[tuple[int, int, dict[str, bool], list[Checkpoint]]] = [(0, 0, {}, [])]
        covered: set[tuple[str, int, bool]] = set()
        runs = steps = order = 0
        gave_up = False
        clashes = Clashes()
        effort = entry.effort
        idle = idle_steps = 0
        while waiting and runs < effort.runs and steps < effort.steps:
            if effort is AROUND and self.around > MAX_AROUND:
                return
            gain, _, answers, checkpoints = heapq.heappop(waiting)
            is_idle = runs > 0 and gain > -2
            if is_idle and (idle >= effort.idle_runs or idle_steps >= effort.idle_steps):
                break
            interpreter = self.run(entry, answers, checkpoints)
            runs += 1
            steps += interpreter.steps
            if is_idle:
                idle += 1
                idle_steps += interpreter.steps
            self.around += interpreter.steps if effort is AROUND else 0
            gave_up = gave_up or interpreter.outgrown
            self.reached |= interpreter.reached
            yield from clashes.held_back(interpreter.state.facts, interpreter.passed, interpreter.state.decisions)
            for key, stake, other in _other_answers(interpreter.state.decisions, covered):
                # An inner module was read on its own before: what it decides needs no further runs here.
                if self.flips[id(stake)] < MAX_FLIPS:
                    self.flips[id(stake)] += 1
                    order += 1
                    before = [point for point in checkpoints if point.precedes(key)]
                    heapq.heappush(waiting, (-stake_of(stake), order, other, before))
        for answers in clashes.doubts():
            interpreter = self.run(entry, answers)
            yield from clashes.held_back(interpreter.state.facts, interpreter.passed, interpreter.state.decisions)
            self.doubting += interpreter.steps
            if self.doubting > MAX_DOUBTING:
                clashes.give_up()
                break
        yield from clashes.on_every_path()
        if gave_up:
            node: n.Node | None = entry.function or (entry.cls.node if entry.cls else None)
            if node is not None:
                yield GaveUp(node, "it takes more steps than a run may have")

    def run(self, entry: Entry, given: dict[str, bool], checkpoints: list[Checkpoint] | None = None) -> Interpreter:
        """One path, from the last of some checkpoints if there is one. Those that it comes to are added to them."""
        passed = [] if checkpoints is None else checkpoints
        start = passed[-1] if passed else None
        interpreter, built = self._begun(entry, given, start)
        state = interpreter.state
        try:
            if not built:
                self._build(interpreter, entry, passed, start.statement if start is not None else None)
            if start is not None and not start.building:
                _follow(interpreter, passed, start.statement)
            else:
                _walk(interpreter, entry, passed)
            if entry.cls is None and entry.function is not None:
                _call_what_it_makes(interpreter, entry)
        except GivenUp:
            interpreter.outgrown = True
        if interpreter.outgrown and entry.effort is AROUND:
            # What it lacks may come behind the place where it was left; what it calls is read by itself.
            state.facts.clear()
            return interpreter
        state.facts += plain_lists(self.program, state)
        state.facts[:] = NaNGuards(state.guarded).applied(state.facts)
        state.facts[:] = with_mixed_up(completed(state.facts, state), interpreter)
        return interpreter

    def _begun(self, entry: Entry, given: dict[str, bool], start: Checkpoint | None) -> tuple[Interpreter, bool]:
        """A path at its beginning, or at the checkpoint, and whether its object is built.

        An object that was built under the same answers before is taken up from there.
        """
        found = start.path if start is not None else None
        if found is None and entry.cls is not None:
            objects = self.built.get(id(entry.cls.node), ())
            found = next((path for path in objects if path.state.decisions.agrees(given)), None)
        if found is not None:
            interpreter, built = found.resumed(given), start is None or not start.building
        else:
            state = State(decisions=Decisions(dict(given)))
            interpreter, built = Interpreter(self.program, state, self.trace), entry.cls is None
        interpreter.limit = min(MAX_STEPS, 3 * entry.effort.steps // 2)
        return interpreter, built

    def _build(self, interpreter: Interpreter, entry: Entry, passed: list[Checkpoint], first: int | None) -> None:
        """Build the object of an entry, from a statement of its `__init__` on (None: from the beginning)."""
        assert entry.cls is not None
        if first is None:
            _open_init(interpreter, entry.module, entry.cls)
        if len(interpreter.frames) > 1:
            _follow(interpreter, passed, first, building=True)
            _close_init(interpreter, entry.cls)
        kept = self.built.setdefault(id(entry.cls.node), [])
        if len(kept) < MAX_BUILT:
            kept.append(interpreter.resumed(interpreter.state.decisions.given))


def _other_answers(
    decisions: Decisions, covered: set[tuple[str, int, bool]]
) -> Iterator[tuple[str, object, dict[str, bool]]]:
    """The runs that a run asks for: wherever a condition decided something, the other answer, if no run has it yet.

    Conditions are answered as they were before, so that the run comes to the same place.
    """
    for key, stake in decisions.occurrences:
        covered.add((key, id(stake), decisions.asked[key]))
    for key, stake in decisions.occurrences:
        other = (key, id(stake), not decisions.asked[key])
        if other not in covered:
            covered.add(other)
            yield key, stake, {**decisions.asked, key: not decisions.asked[key]}


def _open_init(interpreter: Interpreter, module: Module, cls: ClassValue) -> None:
    """An object of a class, about to run its `__init__` (if it has one) with parameters that stand for themselves."""
    frame = Frame(module)
    interpreter.frames.append(frame)
    state, program = interpreter.state, interpreter.program
    interpreter.objects["self"] = cls
    state.context = _purpose_of(cls)
    init = program.member(cls, "__init__")
    state.in_module = program.is_module(cls) or program.member(cls, "forward") is not None
    if init is not None and isinstance(init[0], n.FunctionDef):
        given = _parameters(interpreter, init[0], f"{cls.name}.__init__", frame, skip=1)
        interpreter.opened(Function(init[0], init[1].module, None, init[1]), given, Instance(cls, "self"))


def _close_init(interpreter: Interpreter, cls: ClassValue) -> None:
    interpreter.frames.pop()
    state = interpreter.state
    state.context, state.module_name = _purpose_of(cls), ""
    state.guards.clear()


def _purpose_of(cls: ClassValue) -> tuple[str, ...]:
    return (cls.name, cls.node.docstring) if cls.node.docstring else (cls.name,)


def _walk(interpreter: Interpreter, entry: Entry, passed: list[Checkpoint]) -> None:
    """From the beginning of an entry to its end."""
    if entry.script:
        interpreter.frames.append(Frame(entry.module))
        for statement in entry.module.statements():
            if interpreter.run([statement]) is not None:
                break
        return
    if entry.function is None:
        return
    if entry.cls is None:
        frame = Frame(entry.module)
        interpreter.frames.append(frame)
        given = _parameters(interpreter, entry.function, "", frame, skip=0)
        interpreter.opened(Function(entry.function, entry.module), given)
        _follow(interpreter, passed)
        return
    cls, frame = entry.cls, interpreter.frames[-1]
    static = "staticmethod" in decorator_names(entry.function)
    rows = _is_attention(cls) and not takes_images(cls.node)
    given = _parameters(interpreter, entry.function, "", frame, skip=0 if static else 1, attention=rows)
    owner = interpreter.program.member(cls, entry.function.name)
    function = Function(entry.function, owner[1].module if owner else entry.module, None, owner[1] if owner else cls)
    interpreter.opened(function, given, None if static else Instance(cls, "self"))
    _follow(interpreter, passed)


def _call_what_it_makes(interpreter: Interpreter, entry: Entry) -> None:
    """A function that picks or makes another: somebody calls what comes of it."""
    made = interpreter.frames[-1].returned
    if isinstance(made, Function) and made.module is entry.module and isinstance(made.node, n.FunctionDef):
        given = _parameters(interpreter, made.node, "", interpreter.frames[0], skip=0)
        interpreter.inline(made, given, made.node)


def _follow(
    interpreter: Interpreter, passed: list[Checkpoint], first: int | None = None, building: bool = False
) -> None:
    """The body of the function whose frame is open, from a statement on (None: all of it).

    A path is kept as it is before each statement that follows new answers.
    """
    frame, decisions = interpreter.frames[-1], interpreter.state.decisions
    asked = -1 if first is None else len(decisions.asked)
    for place in range(first or 0, len(frame.node.body)):
        if len(decisions.asked) > asked and not frame.closed_over:
            asked = len(decisions.asked)
            passed.append(Checkpoint(interpreter.resumed({}), place, building))
        if interpreter.run(frame.node.body[place : place + 1]) is not None:
            return


def _is_attention(cls: ClassValue) -> bool:
    name = cls.name.lower()
    return any(
        word in name
        for word in ("attention", "attn", "mha", "msa", "head", "transformer", "encoder", "decoder", "block", "layer")
    )


_INPUTS = frozenset({"x", "hidden_states", "inputs", "embeddings"})
_FIRST_INPUTS = frozenset({"src", "input", "query"})


def _parameters(
    interpreter: Interpreter,
    function: n.FunctionDef,
    prefix: str,
    frame: Frame,
    skip: int,
    attention: bool = False,
) -> Arguments:
    """The arguments of an entry: each parameter stands for itself, by its name."""
    given = Arguments()
    first = True
    for param in function.params[skip:]:
        if param.kind in {"*", "**"}:
            continue
        value = _parameter(interpreter, param, prefix, frame)
        input_like = param.name in _INPUTS or (first and param.name in _FIRST_INPUTS)
        if attention and input_like and isinstance(value, Opaque) and not prefix and value.hint in {"", "tensor"}:
            interpreter.state.conventional.add(value.key)
        first = False
        given.kwargs[param.name] = value
        given.keyword_sites[param.name] = param
    if function.docstring and not prefix:
        for name, value in given.kwargs.items():
            polarity = stated_polarity(function.docstring, name) if isinstance(value, Opaque) else None
            if polarity is not None and isinstance(value, Opaque):
                interpreter.state.polarities[value.key] = polarity
        interpreter.documented(function.docstring, given.kwargs)
    return given


def _parameter(interpreter: Interpreter, param: n.Param, prefix: str, frame: Frame) -> Value:
    default: Value = UNKNOWN
    if param.default is not None:
        default = interpreter.eval(param.default)
    if isinstance(default, (Library, Function, ClassValue)) and prefix:
        return default
    key = f"{prefix}.{param.name}" if prefix else param.name
    value = Opaque(key, param.name, source="init" if prefix else "parameter")
    if isinstance(default, Const) and isinstance(default.value, bool):
        value = Opaque(key, param.name, "bool", value.source)
        if prefix:
            interpreter.state.presets[f"true:{key}"] = default.value
    elif isinstance(default, Const) and isinstance(default.value, str):
        value = Opaque(key, param.name, "str", value.source)
    known: Value = interpreter.annotated(value, param.annotation)
    if not prefix and isinstance(known, Opaque) and not known.hint:
        known = _annotated_module(interpreter, known, param.annotation, frame) or known
    if isinstance(known, Opaque) and param.comment and not prefix and known.hint in {"", "tensor"}:
        interpreter.said_of_parameter(known, param.comment)
    if isinstance(known, Opaque):
        take_in_checks(interpreter, known, param, frame.module)
    return known


def _annotated_module(
    interpreter: Interpreter, value: Opaque, annotation: n.Expr | None, frame: Frame
) -> Instance | None:
    """`def __call__(self, attn: Attention, ...)`: a parameter that is a module of the project, built as it stands."""
    name = (
        annotation.id if isinstance(annotation, n.Name) else annotation.value if isinstance(annotation, n.Const) else ""
    )
    cls = interpreter.program.value(frame.module, name) if isinstance(name, str) and name else None
    if not isinstance(cls, ClassValue) or not interpreter.program.is_module(cls):
        return None
    instance = Instance(cls, value.key)
    interpreter.objects[value.key] = cls
    init = interpreter.program.member(cls, "__init__")
    if init is not None and isinstance(init[0], n.FunctionDef):
        told = len(interpreter.state.facts)
        given = _parameters(interpreter, init[0], f"{cls.name}.__init__", frame, skip=1)
        interpreter.initialise(instance, given, init[0])
        del interpreter.state.facts[told:]
    return instance
