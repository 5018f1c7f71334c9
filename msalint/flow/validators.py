"""What a config class checks when it is built: it holds for every parameter of that class."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msalint.flow.calls import Arguments
from msalint.flow.program import class_members, decorator_names
from msalint.syntax import nodes as n
from msalint.syntax.module import Module
from msalint.values import ClassValue, Function, Opaque

if TYPE_CHECKING:
    from msalint.flow.interpreter import Interpreter

_HOOKS = ("__init__", "__post_init__", "__attrs_post_init__", "model_post_init")
_CONFIG_NAMES = frozenset("config cfg conf args hparams opts".split())
_CONFIG_CLASSES = ("Config", "Configuration", "Args", "Arguments", "HParams", "Hparams", "Params")


def take_in_checks(interpreter: Interpreter, value: Opaque, param: n.Param, module: Module) -> None:
    """Run the checks of a parameter's class with the parameter for `self`: its sizes are then known to divide.

    `if self.width % self.heads: raise` in `Config.__post_init__` tells of `config.width` and `config.heads`.
    """
    cls = _class_of(interpreter, param, module)
    if cls is None or interpreter.program.is_module(cls):
        return
    decisions = interpreter.state.decisions
    before = set(decisions.asked)
    for name, member in class_members(cls).items():
        if isinstance(member, n.FunctionDef) and (name in _HOOKS or "model_validator" in decorator_names(member)):
            given = Arguments()
            for own in member.params[1:]:
                if own.kind not in {"*", "**"}:
                    given.kwargs[own.name] = Opaque(f"{value.key}.{own.name}", own.name, source="config")
            interpreter.inline(Function(member, cls.module, None, cls), given, member, value)
    # Other answers to a config's own conditions are no paths of the module.
    decisions.closed |= set(decisions.asked) - before


def _class_of(interpreter: Interpreter, param: n.Param, module: Module) -> ClassValue | None:
    """The project's class that a parameter is annotated with, or that a parameter named `config` can only be of."""
    if param.annotation is not None:
        name = param.annotation.value if isinstance(param.annotation, n.Const) else None
        found = interpreter.program.value(module, name) if isinstance(name, str) else None
        if found is None and isinstance(param.annotation, (n.Name, n.Attr)):
            found = interpreter.eval(param.annotation)
        return found if isinstance(found, ClassValue) else None
    if param.name not in _CONFIG_NAMES:
        return None
    classes = [interpreter.program.value(module, name) for name in module.names if name.endswith(_CONFIG_CLASSES)]
    return classes[0] if len(classes) == 1 and isinstance(classes[0], ClassValue) else None
