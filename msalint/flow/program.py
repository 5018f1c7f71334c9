"""The modules of a project as one program: what a name of a module stands for, followed through imports."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from msalint.syntax import nodes as n
from msalint.syntax.module import Module
from msalint.values import ClassValue, Function, Library, Value

if TYPE_CHECKING:
    from msalint.diagnostic import Site
    from msalint.project import Project

KEPT_MODULES = 500
"""How many modules of a project are kept parsed by one process."""

MAX_STARS = 60
"""Star imports followed for one file: a package's front door may have hundreds, each with as many behind it."""

_OUTSIDE = frozenset(
    "torch numpy math einops typing functools collections dataclasses abc os sys re warnings logging copy itertools "
    "xformers flash_attn contextlib enum json time random pathlib tensorflow jax".split()
)
"""Packages that are never part of the project."""


@dataclass
class Program:
    """One file being checked, and the other files of its project that it turned out to need."""

    main: Module
    project: Project | None = None
    modules: dict[str, Module | None] = field(default_factory=dict)
    values: dict[tuple[int, str], Value | None] = field(default_factory=dict)
    lineages: dict[int, list[ClassValue]] = field(default_factory=dict)
    libraries: dict[int, list[str]] = field(default_factory=dict)
    paths: dict[tuple[str, int], Value] = field(default_factory=dict)
    """What dotted names stand for, by the module that uses them."""
    are_modules: dict[int, bool] = field(default_factory=dict)
    members: dict[int, dict[str, n.Stmt]] = field(default_factory=dict)
    depth: int = 0
    stars: int = 0
    """Star imports followed so far."""
    set_later: dict[int, frozenset[str]] = field(default_factory=dict)
    fits: dict[tuple[int, str, int], tuple[str, Site | None]] = field(default_factory=dict)
    """Whether a module list could stand where a plain one does, by class, attribute and place (`flow/list_uses.py`)."""

    def value(self, module: Module, name: str) -> Value | None:
        """What a top-level definition or import of a module stands for; None for an assignment or an unknown name."""
        key = (id(module), name)
        if key not in self.values:
            self.values[key] = None
            self.values[key] = self._value(module, name)
        return self.values[key]

    def _value(self, module: Module, name: str) -> Value | None:
        node = module.definition(name) if name in module.names else None
        if isinstance(node, n.FunctionDef):
            return Function(node, module)
        if isinstance(node, n.ClassDef):
            return ClassValue(node, module)
        dotted = module.imports.get(name)
        if dotted is not None:
            return self.dotted(dotted, module)
        for star in module.stars:
            if self.stars >= MAX_STARS:
                return None
            self.stars += 1
            found = self._found(f"{star}.{name}", module)
            if found is not None:
                return found
        return None

    def dotted(self, dotted: str, importer: Module) -> Value:
        """What a dotted name stands for: a definition of the project, or a name of a library."""
        key = (dotted, id(importer))
        found = self.paths.get(key)
        if found is None:
            found = self._found(dotted, importer) or Library(dotted.lstrip("."))
            if not self.depth:
                self.paths[key] = found
        return found

    def _found(self, dotted: str, importer: Module) -> Value | None:
        if self.project is None or dotted.split(".", 1)[0] in _OUTSIDE or self.depth > 6:
            return None
        source = self.project.find(dotted, importer.filename)
        if source is None or not source.rest or "." in source.rest:
            return None
        if source.rest not in source.text and "import *" not in source.text:
            return None
        module = self.module(source.filename, source.text)
        if module is None:
            return None
        self.depth += 1
        try:
            return self.value(module, source.rest)
        finally:
            self.depth -= 1

    def module(self, filename: str, text: str) -> Module | None:
        """Another file of the project, read once; None if it can't be read."""
        shared = self.project.parsed if self.project is not None else self.modules
        if filename not in self.modules and filename in shared:
            self.modules[filename] = shared[filename]
        if filename not in self.modules:
            from msalint.source import SourceError
            from msalint.syntax.outline import TooDeep, outline

            try:
                read = self.project.outline if self.project is not None else outline
                self.modules[filename] = Module.from_text(text, filename, read)
            except (SourceError, TooDeep):
                self.modules[filename] = None
            if len(shared) > KEPT_MODULES:
                shared.clear()
            shared[filename] = self.modules[filename]
        return self.modules[filename]

    def is_set_later(self, cls: ClassValue, attribute: str) -> bool:
        """Whether a method other than `__init__` gives an attribute a value: None is only what it begins with."""
        return any(attribute in self._set_by_methods(owner.node) for owner in self.lineage(cls))

    def _set_by_methods(self, node: n.ClassDef) -> frozenset[str]:
        if id(node) not in self.set_later:
            methods = [one for one in node.body if isinstance(one, n.FunctionDef) and one.name != "__init__"]
            assigned = [part for one in methods for part in one.walk() if isinstance(part, n.Assign)]
            self.set_later[id(node)] = frozenset(
                target.name
                for statement in assigned
                if not (isinstance(statement.value, n.Const) and statement.value.value is None)
                for whole in statement.targets
                for target in (whole.items if isinstance(whole, n.Sequence_) else (whole,))
                if isinstance(target, n.Attr)
            )
        return self.set_later[id(node)]

    def base_classes(self, cls: ClassValue) -> list[Value]:
        """The bases of a class: classes of the project, or names of libraries."""
        found: list[Value] = []
        for base in cls.node.bases:
            value = self.named(base, cls.module)
            if value is not None:
                found.append(value)
        return found

    def named(self, base: n.Expr, module: Module) -> Value | None:
        """What a written name (`Block`, `nn.Linear`, `Base[T]`) stands for at the top level of a module."""
        if isinstance(base, n.Name):
            return self.value(module, base.id)
        if isinstance(base, n.Attr):
            names = [base.name]
            here: n.Expr = base.value
            while isinstance(here, n.Attr):
                names.append(here.name)
                here = here.value
            if isinstance(here, n.Name):
                root = module.imports.get(here.id)
                if root is not None:
                    return self.dotted(".".join([root, *reversed(names)]), module)
        if isinstance(base, n.Index):
            return self.named(base.value, module)
        return None

    def lineage(self, cls: ClassValue) -> list[ClassValue]:
        """The class and its bases in the project, nearest first."""
        key = id(cls.node)
        if key not in self.lineages:
            self.lineages[key] = self._lineage(cls)
        return self.lineages[key]

    def _lineage(self, cls: ClassValue) -> list[ClassValue]:
        order: list[ClassValue] = []
        waiting: list[Value] = [cls]
        while waiting and len(order) < 12:
            here = waiting.pop(0)
            if isinstance(here, ClassValue) and all(c.node is not here.node for c in order):
                order.append(here)
                waiting += self.base_classes(here)
        return order

    def library_bases(self, cls: ClassValue) -> list[str]:
        """The names of the library classes that a class goes back to."""
        key = id(cls.node)
        if key not in self.libraries:
            bases = (b for c in self.lineage(cls) for b in self.base_classes(c))
            self.libraries[key] = [b.path for b in bases if isinstance(b, Library)]
        return self.libraries[key]

    def is_module(self, cls: ClassValue) -> bool:
        """Whether a class is, or may well be, an nn.Module."""
        key = id(cls.node)
        if key not in self.are_modules:
            self.are_modules[key] = any("Module" in path or "PreTrained" in path for path in self.library_bases(cls))
        return self.are_modules[key]

    def member(self, cls: ClassValue, name: str, after: ClassValue | None = None) -> tuple[n.Stmt, ClassValue] | None:
        """The definition (or assignment) of a member, in the class or the nearest base that has it.

        With `after`, only bases behind that class count, as `super()` has it.
        """
        lineage = self.lineage(cls)
        if after is not None:
            places = [i for i, c in enumerate(lineage) if c.node is after.node]
            lineage = lineage[places[0] + 1 :] if places else []
        for owner in lineage:
            if id(owner.node) not in self.members:
                self.members[id(owner.node)] = class_members(owner)
            found = self.members[id(owner.node)].get(name)
            if found is not None:
                return found, owner
        return None


_COMPILERS = frozenset("triton numba cutlass tilelang helion taichi warp jax mlx cupy".split())
"""Packages that compile Python of their own: what looks like torch in a function given to them is not."""


def is_kernel(node: n.FunctionDef, module: Module) -> bool:
    """Whether a decorator hands a function to another compiler: `@triton.jit`."""
    for decorator in node.decorators:
        inner = decorator.func if isinstance(decorator, n.Call) else decorator
        while isinstance(inner, n.Attr):
            inner = inner.value
        name = inner.id if isinstance(inner, n.Name) else ""
        if not _COMPILERS.isdisjoint((name, *module.imports.get(name, "").split("."))):
            return True
    return False


def class_members(cls: ClassValue) -> dict[str, n.Stmt]:
    """The statements of a class body by the name they bind; the last one counts."""
    return members_of(cls.node)


def members_of(node: n.ClassDef) -> dict[str, n.Stmt]:
    found: dict[str, n.Stmt] = {}
    for statement in _flat(node.body):
        if isinstance(statement, (n.FunctionDef, n.ClassDef)):
            if not (statement.name in found and _is_setter(statement)):
                found[statement.name] = statement
        elif isinstance(statement, n.Assign) and statement.value is not None:
            for target in statement.targets:
                if isinstance(target, n.Name):
                    found[target.id] = statement
    return found


def _flat(body: tuple[n.Stmt, ...]) -> list[n.Stmt]:
    flat: list[n.Stmt] = []
    for statement in body:
        if isinstance(statement, n.If):
            flat += _flat(statement.body)
        else:
            flat.append(statement)
    return flat


def _is_setter(statement: n.Stmt) -> bool:
    decorators = getattr(statement, "decorators", ())
    return any(isinstance(d, n.Attr) and d.name in {"setter", "deleter"} for d in decorators)


def decorator_names(node: n.FunctionDef | n.ClassDef) -> set[str]:
    """The last names of the decorators: `staticmethod`, `property`, `no_grad`."""
    names = set()
    for decorator in node.decorators:
        inner = decorator.func if isinstance(decorator, n.Call) else decorator
        if isinstance(inner, n.Name):
            names.add(inner.id)
        elif isinstance(inner, n.Attr):
            names.add(inner.name)
    return names
