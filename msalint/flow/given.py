"""Objects that are given from outside: which class of the same file one must be of, if just one fits."""

from __future__ import annotations

from collections.abc import Sequence

from msalint.diagnostic import Site
from msalint.flow.frame import Frame
from msalint.flow.program import Program, class_members
from msalint.syntax import nodes as n
from msalint.values import ClassValue, Opaque, Tensor, Value

FEWEST = 3
"""Fewer argument names than these say too little of what is called."""


def class_given(program: Program, frame: Frame, callee: Value, sites: Sequence[Site]) -> ClassValue | None:
    """The one other class of the file whose forward names the arguments of a call: `self.inner(queries, keys, values)`.

    None where the callee is no constructor's parameter, where two classes fit, or where the one needs arguments itself.
    """
    if not isinstance(callee, Opaque) or callee.source != "init" or len(sites) < FEWEST:
        return None
    names = [site.id if isinstance(site, n.Name) else "" for site in sites]
    here = frame.owner.node if frame.owner is not None else None
    values = [program.value(frame.module, name) for name in frame.module.wanted]
    classes = [v for v in values if isinstance(v, ClassValue) and v.module is frame.module and v.node is not here]
    fitting = [cls for cls in classes if _takes(program, cls, names)]
    return fitting[0] if len(fitting) == 1 and _needs_nothing(program, fitting[0]) else None


def holder_given(
    program: Program, frame: Frame, receiver: Value, method: str, args: Sequence[Value]
) -> ClassValue | None:
    """The one class of the file with a method that takes what a parameter's method is given: `cache.extend(k, v)`.

    None but for two projections or more, where two classes fit, or where the one needs arguments itself.
    """
    projected = [arg for arg in args if isinstance(arg, Tensor) and arg.traits.projection is not None]
    if not isinstance(receiver, Opaque) or receiver.source not in {"parameter", "init"} or len(projected) < 2:
        return None
    fitting = []
    for name in frame.module.names:
        cls = program.value(frame.module, name) if name not in frame.module.imports else None
        found = class_members(cls).get(method) if isinstance(cls, ClassValue) else None
        if isinstance(found, n.FunctionDef) and isinstance(cls, ClassValue):
            params = found.params[1:]
            if len(params) >= len(args) and not any(_needed(p) for p in params[len(args) :]):
                fitting.append(cls)
    return fitting[0] if len(fitting) == 1 and _needs_nothing(program, fitting[0]) else None


def _takes(program: Program, cls: ClassValue, names: list[str]) -> bool:
    found = program.member(cls, "forward")
    if found is None or not isinstance(found[0], n.FunctionDef) or not program.is_module(cls):
        return False
    params = found[0].params[1:]
    return [p.name for p in params[: len(names)]] == names and not any(_needed(p) for p in params[len(names) :])


def _needs_nothing(program: Program, cls: ClassValue) -> bool:
    found = program.member(cls, "__init__")
    return found is None or (isinstance(found[0], n.FunctionDef) and not any(_needed(p) for p in found[0].params[1:]))


def _needed(param: n.Param) -> bool:
    return param.default is None and param.kind in {"pos", "kw"}
