"""One file as the flow reads it: its names and imports at once, the tree of a definition when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msalint.source import SourceError
from msalint.syntax import nodes as n
from msalint.syntax.depth import TooDeep
from msalint.syntax.lower import lower
from msalint.syntax.outline import Outline, Stretch, outline
from msalint.syntax.piece import HostPiece

if TYPE_CHECKING:
    from msalint.syntax.piece_libcst import LibcstPiece


@dataclass(frozen=True)
class GaveUp:
    """A stretch that could not be read though the file could: its first line, the names in it, and why."""

    line: int
    names: tuple[str, ...]
    reason: str


class Module:
    """A file. `imports` maps local names to dotted ones; `wanted` are the definitions worth a look.

    `Module(candidates(text), filename)` is a file behind the gate, `Module.from_text` any file at all.
    A definition is lowered when it is first asked for, and kept. One that can't be read is None, and in `gave_up`.
    """

    def __init__(self, outline: Outline, filename: str) -> None:
        self.outline = outline
        self.filename = filename
        self.text = outline.text
        self.imports = outline.imports
        self.stars = outline.stars
        self.gave_up: list[GaveUp] = []
        self._binding: dict[str, Stretch] = {name: s for s in outline.stretches for name in s.names}
        self._read: dict[Stretch, tuple[n.Stmt, ...]] = {}
        self.wanted = outline.wanted
        self.names: tuple[str, ...] = tuple(dict.fromkeys([*self.imports, *self._binding]))

    @classmethod
    def from_text(cls, text: str, filename: str = "<text>", read: Callable[[str, str], Outline] = outline) -> Module:
        """Any text, whatever it is about.

        Raises SourceError where it is not Python, TooDeep where it nests too deeply.
        """
        return cls(read(text, filename), filename)

    @property
    def read(self) -> tuple[Stretch, ...]:
        """The stretches that have been read so far."""
        return tuple(self._read)

    def definition(self, name: str) -> n.Stmt | None:
        """The class, function or assignment that binds a top-level name, or None (imports bind no definition).

        The last binding of the file counts, and inside one `if` or `try` the first.
        """
        stretch = self._binding.get(name)
        if stretch is None:
            return None
        return next((found for found in _binders(self.read_stretch(stretch), name)), None)

    def alternatives(self, name: str) -> tuple[n.Assign, ...]:
        """The assignments that bind a top-level name inside the same `if` or `try` as its last binding."""
        stretch = self._binding.get(name)
        if stretch is None or stretch.kind != "other":
            return ()
        return tuple(found for found in _binders(self.read_stretch(stretch), name) if isinstance(found, n.Assign))

    def written(self, name: str) -> str:
        """The source text of the stretch that binds a top-level name, unparsed; "" for an unknown name."""
        stretch = self._binding.get(name)
        if stretch is None:
            return ""
        start, end = self.outline.slice(stretch)
        return self.text[start:end]

    def kind(self, name: str) -> str:
        """What binds a top-level name: "class", "def", "assign" or "other"; "" for an unknown name."""
        stretch = self._binding.get(name)
        return stretch.kind if stretch is not None else ""

    def statements(self) -> Iterator[n.Stmt]:
        """The top-level statements that are neither definitions nor imports, in order, read one by one."""
        for stretch in self.outline.stretches:
            if stretch.kind in ("assign", "other"):
                for statement in self.read_stretch(stretch):
                    if not isinstance(statement, (n.ClassDef, n.FunctionDef, n.Import)):
                        yield statement

    def read_stretch(self, stretch: Stretch) -> tuple[n.Stmt, ...]:
        """The statements of one stretch, read when first asked for; none where it could not be read."""
        if stretch not in self._read:
            self._read[stretch] = self._parse(stretch)
        return self._read[stretch]

    def _parse(self, stretch: Stretch) -> tuple[n.Stmt, ...]:
        try:
            if self.outline.whole is not None:
                return _lower_newer(self.outline.whole, stretch)
            source = self.outline
            return lower(
                HostPiece(self.filename, source.text, source.starts, stretch.first, stretch.last, stretch.body)
            )
        except (SourceError, TooDeep) as error:
            self.gave_up.append(GaveUp(stretch.first, stretch.names, str(error)))
            return ()


def _lower_newer(piece: LibcstPiece, stretch: Stretch) -> tuple[n.Stmt, ...]:
    """The statements of a stretch in a file that libcst has read the whole of."""
    from msalint.syntax.lower_libcst import lower as lower_libcst

    inside = [s for s in piece.module.body if stretch.first <= piece.span_of(s).start.line <= stretch.last]
    return lower_libcst(piece, inside)


def _binders(body: Iterable[n.Stmt], name: str) -> Iterator[n.Stmt]:
    """The statements that bind a name, those inside if, try, with and loops included."""
    for statement in body:
        if isinstance(statement, (n.ClassDef, n.FunctionDef)):
            if statement.name == name:
                yield statement
        elif isinstance(statement, n.Assign):
            if any(_binds(target, name) for target in statement.targets):
                yield statement
        else:
            for field in ("body", "handlers", "cases", "orelse", "final"):
                yield from _binders(getattr(statement, field, ()), name)


def _binds(target: n.Expr, name: str) -> bool:
    if isinstance(target, n.Sequence_):
        return any(_binds(item, name) for item in target.items)
    if isinstance(target, n.Star):
        return _binds(target.value, name)
    return isinstance(target, n.Name) and target.id == name
