"""Attributes: of objects, layers, tensors, and library names; what a module keeps and what it registers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msalint.facts import ParameterLeftRaw, ParameterMoved, TupleUsed
from msalint.flow.frame import Frame
from msalint.flow.initialising import may_be_initialised
from msalint.flow.program import Program, decorator_names
from msalint.flow.texts import name_in
from msalint.ops import scalars
from msalint.ops.attention import layer_rate
from msalint.ops.axes import new_axis
from msalint.ops.create import parameter_like
from msalint.ops.layout import shape_value
from msalint.ops.table import METHODS, Invocation
from msalint.shapes.size import Size
from msalint.state import State
from msalint.syntax import nodes as n
from msalint.values import (
    NONE,
    UNKNOWN,
    AttentionTuple,
    ClassValue,
    Const,
    DType,
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
    Rank,
    Real,
    Tensor,
    Value,
    Wrapped,
    dtype_kind,
    replace,
)

if TYPE_CHECKING:
    from msalint.flow.calls import Arguments

_PROPERTIES = frozenset("shape T mT mH H dtype device ndim data real grad is_cuda requires_grad".split())
BASE_LAYER = "<base>"
"""The attribute under which an object keeps the torch.nn layer that its class extends."""
_REGISTERING = frozenset("register_module add_module".split())


class Attributes:
    """Reading and writing attributes."""

    state: State
    program: Program
    frames: list[Frame]

    if TYPE_CHECKING:

        def inline(
            self, function: Function, given: Arguments, node: n.Node, receiver: Value | None = None
        ) -> Value: ...

        def eval(self, node: n.Expr) -> Value: ...

        def invocation(self, name: str, given: Arguments, node: n.Node) -> Invocation: ...

        def refined(self, value: Value) -> Value: ...

    def attribute(self, value: Value, name: str, node: n.Node) -> Value:
        """`value.name`."""
        if isinstance(value, Library):
            return self._of_library(value, name)
        if isinstance(value, Instance):
            return self._of_instance(value, name, node)
        if isinstance(value, AttentionTuple) and (name in _PROPERTIES or name in METHODS):
            self.state.emit(TupleUsed(node, value.at, name))
            value = value.output
        if isinstance(value, Tensor) or (isinstance(value, Opaque) and self._tensor_property(value, name)):
            return self._of_tensor(value, name, node)
        if isinstance(value, Layer):
            return self._of_layer(value, name)
        if isinstance(value, ClassValue):
            return self._of_class(value, name)
        if isinstance(value, Opaque):
            return self._of_opaque(value, name)
        if isinstance(value, Items) and name in {"values", "indices"} and len(value.items) == 2:
            # What max, sort or topk give, by name.
            return value.items[name == "indices"]
        return UNKNOWN

    def _tensor_property(self, value: Opaque, name: str) -> bool:
        return bool(value.key) and name in {"shape", "T", "mT", "mH", "ndim"} and value.hint in {"", "tensor"}

    def _of_library(self, value: Library, name: str) -> Value:
        if value.path.startswith("finfo:"):
            kind = value.path.removeprefix("finfo:")
            return scalars.float_info(DType({"half": "float16"}.get(kind, kind) or None), name) or UNKNOWN
        path = f"{value.path}.{name}"
        if path in scalars.CONSTANTS:
            return scalars.CONSTANTS[path]
        if value.path in {"torch", "numpy"} and dtype_kind(name) is not None and name != "range":
            return DType(name)
        return self.program.dotted(path, self.frames[-1].module)

    def _of_opaque(self, value: Opaque, name: str) -> Value:
        if name == "dtype" and value.hint in {"", "tensor"}:
            self.state.dtype_asked.add(value.name)
            return DType(None, value.key)
        return value.member(name)

    def _of_tensor(self, value: Value, name: str, node: n.Node) -> Value:
        tensor = self.state.as_tensor(value)
        if tensor is None:
            return UNKNOWN
        if name == "shape":
            return shape_value(tensor)
        if name in {"T", "mT", "mH", "H"}:
            from msalint.flow.calls import Arguments

            call = self.invocation("mT" if name in {"mH", "H"} else name, Arguments(), node)
            call.args, call.sites = [tensor], [getattr(node, "value", node)]
            return METHODS["T" if name == "T" else "mT"](call) or UNKNOWN
        if name == "ndim":
            return Rank(tensor) if tensor.rank is None else Int(Size.of(tensor.rank))
        if name == "dtype":
            self.state.dtype_asked.add(tensor.traits.name)
            known = None if tensor.traits.said_bool else _dtype_name(tensor.dtype)
            return DType(known, tensor.traits.name)
        if name in {"data", "real"}:
            return tensor.with_traits(detached=True) if name == "data" else tensor
        return Method(tensor, name) if name in METHODS else UNKNOWN

    def _of_layer(self, layer: Layer, name: str) -> Value:
        """What a layer keeps: its sizes, its rate, its weight."""
        given = layer.get(name)
        if given is not None:
            return given
        if name == "p" and "Dropout" in layer.kind:
            return layer_rate(layer)
        if name == "weight" and layer.kind in {"Linear", "Embedding"}:
            linear = layer.kind == "Linear"
            parts = ("out_features", "in_features") if linear else ("num_embeddings", "embedding_dim")
            sizes = [self.state.as_size(layer.get(part)) for part in parts]
            return parameter_like((new_axis(sizes[0], "feature"), new_axis(sizes[1], "feature")))
        if (
            layer.kind == "Transformer"
            and name in {"encoder", "decoder"}
            and layer.get(f"custom_{name}") in {None, NONE}
        ):
            kind = f"Transformer{name.title()}"
            return replace(layer, kind=kind, args=((f"{name}_layer", replace(layer, kind=f"{kind}Layer")),), name=name)
        if name == "head_dim" and layer.kind == "MultiheadAttention":
            width, heads = (self.state.as_size(layer.get(part)) for part in ("embed_dim", "num_heads"))
            return Int(width // heads) if width is not None and heads is not None else UNKNOWN
        return Opaque(f"layer{layer.serial}.{name}", name, source="attribute")

    def _of_class(self, cls: ClassValue, name: str) -> Value:
        found = self.program.member(cls, name)
        if found is None:
            return UNKNOWN
        statement, owner = found
        if isinstance(statement, n.FunctionDef):
            function = Function(statement, owner.module, None, owner)
            return Method(cls, name, function) if "classmethod" in decorator_names(statement) else function
        return self._class_constant(statement, owner)

    def _class_constant(self, statement: n.Stmt, owner: ClassValue) -> Value:
        if not isinstance(statement, n.Assign) or statement.value is None:
            return UNKNOWN
        self.frames.append(Frame(owner.module))
        try:
            return self.eval(statement.value)
        finally:
            self.frames.pop()

    def _of_instance(self, instance: Instance, name: str, node: n.Node) -> Value:
        stored = self.state.attributes.get((instance.key, name))
        if stored == NONE and self.program.is_set_later(instance.cls, name):
            return Opaque(f"{instance.key}.{name}", name, source="attribute")
        if isinstance(stored, Tensor) and any(self.state.size_of(axis).constant == 0 for axis in stored.axes):
            # `torch.zeros(0, d)` keeps the place of what is learned, loaded or cached later.
            return Opaque(f"{instance.key}.{name}", name, source="attribute")
        if stored is not None:
            return stored
        if name == "training":
            return Opaque(f"{instance.key}.training", "training", "bool")
        if name == "__class__":
            return instance.cls
        found = self.program.member(instance.cls, name)
        if found is not None and isinstance(found[0], n.FunctionDef):
            return self._method_or_property(instance, found[0], found[1], node)
        if found is not None and self.program.is_set_later(instance.cls, name):
            # `out: int = -1`, worked out in `__post_init__`.
            return Opaque(f"{instance.key}.{name}", name, source="attribute")
        if found is not None:
            value = self._class_constant(found[0], found[1])
            if isinstance(value, Const) and isinstance(value.value, bool):
                # A class-level switch may be set from outside.
                return Opaque(f"{instance.key}.{name}", name, "bool", "attribute")
            return value
        base = self.state.attributes.get((instance.key, BASE_LAYER))
        if isinstance(base, Layer) and (base.get(name) is not None or name == "weight"):
            return self._of_layer(base, name)
        return Opaque(f"{instance.key}.{name}", name, source="attribute")

    def _method_or_property(
        self, instance: Instance, statement: n.FunctionDef, owner: ClassValue, node: n.Node
    ) -> Value:
        function = Function(statement, owner.module, None, owner)
        decorators = decorator_names(statement)
        if decorators & {"property", "cached_property"}:
            from msalint.flow.calls import Arguments

            return self.inline(function, Arguments(), node, instance)
        return function if "staticmethod" in decorators else Method(instance, statement.name, function)

    # --- writing ----------------------------------------------------------------------------------------------

    def _without_plain_objects(self, value: Value) -> Value:
        """A container without the project's objects that are no modules: configs, rules of conversion."""

        def kept(item: Value) -> bool:
            return not isinstance(item, Instance) or self.program.is_module(item.cls)

        if isinstance(value, Items):
            return replace(value, items=tuple(item for item in value.items if kept(item)))
        if isinstance(value, Many) and not kept(value.element):
            return replace(value, element=UNKNOWN)
        if isinstance(value, Mapping_):
            entries = tuple(entry for entry in value.entries if kept(entry[1]))
            return replace(value, entries=entries, other=value.other if value.other and kept(value.other) else None)
        return value

    def set_attribute(self, receiver: Value, name: str, value: Value, at: n.Node) -> None:
        """`receiver.name = value`."""
        if not isinstance(receiver, Instance):
            return
        value = self.kept_as(value, name, at)
        if isinstance(value, Opaque) and not value.key:
            value = replace(value, key=f"{receiver.key}.{name}", name=name, source="attribute")
        if isinstance(value, Tensor) and value.traits.wrapped is not None:
            self._take_in(receiver, name, value.traits.wrapped, at)
            value = value.with_traits(wrapped=None)
        elif isinstance(value, Tensor) and self._is_left_behind(receiver, value):
            value = value.with_traits(plain=at)
        self.state.attributes[(receiver.key, name)] = value
        if self.program.is_module(receiver.cls):
            self.state.registry.note(receiver, name, self._without_plain_objects(value), self._written(value) or at)

    def _is_left_behind(self, receiver: Instance, value: Tensor) -> bool:
        """Whether `__init__` puts a tensor of its own making under an attribute that torch does not look at."""
        body, traits = self.frames[-1].node, value.traits
        if not isinstance(body, n.FunctionDef) or body.name != "__init__" or not self.program.is_module(receiver.cls):
            return False
        made = traits.cells is not None or traits.ramp or (value.lead is None and any(value.axes))
        return made and not (traits.parameter or traits.buffer or traits.device_given or traits.projection)

    def _take_in(self, receiver: Instance, name: str, wrapped: Wrapped, at: n.Node) -> None:
        """A module takes in a parameter, or what a move made of it."""
        if not self.program.is_module(receiver.cls):
            return
        if wrapped.moved is not None:
            self.state.emit(ParameterMoved(wrapped.moved, name, wrapped.at, wrapped.data))
        if wrapped.raw and wrapped.data is not None and not may_be_initialised(self.program, receiver.cls, name):
            self.state.emit(ParameterLeftRaw(wrapped.at, name, wrapped.data))

    def _written(self, value: Value) -> n.Node | None:
        """Where a list is written, if that is in the function being run."""
        at = value.at if isinstance(value, (Items, Many, Mapping_)) else None
        here = self.frames[-1].node
        if at is None or not isinstance(here, n.FunctionDef):
            return None
        return next((part for part in here.walk() if part is at), None)

    def kept_as(self, value: Value, name: str, at: n.Node) -> Value:
        """A value that is kept under an attribute: layers and weights take its name, numbers their place."""
        if isinstance(value, Int):
            self.state.call_it(value.size, name)
        if isinstance(value, Layer):
            return replace(value, name=name)
        if isinstance(value, Tensor) and not value.traits.name:
            return value.with_traits(name=name)
        if isinstance(value, Real):
            return replace(value, at=at, name=value.name or name)
        if isinstance(value, Many) and isinstance(value.element, Layer):
            return replace(value, element=replace(value.element, name=name))
        return value

    def module_method(self, instance: Instance, name: str, given: Arguments, node: n.Node) -> Value:
        """A method that nn.Module brings, or an unknown one."""
        if name == "register_buffer" and given.args:
            value = given.args[1] if len(given.args) > 1 else given.kwargs.get("tensor", UNKNOWN)
            key = name_in(given.args[0])
            if isinstance(value, Tensor):
                value = value.with_traits(buffer=True)
            if key is not None:
                if isinstance(value, Tensor):
                    value = value.named(key)
                self.state.attributes[(instance.key, key)] = value
            return NONE
        if name in {"register_parameter", "add_module", "register_module"} and len(given.args) > 1:
            key = name_in(given.args[0])
            self.state.registry.register(given.args[1])
            if key is not None:
                self.state.attributes[(instance.key, key)] = given.args[1]
            return NONE
        if name in {"apply", "to", "train", "eval", "half", "cuda", "float"}:
            return instance
        from msalint.flow.guesses import guess_call

        callee = Opaque(f"{instance.key}.{name}", name, source="attribute")
        return guess_call(callee, self.invocation(name, given, node), instance)


def _dtype_name(kind: str | None) -> str | None:
    return {"half": "float16", "int": "int64"}.get(kind or "", kind)


def listed(value: Value) -> tuple[Value, ...]:
    """The elements of a list, tuple or dict value."""
    if isinstance(value, Items):
        return value.items
    if isinstance(value, Many):
        return (value.element,)
    if isinstance(value, Mapping_):
        return (*(item for _, item in value.entries), *((value.other,) if value.other is not None else ()))
    return ()


def layer_text(value: Any) -> str:
    if isinstance(value, Layer):
        return value.kind
    return value.cls.name if isinstance(value, Instance) else ""
