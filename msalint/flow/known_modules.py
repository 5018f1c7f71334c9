"""Whether an expression is an nn.Module, or gives nothing but nn.Modules, as far as the tree alone tells."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from msalint.flow.program import Program
from msalint.syntax import nodes as n
from msalint.syntax.module import Module
from msalint.values import ClassValue, Function, Library, Value

MAX_DEPTH = 8
"""Steps from an expression through names and helpers to what it comes from."""

_NO_MODULES = frozenset("Parameter UninitializedParameter Buffer UninitializedBuffer".split())
"""Names of torch.nn that begin with a capital and are no modules."""

_CHAINED = frozenset(
    "to cuda cpu eval train half float double bfloat16 apply requires_grad_ type to_empty share_memory".split()
)
"""Methods of nn.Module that return the module."""

DICT_NAMES = frozenset(
    "T_destination add_module apply bfloat16 buffers call_super_init children clear compile cpu cuda double "
    "dump_patches eval extra_repr float forward get_buffer get_extra_state get_parameter get_submodule half ipu "
    "items keys load_state_dict modules mtia named_buffers named_children named_modules named_parameters "
    "parameters pop register_backward_hook register_buffer register_forward_hook register_forward_pre_hook "
    "register_full_backward_hook register_full_backward_pre_hook register_load_state_dict_post_hook "
    "register_load_state_dict_pre_hook register_module register_parameter register_state_dict_post_hook "
    "register_state_dict_pre_hook requires_grad_ set_extra_state set_submodule share_memory state_dict to "
    "to_empty train training type update values xpu zero_grad".split()
)
"""Public attributes of nn.ModuleDict, which therefore name no module in one."""

_PLAIN_TYPES = frozenset("list tuple dict set str int float bool".split())
_SAME_ITEMS = frozenset("list tuple set sorted reversed iter".split())
_GROWING = frozenset("append extend insert".split())


@dataclass(frozen=True)
class Scope:
    """Where an expression stands: in a function of a module, perhaps as a method of a class."""

    module: Module
    function: n.FunctionDef | None = None
    cls: ClassValue | None = None


Answer = bool | None
"""True and False are known; None is not known."""


def all_of(answers: Iterable[Answer]) -> Answer:
    """True if all are, False if one is known not to be."""
    known = list(answers)
    return False if False in known else None if None in known else True


class KnownModules:
    """Answers for expressions of a program. None as a value counts as a module: torch takes it for an empty place."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def is_module(self, node: n.Expr, scope: Scope, depth: int = 0) -> Answer:
        """Whether an expression is an nn.Module."""
        if depth > MAX_DEPTH:
            return None
        if isinstance(node, n.Const):
            return node.value is None
        if isinstance(node, (n.Sequence_, n.Dict, n.Lambda, n.FString, n.Compare, n.Comprehension)):
            return False
        if isinstance(node, n.IfExp):
            return all_of(self.is_module(part, scope, depth + 1) for part in (node.body, node.orelse))
        if isinstance(node, n.Name):
            return self._is_module_by_name(node.id, scope, depth)
        return self._is_module_called(node, scope, depth) if isinstance(node, n.Call) else None

    def holds_modules(self, node: n.Expr, scope: Scope, depth: int = 0) -> Answer:
        """Whether what an expression gives when it is iterated (a dict: its values) are nn.Modules."""
        if depth > MAX_DEPTH:
            return None
        if isinstance(node, n.Sequence_):
            return all_of(self._item(item, scope, depth) for item in node.items)
        if isinstance(node, n.Dict):
            whole = None if None in node.keys else True
            return all_of([whole, *(self.is_module(value, scope, depth + 1) for value in node.values)])
        if isinstance(node, n.Comprehension):
            return self.is_module(node.element, scope, depth + 1)
        if isinstance(node, n.Binary):
            return self._holds_combined(node, scope, depth)
        if isinstance(node, n.IfExp):
            return all_of(self.holds_modules(part, scope, depth + 1) for part in (node.body, node.orelse))
        if isinstance(node, n.Index) and any(isinstance(item, n.Slice) for item in node.items):
            return self.holds_modules(node.value, scope, depth + 1)
        if isinstance(node, n.Name):
            return self._holds_by_name(node.id, scope, depth)
        return self._holds_called(node, scope, depth) if isinstance(node, n.Call) else None

    def _item(self, item: n.Expr, scope: Scope, depth: int) -> Answer:
        if isinstance(item, n.Star):
            return self.holds_modules(item.value, scope, depth + 1)
        return self.is_module(item, scope, depth + 1)

    def _holds_combined(self, node: n.Binary, scope: Scope, depth: int) -> Answer:
        """`[Block()] * n`, `encoders + decoders`."""
        if node.op == "*":
            listed = node.left if isinstance(node.left, n.Sequence_) else node.right
            return self.holds_modules(listed, scope, depth + 1) if isinstance(listed, n.Sequence_) else None
        if node.op == "+":
            return all_of(self.holds_modules(part, scope, depth + 1) for part in (node.left, node.right))
        return None

    # --- names ------------------------------------------------------------------------------------------------

    def _is_module_by_name(self, name: str, scope: Scope, depth: int) -> Answer:
        bound = list(_bindings(name, scope.function))
        if not bound:
            return None
        return all_of(self._is_module_bound(one, name, scope, depth) for one in bound)

    def _is_module_bound(self, binding: n.Node, name: str, scope: Scope, depth: int) -> Answer:
        if isinstance(binding, n.Param):
            return self._annotated(binding.annotation, scope)
        if isinstance(binding, n.Assign) and binding.value is not None and _plainly(binding.targets, name):
            return self.is_module(binding.value, scope, depth + 1)
        if isinstance(binding, (n.For, n.For_)) and isinstance(binding.target, n.Name):
            return self.holds_modules(binding.iter, scope, depth + 1)
        return None

    def _annotated(self, annotation: n.Expr | None, scope: Scope) -> Answer:
        value = self.program.named(annotation, scope.module) if annotation is not None else None
        return True if value is not None and self.makes_module(value) else None

    def _holds_by_name(self, name: str, scope: Scope, depth: int) -> Answer:
        """A local list that nothing is added to after it was made."""
        function = scope.function
        bound = list(_bindings(name, function))
        if function is None or not bound or _grows(name, function):
            return None
        return all_of(
            self.holds_modules(one.value, scope, depth + 1)
            if isinstance(one, n.Assign) and one.value is not None and _plainly(one.targets, name)
            else None
            for one in bound
        )

    # --- calls ------------------------------------------------------------------------------------------------

    def called(self, node: n.Call, scope: Scope) -> Value | None:
        """What is called, if a name of the file's top level or a method of the class says so."""
        func = node.func
        if isinstance(func, n.Attr) and isinstance(func.value, n.Name) and func.value.id == "self":
            found = self.program.member(scope.cls, func.name) if scope.cls is not None else None
            if found is None or not isinstance(found[0], n.FunctionDef):
                return None
            return Function(found[0], found[1].module, None, found[1])
        root = func
        while isinstance(root, n.Attr):
            root = root.value
        if not isinstance(root, n.Name) or any(True for _ in _bindings(root.id, scope.function)):
            return None
        return self.program.named(func, scope.module)

    def builtin(self, node: n.Call, scope: Scope) -> str:
        """The name of the builtin that is called, "" for anything else."""
        name = node.func.id if isinstance(node.func, n.Name) else ""
        hidden = not name or name in scope.module.names or any(True for _ in _bindings(name, scope.function))
        return "" if hidden else name

    def _is_module_called(self, node: n.Call, scope: Scope, depth: int) -> Answer:
        func = node.func
        if isinstance(func, n.Attr) and func.name in _CHAINED:
            return self.is_module(func.value, scope, depth + 1) or None
        if self.builtin(node, scope) in _PLAIN_TYPES:
            return False
        callee = self.called(node, scope)
        if isinstance(callee, Function):
            return all_of(self.is_module(*one, depth + 1) for one in _returned(callee, scope)) or None
        if isinstance(callee, Library) and callee.path in {"copy.deepcopy", "copy.copy"} and node.args:
            return self.is_module(node.args[0].value, scope, depth + 1)
        return self.makes_module(callee) if callee is not None else None

    def _holds_called(self, node: n.Call, scope: Scope, depth: int) -> Answer:
        if node.args and not node.args[0].star and self.builtin(node, scope) in _SAME_ITEMS:
            return self.holds_modules(node.args[0].value, scope, depth + 1)
        callee = self.called(node, scope)
        if isinstance(callee, Function):
            return all_of(self.holds_modules(*one, depth + 1) for one in _returned(callee, scope)) or None
        listed = isinstance(callee, Library) and callee.path in {"torch.nn.ModuleList", "torch.nn.Sequential"}
        return True if listed else None

    def makes_module(self, callee: Value) -> Answer:
        """Whether a call of it makes an nn.Module: a class that goes back to one, a layer of torch.nn."""
        if isinstance(callee, Library):
            return _library_module(callee.path)
        if not isinstance(callee, ClassValue):
            return None
        bases = self.program.library_bases(callee)
        if any(_library_module(path) for path in bases):
            return True
        return None if bases or any(owner.node.bases for owner in self.program.lineage(callee)) else False


def _library_module(path: str) -> Answer:
    last = path.rsplit(".", 1)[-1]
    if path.startswith("torch.nn.") and last[:1].isupper():
        return last not in _NO_MODULES
    return True if last in {"LightningModule", "PreTrainedModel", "ModelMixin"} else None


def _returned(function: Function, caller: Scope) -> Iterator[tuple[n.Expr, Scope]]:
    """What a function returns, and where that stands. One that also yields or ends without a value gives None."""
    node = function.node
    scope = Scope(function.module, node, caller.cls if function.owner is not None else None)
    returns = [part for part in node.walk() if isinstance(part, n.Return)]
    whole = bool(returns) and isinstance(node.body[-1], (n.Return, n.Raise, n.If, n.With, n.Try))
    for one in returns:
        yield one.value or n.Const(None), scope
    if not whole or node.is_async or node.decorators:
        yield n.Opaque(()), scope


def _bindings(name: str, function: n.FunctionDef | None) -> Iterator[n.Node]:
    """All that binds a name in a function, inner functions and comprehensions included."""
    if function is None:
        return
    for part in function.walk():
        if isinstance(part, n.Param):
            if part.name == name:
                yield part
        elif isinstance(part, (n.FunctionDef, n.ClassDef)):
            if part.name == name and part is not function:
                yield part
        elif isinstance(part, n.Import):
            if any(local == name for local, _ in part.names):
                yield part
        elif isinstance(part, n.Handler):
            if part.name == name:
                yield part
        elif isinstance(part, n.Case):
            if name in part.names:
                yield part
        elif any(_names(target, name) for target in _targets(part)):
            yield part


def _targets(node: n.Node) -> tuple[n.Expr, ...]:
    if isinstance(node, n.Assign):
        return node.targets
    if isinstance(node, n.With):
        return tuple(target for target in node.targets if target is not None)
    return (node.target,) if isinstance(node, (n.For, n.For_, n.AugAssign, n.Walrus)) else ()


def _names(target: n.Expr, name: str) -> bool:
    if isinstance(target, n.Sequence_):
        return any(_names(item, name) for item in target.items)
    if isinstance(target, n.Star):
        return _names(target.value, name)
    return isinstance(target, n.Name) and target.id == name


def _plainly(targets: tuple[n.Expr, ...], name: str) -> bool:
    """Whether each target that binds the name takes the whole value."""
    return all(isinstance(target, n.Name) or not _names(target, name) for target in targets)


def _grows(name: str, function: n.FunctionDef) -> bool:
    """Whether something is added to a local list after it was made."""
    for part in function.walk():
        if isinstance(part, n.Attr) and part.name in _GROWING and _names(part.value, name):
            return True
        if isinstance(part, (n.AugAssign, n.Assign)):
            for target in _targets(part):
                if isinstance(target, n.Index) and _names(target.value, name):
                    return True
    return False
