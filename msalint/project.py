"""Finds the text of another module of the same project; reads files, executes nothing, never leaves the project."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from msalint.diagnostic import Diagnostic
from msalint.source import SourceError, decode, digest_of

if TYPE_CHECKING:
    from msalint.syntax.outline import Outline

KEPT_TEXTS = 256
"""How many modules of a project are kept in memory by one process."""

KEPT_OUTLINES = 2_000_000
"""Characters of parsed files that are kept: a file that was checked is often imported by the next ones."""


@dataclass(frozen=True)
class SourceText:
    """A module found: its file, its text, and what of the dotted name lies inside it ("Attention", or "")."""

    filename: str
    text: str
    rest: str = ""


class Lookup(NamedTuple):
    """A name that a file in `folder` imported, and the module that it led to, with the digest of its bytes.

    `path` and `digest` are "" where it led to no module of the project: a new file may change that.
    """

    folder: str
    dotted: str
    path: str
    digest: str


class Project:
    """Where the imports of a set of files may lead. `roots` are the checked paths, or folders that hold packages."""

    def __init__(self, roots: Iterable[str | Path] = ()) -> None:
        self._roots = tuple(dict.fromkeys(_import_roots(roots)))
        self._modules: dict[tuple[str, str], str | None] = {}
        self._packages: dict[str, tuple[str, tuple[str, ...]]] = {}
        self._texts: dict[str, str | None] = {}
        self._outlines: dict[str, Outline] = {}
        self._outlined = 0
        self._digests: dict[str, str] = {}
        self._answers: dict[tuple[str, str], tuple[str, str] | None] = {}
        self._asked: dict[tuple[str, str], None] = {}
        self.hidden: list[Diagnostic] = []
        """Findings in helpers that comments over there hide: those comments are not idle."""
        self.parsed: dict[str, Any] = {}
        """What the flow analysis made of the modules that it followed, by file: kept here to serve the next file."""

    def outline(self, text: str, filename: str) -> Outline:
        """`syntax.outline.outline` of a file, kept for whoever needs the same text again."""
        path = os.path.abspath(filename)
        kept = self._outlines.get(path)
        if kept is not None and kept.text == text:
            return kept
        from msalint.syntax.outline import outline

        made = outline(text, filename)
        self._outlined += len(text) - (len(kept.text) if kept is not None else 0)
        self._outlines[path] = made
        while self._outlined > KEPT_OUTLINES and len(self._outlines) > 1:
            self._outlined -= len(self._outlines.pop(next(iter(self._outlines))).text)
        return made

    def find(self, dotted: str, importer: str) -> SourceText | None:
        """The module that `dotted` names when `importer` imports it, or None where it is not part of the project.

        A relative name keeps its dots in front: in pkg/layers/mha.py, ".rope.rotate" is pkg/layers/rope.py with
        `rest` "rotate". The longest part of the name that is a module is taken.
        """
        folder = os.path.dirname(os.path.abspath(importer))
        self._asked[folder, dotted] = None
        answer = self._answer(folder, dotted)
        text = self._text(answer[0]) if answer is not None else None
        return SourceText(answer[0], text, answer[1]) if answer is not None and text is not None else None

    def begin_file(self) -> None:
        """Begin new lists of `lookups` and `hidden`."""
        self._asked = {}
        self.hidden = []

    def lookups(self) -> tuple[Lookup, ...]:
        """What `find` has been asked since `begin_file`, and what it found."""
        return tuple(self._lookup(folder, dotted) for folder, dotted in self._asked)

    def still_holds(self, lookup: Lookup) -> bool:
        """Whether a lookup of an earlier run would find the same module, with the same bytes, or again none."""
        return self._lookup(lookup.folder, lookup.dotted) == lookup

    def _lookup(self, folder: str, dotted: str) -> Lookup:
        answer = self._answer(folder, dotted)
        return Lookup(folder, dotted, *((answer[0], self._digests[answer[0]]) if answer is not None else ("", "")))

    def _answer(self, folder: str, dotted: str) -> tuple[str, str] | None:
        """The file that a name leads to from a folder, and what of the name lies inside it."""
        key = (folder, dotted)
        if key not in self._answers:
            self._answers[key] = self._search(folder, dotted)
        return self._answers[key]

    def _search(self, here: str, dotted: str) -> tuple[str, str] | None:
        name = dotted.lstrip(".")
        level = len(dotted) - len(name)
        parts = tuple(part for part in name.split(".") if part)
        top, package = self._package_of(here)
        if level:
            base = here
            for _ in range(level - 1):
                base = os.path.dirname(base)
            if not self._holds(base, here, top, package):
                return None
            bases: tuple[str, ...] = (base,)
        else:
            bases = (top, *self._roots)
        for base in dict.fromkeys(bases):
            found = self._longest(base, parts, importable_base=bool(level))
            if found is not None:
                return found
        return None

    def _holds(self, base: str, here: str, top: str, package: tuple[str, ...]) -> bool:
        """Whether a relative import may start from `base`: within the package, or within a checked folder."""
        return base == here or (bool(package) and _below(base, top)) or any(_below(base, root) for root in self._roots)

    def _longest(self, base: str, parts: tuple[str, ...], importable_base: bool) -> tuple[str, str] | None:
        """The longest prefix of `parts` below `base` that is a module; `base` itself for `from . import name`."""
        shortest = 0 if importable_base else 1
        for length in range(len(parts), shortest - 1, -1):
            path = self._module_file(base, parts[:length])
            if path is not None and self._text(path) is not None:
                return path, ".".join(parts[length:])
        return None

    def _module_file(self, base: str, parts: tuple[str, ...]) -> str | None:
        key = (base, ".".join(parts))
        if key not in self._modules:
            stem = os.path.join(base, *parts)
            choices = [os.path.join(stem, "__init__.py")] + ([stem + ".py"] if parts else [])
            self._modules[key] = next((path for path in choices if _inside(path, base)), None)
        return self._modules[key]

    def _text(self, path: str) -> str | None:
        if path not in self._texts:
            if len(self._texts) >= KEPT_TEXTS:
                self._texts.pop(next(iter(self._texts)))
            try:
                data = Path(path).read_bytes()
                self._digests[path] = digest_of(data)
                self._texts[path] = decode(data, path).text
            except (OSError, SourceError):
                self._texts[path] = None
        return self._texts[path]

    def _package_of(self, folder: str) -> tuple[str, tuple[str, ...]]:
        """The folder that a file's absolute imports start from, and the package it is in: walk up by __init__.py."""
        if folder not in self._packages:
            parts: list[str] = []
            top = folder
            while os.path.isfile(os.path.join(top, "__init__.py")) and os.path.dirname(top) != top:
                parts.insert(0, os.path.basename(top))
                top = os.path.dirname(top)
            self._packages[folder] = (top, tuple(parts))
        return self._packages[folder]


def _inside(path: str, base: str) -> bool:
    """Whether a file is there and really lies below `base`, also when links are followed."""
    if not os.path.isfile(path):
        return False
    return _below(os.path.realpath(path), os.path.realpath(base))


def _below(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip(os.sep) + os.sep)


def _import_roots(roots: Iterable[str | Path]) -> Iterator[str]:
    """The folders of the checked paths that may hold packages: each one, and its src/."""
    for root in roots:
        folder = os.path.abspath(root)
        if not os.path.isdir(folder):
            folder = os.path.dirname(folder)
        yield folder
        source = os.path.join(folder, "src")
        if os.path.isdir(source):
            yield source
