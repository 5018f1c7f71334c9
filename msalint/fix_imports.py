"""Put the imports that a fix relies on into a module, unless it has them already under whatever spelling."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from msalint.source import LineTable, newline_of


def insertion(text: str, statements: Sequence[str]) -> tuple[int, str] | None:
    """Where to put those of some import statements that a module lacks, and what; None where they can't be had.

    `from torch import nn`, `import torch.nn as nn` and either of them in a `try` give the same name the same meaning.
    A name that means something else in the module can't be had.
    """
    if not statements:
        return 0, ""
    tree = parsed(text)
    if tree is None:
        return None
    have = dict(_bindings(tree.body))
    missing = []
    for statement in statements:
        wanted = dict(_bindings(ast.parse(statement).body))
        if all(have.get(name) == meaning for name, meaning in wanted.items()):
            continue
        if not wanted.keys().isdisjoint(have):
            return None
        have |= wanted
        missing.append(statement)
    return _behind_imports(text, tree, missing)


def parsed(text: str) -> ast.Module | None:
    """The tree of a text, None where this Python can't read it."""
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _bindings(body: Iterable[ast.stmt]) -> Iterator[tuple[str, str | None]]:
    """The names that a module's own statements bind, each with the dotted name it imports, None for any other value."""
    from msalint.syntax.outline import bound_by_import  # a run whose results are all known needs no outline

    for statement in body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            yield from bound_by_import(statement)
        elif isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield statement.name, None
        else:
            yield from _bindings_inside(statement)


def _bindings_inside(statement: ast.stmt) -> Iterator[tuple[str, str | None]]:
    """What an assignment binds, and the blocks of a compound statement.

    `except ImportError: torch = None` is no rival to the import that it stands in for.
    """
    imported: dict[str, str | None] = {}
    bound: list[str] = []
    if not _types_only(statement):
        for block in _blocks(statement):
            for name, meaning in _bindings(block):
                if meaning is not None:
                    imported.setdefault(name, meaning)
                else:
                    bound.append(name)
    bound += [node.id for node in _shallow(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    yield from imported.items()
    yield from ((name, None) for name in bound if name not in imported)


def _types_only(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and "TYPE_CHECKING" in ast.unparse(statement.test)


def _blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        yield getattr(statement, name, [])
    for handler in getattr(statement, "handlers", ()):
        yield handler.body


def _shallow(statement: ast.stmt) -> Iterator[ast.AST]:
    """A statement's own expressions, without the blocks in it."""
    for child in ast.iter_child_nodes(statement):
        if not isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
            yield from ast.walk(child)


def _behind_imports(text: str, tree: ast.Module, statements: Sequence[str]) -> tuple[int, str]:
    lines, newline = LineTable(text), newline_of(text)
    offset = lines.start(_line_behind_imports(tree, lines))
    glue = newline if offset == len(text) and text and not text.endswith(("\n", "\r")) else ""
    block = "".join(statement + newline for statement in statements)
    return offset, glue + block if block else ""


def _line_behind_imports(tree: ast.Module, lines: LineTable) -> int:
    """The line behind the last plain import at the top, else behind the docstring, else behind the comments there."""
    line = 1
    for number, statement in enumerate(tree.body):
        docstring = number == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if not docstring and not isinstance(statement, ast.Import | ast.ImportFrom):
            break
        line = (statement.end_lineno or statement.lineno) + 1
    if line == 1:
        # `#!/usr/bin/env python` and a coding line must stay where they are.
        while lines.line(line).lstrip().startswith("#"):
            line += 1
    return line
