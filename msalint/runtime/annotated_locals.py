"""Rebuilds a function so that each assignment to an annotated local is reported to a watcher, at its own line."""

from __future__ import annotations

import ast
import linecache
import types
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import lru_cache
from typing import Any

_WATCH = "__msalint_watch__"
_OUTER = "__msalint_outer__"

_Def = ast.FunctionDef | ast.AsyncFunctionDef


def local_annotations(function: types.FunctionType) -> dict[str, str]:
    """The annotated locals of a function with their annotations as written; empty if its source can't be read."""
    found = _definition(function)
    return {} if found is None else _annotations(found[0])


def watch_locals(
    function: types.FunctionType, names: frozenset[str], watch: Callable[[str, Any], None]
) -> types.FunctionType:
    """The same function, calling `watch(name, value)` after each assignment to one of `names`.

    Lines, columns, closure, defaults and `super()` stay as they were. Returns `function` itself if it can't be rebuilt.
    """
    found = _definition(function)
    if found is None or not names:
        return function
    definition, class_name = found
    code = _rebuilt_code(function, definition, class_name, names)
    if code is None:
        return function
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    cells[_WATCH] = types.CellType(watch)
    if not cells.keys() >= set(code.co_freevars):
        return function
    closure = tuple(cells[name] for name in code.co_freevars)
    rebuilt = types.FunctionType(code, function.__globals__, function.__name__, function.__defaults__, closure)
    rebuilt.__kwdefaults__ = function.__kwdefaults__
    rebuilt.__annotations__ = function.__annotations__
    rebuilt.__qualname__, rebuilt.__module__, rebuilt.__doc__ = (
        function.__qualname__,
        function.__module__,
        function.__doc__,
    )
    rebuilt.__dict__.update(function.__dict__)
    return rebuilt


def _rebuilt_code(
    function: types.FunctionType, definition: _Def, class_name: str | None, names: frozenset[str]
) -> types.CodeType | None:
    copy = _Watcher(names).visit(_copied(definition))
    copy.decorator_list = []
    body: list[ast.stmt] = [copy]
    if class_name is not None:
        # Inside a class of the same name, `self.__x` is mangled as it was.
        body = [_class_around(class_name, body)]
    free = [*(name for name in function.__code__.co_freevars if name != "__class__" or class_name is None), _WATCH]
    tree = ast.fix_missing_locations(ast.Module([_function_around(free, body)], []))
    flags = function.__code__.co_flags & annotations.compiler_flag
    try:
        compiled = compile(tree, function.__code__.co_filename, "exec", flags=flags, dont_inherit=True)
    except (SyntaxError, ValueError):
        return None
    wanted = function.__code__
    for code in _codes(compiled):
        if code.co_name == wanted.co_name and code.co_firstlineno == definition.lineno:
            # `co_qualname` came with 3.11; a traceback and the tracer name the function by it.
            qualname: dict[str, Any] = {"co_qualname": function.__qualname__} if hasattr(code, "co_qualname") else {}
            return code.replace(**qualname)
    return None


def _class_around(name: str, body: list[ast.stmt]) -> ast.ClassDef:
    around: ast.ClassDef = ast.parse(f"class {name}: pass").body[0]  # type: ignore[assignment]
    around.body = body
    return around


def _function_around(parameters: list[str], body: list[ast.stmt]) -> ast.FunctionDef:
    around: ast.FunctionDef = ast.parse(f"def {_OUTER}({', '.join(parameters)}): pass").body[0]  # type: ignore[assignment]
    around.body = body
    return around


def _copied(definition: _Def) -> _Def:
    """A copy whose annotations and defaults are gone: they were evaluated once, when the function was made."""
    fresh: _Def = deepcopy(definition)
    named = fresh.args
    for node in (*named.posonlyargs, *named.args, *named.kwonlyargs, named.vararg, named.kwarg):
        if node is not None:
            node.annotation = None
    fresh.returns = None
    fresh.args.defaults = [ast.Constant(None) for _ in fresh.args.defaults]
    fresh.args.kw_defaults = [default and ast.Constant(None) for default in fresh.args.kw_defaults]
    return fresh


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield constant
            yield from _codes(constant)


class _Watcher(ast.NodeTransformer):
    """Puts a call of the watcher behind each assignment to a watched name; functions inside are left alone."""

    def __init__(self, names: frozenset[str]) -> None:
        self.names = names
        self.depth = 0

    def _visit_scope(self, node: Any) -> Any:
        if self.depth:
            return node
        self.depth += 1
        return self.generic_visit(node)

    visit_FunctionDef = visit_AsyncFunctionDef = _visit_scope

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.Lambda:
        return node

    def _visit_assignment(self, node: Any) -> Any:
        if isinstance(node, ast.AnnAssign) and node.value is None:
            return node
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        names = [name for target in targets for name in _stored(target) if name in self.names]
        return [node, *(self._call(name, node) for name in dict.fromkeys(names))]

    visit_Assign = visit_AnnAssign = visit_AugAssign = _visit_assignment

    def _call(self, name: str, node: ast.stmt) -> ast.stmt:
        arguments: list[ast.expr] = [ast.Constant(name), ast.Name(name, ast.Load())]
        call = ast.Expr(ast.Call(ast.Name(_WATCH, ast.Load()), arguments, []))
        for part in ast.walk(call):
            ast.copy_location(part, node)
        return call


def _stored(target: ast.expr) -> Iterator[str]:
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, (ast.Tuple, ast.List)):
        for item in target.elts:
            yield from _stored(item)
    elif isinstance(target, ast.Starred):
        yield from _stored(target.value)


def _annotations(definition: _Def) -> dict[str, str]:
    found: dict[str, str] = {}
    pending: list[ast.AST] = list(definition.body)
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            continue
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.setdefault(node.target.id, ast.unparse(node.annotation))
        pending.extend(ast.iter_child_nodes(node))
    return found


def _definition(function: types.FunctionType) -> tuple[_Def, str | None] | None:
    code = function.__code__
    return _definitions(code.co_filename).get((code.co_name, code.co_firstlineno))


@lru_cache(maxsize=32)
def _definitions(filename: str) -> dict[tuple[str, int], tuple[_Def, str | None]]:
    """Every function of a file by name and first line (its first decorator's), with the class it stands in."""
    try:
        tree = ast.parse("".join(linecache.getlines(filename)))
    except (SyntaxError, ValueError, RecursionError):
        return {}
    found: dict[tuple[str, int], tuple[_Def, str | None]] = {}
    pending: list[tuple[ast.AST, str | None]] = [(tree, None)]
    while pending:
        node, class_name = pending.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            found[node.name, first] = (node, class_name)
        elif isinstance(node, ast.ClassDef):
            class_name = node.name
        pending.extend((child, class_name) for child in ast.iter_child_nodes(node))
    return found
