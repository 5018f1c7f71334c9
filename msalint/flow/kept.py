"""Tensors that a module keeps after its forward, and whether something in its class wants their graph."""

from __future__ import annotations

import re

from msalint.flow.program import Program
from msalint.syntax import nodes as n
from msalint.values import ClassValue

_WANTS_GRAPH = re.compile(r"grad|loss|penalt|regulari|entropy|relevance|lrp|hook|backward", re.IGNORECASE)


def needs_graph(program: Program, cls: ClassValue, attribute: str) -> bool:
    """Whether a name in the class says that gradients flow through what it keeps: a loss, a hook, Grad-CAM."""
    if _WANTS_GRAPH.search(attribute):
        return True
    return any(_WANTS_GRAPH.search(_without_no_grad(owner.node.words())) for owner in program.lineage(cls))


def _without_no_grad(words: str) -> str:
    return words.replace("no_grad", "").replace("requires_grad", "").replace("set_grad_enabled", "")


def reads(body: n.FunctionDef, target: n.Attr) -> int:
    """How often a body reads what it keeps under an attribute; assigning to it and appending to it are no reading."""
    found = 0
    written: set[int] = set()
    for node in body.walk():
        if isinstance(node, n.Assign):
            written |= {id(part) for one in node.targets for part in one.walk()}
        if isinstance(node, n.Attr) and node.name == "append":
            written.add(id(node.value))
    for node in body.walk():
        if isinstance(node, n.Attr) and node.name == target.name and id(node) not in written:
            found += 1
    return found
