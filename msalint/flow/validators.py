"""The remainders that a config class turns down when it is built: none is left in a parameter of that class."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msalint.flow.frame import Frame
from msalint.flow.program import class_members, decorator_names
from msalint.shapes.relations import Relations
from msalint.syntax import nodes as n
from msalint.syntax.module import Module
from msalint.values import ClassValue, Opaque, Value

if TYPE_CHECKING:
    from msalint.flow.interpreter import Interpreter

_HOOKS = ("__init__", "__post_init__", "__attrs_post_init__", "model_post_init")
_CONFIG_NAMES = frozenset("config cfg conf args hparams opts".split())
_CONFIG_CLASSES = ("Config", "Configuration", "Args", "Arguments", "HParams", "Hparams", "Params")


def take_in_checks(interpreter: Interpreter, value: Opaque, param: n.Param, module: Module) -> None:
    """Run the checks of a parameter's class with the parameter for `self`: its sizes are then known to divide.

    `if self.width % self.heads: raise` in `Config.__post_init__` tells of `config.width` and `config.heads`. Of
    `A | B` only what both check is known.
    """
    classes = _classes_of(interpreter, param, module)
    if not classes:
        return
    state = interpreter.state
    asked, before = set(state.decisions.asked), state.relations
    learned: Relations | None = None
    for cls in classes:
        state.relations = before.copy()
        for checker in _checkers(cls):
            _run_checks(interpreter, checker, cls, value)
        learned = state.relations if learned is None else learned.meet(state.relations)
    state.relations = learned or before
    # Other answers to a config's own conditions are no paths of the module.
    state.decisions.closed |= set(state.decisions.asked) - asked


def _run_checks(interpreter: Interpreter, checker: n.FunctionDef, cls: ClassValue, value: Opaque) -> None:
    """Run those statements of a method that look for a remainder, with `value` for `self`."""
    checks = [s for s in checker.body if isinstance(s, (n.If, n.Assert)) and "%" in s.test.text]
    if not checks:
        return
    frame = Frame(cls.module, checker, owner=cls, receiver=value)
    for own in checker.params[1:]:
        frame.variables[own.name] = Opaque(f"{value.key}.{own.name}", own.name, source="config")
    if checker.params:
        frame.variables[checker.params[0].name] = value
    interpreter.frames.append(frame)
    try:
        for check in checks:
            interpreter.run([check])
    finally:
        interpreter.frames.pop()


def _checkers(cls: ClassValue) -> Iterator[n.FunctionDef]:
    """The methods that run when an object of the class is made, or right after."""
    for name, member in class_members(cls).items():
        if not isinstance(member, n.FunctionDef):
            continue
        validates = name.lstrip("_").startswith("validate") and len(member.params) == 1
        if name in _HOOKS or validates or "model_validator" in decorator_names(member):
            yield member


def _classes_of(interpreter: Interpreter, param: n.Param, module: Module) -> list[ClassValue]:
    """The project's classes that a parameter may be of by its annotation, or that one named `config` can only be of."""
    if param.annotation is not None:
        if param.name not in _CONFIG_NAMES and not _names_config(param.annotation):
            return []
        found = [_annotated_class(interpreter, part, module) for part in _alternatives(param.annotation)]
        return [] if any(cls is None for cls in found) else [cls for cls in found if cls is not None]
    if param.name not in _CONFIG_NAMES:
        return []
    classes = [interpreter.program.value(module, name) for name in module.names if name.endswith(_CONFIG_CLASSES)]
    return [cls for cls in classes if isinstance(cls, ClassValue)] if len(classes) == 1 else []


def _names_config(annotation: n.Expr) -> bool:
    words = annotation.words()
    return any(word in words for word in _CONFIG_CLASSES)


def _alternatives(annotation: n.Expr) -> list[n.Expr]:
    """`A | B` as its parts, None left out."""
    if isinstance(annotation, n.Binary) and annotation.op == "|":
        return [*_alternatives(annotation.left), *_alternatives(annotation.right)]
    return [] if isinstance(annotation, n.Const) and annotation.value is None else [annotation]


def _annotated_class(interpreter: Interpreter, annotation: n.Expr, module: Module) -> ClassValue | None:
    found: Value | None = None
    if isinstance(annotation, n.Const) and isinstance(annotation.value, str):
        found = interpreter.program.value(module, annotation.value)
    elif isinstance(annotation, (n.Name, n.Attr)):
        found = interpreter.eval(annotation)
    return found if isinstance(found, ClassValue) else None
