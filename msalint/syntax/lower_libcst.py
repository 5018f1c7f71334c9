"""libcst nodes to the reader's tree, for files newer than the host's Python."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import libcst as cst

from msalint.syntax import nodes as n
from msalint.syntax.comments_libcst import Comments
from msalint.syntax.depth import TooDeep
from msalint.syntax.piece_libcst import LibcstPiece, expressions_below


def lower(piece: LibcstPiece, body: Sequence[Any] | None = None) -> tuple[n.Stmt, ...]:
    """The statements of a piece, or of a part of its body.

    Raises TooDeep where they are nested deeper than Python can recurse.
    """
    lowering = _Lowering(piece)
    try:
        return lowering.block(piece.module.body if body is None else body)
    except RecursionError as error:
        raise TooDeep(piece.first) from error


class _Lowering:
    """Lowers one piece; `comments` finds the comments of statements and parameters."""

    __slots__ = ("comments", "piece")

    def __init__(self, piece: LibcstPiece) -> None:
        self.piece = piece
        self.comments = Comments(piece)

    def expr(self, node: Any) -> n.Expr:
        make = _EXPRESSIONS.get(type(node))
        made = _opaque(self, node) if make is None else make(self, node)
        made.origin = node
        made.piece = self.piece
        return made

    def optional(self, node: Any) -> n.Expr | None:
        return None if node is None else self.expr(node)

    def stmt(self, node: Any, comment: str) -> n.Stmt:
        make = _STATEMENTS.get(type(node))
        made = n.Flow("pass") if make is None else make(self, node)
        made.origin, made.piece, made.comment = node, self.piece, comment
        return made

    def block(self, body: Sequence[Any]) -> tuple[n.Stmt, ...]:
        made: list[n.Stmt] = []
        for line in body:
            if type(line) is cst.SimpleStatementLine:
                comment = self.comments.of_line(line)
                made += [self.stmt(small, comment) for small in line.body]
            else:
                made.append(self.stmt(line, self.comments.of_block(line)))
        return tuple(made)

    def suite(self, suite: Any) -> tuple[n.Stmt, ...]:
        """The body of a compound statement, indented or on the line of its colon."""
        if type(suite) is cst.IndentedBlock:
            return self.block(suite.body)
        comment = self.comments.of_line(suite)
        return tuple(self.stmt(small, comment) for small in suite.body)

    def orelse(self, clause: Any) -> tuple[n.Stmt, ...]:
        return () if clause is None else self.suite(clause.body)

    def params(self, params: cst.Parameters) -> list[n.Param]:
        made = [self.param(param, "pos") for param in (*params.posonly_params, *params.params)]
        if type(params.star_arg) is cst.Param:
            made.append(self.param(params.star_arg, "*"))
        made += [self.param(param, "kw") for param in params.kwonly_params]
        if params.star_kwarg is not None:
            made.append(self.param(params.star_kwarg, "**"))
        return made

    def param(self, node: cst.Param, kind: str) -> n.Param:
        annotation = None if node.annotation is None else self.expr(node.annotation.annotation)
        comment = self.comments.of_param(node)
        made = n.Param(node.name.value, kind, self.optional(node.default), annotation, comment)
        made.origin, made.piece = node, self.piece
        return made

    def args(self, args: Sequence[cst.Arg]) -> list[n.Arg]:
        made = []
        for node in args:
            keyword = node.keyword
            arg = n.Arg(self.expr(node.value), None if keyword is None else keyword.value, node.star)
            arg.origin = node
            arg.piece = self.piece
            made.append(arg)
        return made

    def elements(self, elements: Sequence[Any]) -> list[n.Expr]:
        """The items of a display; a starred one is an expression of its own in libcst."""
        return [self.expr(e if type(e) is cst.StarredElement else e.value) for e in elements]

    def loops(self, loop: cst.CompFor | None) -> Iterator[n.For_]:
        while loop is not None:
            conditions = [self.expr(condition.test) for condition in loop.ifs]
            made = n.For_(self.expr(loop.target), self.expr(loop.iter), conditions)
            made.origin, made.piece = loop, self.piece
            yield made
            loop = loop.inner_for_in


# Expressions


def _name(to: _Lowering, node: cst.Name) -> n.Expr:
    value = node.value
    return n.Const(_SINGLETONS[value]) if value in _SINGLETONS else n.Name(value)


_SINGLETONS = {"True": True, "False": False, "None": None}


def _integer(to: _Lowering, node: cst.Integer) -> n.Expr:
    text = node.value
    try:
        return n.Const(int(text))
    except ValueError:
        pass
    try:
        return n.Const(int(text, 0))
    except ValueError:
        # Longer than the interpreter converts (4,300 digits), or an old octal such as 0777.
        return n.Opaque(())


def _imaginary(to: _Lowering, node: cst.Imaginary) -> n.Expr:
    return n.Const(complex(0.0, float(node.value[:-1])))


def string_value(literal: str) -> str | bytes | None:
    """The value of one string literal; None where the host's Python does not know such a literal."""
    quote = literal[0]
    if quote in "\"'" and "\\" not in literal and "\r" not in literal:
        return literal[3:-3] if literal[:3] == quote * 3 and len(literal) >= 6 else literal[1:-1]
    try:
        value = ast.literal_eval(literal)
    except (SyntaxError, ValueError):
        return None
    return value if isinstance(value, (str, bytes)) else None


def _string(to: _Lowering, node: cst.SimpleString) -> n.Expr:
    value = string_value(node.value)
    return n.Opaque(()) if value is None else n.Const(value)


def _joined(to: _Lowering, node: cst.ConcatenatedString) -> n.Expr:
    """Adjacent strings: one constant, or one f-string when any of them is one."""
    literals: list[Any] = []
    rest: Any = node
    while type(rest) is cst.ConcatenatedString:
        literals.append(rest.left)
        rest = rest.right
    literals.append(rest)
    if any(type(literal) is not cst.SimpleString for literal in literals):
        parts = [part for literal in literals for part in _formatted(to, literal)]
        return n.FString(parts)
    values = [string_value(literal.value) for literal in literals]
    texts = [value for value in values if isinstance(value, str)]
    if len(texts) == len(values):
        return n.Const("".join(texts))
    chunks = [value for value in values if isinstance(value, bytes)]
    return n.Const(b"".join(chunks)) if len(chunks) == len(values) else n.Opaque(())


def _formatted(to: _Lowering, literal: Any) -> Iterator[n.Expr]:
    """The expressions inside a formatted string, those of its format specifications included."""
    for part in getattr(literal, "parts", ()):
        if hasattr(part, "expression"):
            yield to.expr(part.expression)
            yield from _formatted_spec(to, part.format_spec)


def _formatted_spec(to: _Lowering, spec: Sequence[Any] | None) -> Iterator[n.Expr]:
    for part in spec or ():
        if hasattr(part, "expression"):
            yield to.expr(part.expression)
            yield from _formatted_spec(to, part.format_spec)


_OPERATORS: dict[type, str] = {
    cst.Add: "+",
    cst.Subtract: "-",
    cst.Multiply: "*",
    cst.Divide: "/",
    cst.FloorDivide: "//",
    cst.Modulo: "%",
    cst.Power: "**",
    cst.MatrixMultiply: "@",
    cst.BitAnd: "&",
    cst.BitOr: "|",
    cst.BitXor: "^",
    cst.LeftShift: "<<",
    cst.RightShift: ">>",
    cst.AddAssign: "+",
    cst.SubtractAssign: "-",
    cst.MultiplyAssign: "*",
    cst.DivideAssign: "/",
    cst.FloorDivideAssign: "//",
    cst.ModuloAssign: "%",
    cst.PowerAssign: "**",
    cst.MatrixMultiplyAssign: "@",
    cst.BitAndAssign: "&",
    cst.BitOrAssign: "|",
    cst.BitXorAssign: "^",
    cst.LeftShiftAssign: "<<",
    cst.RightShiftAssign: ">>",
    cst.Minus: "-",
    cst.Plus: "+",
    cst.BitInvert: "~",
    cst.Not: "not",
    cst.And: "and",
    cst.Or: "or",
    cst.Equal: "==",
    cst.NotEqual: "!=",
    cst.LessThan: "<",
    cst.LessThanEqual: "<=",
    cst.GreaterThan: ">",
    cst.GreaterThanEqual: ">=",
    cst.Is: "is",
    cst.IsNot: "is not",
    cst.In: "in",
    cst.NotIn: "not in",
}
"""Operators as `nodes.py` spells them."""


def _chain(to: _Lowering, node: Any) -> n.Expr:
    """`a + b + c` leans to the left: go down the left side in a loop, so that a long sum needs no deep recursion."""
    kind = type(node)
    spine = [node]
    while type(spine[-1].left) is kind:
        spine.append(spine[-1].left)
    made: n.Expr = to.expr(spine[-1].left)
    build: Callable[[str, n.Expr, n.Expr], n.Expr] = _BUILD[kind]
    while spine:
        link = spine.pop()
        made = build(_OPERATORS[type(link.operator)], made, to.expr(link.right))
        made.origin, made.piece = link, to.piece
    return made


_BUILD: dict[type, Any] = {
    cst.BinaryOperation: lambda op, left, right: n.Binary(op, left, right),
    cst.BooleanOperation: lambda op, left, right: n.BoolOp(op, left, right),
}


def _comparison(to: _Lowering, node: cst.Comparison) -> n.Expr:
    left = to.expr(node.left)
    ops = [_OPERATORS[type(target.operator)] for target in node.comparisons]
    return n.Compare(left, ops, [to.expr(target.comparator) for target in node.comparisons])


def _items(to: _Lowering, elements: Sequence[cst.SubscriptElement]) -> list[n.Expr]:
    """The items of an index; `x[(a, b)]` has the two of `x[a, b]`, `x[(a, b),]` one."""
    if len(elements) == 1 and type(elements[0].slice) is cst.Index and type(elements[0].comma) is not cst.Comma:
        only = elements[0].slice
        if only.star is None and type(only.value) is cst.Tuple:
            return to.elements(only.value.elements)
    return [_item(to, element.slice) for element in elements]


def _item(to: _Lowering, node: Any) -> n.Expr:
    if type(node) is cst.Index and node.star is None:
        return to.expr(node.value)
    made: n.Expr
    if type(node) is cst.Index:
        made = n.Star(to.expr(node.value))
    else:
        made = n.Slice(to.optional(node.lower), to.optional(node.upper), to.optional(node.step))
    made.origin, made.piece = node, to.piece
    return made


def _dict(to: _Lowering, node: cst.Dict) -> n.Expr:
    keys = [to.expr(e.key) if type(e) is cst.DictElement else None for e in node.elements]
    return n.Dict(keys, [to.expr(element.value) for element in node.elements])


def _comprehension(kind: str) -> Callable[[_Lowering, Any], n.Expr]:
    def make(to: _Lowering, node: Any) -> n.Expr:
        loops = list(to.loops(node.for_in))
        return n.Comprehension(kind, None, to.expr(node.elt), loops)

    return make


def _dict_comprehension(to: _Lowering, node: cst.DictComp) -> n.Expr:
    loops = list(to.loops(node.for_in))
    return n.Comprehension("dict", to.expr(node.key), to.expr(node.value), loops)


def _await(to: _Lowering, node: cst.Await) -> n.Expr:
    return n.Opaque((to.expr(node.expression),))


def _yield(to: _Lowering, node: cst.Yield) -> n.Expr:
    value = node.value.item if type(node.value) is cst.From else node.value
    return n.Opaque(() if value is None else (to.expr(value),))


def _opaque(to: _Lowering, node: cst.CSTNode) -> n.Expr:
    """An expression of a kind that is not listed: its parts are still read."""
    return n.Opaque([to.expr(part) for part in expressions_below(node)])


_EXPRESSIONS: dict[type, Callable[[_Lowering, Any], n.Expr]] = {
    cst.Name: _name,
    cst.Attribute: lambda to, node: n.Attr(to.expr(node.value), node.attr.value),
    cst.Call: lambda to, node: n.Call(to.expr(node.func), to.args(node.args)),
    cst.Integer: _integer,
    cst.Float: lambda to, node: n.Const(float(node.value)),
    cst.Imaginary: _imaginary,
    cst.Ellipsis: lambda to, node: n.Const(...),
    cst.SimpleString: _string,
    cst.ConcatenatedString: _joined,
    cst.FormattedString: lambda to, node: n.FString(list(_formatted(to, node))),
    cst.Subscript: lambda to, node: n.Index(to.expr(node.value), _items(to, node.slice)),
    cst.BinaryOperation: _chain,
    cst.BooleanOperation: _chain,
    cst.UnaryOperation: lambda to, node: n.Unary(_OPERATORS[type(node.operator)], to.expr(node.expression)),
    cst.Comparison: _comparison,
    cst.IfExp: lambda to, node: n.IfExp(to.expr(node.test), to.expr(node.body), to.expr(node.orelse)),
    cst.Tuple: lambda to, node: n.Sequence_("tuple", to.elements(node.elements)),
    cst.List: lambda to, node: n.Sequence_("list", to.elements(node.elements)),
    cst.Set: lambda to, node: n.Sequence_("set", to.elements(node.elements)),
    cst.StarredElement: lambda to, node: n.Star(to.expr(node.value)),
    cst.Dict: _dict,
    cst.Lambda: lambda to, node: n.Lambda(to.params(node.params), to.expr(node.body)),
    cst.ListComp: _comprehension("list"),
    cst.SetComp: _comprehension("set"),
    cst.GeneratorExp: _comprehension("generator"),
    cst.DictComp: _dict_comprehension,
    cst.NamedExpr: lambda to, node: n.Walrus(to.expr(node.target), to.expr(node.value)),
    cst.Await: _await,
    cst.Yield: _yield,
}
if hasattr(cst, "TemplatedString"):
    _EXPRESSIONS[cst.TemplatedString] = lambda to, node: n.FString(list(_formatted(to, node)))


# Statements


def _assign(to: _Lowering, node: cst.Assign) -> n.Stmt:
    value = to.expr(node.value)
    return n.Assign([to.expr(target.target) for target in node.targets], value)


def _annotated(to: _Lowering, node: cst.AnnAssign) -> n.Stmt:
    return n.Assign((to.expr(node.target),), to.optional(node.value), to.expr(node.annotation.annotation))


def _type_alias(to: _Lowering, node: cst.TypeAlias) -> n.Stmt:
    return n.Assign((to.expr(node.name),), to.expr(node.value))


def _if(to: _Lowering, node: cst.If) -> n.Stmt:
    """An elif chain is taken apart in a loop, from its last branch up."""
    branches = [node]
    while type(branches[-1].orelse) is cst.If:
        branches.append(branches[-1].orelse)
    last = branches[-1].orelse
    below: tuple[n.Stmt, ...] = () if last is None else to.suite(last.body)
    while True:
        branch = branches.pop()
        made = n.If(to.expr(branch.test), to.suite(branch.body), below)
        if not branches:
            return made
        made.origin, made.piece, made.comment = branch, to.piece, to.comments.of_block(branch)
        below = (made,)


def _for(to: _Lowering, node: cst.For) -> n.Stmt:
    return n.For(to.expr(node.target), to.expr(node.iter), to.suite(node.body), to.orelse(node.orelse))


def _while(to: _Lowering, node: cst.While) -> n.Stmt:
    return n.While(to.expr(node.test), to.suite(node.body), to.orelse(node.orelse))


def _with(to: _Lowering, node: cst.With) -> n.Stmt:
    items = [to.expr(item.item) for item in node.items]
    targets = [None if item.asname is None else to.expr(item.asname.name) for item in node.items]
    return n.With(items, targets, to.suite(node.body))


def _try(to: _Lowering, node: Any) -> n.Stmt:
    body = to.suite(node.body)
    handlers = [_handler(to, handler) for handler in node.handlers]
    return n.Try(body, handlers, to.orelse(node.orelse), to.orelse(node.finalbody))


def _handler(to: _Lowering, node: Any) -> n.Handler:
    name = None if node.name is None else node.name.name.value
    made = n.Handler(to.optional(node.type), name, to.suite(node.body))
    made.origin, made.piece, made.comment = node, to.piece, to.comments.of_block(node)
    return made


def _match(to: _Lowering, node: cst.Match) -> n.Stmt:
    return n.Match(to.expr(node.subject), [_case(to, case) for case in node.cases])


def _case(to: _Lowering, node: cst.MatchCase) -> n.Case:
    names = list(_captures(node.pattern))
    made = n.Case(names, to.optional(node.guard), to.suite(node.body))
    made.origin, made.piece, made.comment = node, to.piece, to.comments.of_block(node)
    return made


def _captures(pattern: cst.CSTNode) -> Iterator[str]:
    """The names a pattern binds, in the order they are written."""
    for child in pattern.children:
        if isinstance(child, _PATTERNS):
            yield from _captures(child)
    name = None
    if isinstance(pattern, (cst.MatchAs, cst.MatchStar)):
        name = pattern.name
    elif isinstance(pattern, cst.MatchMapping):
        name = pattern.rest
    if name is not None:
        yield name.value


_PATTERNS = (
    cst.MatchPattern,
    cst.MatchSequenceElement,
    cst.MatchMappingElement,
    cst.MatchKeywordElement,
    cst.MatchOrElement,
    cst.MatchStar,
)


def _delete(to: _Lowering, node: cst.Del) -> n.Stmt:
    target = node.target
    return n.Delete(to.elements(target.elements) if type(target) is cst.Tuple else (to.expr(target),))


def _import(to: _Lowering, node: Any) -> n.Stmt:
    names = []
    for alias in node.names:
        dotted = _dotted(alias.name)
        if alias.asname is None:
            head = dotted.partition(".")[0]
            names.append((head, head))
        else:
            names.append((alias.asname.name.value, dotted))
    return n.Import(names)


def _import_from(to: _Lowering, node: Any) -> n.Stmt:
    base = "." * len(node.relative) + ("" if node.module is None else _dotted(node.module))
    prefix = base if not base or base.endswith(".") else base + "."
    if type(node.names) is cst.ImportStar:
        return n.Import([("*", prefix + "*")])
    names = []
    for alias in node.names:
        name = alias.name.value
        names.append((name if alias.asname is None else alias.asname.name.value, prefix + name))
    return n.Import(names)


def _dotted(node: Any) -> str:
    parts = []
    while type(node) is cst.Attribute:
        parts.append(node.attr.value)
        node = node.value
    return ".".join([node.value, *reversed(parts)])


def _function(to: _Lowering, node: cst.FunctionDef) -> n.Stmt:
    return n.FunctionDef(
        node.name.value,
        to.params(node.params),
        to.suite(node.body),
        [to.expr(decorator.decorator) for decorator in node.decorators],
        None if node.returns is None else to.expr(node.returns.annotation),
        _docstring(node.body),
        node.asynchronous is not None,
    )


def _class(to: _Lowering, node: cst.ClassDef) -> n.Stmt:
    bases = [to.expr(base.value) for base in node.bases if not base.star]
    decorators = [to.expr(decorator.decorator) for decorator in node.decorators]
    return n.ClassDef(node.name.value, bases, to.suite(node.body), decorators, _docstring(node.body))


def _docstring(suite: Any) -> str:
    first = suite.body[0] if suite.body else None
    if type(first) is cst.SimpleStatementLine:
        first = first.body[0]
    if type(first) is not cst.Expr or not isinstance(first.value, cst.BaseString):
        return ""
    value = first.value.evaluated_value if type(first.value) is cst.ConcatenatedString else None
    if type(first.value) is cst.SimpleString:
        value = string_value(first.value.value)
    return value if isinstance(value, str) else ""


_STATEMENTS: dict[type, Callable[[_Lowering, Any], n.Stmt]] = {
    cst.Assign: _assign,
    cst.AnnAssign: _annotated,
    cst.AugAssign: lambda to, node: n.AugAssign(
        to.expr(node.target), _OPERATORS[type(node.operator)], to.expr(node.value)
    ),
    cst.Expr: lambda to, node: n.ExprStmt(to.expr(node.value)),
    cst.Return: lambda to, node: n.Return(to.optional(node.value)),
    cst.If: _if,
    cst.For: _for,
    cst.While: _while,
    cst.With: _with,
    cst.Try: _try,
    cst.TryStar: _try,
    cst.Match: _match,
    cst.Raise: lambda to, node: n.Raise(to.optional(node.exc)),
    cst.Assert: lambda to, node: n.Assert(to.expr(node.test), to.optional(node.msg)),
    cst.Del: _delete,
    cst.Import: _import,
    cst.ImportFrom: _import_from,
    cst.Pass: lambda to, node: n.Flow("pass"),
    cst.Break: lambda to, node: n.Flow("break"),
    cst.Continue: lambda to, node: n.Flow("continue"),
    cst.Global: lambda to, node: n.Flow("global"),
    cst.Nonlocal: lambda to, node: n.Flow("nonlocal"),
    cst.FunctionDef: _function,
    cst.ClassDef: _class,
    cst.TypeAlias: _type_alias,
}
if hasattr(cst, "LazyImport"):
    _STATEMENTS[cst.LazyImport] = _import
    _STATEMENTS[cst.LazyImportFrom] = _import_from
