"""Whether anything in sight may write the first values of a parameter. In doubt, something does."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msalint.flow.program import Program
from msalint.syntax import nodes as n
from msalint.syntax.module import Module
from msalint.values import ClassValue

_INITIALISERS = re.compile(
    r"parameters\(|children\(|modules\(|\.apply\(|post_init|state_dict|from_pretrained|setattr|getattr|__dict__"
    r"|_?init_weights|weights?_init|reset_param|init_param|initiali[sz]e|torch\.load\(|deepcopy"
)
"""Words of code that may write to parameters without naming them."""

_PLAIN_BASES = frozenset({"torch.nn.Module", "torch.nn.modules.Module", "builtins.object"})


def may_be_initialised(program: Program, cls: ClassValue, attribute: str) -> bool:
    """Whether a class, its bases or the files that they stand in hold code that may fill the parameter."""
    lineage = program.lineage(cls)
    known = all(len(program.base_classes(owner)) == len(owner.node.bases) for owner in lineage)
    if not known or not set(program.library_bases(cls)) <= _PLAIN_BASES:
        return True
    modules: list[Module] = [program.main]
    modules += [owner.module for owner in lineage if owner.module not in modules]
    if any(_INITIALISERS.search(module.text) for module in modules):
        return True
    inside = [node for owner in lineage for node in owner.node.walk() if isinstance(node, n.Attr)]
    named = re.compile(rf"\b{re.escape(attribute)}\b")
    if sum(len(named.findall(module.text)) for module in modules) != sum(node.name == attribute for node in inside):
        return True  # named by other code too, by a string, or in a comment
    return any(_touches(owner.node, attribute) for owner in lineage)


def _touches(node: n.ClassDef, attribute: str) -> bool:
    """Whether a class does more with an attribute than to set it in `__init__` and to read it elsewhere."""
    for method in node.body:
        if not isinstance(method, n.FunctionDef):
            continue
        for statement in method.walk():
            if not isinstance(statement, n.Stmt) or statement is method:
                continue
            names = [part for part in _own(statement) if isinstance(part, n.Attr) and part.name == attribute]
            set_here = isinstance(statement, n.Assign) and len(names) == 1 and names[0] in statement.targets
            reads = isinstance(statement, (n.Assign, n.Return, n.AugAssign)) and method.name != "__init__"
            if names and not (set_here or (reads and not _written(statement, attribute))):
                return True
    return False


def _own(statement: n.Stmt) -> Iterator[n.Node]:
    """A statement's own expressions, without those of the statements inside it."""
    waiting = list(statement.children())
    while waiting:
        node = waiting.pop()
        if not isinstance(node, n.Stmt):
            yield node
            waiting.extend(node.children())


def _written(statement: n.Stmt, attribute: str) -> bool:
    """`self.u[0] = ...`, `self.u += ...`, `self.u.data`, `u = self.u`: memory that may be written to."""
    if isinstance(statement, n.AugAssign):
        return True
    if isinstance(statement, n.Assign):
        if isinstance(statement.value, n.Attr) and statement.value.name == attribute:
            return True
        targets = [part for target in statement.targets for part in target.walk()]
        if any(isinstance(part, n.Attr) and part.name == attribute for part in targets):
            return True
    names = [part.name for part in _own(statement) if isinstance(part, n.Attr)]
    return any(name == "data" or name.endswith("_") for name in names)
