"""A module that a constructor is given from outside: which class of the same file it must be, if one fits."""

from __future__ import annotations

from collections.abc import Sequence

from msalint.diagnostic import Site
from msalint.flow.frame import Frame
from msalint.flow.program import Program
from msalint.syntax import nodes as n
from msalint.values import ClassValue, Opaque, Value

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
