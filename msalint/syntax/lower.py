"""The interpreter's own tree to the reader's tree."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from msalint.syntax import nodes as n
from msalint.syntax.comments import Comments
from msalint.syntax.depth import MAX_DEPTH, TooDeep
from msalint.syntax.fields import PLACED, FieldPiece, formatted
from msalint.syntax.piece import TEXT_LIMIT, Between, HostPiece


def lower(piece: HostPiece) -> tuple[n.Stmt, ...]:
    """The statements of a piece. Raises TooDeep where they are nested deeper than Python can recurse."""
    start, end = piece.bounds
    if end - start > TEXT_LIMIT:
        raise TooDeep(piece.first)
    try:
        return _Lowering(piece).block(piece.body)
    except RecursionError as error:
        raise TooDeep(piece.first) from error


class _Lowering:
    """Lowers one piece; `comments` finds the comments of statements and parameters, `links` are the terms above.

    `called` is what `Stmt.calls` tells of all that was lowered so far, in order: a statement has the end of it.
    """

    __slots__ = ("called", "comments", "links", "piece")

    def __init__(self, piece: HostPiece) -> None:
        self.piece = piece
        self.comments = Comments(piece)
        self.links = 0
        self.called: list[str] = []

    def expr(self, node: Any) -> n.Expr:
        kind = type(node)
        made: n.Expr
        # Two nodes of three are one of these: no call for them.
        if kind is _NAME:
            made = n.Name(node.id)
        elif kind is _ATTRIBUTE:
            made = n.Attr(self.expr(node.value), node.attr)
        elif kind is _CONSTANT:
            made = n.Const(node.value)
        else:
            make = _EXPRESSIONS.get(kind)
            made = _opaque(self, node) if make is None else make(self, node)
            if isinstance(made, n.Call):
                self.called.append(made.called)
        made.origin, made.piece = node, self.piece
        return made

    def exprs(self, nodes: Sequence[ast.expr]) -> list[n.Expr]:
        return [self.expr(node) for node in nodes] if nodes else []

    def optional(self, node: ast.expr | None) -> n.Expr | None:
        return None if node is None else self.expr(node)

    def place(self, made: n.Stmt, origin: Any, comment: str, since: int) -> None:
        """Give a statement its place; `since` is how much had been called before it."""
        made.origin, made.piece, made.comment = origin, self.piece, comment
        made.known_calls = frozenset(self.called[since:])

    def block(self, body: Sequence[ast.stmt]) -> tuple[n.Stmt, ...]:
        if not body:
            return ()
        said = self.comments_of(body) if self.comments.any else None
        made: list[n.Stmt] = []
        for index, node in enumerate(body):
            make = _STATEMENTS.get(type(node))
            since = len(self.called)
            statement = n.Flow("pass") if make is None else make(self, node)
            self.place(statement, node, "" if said is None else said[index], since)
            made.append(statement)
        return tuple(made)

    def comments_of(self, body: Sequence[ast.stmt]) -> list[str]:
        """A comment for each statement; small statements that share a line share its comment."""
        said: list[str] = []
        count = len(body)
        while len(said) < count:
            first = body[len(said)]
            if type(first) in _COMPOUND:
                said.append(self.block_comment(first))
                continue
            together = len(said) + 1
            while together < count and body[together].lineno == body[together - 1].end_lineno:
                together += 1
            last = body[together - 1].end_lineno or first.lineno
            said += [self.comments.of_lines(first.lineno, last)] * (together - len(said))
        return said

    def block_comment(self, node: Any) -> str:
        if not self.comments.any:
            return ""
        body = [case.pattern for case in node.cases] if type(node) is ast.Match else node.body
        return self.comments.of_block(node, body)

    def params(self, args: ast.arguments) -> list[n.Param]:
        plain = [*args.posonlyargs, *args.args]
        missing = len(plain) - len(args.defaults)
        made = [self.param(arg, "pos", None) for arg in plain[:missing]]
        made += [self.param(arg, "pos", default) for arg, default in zip(plain[missing:], args.defaults, strict=True)]
        if args.vararg is not None:
            made.append(self.param(args.vararg, "*", None))
        made += [self.param(arg, "kw", value) for arg, value in zip(args.kwonlyargs, args.kw_defaults, strict=True)]
        if args.kwarg is not None:
            made.append(self.param(args.kwarg, "**", None))
        return made

    def param(self, node: ast.arg, kind: str, default: ast.expr | None) -> n.Param:
        comment = self.comments.of_param(node, default) if self.comments.any else ""
        made = n.Param(node.arg, kind, self.optional(default), self.optional(node.annotation), comment)
        if kind[0] == "*":
            made.origin = Between(node, node, kind)
        else:
            made.origin = node if default is None else Between(node, default)
        made.piece = self.piece
        return made

    def loops(self, generators: Sequence[ast.comprehension]) -> list[n.For_]:
        made = []
        for loop in generators:
            part = n.For_(self.expr(loop.target), self.expr(loop.iter), self.exprs(loop.ifs))
            part.origin, part.piece = Between(loop.target, loop.ifs[-1] if loop.ifs else loop.iter), self.piece
            made.append(part)
        return made

    def left_chain(self, length: int, base: ast.expr) -> n.Expr:
        """What a chain of so many terms leans on; the terms count as levels of nesting."""
        self.links += length
        if self.links > MAX_DEPTH:
            raise TooDeep(self.piece.first)
        made = self.expr(base)
        self.links -= length
        return made


# Expressions


_NAME, _ATTRIBUTE, _CONSTANT = ast.Name, ast.Attribute, ast.Constant


def _call(to: _Lowering, node: ast.Call) -> n.Expr:
    func = to.expr(node.func)
    if not node.keywords:
        if len(node.args) == 1 and type(node.args[0]) is ast.GeneratorExp:
            return n.Call(func, (_only_generator(to, node, node.args[0]),))
        return n.Call(func, [_arg(to, arg) for arg in node.args])
    if not node.args:
        return n.Call(func, [_keyword(to, arg) for arg in node.keywords])
    written: list[Any] = [*node.args, *node.keywords]
    if any(type(arg) is ast.Starred for arg in node.args):
        # `f(a=1, *b)`
        written.sort(key=lambda arg: (arg.lineno, arg.col_offset))
    return n.Call(func, [_keyword(to, arg) if type(arg) is ast.keyword else _arg(to, arg) for arg in written])


def _arg(to: _Lowering, node: ast.expr) -> n.Arg:
    if type(node) is ast.Starred:
        made = n.Arg(to.expr(node.value), None, "*")
        made.origin = node
    else:
        made = n.Arg(to.expr(node))
        made.origin = Between(node, node)
    made.piece = to.piece
    return made


def _keyword(to: _Lowering, node: ast.keyword) -> n.Arg:
    made = n.Arg(to.expr(node.value), node.arg, "**" if node.arg is None else "")
    made.origin, made.piece = node, to.piece
    return made


def _only_generator(to: _Lowering, call: ast.Call, node: ast.GeneratorExp) -> n.Arg:
    """In `f(x for x in y)` the parser counts the parentheses of the call to the generator too."""
    made = _arg(to, node)
    if (node.end_lineno, node.end_col_offset) == (call.end_lineno, call.end_col_offset):
        last = node.generators[-1]
        made.origin = made.value.origin = Between(node.elt, last.ifs[-1] if last.ifs else last.iter)
    return made


def _subscript(to: _Lowering, node: ast.Subscript) -> n.Expr:
    index = node.slice
    items = index.elts if type(index) is ast.Tuple else (index,)
    return n.Index(to.expr(node.value), [to.expr(item) for item in items])


_OPERATORS: dict[type, str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.MatMult: "@",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.USub: "-",
    ast.UAdd: "+",
    ast.Invert: "~",
    ast.Not: "not",
    ast.And: "and",
    ast.Or: "or",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
}
"""Operators as `nodes.py` spells them."""


def _binary(to: _Lowering, node: ast.BinOp) -> n.Expr:
    """`a + b + c` leans to the left: go down the left side in a loop, so that a long sum needs no deep recursion."""
    left = node.left
    if type(node.op) is ast.MatMult:
        to.called.append("@")
    if type(left) is not ast.BinOp:
        return n.Binary(_OPERATORS[type(node.op)], to.expr(left), to.expr(node.right))
    spine = [node]
    while type(left) is ast.BinOp:
        spine.append(left)
        if type(left.op) is ast.MatMult:
            to.called.append("@")
        left = left.left
    made = to.left_chain(len(spine), left)
    for link in reversed(spine):
        made = n.Binary(_OPERATORS[type(link.op)], made, to.expr(link.right))
        made.origin, made.piece = link, to.piece
    return made


def _bool(to: _Lowering, node: ast.BoolOp) -> n.Expr:
    """`a and b and c`, one node to the interpreter, leans to the left like a sum."""
    op = _OPERATORS[type(node.op)]
    first, *rest = node.values
    made = to.left_chain(len(rest), first)
    for value in rest:
        made = n.BoolOp(op, made, to.expr(value))
        made.origin, made.piece = Between(first, value), to.piece
    return made


def _compare(to: _Lowering, node: ast.Compare) -> n.Expr:
    return n.Compare(to.expr(node.left), [_OPERATORS[type(op)] for op in node.ops], to.exprs(node.comparators))


def _comprehension(kind: str) -> Callable[[_Lowering, Any], n.Expr]:
    def make(to: _Lowering, node: Any) -> n.Expr:
        loops = to.loops(node.generators)
        return n.Comprehension(kind, None, to.expr(node.elt), loops)

    return make


def _dict_comprehension(to: _Lowering, node: ast.DictComp) -> n.Expr:
    loops = to.loops(node.generators)
    return n.Comprehension("dict", to.expr(node.key), to.expr(node.value), loops)


def _formatted(to: _Lowering, node: Any) -> n.Expr:
    around = to.piece
    if not PLACED:
        to.piece = FieldPiece(around, node)
    parts = to.exprs(list(formatted(node)))
    to.piece = around
    return n.FString(parts)


def _yield(to: _Lowering, node: ast.Yield) -> n.Expr:
    return n.Opaque(() if node.value is None else (to.expr(node.value),))


def _opaque(to: _Lowering, node: ast.AST) -> n.Expr:
    """An expression of a kind that is not listed: its parts are still read."""
    return n.Opaque([to.expr(part) for part in _expressions_below(node)])


def _expressions_below(node: ast.AST) -> Iterator[ast.expr]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            yield child
        else:
            yield from _expressions_below(child)


_EXPRESSIONS: dict[type, Callable[[_Lowering, Any], n.Expr]] = {
    ast.Call: _call,
    ast.JoinedStr: _formatted,
    ast.Subscript: _subscript,
    ast.Slice: lambda to, node: n.Slice(to.optional(node.lower), to.optional(node.upper), to.optional(node.step)),
    ast.BinOp: _binary,
    ast.BoolOp: _bool,
    ast.UnaryOp: lambda to, node: n.Unary(_OPERATORS[type(node.op)], to.expr(node.operand)),
    ast.Compare: _compare,
    ast.IfExp: lambda to, node: n.IfExp(to.expr(node.test), to.expr(node.body), to.expr(node.orelse)),
    ast.Tuple: lambda to, node: n.Sequence_("tuple", to.exprs(node.elts)),
    ast.List: lambda to, node: n.Sequence_("list", to.exprs(node.elts)),
    ast.Set: lambda to, node: n.Sequence_("set", to.exprs(node.elts)),
    ast.Starred: lambda to, node: n.Star(to.expr(node.value)),
    ast.Dict: lambda to, node: n.Dict([to.optional(key) for key in node.keys], to.exprs(node.values)),
    ast.Lambda: lambda to, node: n.Lambda(to.params(node.args), to.expr(node.body)),
    ast.ListComp: _comprehension("list"),
    ast.SetComp: _comprehension("set"),
    ast.GeneratorExp: _comprehension("generator"),
    ast.DictComp: _dict_comprehension,
    ast.NamedExpr: lambda to, node: n.Walrus(to.expr(node.target), to.expr(node.value)),
    ast.Await: lambda to, node: n.Opaque((to.expr(node.value),)),
    ast.Yield: _yield,
    ast.YieldFrom: lambda to, node: n.Opaque((to.expr(node.value),)),
}
if hasattr(ast, "TemplateStr"):
    _EXPRESSIONS[ast.TemplateStr] = _formatted


# Statements


def _assign(to: _Lowering, node: ast.Assign) -> n.Stmt:
    value = to.expr(node.value)
    return n.Assign(to.exprs(node.targets), value)


def _annotated(to: _Lowering, node: ast.AnnAssign) -> n.Stmt:
    return n.Assign((to.expr(node.target),), to.optional(node.value), to.expr(node.annotation))


def _augmented(to: _Lowering, node: ast.AugAssign) -> n.Stmt:
    return n.AugAssign(to.expr(node.target), _OPERATORS[type(node.op)], to.expr(node.value))


def _if(to: _Lowering, node: ast.If) -> n.Stmt:
    """An elif chain is taken apart in a loop, from its last branch up."""
    branches = [node]
    while (inner := _elif(branches[-1])) is not None:
        branches.append(inner)
    if len(branches) > MAX_DEPTH:
        raise TooDeep(to.piece.first)
    since = len(to.called)
    below = to.block(branches[-1].orelse)
    while True:
        branch = branches.pop()
        made = n.If(to.expr(branch.test), to.block(branch.body), below)
        if not branches:
            return made
        to.place(made, branch, to.block_comment(branch), since)
        below = (made,)


def _elif(node: ast.If) -> ast.If | None:
    """The only statement below an else, where it is an `if`: the two ways of writing it are one."""
    orelse = node.orelse
    return orelse[0] if len(orelse) == 1 and isinstance(orelse[0], ast.If) else None


def _for(to: _Lowering, node: Any) -> n.Stmt:
    return n.For(to.expr(node.target), to.expr(node.iter), to.block(node.body), to.block(node.orelse))


def _while(to: _Lowering, node: ast.While) -> n.Stmt:
    return n.While(to.expr(node.test), to.block(node.body), to.block(node.orelse))


def _with(to: _Lowering, node: Any) -> n.Stmt:
    items = [to.expr(item.context_expr) for item in node.items]
    targets = [to.optional(item.optional_vars) for item in node.items]
    return n.With(items, targets, to.block(node.body))


def _try(to: _Lowering, node: Any) -> n.Stmt:
    body = to.block(node.body)
    handlers = [_handler(to, handler) for handler in node.handlers]
    return n.Try(body, handlers, to.block(node.orelse), to.block(node.finalbody))


def _handler(to: _Lowering, node: ast.ExceptHandler) -> n.Handler:
    since = len(to.called)
    made = n.Handler(to.optional(node.type), node.name, to.block(node.body))
    to.place(made, node, to.block_comment(node), since)
    return made


def _match(to: _Lowering, node: ast.Match) -> n.Stmt:
    to.piece.mark_subject(node.subject)
    return n.Match(to.expr(node.subject), [_case(to, case) for case in node.cases])


def _case(to: _Lowering, node: ast.match_case) -> n.Case:
    since = len(to.called)
    made = n.Case(list(_captures(node.pattern)), to.optional(node.guard), to.block(node.body))
    to.place(made, node, to.block_comment(node), since)
    return made


def _captures(pattern: ast.pattern) -> Iterator[str]:
    """The names a pattern binds, in the order they are written."""
    for child in ast.iter_child_nodes(pattern):
        if isinstance(child, ast.pattern):
            yield from _captures(child)
    name = None
    if isinstance(pattern, (ast.MatchAs, ast.MatchStar)):
        name = pattern.name
    elif isinstance(pattern, ast.MatchMapping):
        name = pattern.rest
    if name is not None:
        yield name


def _delete(to: _Lowering, node: ast.Delete) -> n.Stmt:
    targets = node.targets
    only = targets[0]
    return n.Delete(to.exprs(only.elts if len(targets) == 1 and isinstance(only, ast.Tuple) else targets))


def _import(to: _Lowering, node: ast.Import) -> n.Stmt:
    names = []
    for alias in node.names:
        head = alias.name.partition(".")[0]
        names.append((head, head) if alias.asname is None else (alias.asname, alias.name))
    return n.Import(names)


def _import_from(to: _Lowering, node: ast.ImportFrom) -> n.Stmt:
    base = "." * node.level + (node.module or "")
    prefix = base if base.endswith(".") else base + "."
    return n.Import([(alias.asname or alias.name, prefix + alias.name) for alias in node.names])


def _function(to: _Lowering, node: Any) -> n.Stmt:
    return n.FunctionDef(
        node.name,
        to.params(node.args),
        to.block(node.body),
        to.exprs(node.decorator_list),
        to.optional(node.returns),
        _docstring(node.body),
        type(node) is ast.AsyncFunctionDef,
    )


def _class(to: _Lowering, node: ast.ClassDef) -> n.Stmt:
    bases = [to.expr(base) for base in node.bases if not isinstance(base, ast.Starred)]
    return n.ClassDef(node.name, bases, to.block(node.body), to.exprs(node.decorator_list), _docstring(node.body))


def _docstring(body: Sequence[ast.stmt]) -> str:
    first = body[0]
    if type(first) is ast.Expr and type(first.value) is ast.Constant:
        value = first.value.value
        return value if isinstance(value, str) else ""
    return ""


_STATEMENTS: dict[type, Callable[[_Lowering, Any], n.Stmt]] = {
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented,
    ast.Expr: lambda to, node: n.ExprStmt(to.expr(node.value)),
    ast.Return: lambda to, node: n.Return(to.optional(node.value)),
    ast.If: _if,
    ast.For: _for,
    ast.AsyncFor: _for,
    ast.While: _while,
    ast.With: _with,
    ast.AsyncWith: _with,
    ast.Try: _try,
    ast.Match: _match,
    ast.Raise: lambda to, node: n.Raise(to.optional(node.exc)),
    ast.Assert: lambda to, node: n.Assert(to.expr(node.test), to.optional(node.msg)),
    ast.Delete: _delete,
    ast.Import: _import,
    ast.ImportFrom: _import_from,
    ast.Pass: lambda to, node: n.Flow("pass"),
    ast.Break: lambda to, node: n.Flow("break"),
    ast.Continue: lambda to, node: n.Flow("continue"),
    ast.Global: lambda to, node: n.Flow("global"),
    ast.Nonlocal: lambda to, node: n.Flow("nonlocal"),
    ast.FunctionDef: _function,
    ast.AsyncFunctionDef: _function,
    ast.ClassDef: _class,
}
if hasattr(ast, "TryStar"):
    _STATEMENTS[ast.TryStar] = _try
if hasattr(ast, "TypeAlias"):
    _STATEMENTS[ast.TypeAlias] = lambda to, node: n.Assign((to.expr(node.name),), to.expr(node.value))

_COMPOUND = frozenset(kind for kind in _STATEMENTS if issubclass(kind, ast.AST) and {"body", "cases"} & {*kind._fields})
