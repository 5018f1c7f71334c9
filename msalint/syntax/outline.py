"""The top level of a file, found by the interpreter's own parser: what is defined, where, and what is imported."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from msalint.diagnostic import Position
from msalint.source import NEWLINE, SourceError
from msalint.syntax.depth import MAX_DEPTH, bracket_depth
from msalint.syntax.depth import TooDeep as TooDeep

if TYPE_CHECKING:
    from msalint.syntax.piece_libcst import LibcstPiece


@dataclass(frozen=True)
class Stretch:
    """Top-level statements that are parsed together: one, or several that share a line.

    `first` and `last` are lines from 1, decorators included. `kind` is "class", "def", "assign", "import" or "other".
    `names` are those bound here other than by an import, `definitions` those of them that a class or def statement
    binds (inside an `if` or `try` too), `bases` the written bases of a class. `body` is what the host's parser made of
    it, nothing where libcst read the file.
    """

    first: int
    last: int
    kind: str
    names: tuple[str, ...] = ()
    definitions: tuple[str, ...] = ()
    bases: tuple[str, ...] = ()
    body: tuple[ast.stmt, ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True)
class Outline:
    """What a file holds at its top level. `starts` are the offsets of its lines.

    `imports` pairs local names with dotted ones as `nodes.Import` does, conditional imports included. `stars` are the
    modules of `from m import *`, so that `f"{star}.{name}"` is the dotted name ("" for `from . import *`). `whole` is
    set where the host's parser refused the file and libcst read all of it. `wanted` are the definitions worth a look,
    all of them unless the gate says otherwise; `scripted` says whether the statements outside of definitions are.
    """

    text: str
    starts: tuple[int, ...]
    stretches: tuple[Stretch, ...]
    imports: dict[str, str]
    stars: tuple[str, ...] = ()
    whole: LibcstPiece | None = None
    wanted: tuple[str, ...] = ()
    scripted: bool = True

    def slice(self, stretch: Stretch) -> tuple[int, int]:
        """The offsets in the text between which a stretch stands, its last newline included."""
        end = self.starts[stretch.last] if stretch.last < len(self.starts) else len(self.text)
        return self.starts[stretch.first - 1], end


def line_starts(text: str) -> tuple[int, ...]:
    """The offset at which each line of a text begins."""
    return (0, *(match.end() for match in NEWLINE.finditer(text)))


def outline(text: str, filename: str = "<text>") -> Outline:
    """Index the top level of a text. Raises SourceError where it is not Python, TooDeep where it nests too deeply."""
    try:
        tree = _parse(text)
    except SyntaxError as error:
        return _whole(text, filename, error)
    except ValueError as error:
        raise SourceError(str(error)) from error
    try:
        return assemble(text, line_starts(text), tuple(_stretches(tree.body)), _imports(tree.body))
    except RecursionError as error:
        raise TooDeep(1) from error


def assemble(
    text: str,
    starts: tuple[int, ...],
    stretches: tuple[Stretch, ...],
    imports: Iterable[tuple[str, str]],
    whole: LibcstPiece | None = None,
) -> Outline:
    """An outline in which every definition is wanted; of two imports of one name the first counts."""
    named: dict[str, str] = {}
    stars: list[str] = []
    for local, dotted in imports:
        if local == "*":
            stars.append(dotted[: -len(".*")])
        else:
            named.setdefault(local, dotted)
    wanted = tuple(dict.fromkeys(name for stretch in stretches for name in stretch.definitions))
    return Outline(text, starts, stretches, named, tuple(stars), whole, wanted)


def _parse(text: str) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (RecursionError, MemoryError) as error:
        raise TooDeep(1) from error
    except SyntaxError as error:
        if error.msg.startswith("too many"):
            raise TooDeep(error.lineno or 1) from error
        raise


def _whole(text: str, filename: str, refused: SyntaxError) -> Outline:
    """The outline of a file newer than the host's Python: libcst reads the whole of it, if it can."""
    from msalint.syntax.whole import whole_outline

    if bracket_depth(text) > MAX_DEPTH:
        raise TooDeep(refused.lineno or 1) from refused
    try:
        return whole_outline(text, filename)
    except SourceError as error:
        position = Position(max(refused.lineno or 1, 1), max(refused.offset or 1, 1))
        raise SourceError(refused.msg, position) from error


def _stretches(body: Sequence[ast.stmt]) -> Iterator[Stretch]:
    """One stretch a statement; statements that share a line share a stretch."""
    together: list[ast.stmt] = []
    last = 0
    for statement in body:
        first = _first_line(statement)
        if together and first > last:
            yield _stretch(together, last)
            together = []
        together.append(statement)
        last = max(last, statement.end_lineno or first)
    if together:
        yield _stretch(together, last)


def _first_line(statement: ast.stmt) -> int:
    decorators = getattr(statement, "decorator_list", None)
    return decorators[0].lineno if decorators else statement.lineno


def _stretch(together: Sequence[ast.stmt], last: int) -> Stretch:
    first = _first_line(together[0])
    bound = dict.fromkeys(pair for statement in together for pair in _bound(statement))
    names = tuple(dict.fromkeys(name for name, _ in bound))
    definitions = tuple(name for name, defined in bound if defined)
    only = together[0] if len(together) == 1 else None
    bases: tuple[str, ...] = ()
    if isinstance(only, ast.ClassDef):
        bases = tuple(filter(None, (_dotted(base) for base in only.bases)))
    kind = next((kind for of, kind in _KINDS if isinstance(only, of)), "other")
    return Stretch(first, last, kind, names, definitions, bases, tuple(together))


_KINDS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (ast.ClassDef, "class"),
    ((ast.FunctionDef, ast.AsyncFunctionDef), "def"),
    ((ast.Assign, ast.AnnAssign), "assign"),
    ((ast.Import, ast.ImportFrom), "import"),
)


def _bound(statement: ast.stmt) -> Iterator[tuple[str, bool]]:
    """The names a top-level statement binds other than by import, each with whether a class or def binds it."""
    if isinstance(statement, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
        yield statement.name, True
    elif isinstance(statement, ast.Assign):
        for target in statement.targets:
            yield from _target_names(target)
    elif isinstance(statement, ast.AnnAssign):
        yield from _target_names(statement.target)
    else:
        for inner in _inner(statement):
            yield from _bound(inner)


def _target_names(target: ast.expr) -> Iterator[tuple[str, bool]]:
    if isinstance(target, ast.Name):
        yield target.id, False
    elif isinstance(target, (ast.Tuple, ast.List)):
        for item in target.elts:
            yield from _target_names(item)
    elif isinstance(target, ast.Starred):
        yield from _target_names(target.value)


def _inner(statement: ast.stmt) -> Iterator[ast.stmt]:
    """The statements one level inside a compound statement that opens no scope of its own."""
    for name in ("body", "handlers", "orelse", "finalbody", "cases"):
        for inner in getattr(statement, name, ()):
            if isinstance(inner, ast.stmt):
                yield inner
            else:
                yield from getattr(inner, "body", ())


def _imports(body: Iterable[ast.stmt]) -> Iterator[tuple[str, str]]:
    """(local name, dotted name) of each import at the top level, in the way of `nodes.Import`."""
    for statement in body:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            yield from bound_by_import(statement)
        elif not isinstance(statement, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from _imports(_inner(statement))


def bound_by_import(statement: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str]]:
    """(local name, dotted name) of all that an import binds; ("*", "m.*") for `from m import *`."""
    if isinstance(statement, ast.Import):
        for alias in statement.names:
            head = alias.name.partition(".")[0]
            yield (alias.asname, alias.name) if alias.asname else (head, head)
    else:
        base = "." * statement.level + (statement.module or "")
        prefix = base if base.endswith(".") else base + "."
        for alias in statement.names:
            yield alias.asname or alias.name, prefix + alias.name


def _dotted(node: ast.expr) -> str:
    """`a.b.C` as text; the name of a subscripted base (`Base[T]`) without its index; "" for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        head = _dotted(node.value)
        return f"{head}.{node.attr}" if head else ""
    return _dotted(node.value) if isinstance(node, ast.Subscript) else ""
