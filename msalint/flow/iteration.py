"""Loops and comprehensions: what is iterated over, and what is left of a list after an unknown number of rounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from msalint.diagnostic import Site
from msalint.flow.frame import Frame
from msalint.flow.program import Program
from msalint.flow.shared import Shared
from msalint.flow.texts import letters_of, name_in
from msalint.ops.indexing import length_of
from msalint.ops.layout import unbound
from msalint.shapes.size import Size, Symbol
from msalint.state import State
from msalint.syntax import nodes as n
from msalint.values import (
    FALSE,
    NONE,
    TRUE,
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
    Opaque,
    Partial,
    ShapeValue,
    Tensor,
    Value,
    replace,
)

if TYPE_CHECKING:
    from msalint.flow.calls import Arguments

Key = TypeVar("Key")

MAX_UNROLLED = 8
"""Loops over this many known items or fewer are run item by item."""


class Iteration(Shared):
    """Iterating, and the builtins that make things to iterate over."""

    state: State
    program: Program
    frames: list[Frame]

    if TYPE_CHECKING:

        def eval(self, node: n.Expr) -> Value: ...

        def bind(self, target: n.Expr, value: Value, source: n.Node) -> None: ...

        def test(self, node: n.Expr, prefer: bool = True, both: bool = True) -> bool: ...

        def call_value(self, callee: Value, given: Arguments, node: n.Node) -> Value: ...

        def attribute(self, value: Value, name: str, node: n.Node) -> Value: ...

    def iterated(self, value: Value, node: n.Node) -> tuple[Sequence[Value], Size | None, bool]:
        """The values of a loop's rounds, how many there are, and whether the rounds are run one by one."""
        value = letters_of(value)
        if isinstance(value, Items):
            if len(value.items) <= MAX_UNROLLED:
                return value.items, Size.of(len(value.items)), True
            return [self._typical(value.items)], Size.of(len(value.items)), False
        if isinstance(value, Many):
            return [value.element], value.length, False
        if isinstance(value, Mapping_):
            keys = [Const(key) for key, _ in value.entries]
            return (keys, Size.of(len(keys)), True) if not value.open else (keys[:1] or [UNKNOWN], None, False)
        if isinstance(value, Tensor):
            tensor = self.state.resolve(value)
            if tensor.lead is None and tensor.axes:
                return self.iterated(unbound(self.state, tensor, 0), node)
            return [UNKNOWN], None, False
        if isinstance(value, Opaque) and value.key:
            return [Opaque(f"{value.key}[]", "", source=value.source)], None, False
        return [UNKNOWN], None, False

    def _typical(self, items: Sequence[Value]) -> Value:
        """What stands for each of many: the first where all are alike, else nothing that is known."""
        first = items[0]
        others = [item for item in items[1:] if item != first]
        if not others:
            return first
        made = self._make_of(first)
        return first if all(self._make_of(item) == made for item in others) else UNKNOWN

    def _make_of(self, value: Value, depth: int = 4) -> object:
        """What two layers, or objects built alike, have in common; None for what differs from all others."""
        if isinstance(value, Layer):
            return value.kind, value.args, tuple(self._make_of(child, depth - 1) for child in value.children)
        if isinstance(value, (Instance, Items)) and depth > 0:
            if isinstance(value, Items):
                return tuple(self._make_of(item, depth - 1) for item in value.items)
            kept = {name: held for (owner, name), held in self.state.attributes.items() if owner == value.key}
            return value.cls, tuple((name, self._make_of(held, depth - 1)) for name, held in sorted(kept.items()))
        return value

    def widen(self, variables: dict[Key, Value], before: dict[Key, Value], length: Size | None) -> None:
        """After one round of many: lists that grew hold as many alike, numbers that changed are not known."""
        for name, value in list(variables.items()):
            old = before.get(name)
            if old is None or old is value or old == value:
                continue
            if isinstance(old, Items) and isinstance(value, Items) and len(value.items) > len(old.items):
                element = self._typical((value.items[-1], *old.items))
                variables[name] = Many(element, length if not old.items else None, value.kind, value.at)
            elif isinstance(value, Int):
                variables[name] = UNKNOWN
            elif isinstance(old, Tensor) and isinstance(value, Tensor):
                variables[name] = self._settled(old, value)

    def _settled(self, old: Tensor, new: Tensor) -> Value:
        """A tensor that a loop changes keeps what one round leaves as it was."""
        a, b = self.state.resolve(old), self.state.resolve(new)
        if a.lead is b.lead and len(a.axes) == len(b.axes):
            sizes = [
                self.state.relations.compare(self.state.size_of(x), self.state.size_of(y)).certainly
                for x, y in zip(a.axes, b.axes)
            ]
            if all(sizes):
                return b
        from msalint.ops.axes import vague

        return vague(b)

    def comprehended(self, node: n.Comprehension, depth: int) -> Value:
        frame = self.frames[-1]
        inner = Frame(frame.module, frame.node, outer=frame, owner=frame.owner, receiver=frame.receiver)
        self.frames.append(inner)
        try:
            return self._rounds(node, depth)
        finally:
            self.frames.pop()

    def _rounds(self, node: n.Comprehension, depth: int) -> Value:
        loop = node.loops[depth]
        values, length, exact = self.iterated(self.eval(loop.iter), loop.iter)
        results: list[Value] = []
        keys: list[Value] = []
        for value in values:
            self.bind(loop.target, value, loop.iter)
            if not all(self.test(condition) for condition in loop.conditions):
                continue
            if depth + 1 < len(node.loops):
                inner = self._rounds(node, depth + 1)
                results += inner.items if isinstance(inner, Items) else (UNKNOWN,)
                continue
            if node.key is not None:
                keys.append(self.eval(node.key))
            results.append(self.eval(node.element))
            if node.kind in {"list", "generator"}:
                self.note_shared(node)
        if node.kind == "dict":
            return _mapping(keys, results, exact, node)
        kind = "list" if node.kind != "generator" else "generator"
        if exact:
            return Items(tuple(results), kind, node)
        return Many(results[0] if results else UNKNOWN, length, kind, node)

    # --- builtins ---------------------------------------------------------------------------------------------

    def builtin_call(self, path: str, given: Arguments, node: n.Node) -> Value | None:
        """A builtin (or functools) function by its path; None for any other name."""
        if not path.startswith(("builtins.", "functools.", "copy.", "typing.")):
            return None
        name = path.split(".", 1)[1]
        args = given.args
        if name == "len" and args:
            return length_of(self.state, self._as_measured(args[0])) or _length_text(args[0])
        if name == "range":
            return self._range(args, node)
        if name in {"list", "tuple", "set", "reversed", "sorted"}:
            return self._as_list(name, args)
        if name == "zip":
            return self._zip(args, node)
        if name == "enumerate" and args:
            return self._enumerate(args[0], node)
        if name in {"map", "filter"} and len(args) > 1:
            return self._map(args, node)
        if name == "getattr" and len(args) > 1:
            return self._getattr(args, node)
        if name in {"setattr"} and len(args) > 2:
            return self._setattr(args, node)
        if name == "isinstance":
            return self._isinstance(args, node)
        if name == "partial" and args:
            sites = tuple(given.keyword_sites.items())
            return Partial(args[0], tuple(args[1:]), tuple(given.kwargs.items()), sites, self.frames[-1].node)
        if name in {"deepcopy", "copy", "cast"} and args:
            return _copied(args[-1])
        if name == "dict":
            return Mapping_(tuple(given.kwargs.items()), bool(args) or given.open, node)
        if name == "bool" and args:
            truth = self.state.truth(args[0])
            return args[0] if truth is None else (TRUE if truth else FALSE)
        if name == "print":
            return NONE
        if name == "divmod" and len(args) == 2:
            from msalint.ops.scalars import arithmetic

            self.remember_division(args[0], args[1], node)  # type: ignore[attr-defined]
            parts = [arithmetic(self.state, sign, args[0], args[1]) or UNKNOWN for sign in ("//", "%")]
            return Items(tuple(parts))
        if name == "iter" and args:
            return args[0]
        return None

    def _as_measured(self, value: Value) -> Value:
        """What `len` is asked of: a tensor, where a parameter is known to be one; a string as its letters."""
        if isinstance(value, Opaque) and (value.hint == "tensor" or value.key in self.state.tensors):
            return self.state.as_tensor(value) or value
        return letters_of(value)

    def _range(self, args: list[Value], node: n.Node) -> Value:
        stop = args[1] if len(args) > 1 else args[0] if args else None
        start = args[0] if len(args) > 1 else None
        size = self.state.as_size(stop)
        if size is not None and size.constant is not None and start is None and 0 <= size.constant <= 4:
            return Items(tuple(Int(Size.of(i)) for i in range(size.constant)), "list")
        length = size if start is None else None
        return Many(Int(Size.of(Symbol(f"loop:{id(node)}", "i", positive=False))), length)

    def _as_list(self, name: str, args: list[Value]) -> Value:
        kind = {"tuple": "tuple", "set": "set"}.get(name, "list")
        if not args:
            return Items((), kind)
        value = letters_of(args[0])
        if isinstance(value, Items):
            items = tuple(reversed(value.items)) if name == "reversed" else value.items
            return Items(items, kind)
        if isinstance(value, Many):
            return Many(value.element, value.length, kind)
        if isinstance(value, ShapeValue):
            return value
        return UNKNOWN

    def _zip(self, args: list[Value], node: n.Node) -> Value:
        if all(isinstance(arg, Items) for arg in args):
            columns = [arg.items for arg in args if isinstance(arg, Items)]
            return Items(tuple(Items(row) for row in zip(*columns)), "list")
        if any(isinstance(arg, Items) and len(arg.items) <= MAX_UNROLLED for arg in args):
            return self._zip_with_few(args, node)
        row: list[Value] = []
        length: Size | None = None
        for arg in args:
            values, count, _ = self.iterated(arg, node)
            row.append(self._typical(values) if values else UNKNOWN)
            length = length or count
        return Many(Items(tuple(row)), length)

    def _zip_with_few(self, args: list[Value], node: n.Node) -> Value:
        """`zip(past, (k, v))`: as many rows as the shortest known list has; the others are taken to have so many."""
        rounds = min(len(arg.items) for arg in args if isinstance(arg, Items))
        columns = []
        for arg in args:
            if isinstance(arg, Items):
                columns.append(arg.items[:rounds])
            else:
                values, _, _ = self.iterated(arg, node)
                columns.append(((values[0] if values else UNKNOWN),) * rounds)
        return Items(tuple(Items(row) for row in zip(*columns)), "list")

    def _enumerate(self, value: Value, node: n.Node) -> Value:
        if isinstance(value, Items):
            return Items(tuple(Items((Int(Size.of(i)), item)) for i, item in enumerate(value.items)), "list")
        values, length, _ = self.iterated(value, node)
        index = Int(Size.of(Symbol(f"loop:{id(node)}", "i", positive=False)))
        return Many(Items((index, values[0] if values else UNKNOWN)), length)

    def _map(self, args: list[Value], node: n.Node) -> Value:
        from msalint.flow.calls import Arguments

        values, length, exact = self.iterated(args[1], node)
        results = []
        for value in values:
            inner = Arguments()
            inner.args, inner.sites = [value], [node]
            results.append(self.call_value(args[0], inner, node))
        return Items(tuple(results), "list") if exact else Many(results[0] if results else UNKNOWN, length)

    def _getattr(self, args: list[Value], node: n.Node) -> Value:
        name = name_in(args[1])
        if name is None:
            return UNKNOWN
        found = self.attribute(args[0], name, node)
        if len(args) > 2 and isinstance(found, Opaque) and found.source == "config":
            # A config may or may not have it: the name is what people know it by, the default what it is worth.
            default = self.state.as_size(args[2])
            size = self.state.as_size(found)
            if default is not None and size is not None and size.symbol is not None and default.constant is None:
                self.state.defaults[size.symbol] = default
        return found

    def _setattr(self, args: list[Value], node: n.Node) -> Value:
        name = name_in(args[1])
        self.state.registry.register(args[2])
        if isinstance(args[0], Instance) and name is not None:
            self.state.attributes[(args[0].key, name)] = args[2]
        return NONE

    def _isinstance(self, args: list[Value], node: n.Node) -> Value:
        if len(args) == 2 and isinstance(args[0], AttentionTuple):
            classes = args[1].items if isinstance(args[1], Items) else (args[1],)
            names = [item.path.rsplit(".", 1)[-1] for item in classes if isinstance(item, Library)]
            return TRUE if {"tuple", "Sequence", "Iterable", "Tuple"} & set(names) else FALSE
        if len(args) == 2 and isinstance(args[0], (Layer, Instance, Tensor)) and isinstance(args[1], Library):
            last = args[1].path.rsplit(".", 1)[-1]
            if isinstance(args[0], Layer):
                return TRUE if args[0].kind == last else FALSE
            if isinstance(args[0], Tensor):
                return TRUE if last == "Tensor" else FALSE
        if len(args) == 2 and isinstance(args[0], Instance):
            classes = args[1].items if isinstance(args[1], Items) else (args[1],)
            own = {id(cls.node) for cls in self.program.lineage(args[0].cls)}
            if any(isinstance(cls, ClassValue) and id(cls.node) in own for cls in classes):
                return TRUE
            if all(isinstance(cls, ClassValue) for cls in classes):
                return FALSE
        from msalint.values import Condition

        key = args[0].key if args and isinstance(args[0], Opaque) else ""
        return Condition(f"isinstance:{key}:{id(node)}")


def _length_text(value: Value) -> Value:
    if isinstance(value, Opaque) and value.key:
        return Opaque(f"len({value.key})", f"len({value.name})", "int")
    return UNKNOWN


def _copied(value: Value) -> Value:
    """A deep copy of a layer is another layer."""
    if isinstance(value, Layer):
        from msalint.ops.layers import next_serial

        return replace(value, serial=next_serial())
    return value


def callable_value(value: Value) -> bool:
    return isinstance(value, (Function, ClassValue, Layer, Library, DType))


def _mapping(keys: Sequence[Value], values: Sequence[Value], exact: bool, at: Site) -> Mapping_:
    """What `{key: value for ...}` makes, each round under its key where that is known."""
    if not values or len(keys) != len(values):
        return Mapping_(at=at)
    known = [(key.value, value) for key, value in zip(keys, values) if isinstance(key, Const)]
    entries = [(key, value) for key, value in known if isinstance(key, str)]
    if exact and len(entries) == len(values):
        return Mapping_(tuple(entries), False, at)
    return Mapping_((), True, at, values[0])
