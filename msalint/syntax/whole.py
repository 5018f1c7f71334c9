"""The outline of a file that the host's parser refuses and libcst reads: newer syntax than the host's Python."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msalint.syntax import nodes as n
from msalint.syntax.lower_libcst import lower
from msalint.syntax.outline import Outline, Stretch, assemble, line_starts
from msalint.syntax.piece_libcst import parse_piece


def whole_outline(text: str, filename: str) -> Outline:
    """Parse all of a text with libcst. Raises SourceError where it can't, TooDeep where it nests too deeply."""
    starts = line_starts(text)
    piece = parse_piece(filename, text, starts, 1, len(starts))
    statements = lower(piece)
    stretches: list[Stretch] = []
    for statement in statements:
        stretch = _stretch(statement)
        if stretches and stretch.first <= stretches[-1].last:
            before = stretches.pop()
            names, definitions = (*before.names, *stretch.names), (*before.definitions, *stretch.definitions)
            stretch = Stretch(before.first, stretch.last, "other", names, definitions)
        stretches.append(stretch)
    return assemble(text, starts, tuple(stretches), _imports(statements), piece)


def _stretch(statement: n.Stmt) -> Stretch:
    span = statement.span
    first, last = span.start.line, span.end.line
    decorators = getattr(statement, "decorators", ())
    if decorators:
        first = decorators[0].line
    kind = next((kind for of, kind in _KINDS if isinstance(statement, of)), "other")
    bases = tuple(base.text for base in statement.bases) if isinstance(statement, n.ClassDef) else ()
    bound = dict.fromkeys(_bound(statement))
    names = tuple(dict.fromkeys(name for name, _ in bound))
    return Stretch(first, last, kind, names, tuple(name for name, defined in bound if defined), bases)


_KINDS: tuple[tuple[type, str], ...] = (
    (n.ClassDef, "class"),
    (n.FunctionDef, "def"),
    (n.Assign, "assign"),
    (n.Import, "import"),
)


def _inner(statement: n.Stmt) -> Iterator[n.Stmt]:
    for name in ("body", "handlers", "cases", "orelse", "final"):
        yield from getattr(statement, name, ())


def _bound(statement: n.Stmt) -> Iterator[tuple[str, bool]]:
    if isinstance(statement, (n.ClassDef, n.FunctionDef)):
        yield statement.name, True
    elif isinstance(statement, n.Assign):
        for target in statement.targets:
            yield from ((node.id, False) for node in target.walk() if isinstance(node, n.Name))
    else:
        for inner in _inner(statement):
            yield from _bound(inner)


def _imports(body: Iterable[n.Stmt]) -> Iterator[tuple[str, str]]:
    for statement in body:
        if isinstance(statement, n.Import):
            yield from statement.names
        elif not isinstance(statement, (n.ClassDef, n.FunctionDef)):
            yield from _imports(_inner(statement))
