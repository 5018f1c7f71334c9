"""`check_package("mypkg")`: every function and class of a package is shape-checked as its modules are imported."""

from __future__ import annotations

import ast
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
from collections.abc import Sequence
from typing import Any

from msalint.runtime.checked import Mode, environment_mode

_NAME = "__msalint_shape_checked__"


class AlreadyImported(RuntimeError):
    """The package was imported before its checks were asked for, so its functions are out of reach."""


class Installed:
    """A running import hook. `remove()`, or leaving it as a context, stops it; modules imported meanwhile stay so."""

    def __init__(self, finder: importlib.abc.MetaPathFinder | None) -> None:
        self._finder = finder

    def remove(self) -> None:
        if self._finder is not None and self._finder in sys.meta_path:
            sys.meta_path.remove(self._finder)

    def __enter__(self) -> Installed:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


def check_package(*packages: str, mode: Mode | None = None) -> Installed:
    """Apply `@shape_checked` to all functions and classes of these packages (or modules) when they are imported.

    Call it before the first import of them: raises `AlreadyImported` otherwise. In mode "off" nothing is installed.
    """
    if (mode or environment_mode()) == "off":
        return Installed(None)
    late = [name for name in packages if name in sys.modules]
    if late:
        raise AlreadyImported(f"{late[0]} is already imported; call check_package({late[0]!r}) before its first import")
    finder = _Finder(packages, mode)
    sys.meta_path.insert(0, finder)
    return Installed(finder)


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, packages: Sequence[str], mode: Mode | None) -> None:
        self.packages, self.mode = packages, mode

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not any(fullname == name or fullname.startswith(f"{name}.") for name in self.packages):
            return None
        for finder in sys.meta_path:
            if isinstance(finder, _Finder) or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                # An extension module or a namespace package has no source to decorate.
                if type(spec.loader) is importlib.machinery.SourceFileLoader:
                    spec.loader = _Loader(fullname, spec.loader.path, self.mode)
                return spec
        return None


class _Loader(importlib.machinery.SourceFileLoader):
    """Compiles a module with the decorator on each definition. Its byte code is not cached."""

    def __init__(self, fullname: str, path: str, mode: Mode | None) -> None:
        super().__init__(fullname, path)
        self.mode = mode

    def get_code(self, fullname: str) -> types.CodeType:
        path = self.get_filename(fullname)
        tree = _Decorator().visit(ast.parse(self.get_data(path), filename=path))
        code: types.CodeType = compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)
        return code

    def exec_module(self, module: types.ModuleType) -> None:
        from msalint.runtime.checked import shape_checked

        module.__dict__[_NAME] = shape_checked(mode=self.mode)
        super().exec_module(module)


class _Decorator(ast.NodeTransformer):
    """Puts the decorator right above each `def` and `class`, below the user's own; methods come with their class."""

    def _visit_function(self, node: Any) -> Any:
        self.generic_visit(node)
        return _decorated(node)

    visit_FunctionDef = visit_AsyncFunctionDef = _visit_function

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        methods = [item for item in node.body if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef))]
        for method in methods:
            self.generic_visit(method)
        for item in node.body:
            if item not in methods:
                self.visit(item)
        decorated: ast.ClassDef = _decorated(node)
        return decorated


def _decorated(node: Any) -> Any:
    name = ast.Name(_NAME, ast.Load())
    # On the line of the `def` itself, so that the first line of the code object stays what it was.
    ast.copy_location(name, node)
    node.decorator_list.append(name)
    return node
