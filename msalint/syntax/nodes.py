"""The reader's tree: Python as the flow analysis reads it, without whitespace, parentheses and spelling.

`lower.py` makes it from the interpreter's own tree, `lower_libcst.py` from libcst's where a file is newer than the
interpreter; nothing else does. Every node remembers what it came from and the piece of source it stands in, so that
its place and text can be worked out when a report asks for them, and only then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from msalint.diagnostic import Span
    from msalint.syntax.piece import Piece


class Node:
    """A place in the code. `origin` is what the parser made of it (opaque here), `piece` the stretch it belongs to."""

    __slots__ = ("origin", "piece")
    origin: Any
    piece: Piece

    fields: tuple[str, ...] = ()

    @property
    def filename(self) -> str:
        return self.piece.filename

    @property
    def span(self) -> Span:
        return self.piece.span_of(self.origin)

    @property
    def line(self) -> int:
        """The first line of the place, counted from 1."""
        return self.span.start.line

    @property
    def text(self) -> str:
        return self.piece.text_of(self.origin)

    def children(self) -> Iterator[Node]:
        """The nodes right below, in the order they are written."""
        for name in self.fields:
            value = getattr(self, name)
            if isinstance(value, Node):
                yield value
            elif isinstance(value, tuple):
                for item in value:
                    if isinstance(item, Node):
                        yield item

    def walk(self) -> Iterator[Node]:
        """This node and all below it, outermost first."""
        waiting: list[Node] = [self]
        while waiting:
            node = waiting.pop()
            yield node
            if node.fields:
                below = list(node.children())
                below.reverse()
                waiting += below

    def words(self) -> str:
        """The names and strings in it, in no particular spelling: cheap, where `text` needs the places of a file."""
        found = []
        for node in self.walk():
            if isinstance(node, Name):
                found.append(node.id)
            elif isinstance(node, Attr):
                found.append(node.name)
            elif isinstance(node, Const) and isinstance(node.value, str):
                found.append(node.value)
        return " ".join(found)

    def __repr__(self) -> str:
        inner = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{type(self).__name__}({inner})"


class Expr(Node):
    """An expression."""

    __slots__ = ()


class Name(Expr):
    __slots__ = ("id",)

    def __init__(self, id: str) -> None:
        self.id = id


class Const(Expr):
    """A literal: number, string, bytes, True, False, None or `...`; adjacent strings are joined."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class Attr(Expr):
    __slots__ = ("name", "value")
    fields = ("value",)

    def __init__(self, value: Expr, name: str) -> None:
        self.value, self.name = value, name


class Arg(Node):
    """One argument of a call: `star` is "", "*" or "**"; `keyword` is None for a positional one."""

    __slots__ = ("keyword", "star", "value")
    fields = ("value",)

    def __init__(self, value: Expr, keyword: str | None = None, star: str = "") -> None:
        self.value, self.keyword, self.star = value, keyword, star


class Call(Expr):
    __slots__ = ("args", "func")
    fields = ("func", "args")

    def __init__(self, func: Expr, args: Sequence[Arg]) -> None:
        self.func, self.args = func, tuple(args)

    @property
    def called(self) -> str:
        """The last name of what is called: "view" in `x.view(...)`, "" where it has none."""
        func = self.func
        return func.name if isinstance(func, Attr) else func.id if isinstance(func, Name) else ""


class Slice(Expr):
    """`lower:upper:step` inside an index."""

    __slots__ = ("lower", "step", "upper")
    fields = ("lower", "upper", "step")

    def __init__(self, lower: Expr | None, upper: Expr | None, step: Expr | None) -> None:
        self.lower, self.upper, self.step = lower, upper, step


class Index(Expr):
    """`value[items]`; `x[(a, b)]` and `x[a, b]` both have two items."""

    __slots__ = ("items", "value")
    fields = ("value", "items")

    def __init__(self, value: Expr, items: Sequence[Expr]) -> None:
        self.value, self.items = value, tuple(items)


class Binary(Expr):
    """`left op right`, with op one of + - * / // % ** @ & | ^ << >>."""

    __slots__ = ("left", "op", "right")
    fields = ("left", "right")

    def __init__(self, op: str, left: Expr, right: Expr) -> None:
        self.op, self.left, self.right = op, left, right


class Unary(Expr):
    """`op operand`, with op one of - + ~ not."""

    __slots__ = ("op", "operand")
    fields = ("operand",)

    def __init__(self, op: str, operand: Expr) -> None:
        self.op, self.operand = op, operand


class Compare(Expr):
    """`left ops[0] rights[0] ops[1] rights[1] ...`, ops as written ("is not", "not in", "==", ...)."""

    __slots__ = ("left", "ops", "rights")
    fields = ("left", "rights")

    def __init__(self, left: Expr, ops: Sequence[str], rights: Sequence[Expr]) -> None:
        self.left, self.ops, self.rights = left, tuple(ops), tuple(rights)


class BoolOp(Expr):
    """`left and right` or `left or right`."""

    __slots__ = ("left", "op", "right")
    fields = ("left", "right")

    def __init__(self, op: str, left: Expr, right: Expr) -> None:
        self.op, self.left, self.right = op, left, right


class IfExp(Expr):
    __slots__ = ("body", "orelse", "test")
    fields = ("body", "test", "orelse")

    def __init__(self, test: Expr, body: Expr, orelse: Expr) -> None:
        self.test, self.body, self.orelse = test, body, orelse


class Sequence_(Expr):
    """A tuple, list or set display; `kind` is "tuple", "list" or "set". Items may be `Star`."""

    __slots__ = ("items", "kind")
    fields = ("items",)

    def __init__(self, kind: str, items: Sequence[Expr]) -> None:
        self.kind, self.items = kind, tuple(items)


class Star(Expr):
    """`*value` inside a display, an index or a target."""

    __slots__ = ("value",)
    fields = ("value",)

    def __init__(self, value: Expr) -> None:
        self.value = value


class Dict(Expr):
    """A dict display; a key of None stands for `**value`."""

    __slots__ = ("keys", "values")
    fields = ("keys", "values")

    def __init__(self, keys: Sequence[Expr | None], values: Sequence[Expr]) -> None:
        self.keys, self.values = tuple(keys), tuple(values)


class Param(Node):
    """One parameter: `kind` is "pos" (positional-only too), "kw" (keyword-only), "*" or "**"."""

    __slots__ = ("annotation", "comment", "default", "kind", "name")
    fields = ("annotation", "default")

    def __init__(self, name: str, kind: str, default: Expr | None, annotation: Expr | None, comment: str = "") -> None:
        self.name, self.kind, self.default, self.annotation, self.comment = name, kind, default, annotation, comment


class Lambda(Expr):
    __slots__ = ("body", "params")
    fields = ("params", "body")

    def __init__(self, params: Sequence[Param], body: Expr) -> None:
        self.params, self.body = tuple(params), body


class For_(Node):
    """One `for target in iter if conditions` of a comprehension."""

    __slots__ = ("conditions", "iter", "target")
    fields = ("iter", "target", "conditions")

    def __init__(self, target: Expr, iter: Expr, conditions: Sequence[Expr]) -> None:
        self.target, self.iter, self.conditions = target, iter, tuple(conditions)


class Comprehension(Expr):
    """`kind` is "list", "set", "generator" or "dict" (then `key` is set)."""

    __slots__ = ("element", "key", "kind", "loops")
    fields = ("loops", "key", "element")

    def __init__(self, kind: str, key: Expr | None, element: Expr, loops: Sequence[For_]) -> None:
        self.kind, self.key, self.element, self.loops = kind, key, element, tuple(loops)


class Walrus(Expr):
    __slots__ = ("target", "value")
    fields = ("value", "target")

    def __init__(self, target: Expr, value: Expr) -> None:
        self.target, self.value = target, value


class FString(Expr):
    """An f-string; only the expressions in it are kept."""

    __slots__ = ("parts",)
    fields = ("parts",)

    def __init__(self, parts: Sequence[Expr]) -> None:
        self.parts = tuple(parts)


class Opaque(Expr):
    """Any other expression (await, yield): its value is unknown, its parts are still read."""

    __slots__ = ("parts",)
    fields = ("parts",)

    def __init__(self, parts: Sequence[Expr]) -> None:
        self.parts = tuple(parts)


class Stmt(Node):
    """A statement. `comment` is the trailing comment of its first line, without the `#` and stripped, or ""."""

    __slots__ = ("comment", "known_calls")
    comment: str
    known_calls: frozenset[str]
    """What `calls` gives, once that is known."""

    def calls(self) -> frozenset[str]:
        """The last names of all that is called in it, and "@" where a matrix product is written."""
        try:
            return self.known_calls
        except AttributeError:
            self.known_calls = calls_in(self.children())
            return self.known_calls


def calls_in(nodes: Iterable[Node]) -> frozenset[str]:
    """What `Stmt.calls` gives, of several nodes. Statements are asked, so that each is searched once."""
    found: set[str] = set()
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        if isinstance(node, Stmt):
            found |= node.calls()
            continue
        if isinstance(node, Call):
            found.add(node.called)
        elif isinstance(node, Binary) and node.op == "@":
            found.add("@")
        if node.fields:
            waiting += node.children()
    return frozenset(found)


class Assign(Stmt):
    """`targets[0] = targets[1] = value`; an annotated assignment has one target and an annotation."""

    __slots__ = ("annotation", "targets", "value")
    fields = ("value", "targets", "annotation")

    def __init__(self, targets: Sequence[Expr], value: Expr | None, annotation: Expr | None = None) -> None:
        self.targets, self.value, self.annotation = tuple(targets), value, annotation


class AugAssign(Stmt):
    """`target op= value`, op as in `Binary`."""

    __slots__ = ("op", "target", "value")
    fields = ("target", "value")

    def __init__(self, target: Expr, op: str, value: Expr) -> None:
        self.target, self.op, self.value = target, op, value


class ExprStmt(Stmt):
    __slots__ = ("value",)
    fields = ("value",)

    def __init__(self, value: Expr) -> None:
        self.value = value


class Return(Stmt):
    __slots__ = ("value",)
    fields = ("value",)

    def __init__(self, value: Expr | None) -> None:
        self.value = value


class If(Stmt):
    """`orelse` holds a single `If` for an elif."""

    __slots__ = ("body", "orelse", "test")
    fields = ("test", "body", "orelse")

    def __init__(self, test: Expr, body: Sequence[Stmt], orelse: Sequence[Stmt]) -> None:
        self.test, self.body, self.orelse = test, tuple(body), tuple(orelse)


class For(Stmt):
    __slots__ = ("body", "iter", "orelse", "target")
    fields = ("iter", "target", "body", "orelse")

    def __init__(self, target: Expr, iter: Expr, body: Sequence[Stmt], orelse: Sequence[Stmt]) -> None:
        self.target, self.iter, self.body, self.orelse = target, iter, tuple(body), tuple(orelse)


class While(Stmt):
    __slots__ = ("body", "orelse", "test")
    fields = ("test", "body", "orelse")

    def __init__(self, test: Expr, body: Sequence[Stmt], orelse: Sequence[Stmt]) -> None:
        self.test, self.body, self.orelse = test, tuple(body), tuple(orelse)


class With(Stmt):
    """`items` and `targets` run in parallel; a target is None without `as`."""

    __slots__ = ("body", "items", "targets")
    fields = ("items", "targets", "body")

    def __init__(self, items: Sequence[Expr], targets: Sequence[Expr | None], body: Sequence[Stmt]) -> None:
        self.items, self.targets, self.body = tuple(items), tuple(targets), tuple(body)


class Handler(Stmt):
    """`except type as name: body`."""

    __slots__ = ("body", "name", "type")
    fields = ("type", "body")

    def __init__(self, type: Expr | None, name: str | None, body: Sequence[Stmt]) -> None:
        self.type, self.name, self.body = type, name, tuple(body)


class Try(Stmt):
    __slots__ = ("body", "final", "handlers", "orelse")
    fields = ("body", "handlers", "orelse", "final")

    def __init__(
        self, body: Sequence[Stmt], handlers: Sequence[Handler], orelse: Sequence[Stmt], final: Sequence[Stmt]
    ) -> None:
        self.body, self.handlers, self.orelse, self.final = tuple(body), tuple(handlers), tuple(orelse), tuple(final)


class Case(Stmt):
    """`case names if guard: body`; of the pattern only the names it binds are kept."""

    __slots__ = ("body", "guard", "names")
    fields = ("guard", "body")

    def __init__(self, names: Sequence[str], guard: Expr | None, body: Sequence[Stmt]) -> None:
        self.names, self.guard, self.body = tuple(names), guard, tuple(body)


class Match(Stmt):
    __slots__ = ("cases", "subject")
    fields = ("subject", "cases")

    def __init__(self, subject: Expr, cases: Sequence[Case]) -> None:
        self.subject, self.cases = subject, tuple(cases)


class Raise(Stmt):
    __slots__ = ("value",)
    fields = ("value",)

    def __init__(self, value: Expr | None) -> None:
        self.value = value


class Assert(Stmt):
    __slots__ = ("message", "test")
    fields = ("test", "message")

    def __init__(self, test: Expr, message: Expr | None) -> None:
        self.test, self.message = test, message


class Delete(Stmt):
    __slots__ = ("targets",)
    fields = ("targets",)

    def __init__(self, targets: Sequence[Expr]) -> None:
        self.targets = tuple(targets)


class Import(Stmt):
    """`names` pairs the local name with the dotted one: `import a.b as c` -> ("c", "a.b"); `import a.b` -> ("a", "a").

    For `from m import x as y` it is ("y", "m.x"), and for a relative import the dots stay in front: (".m.x").
    """

    __slots__ = ("names",)

    def __init__(self, names: Sequence[tuple[str, str]]) -> None:
        self.names = tuple(names)


class Flow(Stmt):
    """`kind` is "pass", "break", "continue", "global" or "nonlocal"."""

    __slots__ = ("kind",)

    def __init__(self, kind: str) -> None:
        self.kind = kind


class FunctionDef(Stmt):
    """`docstring` is its text or ""; `returns` the annotation."""

    __slots__ = ("body", "decorators", "docstring", "is_async", "name", "params", "returns")
    fields = ("decorators", "params", "returns", "body")

    def __init__(
        self,
        name: str,
        params: Sequence[Param],
        body: Sequence[Stmt],
        decorators: Sequence[Expr] = (),
        returns: Expr | None = None,
        docstring: str = "",
        is_async: bool = False,
    ) -> None:
        self.name, self.params, self.body = name, tuple(params), tuple(body)
        self.decorators, self.returns, self.docstring, self.is_async = tuple(decorators), returns, docstring, is_async


class ClassDef(Stmt):
    """`bases` are the positional bases; keywords (metaclass) are dropped."""

    __slots__ = ("bases", "body", "decorators", "docstring", "name")
    fields = ("decorators", "bases", "body")

    def __init__(
        self,
        name: str,
        bases: Sequence[Expr],
        body: Sequence[Stmt],
        decorators: Sequence[Expr] = (),
        docstring: str = "",
    ) -> None:
        self.name, self.bases, self.body = name, tuple(bases), tuple(body)
        self.decorators, self.docstring = tuple(decorators), docstring
