"""Calls: of operations by name, of layers, and of the project's own functions and classes, which are inlined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msalint.diagnostic import Site
from msalint.facts import TupleUsed
from msalint.flow import texts
from msalint.flow.attributes import BASE_LAYER, Attributes
from msalint.flow.frame import Frame, Left
from msalint.flow.given import class_given, holder_given
from msalint.flow.guesses import INTERFACES, attention_interface, guess_call
from msalint.flow.iteration import Iteration
from msalint.flow.program import Program, decorator_names, is_kernel
from msalint.flow.taken import taken_at
from msalint.ops import layers
from msalint.ops.contraction import multiply
from msalint.ops.indexing import Range, of_sequence
from msalint.ops.table import METHODS, PATHS, Invocation
from msalint.ops.wrapped import cut_off, moved_copy
from msalint.shapes.vocabulary import is_input_name
from msalint.state import State
from msalint.syntax import nodes as n
from msalint.values import (
    NONE,
    UNKNOWN,
    AttentionTuple,
    ClassValue,
    Const,
    Function,
    Instance,
    Int,
    Items,
    Layer,
    Library,
    Many,
    Mapping_,
    Method,
    Opaque,
    Partial,
    Real,
    ShapeValue,
    Tensor,
    Value,
    replace,
)

MAX_DEPTH = 10
"""Calls of project functions inside one another."""

_GROWING = frozenset("append add_module register_module".split())
_LIST_METHODS = frozenset("append extend insert".split())
_TELLING = frozenset("view reshape permute unflatten chunk unbind".split())
"""Methods that only a tensor has (or an array), and that tell its rank, or how many parts it comes in."""


_SELF_RETURNING = frozenset("to cuda cpu half float double bfloat16 train eval requires_grad_ apply type".split())
"""Methods of a module that give the module back."""


_FILLING = frozenset(
    "uniform_ normal_ trunc_normal_ constant_ ones_ zeros_ xavier_uniform_ xavier_normal_ kaiming_uniform_ "
    "kaiming_normal_ orthogonal_ lecun_normal_ variance_scaling_".split()
)
"""Functions of a project that are named as those of torch.nn.init fill their first argument, as they do."""


_ANYTHING = Many(UNKNOWN)


class Arguments:
    """Evaluated arguments, with the place of each."""

    __slots__ = ("args", "keyword_sites", "kwargs", "open", "rest", "shapes", "sites")

    def __init__(self) -> None:
        self.args: list[Value] = []
        self.kwargs: dict[str, Value] = {}
        self.sites: list[Site] = []
        self.keyword_sites: dict[str, Site] = {}
        self.open = False
        self.rest = _ANYTHING
        """What was spread in a number that is not known, where `open`."""
        self.shapes: tuple[int, ...] = ()
        """The places of shapes that stand for their sizes: `*x.shape`."""


class Calls(Attributes, Iteration):
    """The calling half of the interpreter."""

    state: State
    program: Program
    frames: list[Frame]
    reached: set[int]
    passed: set[int]
    instances: int

    if TYPE_CHECKING:

        def run(self, body: Sequence[n.Stmt]) -> Left | None: ...

        def reveal(self, call: n.Call) -> Value: ...

        def tell_kept(self, target: n.Attr, value: Value, at: n.Node, stored: Site | None) -> None: ...

    objects: dict[str, ClassValue]
    building: list[n.Node]
    """The calls of classes whose `__init__` is being run, outermost first."""

    def call_node(self, node: n.Call) -> Value:
        func = node.func
        if isinstance(func, n.Name) and func.id in {"reveal_shape", "reveal_type"} and len(node.args) == 1:
            return self.reveal(node)
        if isinstance(func, n.Name) and func.id == "super" and self._names_owner(node):
            return Library("builtins.super()")
        receiver: Value | None = None
        if isinstance(func, n.Attr):
            receiver = self.eval(func.value)
            given = self.arguments(node)
            return self.call_method(receiver, func, given, node)
        callee = self.eval(func)
        given = self.arguments(node)
        if isinstance(func, n.Name) and isinstance(callee, Function) and func.id in INTERFACES:
            # The registry's default is at hand: it is read, and the call counts as the site that it is.
            told = len(self.state.facts)
            attention_interface(self.invocation(func.id, given, node))
            self.state.facts[told + 1 :] = []
        return self.call_value(callee, given, node)

    def _names_owner(self, node: n.Call) -> bool:
        """`super()`, or `super(Class, self)` with the class that the method stands in."""
        owner = self.frames[-1].owner
        named = node.args[0].value if node.args else None
        return named is None or (owner is not None and isinstance(named, n.Name) and named.id == owner.name)

    def arguments(self, node: n.Call) -> Arguments:
        given = Arguments()
        for arg in node.args:
            value = self.eval(arg.value)
            if arg.star == "**":
                if isinstance(value, Mapping_):
                    given.kwargs.update(dict(value.entries))
                    given.open = given.open or value.open
                else:
                    given.open = True
            elif arg.star == "*":
                self._starred(given, value, arg)
            elif arg.keyword is not None:
                given.kwargs[arg.keyword] = value
                given.keyword_sites[arg.keyword] = arg.value
            else:
                given.args.append(value)
                given.sites.append(arg.value)
        return given

    def _starred(self, given: Arguments, value: Value, arg: n.Arg) -> None:
        if isinstance(value, Items):
            given.args += value.items
            given.sites += [arg.value] * len(value.items)
        elif isinstance(value, ShapeValue):
            given.shapes += (len(given.args),)
            given.args.append(value)
            given.sites.append(arg.value)
        else:
            given.open = True
            if isinstance(value, Many):
                given.rest = value

    # --- methods ----------------------------------------------------------------------------------------------

    def call_method(self, receiver: Value, func: n.Attr, given: Arguments, node: n.Call) -> Value:
        name = func.name
        if isinstance(receiver, AttentionTuple) and name in METHODS:
            self.state.emit(TupleUsed(node, receiver.at, name))
            receiver = receiver.output
        if isinstance(receiver, Tensor) or self._tensor_method(receiver, name):
            return self._tensor_call(receiver, func, given, node)
        if isinstance(receiver, Const) and isinstance(receiver.value, str):
            return texts.method(self.state, receiver.value, name, given.args)
        if isinstance(receiver, Items) and name in _LIST_METHODS:
            return self._list_call(receiver, func, given)
        if isinstance(receiver, Layer) and receiver.kind == "Sequential" and name in _GROWING:
            return self._sequential_grown(receiver, func, given)
        if isinstance(receiver, Layer) and name in _SELF_RETURNING:
            return self._told_the_mode(receiver, func) if name in {"train", "eval"} else receiver
        if isinstance(receiver, Library) and receiver.path == "builtins.super()":
            return self._super_call(name, given, node)
        if isinstance(receiver, Instance):
            return self._instance_call(receiver, name, given, node)
        if isinstance(receiver, Mapping_) and name in {"items", "keys", "values"} and not given.args:
            return entries_of(receiver, name)
        if isinstance(receiver, Mapping_) and name == "get" and given.args:
            key = given.args[0]
            found = receiver.get(key.value) if isinstance(key, Const) and isinstance(key.value, str) else receiver.other
            return found or (given.args[1] if len(given.args) > 1 and not receiver.open else UNKNOWN)
        plain = not given.kwargs and not given.open
        holder = holder_given(self.program, self.frames[-1], receiver, name, given.args) if plain else None
        if holder is not None:
            made = self.instantiate(holder, Arguments(), node)
            return self._instance_call(made, name, given, node) if isinstance(made, Instance) else UNKNOWN
        callee = self.attribute(receiver, name, func)
        return self.call_value(callee, given, node, receiver, name)

    def _told_the_mode(self, layer: Layer, func: n.Attr) -> Layer:
        """A layer that was put into a mode, as a value and under the name that it has."""
        told = replace(layer, built_in_call=False)
        if isinstance(func.value, n.Name):
            self.bind(func.value, told, func)
        return told

    def _tensor_method(self, receiver: Value, name: str) -> bool:
        if not isinstance(receiver, Opaque) or name not in METHODS:
            return False
        if not receiver.key:
            return name in _TELLING and receiver.hint in {"", "tensor"}
        return receiver.hint not in {"str", "int", "float"} and name not in {"to", "type", "data", "index_select"}

    def _tensor_call(self, receiver: Value, func: n.Attr, given: Arguments, node: n.Call) -> Value:
        tensor = self.state.some_tensor(receiver) if func.name in _TELLING else self.state.as_tensor(receiver)
        operation = METHODS.get(func.name)
        if tensor is None or operation is None:
            return UNKNOWN
        call = self.invocation(func.name, given, node)
        call.use_torch_keywords()
        self._take_outputs(call)
        call.args.insert(0, tensor)
        call.sites.insert(0, func.value)
        result = cut_off(call, moved_copy(call, tensor, operation(call) or UNKNOWN))
        if func.name.endswith("_") and isinstance(func.value, (n.Name, n.Attr)) and isinstance(result, Tensor):
            self.bind(func.value, result, node)
        return result

    def _sequential_grown(self, receiver: Layer, func: n.Attr, given: Arguments) -> Value:
        """`layers.append(layer)` and `layers.add_module("name", layer)`: the layer comes last."""
        added = given.args[-1:] or list(given.kwargs.values())[-1:]
        for layer in added:
            self.state.registry.register(layer)
        grown = replace(receiver, children=(*receiver.children, *added))
        if isinstance(func.value, (n.Name, n.Attr)):
            self.bind(func.value, grown, func)
        return grown if func.name == "append" else NONE

    def _list_call(self, receiver: Items, func: n.Attr, given: Arguments) -> Value:
        if func.name == "append" and given.args and isinstance(func.value, n.Attr):
            self.tell_kept(func.value, given.args[0], func, given.sites[0])
        added: tuple[Value, ...] = ()
        if func.name == "append" and given.args:
            added = (given.args[0],)
        elif func.name == "extend" and given.args and isinstance(given.args[0], Items):
            added = given.args[0].items
        elif func.name == "extend" and isinstance(func.value, n.Name):
            self.bind(func.value, UNKNOWN, func)
            return NONE
        elif func.name == "insert" and len(given.args) > 1:
            return self._list_inserted(receiver, func, given)
        if len(receiver.items) < 256 and isinstance(func.value, (n.Name, n.Attr)):
            grown = replace(receiver, items=receiver.items + added)
            self.bind(func.value, grown, func)
        return NONE

    def _list_inserted(self, receiver: Items, func: n.Attr, given: Arguments) -> Value:
        """`layers.insert(0, layer)`."""
        place, items = self.state.as_int(given.args[0]), receiver.items
        grown: Value = Many(given.args[1], None, receiver.kind, receiver.at)
        if place is not None:
            grown = replace(receiver, items=(*items[:place], given.args[1], *items[place:]))
        elif items:
            grown = UNKNOWN
        if isinstance(func.value, (n.Name, n.Attr)):
            self.bind(func.value, grown, func)
        return NONE

    def _super_call(self, name: str, given: Arguments, node: n.Call) -> Value:
        frame = self.frames[-1]
        owner, receiver = frame.owner, frame.receiver
        if owner is None or not isinstance(receiver, Instance):
            return UNKNOWN
        found = self.program.member(receiver.cls, name, after=owner)
        if found is not None and isinstance(found[0], n.FunctionDef):
            function = Function(found[0], found[1].module, None, found[1])
            return self.inline(function, given, node, receiver)
        if name == "__init__":
            self.build_base(receiver, given, node)
            return NONE
        return self._base_forward(receiver, given, node) if name == "forward" else UNKNOWN

    def build_base(self, instance: Instance, given: Arguments, node: n.Node) -> None:
        """The torch.nn layer that a class extends, kept as the object's own base."""
        kinds = [layer_kind(path) for path in self.program.library_bases(instance.cls)]
        kind = next((k for k in kinds if k in layers.PARAMETERS), None)
        if kind is not None:
            self.state.attributes[(instance.key, BASE_LAYER)] = layers.build(self.invocation(kind, given, node), kind)

    def _base_forward(self, instance: Instance, given: Arguments, node: n.Node) -> Value:
        """The forward that a torch.nn base brings; a Sequential runs what was added to it, in order."""
        layer = self.state.attributes.get((instance.key, BASE_LAYER))
        if not isinstance(layer, Layer):
            return guess_call(instance, self.invocation("", given, node), None)
        if layer.kind == "Sequential":
            added = [
                value
                for (key, name), value in self.state.attributes.items()
                if key == instance.key and name != BASE_LAYER and isinstance(value, (Layer, Instance))
            ]
            layer = replace(layer, children=(*layer.children, *added))
        return self.layer_call(layer, given, node)

    def _instance_call(self, receiver: Instance, name: str, given: Arguments, node: n.Call) -> Value:
        stored = self.state.attributes.get((receiver.key, name))
        if stored is not None:
            return self.call_value(stored, given, node)
        found = self.program.member(receiver.cls, name)
        if found is not None and isinstance(found[0], n.FunctionDef):
            function = Function(found[0], found[1].module, None, found[1])
            static = "staticmethod" in decorator_names(found[0])
            return self.inline(function, given, node, None if static else receiver)
        if found is not None:
            return self.call_value(self.attribute(receiver, name, node), given, node)
        return self.module_method(receiver, name, given, node)

    def item_of_object(self, receiver: Instance, items: Sequence[Value | Range], node: n.Node) -> Value:
        """`module[name]`, as its own `__getitem__` has it."""
        found = self.program.member(receiver.cls, "__getitem__")
        if found is None and (held := self.tuple_of(receiver)) is not None:
            return of_sequence(self.state, held, list(items)) or UNKNOWN
        if found is None or not isinstance(found[0], n.FunctionDef) or len(items) != 1 or isinstance(items[0], Range):
            return UNKNOWN
        given = Arguments()
        given.args, given.sites = [items[0]], [node]
        return self.inline(Function(found[0], found[1].module, None, found[1]), given, node, receiver)

    # --- any callable -----------------------------------------------------------------------------------------

    def invocation(self, name: str, given: Arguments, node: n.Node) -> Invocation:
        def call(function: Value, args: Sequence[Value]) -> Value:
            inner = Arguments()
            inner.args = list(args)
            inner.sites = [node] * len(inner.args)
            return self.call_value(function, inner, node)

        return Invocation(
            self.state,
            node,
            name,
            list(given.args),
            dict(given.kwargs),
            list(given.sites),
            dict(given.keyword_sites),
            call,
            given.open,
            self.input_at_hand,
            self.taken_for,
        )

    def taken_for(self, site: Site | None) -> Site | None:
        """The expression that a name, used here and nowhere else, took its value from."""
        frame = self.frames[-1]
        return taken_at(frame.node, site, self.passed, frame.module.imports)

    def input_at_hand(self) -> str:
        """The name of an input, or of what was projected from one, among the variables here; "" if there is none."""
        for name, value in self.frames[-1].variables.items():
            tensor = self.state.tensors.get(value.key) if isinstance(value, Opaque) else value
            if not isinstance(tensor, Tensor) or tensor.traits.number is not None or tensor.traits.made_by_default:
                continue
            if tensor.traits.projection is not None or tensor.traits.product is not None or is_input_name(name):
                return name
        return ""

    def call_value(
        self, callee: Value, given: Arguments, node: n.Node, receiver: Value | None = None, name: str = ""
    ) -> Value:
        """Call a value with evaluated arguments."""
        if isinstance(callee, Library):
            return self._library_call(callee.path, given, node)
        if isinstance(callee, Function):
            if getattr(callee.node, "name", "") in _FILLING and given.args:
                return given.args[0]
            return self.inline(callee, given, node)
        if isinstance(callee, ClassValue):
            return self.instantiate(callee, given, node)
        if isinstance(callee, Instance):
            return self._forward(callee, given, node)
        if isinstance(callee, Layer):
            return self.layer_call(callee, given, node)
        if isinstance(callee, Method):
            return self._bound_call(callee, given, node)
        if isinstance(callee, Partial):
            inner = Arguments()
            inner.args = [*callee.args, *given.args]
            inner.sites = [node] * len(callee.args) + given.sites
            inner.kwargs = {**dict(callee.kwargs), **given.kwargs}
            # What was given in this same call of the function may be changed there.
            places = dict(callee.sites) if callee.body is self.frames[-1].node else {}
            inner.keyword_sites = {**{k: places.get(k, node) for k, _ in callee.kwargs}, **given.keyword_sites}
            inner.open = given.open
            return self.call_value(callee.function, inner, node)
        plain = not given.kwargs and not given.open
        cls = class_given(self.program, self.frames[-1], callee, given.sites) if plain else None
        if cls is not None:
            return self.call_value(self.instantiate(cls, Arguments(), node), given, node)
        return guess_call(callee, self.invocation(name, given, node), receiver)

    def _bound_call(self, method: Method, given: Arguments, node: n.Node) -> Value:
        if method.function is not None:
            return self.inline(method.function, given, node, method.receiver)
        operation = METHODS.get(method.name)
        tensor = self.state.as_tensor(method.receiver)
        if operation is None or tensor is None:
            return UNKNOWN
        call = self.invocation(method.name, given, node)
        call.args.insert(0, tensor)
        call.sites.insert(0, node)
        return operation(call) or UNKNOWN

    def layer_call(self, layer: Layer, given: Arguments, node: n.Node) -> Value:
        call = self.invocation(layer.kind, given, node)
        self._take_outputs(call)
        assert call.call is not None
        result = layers.apply(call, layer, call.call)
        return result if result is not None else guess_call(layer, call, None)

    def _take_outputs(self, call: Invocation) -> None:
        """The arguments of a layer or operation, with the first of each (output, weights) pair that is used as one."""

        for i, value in enumerate(call.args):
            if isinstance(value, (AttentionTuple, Items)):
                call.args[i] = self._output(value, call.sites[i], call.name)
        for name, value in call.kwargs.items():
            if isinstance(value, (AttentionTuple, Items)):
                call.kwargs[name] = self._output(value, call.keyword_sites.get(name, call.at), call.name)

    def _output(self, value: Value, site: Site, api: str) -> Value:
        if isinstance(value, AttentionTuple):
            self.state.emit(TupleUsed(site, value.at, api))
            return value.output
        if isinstance(value, Items) and any(isinstance(item, AttentionTuple) for item in value.items):
            return replace(value, items=tuple(self._output(item, site, api) for item in value.items))
        return value

    def _in_forward(self) -> bool:
        """Whether the body being read runs anew with each forward."""
        names = {frame.node.name for frame in self.frames if isinstance(frame.node, n.FunctionDef)}
        here = self.frames[-1].node is not None and self.state.in_module
        return here and bool(names & {"forward", "__call__"}) and "__init__" not in names

    def _forward(self, instance: Instance, given: Arguments, node: n.Node) -> Value:
        for name in ("forward", "__call__"):
            found = self.program.member(instance.cls, name)
            if found is not None and isinstance(found[0], n.FunctionDef):
                return self.inline(Function(found[0], found[1].module, None, found[1]), given, node, instance)
        return self._base_forward(instance, given, node)

    def _library_call(self, path: str, given: Arguments, node: n.Node) -> Value:
        builtin = self.builtin_call(path, given, node)
        if builtin is not None:
            return builtin
        operation = PATHS.get(path)
        call = self.invocation(path.rsplit(".", 1)[-1], given, node)
        if operation is not None:
            if path.startswith("torch."):
                call.use_torch_keywords()
            self._take_outputs(call)
            return operation(call) or UNKNOWN
        kind = layer_kind(path)
        if kind is not None:
            layer = layers.build(call, kind)
            if kind == "Sequential" and isinstance(node, n.Call):
                self.tell_unpacked(node)
            if kind == "Sequential" and isinstance(layer, Layer) and given.open:
                layer = replace(layer, children=(*layer.children, given.rest))
            return replace(layer, built_in_call=self._in_forward()) if isinstance(layer, Layer) else layer
        if path.startswith(("torch.nn.init.", "torch.jit.", "warnings.", "logging.")):
            return given.args[0] if given.args and "jit" in path else NONE
        return guess_call(Library(path), call, None)

    # --- project functions and classes ------------------------------------------------------------------------

    def inline(self, function: Function, given: Arguments, node: n.Node, receiver: Value | None = None) -> Value:
        """Run a function of the project with the arguments it is given."""
        target = function.node
        if len(self.frames) > MAX_DEPTH or any(frame.node is target for frame in self.frames):
            return UNKNOWN
        if isinstance(target, n.FunctionDef) and is_kernel(target, function.module):
            return UNKNOWN
        context, module_name, depth = self.state.context, self.state.module_name, len(self.state.guards)
        frame = self.opened(function, given, receiver)
        try:
            if isinstance(target, n.Lambda):
                return self.eval(target.body)
            self.run(target.body)
            returned = frame.returned if frame.returned is not None else NONE
            # A pair that is handed on is the result of this call: whoever misuses it misuses that.
            return replace(returned, at=node) if isinstance(returned, AttentionTuple) else returned
        finally:
            self.frames.pop()
            self.state.context, self.state.module_name = context, module_name
            del self.state.guards[depth:]

    def opened(self, function: Function, given: Arguments, receiver: Value | None = None) -> Frame:
        """The frame of a function that is about to be run, its parameters bound, on top of the others."""
        target = function.node
        frame = Frame(function.module, target, outer=function.closure, owner=function.owner, receiver=receiver)
        if function.closure is not None and receiver is None:
            frame.receiver = function.closure.receiver
            frame.owner = function.owner or function.closure.owner
        self._bind_parameters(frame, target, given, receiver)
        self.reached.add(id(target))
        self.frames.append(frame)
        self.state.module_name = self._module_name(frame, target)
        if isinstance(target, n.FunctionDef):
            context = self.state.context
            owner = function.owner.node if function.owner is not None and function.owner.name not in context else None
            around = (owner.name, owner.docstring) if owner is not None else ()
            self.state.context = (*context, *(text for text in (*around, target.name, target.docstring) if text))
        return frame

    def _module_name(self, frame: Frame, target: n.FunctionDef | n.Lambda) -> str:
        """What the module is called in a body: the first parameter of its methods, also inside nested functions."""
        if isinstance(target, n.Lambda) or frame.outer is not None:
            return self.state.module_name
        bound = isinstance(frame.receiver, Instance) and self.program.is_module(frame.receiver.cls)
        return target.params[0].name if bound and target.params else ""

    def _bind_parameters(
        self, frame: Frame, target: n.FunctionDef | n.Lambda, given: Arguments, receiver: Value | None
    ) -> None:
        args, complete = self._single(given) if given.shapes else (list(given.args), not given.open)
        if receiver is not None:
            args.insert(0, receiver)
        kwargs = dict(given.kwargs)
        for param in target.params:
            if param.kind == "*":
                frame.variables[param.name] = Items(tuple(args)) if complete else UNKNOWN
                args = []
            elif param.kind == "**":
                frame.variables[param.name] = Mapping_(tuple(kwargs.items()), given.open)
            elif param.kind == "pos" and args:
                frame.variables[param.name] = self._argument(args.pop(0), param)
            elif param.name in kwargs:
                frame.variables[param.name] = self._argument(kwargs.pop(param.name), param)
            elif param.default is not None and not given.open and complete:
                frame.variables[param.name] = self._default(frame, param)
            else:
                frame.variables[param.name] = Opaque(f"{id(frame)}.{param.name}", param.name)

    def _single(self, given: Arguments) -> tuple[list[Value], bool]:
        """The arguments one by one, a shape as its sizes, up to what is not known; and whether these are all."""
        args: list[Value] = []
        for place, value in enumerate(given.args):
            if place not in given.shapes or not isinstance(value, ShapeValue):
                args.append(value)
                continue
            lead, axes = self.state.resolve_lead(value.lead, value.axes)
            if lead is not None:
                return args, False
            args += [Int(self.state.size_of(axis)) for axis in axes]
        return args, not given.open

    def _argument(self, value: Value, param: n.Param) -> Value:
        return replace(value, name=param.name) if isinstance(value, Opaque) and not value.name else value

    def _default(self, frame: Frame, param: n.Param) -> Value:
        assert param.default is not None
        self.frames.append(frame)
        try:
            return self.eval(param.default)
        finally:
            self.frames.pop()

    def instantiate(self, cls: ClassValue, given: Arguments, node: n.Node) -> Value:
        """`Class(...)`: a new object, its `__init__` run."""
        bases = self.program.library_bases(cls)
        if any(base.rsplit(".", 1)[-1] in {"Enum", "IntEnum", "StrEnum", "TypedDict"} for base in bases):
            return UNKNOWN
        self.instances += 1
        instance = Instance(cls, f"{cls.name}#{self.instances}")
        self.objects[instance.key] = cls
        self.building.append(node)
        for value in (*given.args, *given.kwargs.values()):
            self.state.registry.hand(value)
        try:
            self.initialise(instance, given, node)
        finally:
            self.building.pop()
        return instance

    def initialise(self, instance: Instance, given: Arguments, node: n.Node) -> None:
        found = self.program.member(instance.cls, "__init__")
        if found is not None and isinstance(found[0], n.FunctionDef):
            self.inline(Function(found[0], found[1].module, None, found[1]), given, node, instance)
        elif found is None:
            self._dataclass_fields(instance, given)
            self.build_base(instance, given, node)

    def _dataclass_fields(self, instance: Instance, given: Arguments) -> None:
        """A dataclass or NamedTuple has no `__init__` to run: arguments become attributes, by name or in order."""
        named = dict(zip(_fields(instance.cls), given.args) if not given.open else ())
        for name, value in (named | given.kwargs).items():
            self.state.attributes[(instance.key, name)] = value

    def tuple_of(self, instance: Instance) -> Items | None:
        """A NamedTuple as the tuple that it is, where all of its fields were given."""
        if not any(base.endswith("NamedTuple") for base in self.program.library_bases(instance.cls)):
            return None
        held = [self.state.attributes.get((instance.key, name)) for name in _fields(instance.cls)]
        return None if None in held else Items(tuple(one for one in held if one is not None))

    def enter(self, node: n.Expr, value: Value) -> None:
        """A `with` item: autocast to half brings half precision into sight."""
        if isinstance(node, n.Call) and any("float16" in arg.value.words() for arg in node.args):
            self.state.half_in_sight = True

    def matmul(self, left: Value, right: Value, at: n.Node, a: n.Node, b: n.Node) -> Value:
        x, y = self.state.as_tensor(left), self.state.as_tensor(right)
        if x is None or y is None:
            return UNKNOWN
        return multiply(self.state, x, y, at, (a, b)) or UNKNOWN


def _fields(cls: ClassValue) -> list[str]:
    """The names that a class body annotates, in order."""
    written = [one for one in cls.node.body if isinstance(one, n.Assign) and one.annotation is not None]
    return [target.id for one in written for target in one.targets if isinstance(target, n.Name)]


_LAYER_MODULES = ("torch.nn.", "torch.nn.modules.")


def entries_of(mapping: Mapping_, part: str) -> Value:
    """`mapping.items()`, `.keys()`, `.values()`."""

    def of(key: Value, value: Value) -> Value:
        return {"keys": key, "values": value}.get(part) or Items((key, value))

    if mapping.other is not None:
        return Many(of(UNKNOWN, mapping.other), kind="generator")
    return UNKNOWN if mapping.open else Items(tuple(of(Const(k), v) for k, v in mapping.entries), "generator")


def layer_kind(path: str) -> str | None:
    """The class name of a torch.nn layer, None for any other path."""
    last = path.rsplit(".", 1)[-1]
    if path.startswith("einops.layers.torch."):
        return last if last in layers.PARAMETERS else None
    if path.startswith(_LAYER_MODULES) and not path.startswith(("torch.nn.functional.", "torch.nn.init.")):
        return last if last[:1].isupper() else None
    return None


def plain(value: Value) -> bool:
    return isinstance(value, (Const, Int, Real))
