"""Which definitions are read, and along which paths: every open condition is answered both ways, one run each.

The first run takes the likelier answer everywhere. Then each condition that came up gets one run with its other
answer and all earlier ones as they were, so that every branch is taken, and tests of one thing always agree.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from msalint.facts import Fact, GaveUp
from msalint.flow.calls import Arguments
from msalint.flow.frame import Frame, GivenUp
from msalint.flow.interpreter import Interpreter
from msalint.flow.program import Program, class_members, decorator_names
from msalint.ops.masking import NaNGuards
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

MAX_RUNS = 14
"""Paths through one entry."""

MAX_TOTAL_STEPS = 90_000
"""Steps over all the paths of one entry."""


@dataclass
class Entry:
    """Where a run begins: a method of a class that is built first, a function on its own, or a script."""

    module: Module
    cls: ClassValue | None = None
    function: n.FunctionDef | None = None
    script: bool = False


class Analysis:
    """All paths of one file."""

    def __init__(self, program: Program, trace: bool = False) -> None:
        self.program = program
        self.trace = trace
        self.reached: set[int] = set()

    def facts(self) -> Iterator[Fact]:
        """The facts of every entry of the main module, path by path."""
        module = self.program.main
        classes, functions = [], []
        for name in module.wanted:
            value = self.program.value(module, name)
            if isinstance(value, ClassValue) and value.module is module:
                classes.append(value)
            elif isinstance(value, Function) and value.module is module:
                functions.append(value.node)
        for cls in classes:
            yield from self.class_facts(cls)
        for function in functions:
            if id(function) not in self.reached:
                yield from self.entry_facts(Entry(module, function=function))
        if module.outline.scripted:
            yield from self.entry_facts(Entry(module, script=True))

    def class_facts(self, cls: ClassValue) -> Iterator[Fact]:
        """A class: its forward first, then every method with attention in it that nothing reached."""
        members = class_members(cls)
        names = [name for name in ("forward", "__call__") if self.program.member(cls, name) is not None]
        if names:
            found = self.program.member(cls, names[0])
            if found is not None and isinstance(found[0], n.FunctionDef):
                yield from self.entry_facts(Entry(cls.module, cls, found[0]))
        for name, member in members.items():
            if isinstance(member, n.FunctionDef) and id(member) not in self.reached and not name.startswith("__"):
                if name not in {"reset_parameters", "extra_repr", "configure_optimizers", "_init_weights"}:
                    yield from self.entry_facts(Entry(cls.module, cls, member))
        init = members.get("__init__")
        if init is not None and id(init) not in self.reached and isinstance(init, n.FunctionDef):
            yield from self.entry_facts(Entry(cls.module, cls, None))

    def entry_facts(self, entry: Entry) -> Iterator[Fact]:
        """The facts of all paths through one entry."""
        waiting: list[dict[str, bool]] = [{}]
        seen: set[str] = set()
        runs = steps = 0
        gave_up = False
        while waiting and runs < MAX_RUNS and steps < MAX_TOTAL_STEPS:
            given = waiting.pop(0)
            interpreter = self.run(entry, given)
            runs += 1
            steps += interpreter.steps
            gave_up = gave_up or interpreter.outgrown
            self.reached |= interpreter.reached
            yield from interpreter.state.facts
            asked = interpreter.state.decisions.asked
            before: dict[str, bool] = {}
            for key, answer in asked.items():
                if key not in seen and key not in interpreter.state.decisions.closed:
                    seen.add(key)
                    waiting.append({**before, key: not answer})
                before[key] = answer
        if gave_up:
            node: n.Node | None = entry.function or (entry.cls.node if entry.cls else None)
            if node is not None:
                yield GaveUp(node, "it takes more steps than a run may have")

    def run(self, entry: Entry, given: dict[str, bool]) -> Interpreter:
        """One path."""
        state = State(decisions=Decisions(dict(given)))
        interpreter = Interpreter(self.program, state, self.trace)
        try:
            _walk(interpreter, entry)
        except GivenUp:
            interpreter.outgrown = True
        state.facts += state.registry.plain_lists()
        state.facts[:] = NaNGuards(state.guarded).applied(state.facts)
        return interpreter


def _walk(interpreter: Interpreter, entry: Entry) -> None:
    frame = Frame(entry.module)
    interpreter.frames.append(frame)
    if entry.script:
        for statement in entry.module.statements():
            if interpreter.run([statement]) is not None:
                break
        return
    state = interpreter.state
    if entry.cls is None:
        assert entry.function is not None
        given = _parameters(interpreter, entry.function, "", frame, skip=0)
        interpreter.inline(Function(entry.function, entry.module), given, entry.function)
        return
    cls = entry.cls
    program = interpreter.program
    instance = Instance(cls, "self")
    state.context = (cls.name, cls.node.docstring) if cls.node.docstring else (cls.name,)
    init = program.member(cls, "__init__")
    state.in_module = program.is_module(cls) or program.member(cls, "forward") is not None
    if init is not None and isinstance(init[0], n.FunctionDef):
        given = _parameters(interpreter, init[0], f"{cls.name}.__init__", frame, skip=1)
        interpreter.initialise(instance, given, init[0])
    if entry.function is None:
        return
    static = "staticmethod" in decorator_names(entry.function)
    given = _parameters(interpreter, entry.function, "", frame, skip=0 if static else 1, attention=_is_attention(cls))
    owner = program.member(cls, entry.function.name)
    function = Function(entry.function, owner[1].module if owner else entry.module, None, owner[1] if owner else cls)
    interpreter.inline(function, given, entry.function, None if static else instance)


def _is_attention(cls: ClassValue) -> bool:
    name = cls.name.lower()
    return any(word in name for word in ("attention", "attn", "mha", "msa", "head", "transformer", "encoder", "decoder", "block", "layer"))


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
        if attention and isinstance(value, Opaque) and not prefix and value.hint in {"", "tensor"}:
            if param.name in {"x", "hidden_states", "inputs", "hidden", "embeddings"} or (first and param.name in {"src", "input", "query"}):
                interpreter.state.conventional.add(value.key)
        first = False
        given.kwargs[param.name] = value
        given.keyword_sites[param.name] = param
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
    elif isinstance(default, Const) and isinstance(default.value, str):
        value = Opaque(key, param.name, "str", value.source)
    return interpreter.annotated(value, param.annotation)
