"""Which axis of its input a module takes for the batch: what its own source says."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from typing import Any, Literal

from torch import nn

from msalint.runtime.hints import hints_of, is_array
from msalint.shapes.notation import parse_shape_claims
from msalint.shapes.vocabulary import BATCH, HEAD, HEAD_DIM, SEQ, WIDTH, role_of_name

Layout = Literal[
    "rows", "seq_first", "heads", "heads_third", "unbatched", "parts", "channels_first", "ids", "ids_seq_first"
]
"""A way that inputs are laid out, see `AXES`."""

TWIN: dict[str, Layout] = {
    "rows": "seq_first",
    "seq_first": "rows",
    "heads": "heads_third",
    "heads_third": "heads",
    "ids": "ids_seq_first",
    "ids_seq_first": "ids",
}
"""The other layout of the same rank."""

AXES: dict[str, tuple[str, ...]] = {
    "rows": ("batch", "seq", "d_model"),
    "seq_first": ("seq", "batch", "d_model"),
    "heads": ("batch", "head", "seq", "d_k"),
    "heads_third": ("batch", "seq", "head", "d_k"),
    "unbatched": ("seq", "d_model"),
    "parts": ("batch", "part", "seq", "d_model"),
    "channels_first": ("batch", "d_model", "seq"),
    "ids": ("batch", "seq"),
    "ids_seq_first": ("seq", "batch"),
}

_OF_IDS: dict[tuple[str | None, ...], Layout] = {(BATCH, SEQ): "ids", (SEQ, BATCH): "ids_seq_first"}

_BY_ROLES: dict[tuple[str | None, ...], Layout] = {
    (BATCH, SEQ): "rows",
    (SEQ, BATCH): "seq_first",
    (BATCH, HEAD, SEQ): "heads",
    (BATCH, SEQ, HEAD): "heads_third",
}


def declared_layout(built: Any) -> Layout | None:
    """The layout that a module or function states: a `batch_first` of its own, a docstring or comment such as
    "x: (B, L, D)", or the names it unpacks a parameter's shape into. None if it states none, or several."""
    own = getattr(built, "batch_first", None)
    if own is None and type(built).__module__.startswith("torch.nn."):
        own = next((part.batch_first for part in built.modules() if hasattr(part, "batch_first")), None)
    if isinstance(own, bool):
        return "rows" if own else "seq_first"
    function = built.forward if isinstance(built, nn.Module) else built
    found = list(dict.fromkeys(_stated(function, type(built) if isinstance(built, nn.Module) else None)))
    return found[0] if len(found) == 1 else None


def _stated(function: Any, cls: type | None) -> Iterator[Layout]:
    try:
        source = textwrap.dedent(inspect.getsource(function))
        tree = ast.parse(source)
        parameters = list(inspect.signature(function).parameters)
    except (OSError, TypeError, SyntaxError, ValueError):
        return
    for hint in hints_of(function).values():
        if is_array(hint):
            yield from _of_roles(hint.dim_str.split())
            break
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and _shape_owner(node.value) in parameters:
            first = _shape_owner(node.value) == parameters[0]
            yield from _of_roles([_target_name(target) for target in _unpacked(node)], first)
    lines = [line for line in source.splitlines() if line.lstrip().startswith("#")]
    for text in (*(function.__doc__ or "").splitlines(), *((cls and cls.__doc__) or "").splitlines(), *lines):
        for claim in parse_shape_claims(text):
            if claim.subject is None or claim.subject in (*parameters, "inputs", "input", "shape"):
                first = claim.subject in parameters[:1]
                yield from _of_roles([axis if isinstance(axis, str) else None for axis in claim.axes], first)
                break


def _of_roles(names: list[str | None], first: bool = False) -> Iterator[Layout]:
    """`first`: they are the axes of the first parameter; two axes may be a mask's, if they are any other's."""
    roles: tuple[str | None, ...] = tuple(role_of_name(name) if name else None for name in names)
    layout: Layout | None
    if len(roles) == 2 and first:
        layout = _OF_IDS.get(roles)
    elif roles == (BATCH, WIDTH, SEQ):
        layout = "channels_first"
    elif len(roles) == 3:
        layout = _BY_ROLES.get(roles[:2])
    elif len(roles) == 4 and roles[3] in (HEAD_DIM, "width"):
        layout = _BY_ROLES.get(roles[:3])
    else:
        layout = None
    if layout is not None:
        yield layout


def _unpacked(node: ast.Assign) -> list[ast.expr]:
    target = node.targets[0]
    return list(target.elts) if isinstance(target, (ast.Tuple, ast.List)) else []


def _target_name(node: ast.expr) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else None


def _shape_owner(node: ast.expr) -> str | None:
    """`x` of `x.shape` and of `x.size()`."""
    if isinstance(node, ast.Call) and not node.args and not node.keywords:
        node = node.func
        if not (isinstance(node, ast.Attribute) and node.attr == "size"):
            return None
    elif not (isinstance(node, ast.Attribute) and node.attr == "shape"):
        return None
    owner = node.value
    return owner.id if isinstance(owner, ast.Name) else None
