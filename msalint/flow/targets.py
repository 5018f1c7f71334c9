"""Assignments: names, attributes, items, and tuples taken apart; what a name or a comment says of a shape."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msalint.ops import indexing
from msalint.ops.layout import unbound
from msalint.shapes.axes import Axis
from msalint.shapes.notation import ELLIPSIS, Term, parse_jaxtyping, parse_shape_claims, parse_shape_comment
from msalint.shapes.size import Size
from msalint.shapes.vocabulary import annotates_boolean
from msalint.state import State, is_axis_symbol
from msalint.syntax import nodes as n
from msalint.values import (
    UNKNOWN,
    AttentionTuple,
    Instance,
    Int,
    Items,
    Layer,
    Many,
    Mapping_,
    Opaque,
    Real,
    ShapeValue,
    Tensor,
    Value,
    replace,
)

if TYPE_CHECKING:
    from msalint.flow.frame import Frame


class Targets:
    """The assigning half of the interpreter."""

    state: State

    if TYPE_CHECKING:

        @property
        def frame(self) -> Frame: ...

        def eval(self, node: n.Expr) -> Value: ...

        def index_item(self, node: n.Expr) -> indexing.Item: ...

        def tuple_of(self, instance: Instance) -> Items | None: ...

        def set_attribute(self, receiver: Value, name: str, value: Value, at: n.Node) -> None: ...

    def bind(self, target: n.Expr, value: Value, source: n.Node) -> None:
        """`target = value`."""
        if isinstance(target, n.Name):
            self.frame.variables[target.id] = self.known_as(value, target.id)
        elif isinstance(target, n.Attr):
            self.set_attribute(self.eval(target.value), target.name, value, source)
        elif isinstance(target, n.Sequence_):
            self._unpack(target, value, source)
        elif isinstance(target, n.Star):
            self.bind(target.value, value, source)
        elif isinstance(target, n.Index):
            self._write_item(target, value, source)

    def known_as(self, value: Value, name: str) -> Value:
        """A value that gets a name: sizes and axes born nameless take it."""
        if isinstance(value, Int):
            name_size(value.size, name)
            self.state.call_it(value.size, name)
        elif isinstance(value, Tensor):
            return value.named(name)
        elif (isinstance(value, Opaque) and not value.name) or (
            isinstance(value, Real) and not value.name and not value.powers and value.coefficient is None
        ):
            return replace(value, name=name)
        return value

    def _unpack(self, target: n.Sequence_, value: Value, source: n.Node) -> None:
        parts = self.taken_apart(value, target, source)
        for item, part in zip(target.items, parts):
            self.bind(item, part, source)

    def taken_apart(self, value: Value, target: n.Sequence_, source: n.Node) -> Sequence[Value]:
        """The values for the targets of an unpacking, in step with them."""
        number = len(target.items)
        stars = [i for i, item in enumerate(target.items) if isinstance(item, n.Star)]
        if isinstance(value, Instance):
            value = self.tuple_of(value) or value
        if isinstance(value, ShapeValue):
            return self._shape_parts(value, target, stars)
        if isinstance(value, Items):
            if stars:
                return _around_star(value, stars[0], number)
            value = value if len(value.items) == number else self._spread(value, number)
            return value.items if len(value.items) == number else [UNKNOWN] * number
        if isinstance(value, AttentionTuple):
            self.state.taken_apart.add(id(value.at))
            return [value.output, value.weights][:number]
        if isinstance(value, Many):
            return [value.element] * number
        if isinstance(value, Tensor) and not stars:
            return self._tensor_parts(value, number)
        if isinstance(value, Opaque) and value.key:
            return [Opaque(f"{value.key}[{i}]", "", source=value.source) for i in range(number)]
        return [UNKNOWN] * number

    def _spread(self, value: Items, number: int) -> Items:
        """`b, n, _, h = *x.shape, heads`: the shape's part of the targets tells its rank."""
        places = [i for i, item in enumerate(value.items) if isinstance(item, ShapeValue)]
        if len(places) != 1:
            return value
        place, rank = places[0], number - len(value.items) + 1
        shape = value.items[place]
        assert isinstance(shape, ShapeValue)
        holder = (
            self.state.bind_rank(Tensor(shape.lead, shape.axes), rank) if rank >= 0 else Tensor(shape.lead, shape.axes)
        )
        if holder.lead is not None or len(holder.axes) != rank:
            return value
        sizes = tuple(self._size(axis) for axis in holder.axes)
        return replace(value, items=(*value.items[:place], *sizes, *value.items[place + 1 :]))

    def _tensor_parts(self, value: Tensor, number: int) -> Sequence[Value]:
        tensor = self.state.resolve(value)
        if tensor.lead is None and tensor.axes:
            parts = unbound(self.state, tensor, 0)
            if isinstance(parts, Items):
                return parts.items if len(parts.items) == number else [UNKNOWN] * number
            if isinstance(parts, Many):
                return [parts.element] * number
        return [UNKNOWN] * number

    def _shape_parts(self, value: ShapeValue, target: n.Sequence_, stars: list[int]) -> Sequence[Value]:
        """`b, l, d = x.shape` tells the rank of x and names its axes; `*lead, d = x.shape` only its last ones."""
        lead, axes = self.state.resolve_lead(value.lead, value.axes)
        number = len(target.items)
        if stars:
            after = number - stars[0] - 1
            holder = self.state.with_trailing(Tensor(lead, axes), after) if lead is not None else Tensor(lead, axes)
            front = [self.state.front_axis(holder, i) or () for i in range(stars[0])]
            middle = holder.axes[stars[0] if holder.lead is None else 0 : len(holder.axes) - after]
            kept = ShapeValue(holder.lead, middle)
            if holder.lead is not None and stars[0]:
                kept = ShapeValue(None, ())
            tail = holder.axes[len(holder.axes) - after :] if after else ()
            self._name_axes([*front, (), *tail], target)
            return [*(self._size(a) for a in front), kept, *(self._size(a) for a in tail)]
        if lead is not None:
            holder = self.state.bind_rank(Tensor(lead, axes), number)
            lead, axes = holder.lead, holder.axes
        if lead is not None or len(axes) != number:
            return [UNKNOWN] * number
        self._name_axes(axes, target)
        return [self._size(axis) for axis in axes]

    def _size(self, axis: Axis) -> Value:
        return Int(self.state.size_of(axis))

    def _name_axes(self, axes: Sequence[Axis], target: n.Sequence_) -> None:
        for axis, item in zip(axes, target.items):
            name = item.id if isinstance(item, n.Name) else item.name if isinstance(item, n.Attr) else ""
            for atom in axis[:1] if len(axis) == 1 else ():
                if name and not name.startswith("_"):
                    atom.ident.learn(name)
                    name_size(atom.size, name)

    def _write_item(self, target: n.Index, value: Value, source: n.Node) -> None:
        holder = self.eval(target.value)
        items = [self.index_item(item) for item in target.items]
        if isinstance(holder, Mapping_) and len(items) == 1:
            key = items[0]
            from msalint.values import Const

            if isinstance(key, Const) and isinstance(key.value, str):
                self.bind(target.value, holder.with_entry(key.value, value), source)
            return
        if isinstance(holder, Items) and len(items) == 1 and not isinstance(items[0], indexing.Range):
            place = self.state.as_int(items[0])
            if place is not None and -len(holder.items) <= place < len(holder.items):
                changed = list(holder.items)
                changed[place] = value
                self.bind(target.value, replace(holder, items=tuple(changed)), source)
            return
        tensor = holder if isinstance(holder, Tensor) else None
        if tensor is None and isinstance(holder, Opaque) and holder.key in self.state.tensors:
            tensor = self.state.as_tensor(holder)
        if tensor is not None:
            written = indexing.write(self.state, tensor, items, value, target, target.items[0], source)
            if isinstance(target.value, (n.Name, n.Attr)):
                self.bind(target.value, written, source)

    # --- what comments and annotations say --------------------------------------------------------------------

    def commented(self, value: Value, node: n.Assign) -> Value:
        """The value with what a shape comment on its line says of it."""
        if not node.comment or not isinstance(value, Tensor) or len(node.targets) != 1:
            return value
        if not isinstance(node.targets[0], n.Name):
            return value
        terms = parse_shape_comment(node.comment)
        return self.claimed(value, terms) if terms else value

    def said_of_parameter(self, value: Opaque, comment: str) -> None:
        """Take in the shape that a comment behind a parameter states."""
        terms = parse_shape_comment(comment)
        tensor = self.state.as_tensor(value) if terms else None
        if terms and tensor is not None:
            self.claimed(tensor, terms)

    def claimed(self, tensor: Tensor, terms: Sequence[Term], hearsay: bool = False) -> Tensor:
        """The tensor with the names that a claim `(B, L, d)` gives its axes, where the rank agrees.

        `hearsay`: a docstring claims it, which the code may contradict.
        """
        if ELLIPSIS in terms:
            return tensor
        ones = frozenset(i for i, term in enumerate(terms) if term == 1)
        tensor = self.state.bind_rank(tensor, len(terms), ones)
        if tensor.lead is not None or len(tensor.axes) != len(terms):
            return tensor
        for axis, term in zip(tensor.axes, terms):
            if isinstance(term, str) and len(axis) == 1:
                if hearsay:
                    axis[0].ident.hear(term)
                else:
                    axis[0].ident.learn(term)
                name_size(axis[0].size, term)
        return tensor

    def documented(self, docstring: str, parameters: Mapping[str, Value]) -> None:
        """Take in the shapes that a docstring states of parameters: `query, key: (batch, seq, width)`."""
        for line in docstring.splitlines():
            if ("(" not in line and "[" not in line) or re.search(r"[)\]]\s*(or|/|\|)\s*[(\[]", line):
                continue
            for claim in parse_shape_claims(line):
                if claim.subject is None or claim.result:
                    continue
                together = re.search(rf"((?:\w+\s*,\s*)*){re.escape(claim.subject)}\s*[:=]", line)
                names = re.findall(r"\w+", together.group(1)) if together else []
                for name in (*names, claim.subject):
                    tensor = self._undescribed(parameters.get(name))
                    if tensor is not None:
                        self.claimed(tensor, claim.axes, hearsay=True)

    def _undescribed(self, value: Value | None) -> Tensor | None:
        """A parameter as a tensor, if it may be one and nothing told its shape so far."""
        if not isinstance(value, Opaque) or value.hint not in {"", "tensor"}:
            return None
        tensor = self.state.as_tensor(value)
        return tensor if tensor is not None and tensor.lead is not None and not tensor.axes else None

    def annotated(self, value: Opaque, annotation: n.Expr | None) -> Value:
        """A parameter with what its annotation says: a kind, or a jaxtyping shape."""
        if annotation is None:
            return value
        hint = annotation_hint(annotation)
        value = replace(value, hint=hint or value.hint)
        if annotates_boolean(annotation.text):
            self.state.said_bool.add(value.key)
        if isinstance(annotation, n.Index) and len(annotation.items) == 2:
            spec = annotation.items[1]
            if isinstance(spec, n.Const) and isinstance(spec.value, str):
                tensor = self.state.as_tensor(replace(value, hint="tensor"))
                if tensor is not None:
                    self._typed(tensor, spec.value)
        return value

    def _typed(self, tensor: Tensor, spec: str) -> None:
        from msalint.shapes.notation import NotationError

        try:
            axes = parse_jaxtyping(spec)
        except NotationError:
            return
        if any(axis.kind == "variadic" for axis in axes):
            return
        self.claimed(tensor, [axis.term for axis in axes])


def _around_star(value: Items, star: int, number: int) -> Sequence[Value]:
    after = number - star - 1
    if len(value.items) < number - 1:
        return [UNKNOWN] * number
    end = len(value.items) - after
    return [*value.items[:star], Items(value.items[star:end], "list"), *value.items[end:]]


def name_size(size: Size, name: str) -> None:
    """A size born with an axis takes the first name that people give it."""
    symbol = size.symbol
    if symbol is not None and is_axis_symbol(symbol) and ("[" in symbol.name or symbol.name == "?"):
        symbol.name = name


_HINTS = {"Tensor": "tensor", "FloatTensor": "tensor", "LongTensor": "tensor", "BoolTensor": "tensor", "int": "int",
          "float": "float", "bool": "bool", "str": "str"}  # fmt: skip


def annotation_hint(annotation: n.Expr) -> str:
    """ "tensor", "int", "float", "bool" or "str", also inside Optional and `| None`; "" for anything else."""
    if isinstance(annotation, n.Name):
        return _HINTS.get(annotation.id, "")
    if isinstance(annotation, n.Attr):
        return _HINTS.get(annotation.name, "")
    if isinstance(annotation, n.Const) and isinstance(annotation.value, str):
        return _HINTS.get(annotation.value.rsplit(".", 1)[-1].strip(), "")
    if isinstance(annotation, n.Binary) and annotation.op == "|":
        return annotation_hint(annotation.left) or annotation_hint(annotation.right)
    if isinstance(annotation, n.Index):
        name = annotation.value
        last = name.id if isinstance(name, n.Name) else name.name if isinstance(name, n.Attr) else ""
        if last in {"Optional", "Annotated"} and annotation.items:
            return annotation_hint(annotation.items[0])
        if len(annotation.items) == 2 and annotation_hint(annotation.items[0]) == "tensor" and last not in {"Union"}:
            return "tensor"
        if last == "Union":
            hints = {annotation_hint(item) for item in annotation.items} - {""}
            return hints.pop() if len(hints) == 1 else ""
    return ""


def is_layer(value: Value) -> bool:
    return isinstance(value, (Layer, Instance))
