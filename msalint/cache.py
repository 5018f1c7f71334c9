"""What earlier runs found, by content: a file, its settings, the modules it looked up, and the rules.

    <folder>/CACHEDIR.TAG, .gitignore
    <folder>/0.1.0-py3.11/<digest of a checked folder>.json

A pack holds the results of the files of one folder. It is replaced whole, after what others have added meanwhile was
taken over, so runs at the same time lose at most a result, which is then made again. Nothing in a pack is trusted: one
that can't be read counts as empty, and it holds plain data, no code.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from msalint import __version__
from msalint.diagnostic import Diagnostic
from msalint.encoded import decoded, encoded
from msalint.files import File
from msalint.project import Lookup, Project
from msalint.rewrite import RewriteError, replace_file
from msalint.settings import Fixing, Settings
from msalint.source import digest_of

FOLDER = ".msalint_cache"
TAG = "CACHEDIR.TAG"
SIGNATURE = "Signature: 8a477f597d28d172789f06886806bc55\n# This folder holds a cache of msalint.\n"
IGNORE = "# Made by msalint.\n*\n"
VARIANTS = 4
"""Results kept of one file: a run with other settings doesn't push out the last one's."""

Row = list[Any]
"""Digest of the settings, digest of the file, modules led to, names looked up by folder, diagnostics, hidden ones."""


class Known(NamedTuple):
    """What a file is known to give: findings, and those in other files that comments over there hide."""

    diagnostics: tuple[Diagnostic, ...]
    hidden: tuple[Diagnostic, ...] = ()


class Cache:
    """The cache in one folder. All that goes wrong with it makes it an empty one, or one that keeps nothing."""

    def __init__(self, folder: str, rules: str | None = None) -> None:
        self.folder = folder
        self._rules = rule_set() if rules is None else rules
        self._packs: dict[str, dict[str, list[Row]]] = {}
        self._changed: dict[str, set[str]] = {}
        self._settings: dict[int, tuple[Settings, str]] = {}

    def may_know(self, file: File) -> bool:
        """Whether some result of a file is kept, so that it pays to read the file."""
        folder, name = os.path.split(os.path.abspath(file.path))
        return name in self._pack(folder)

    def known(self, file: File, digest: str, project: Project) -> Known | None:
        """What a file of these bytes is known to give; None if it isn't known, or some module it rests on changed."""
        folder, name = os.path.split(os.path.abspath(file.path))
        settings = self._settings_digest(file.settings)
        for row in self._pack(folder).get(name, ()):
            try:
                if row[0] == settings and row[1] == digest:
                    if not all(project.still_holds(lookup) for lookup in _lookups(row)):
                        return None
                    found, hidden = (decoded(tuple[Diagnostic, ...], part) for part in row[4:])
                    return Known(tuple(_renamed(one, "", file.path) for one in found), hidden)
            except (ValueError, TypeError, LookupError, AttributeError):
                return None
        return None

    def keep(self, file: File, digest: str, lookups: Iterable[Lookup], known: Known) -> None:
        """Remember what the check of a file gave; `save` writes it."""
        folder, name = os.path.split(os.path.abspath(file.path))
        pack = self._pack(folder)
        found = tuple(_renamed(one, file.path, "") for one in known.diagnostics)
        lists = encoded(found), encoded(known.hidden)
        row: Row = [self._settings_digest(file.settings), digest, *_grouped(lookups), *lists]
        others = [other for other in pack.get(name, ()) if other[:1] != row[:1]]
        pack[name] = [row, *others][:VARIANTS]
        self._changed.setdefault(folder, set()).add(name)

    def save(self) -> None:
        """Write what is new. A folder that can't be written to is left alone."""
        if not self._changed:
            return
        with contextlib.suppress(OSError, RewriteError):
            _prepare(self.folder)
            os.makedirs(self._room(), exist_ok=True)
            for folder, names in self._changed.items():
                pack = self._read(folder)
                pack = {name: rows for name, rows in pack.items() if os.path.exists(os.path.join(folder, name))}
                pack.update({name: self._packs[folder][name] for name in names})
                text = json.dumps({"rules": self._rules, "files": pack}, separators=(",", ":"))
                replace_file(self._path(folder), text.encode(), durable=False)
        self._changed.clear()

    def _pack(self, folder: str) -> dict[str, list[Row]]:
        if folder not in self._packs:
            self._packs[folder] = self._read(folder)
        return self._packs[folder]

    def _read(self, folder: str) -> dict[str, list[Row]]:
        try:
            with open(self._path(folder), "rb") as file:
                stored = json.loads(file.read())
            files = stored["files"] if stored["rules"] == self._rules else {}
            return {name: rows for name, rows in files.items() if all(isinstance(row, list) and row for row in rows)}
        except (OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
            return {}

    def _room(self) -> str:
        return os.path.join(self.folder, f"{__version__}-py{sys.version_info[0]}.{sys.version_info[1]}")

    def _path(self, folder: str) -> str:
        return os.path.join(self._room(), digest_of(os.fsencode(folder)) + ".json")

    def _settings_digest(self, settings: Settings) -> str:
        """Of all that may change what is found in a file; which files are checked is no part of it."""
        if id(settings) not in self._settings:
            said = repr(replace(settings, file=None, exclude=(), fixing=Fixing(), cache_dir=None, baseline=None))
            self._settings[id(settings)] = (settings, digest_of(said.encode()))
        return self._settings[id(settings)][1]


def _renamed(one: Diagnostic, before: str, after: str) -> Diagnostic:
    """A diagnostic under another name of its own file, in its trail too."""
    trail = tuple(replace(step, filename=after) if step.filename == before else step for step in one.trail)
    return replace(one, filename=after if one.filename == before else one.filename, trail=trail)


def _grouped(lookups: Iterable[Lookup]) -> tuple[list[list[str]], dict[str, dict[str, int]]]:
    """Lookups as JSON: the modules led to, each once, and by folder which name led to which of them, or to none."""
    modules: dict[tuple[str, str], int] = {}
    asked: dict[str, dict[str, int]] = {}
    for folder, dotted, path, digest in lookups:
        number = modules.setdefault((path, digest), len(modules)) if path else -1
        asked.setdefault(folder, {})[dotted] = number
    return [list(module) for module in modules], asked


def _lookups(row: Row) -> Iterator[Lookup]:
    modules, asked = row[2], row[3]
    for folder, names in asked.items():
        for dotted, number in names.items():
            yield Lookup(folder, dotted, *(("", "") if number < 0 else modules[number]))


# Which rules


def rule_set() -> str:
    """What the rules, and the code that they stand on, are known by: a changed one makes all results old.

    Installed files don't change but by another installation, so that their names and sizes tell them; in a checkout,
    where rules lie in a folder of their own, the time of the last change counts too.
    """
    import msalint.rules

    here = os.path.dirname(os.path.abspath(__file__))
    homes = dict.fromkeys((here, *(os.path.abspath(folder) for folder in msalint.rules.__path__)))
    checkout = any(not home.startswith(here) for home in homes)
    said = [f"{__version__} {sys.version}"]
    for home in homes:
        said += (f"{name} {size} {time if checkout else ''}" for name, size, time in _modules(home, ""))
    return digest_of("\n".join(said).encode())


def _modules(folder: str, inside: str) -> Iterator[tuple[str, int, int]]:
    """The Python files below a folder: name, size, time of change."""
    try:
        with os.scandir(folder) as scan:
            entries = sorted(scan, key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        if entry.name.endswith(".py"):
            status = entry.stat()
            yield inside + entry.name, status.st_size, status.st_mtime_ns
        elif entry.is_dir() and entry.name not in ("__pycache__", "runtime", "cli", "report"):
            yield from _modules(entry.path, f"{inside}{entry.name}/")


# The folder


def folder_of(named: str | None, settings: Settings) -> str:
    """Where the cache is: where it was asked for, or in the folder of the settings, or in the current one."""
    if named:
        return os.path.abspath(named)
    root = settings.root if settings.file is not None else os.getcwd()
    return os.path.join(root, settings.cache_dir or FOLDER)


def _prepare(folder: str) -> None:
    """Make the folder; a new or empty one is marked as a cache, for backups and for git."""
    os.makedirs(folder, exist_ok=True)
    if os.listdir(folder):
        return
    for name, text in ((TAG, SIGNATURE), (".gitignore", IGNORE)):
        replace_file(os.path.join(folder, name), text.encode(), durable=False)


def clean(folder: str) -> bool:
    """Remove what msalint keeps in a cache folder, and the folder if nothing else is in it. Raises OSError."""
    if not os.path.isdir(folder):
        return False
    rooms = [entry.path for entry in os.scandir(folder) if re.fullmatch(r"\d+\.\d+\S*-py3\.\d+", entry.name)]
    for room in rooms:
        for pack in os.scandir(room):
            if re.fullmatch(r"[0-9a-f]{32}\.json|\.msalint-\w+\.tmp", pack.name):
                os.unlink(pack.path)
        os.rmdir(room)
    if _is_marked(folder):
        for name in (TAG, ".gitignore"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(folder, name))
        with contextlib.suppress(OSError):
            os.rmdir(folder)
        return True
    return bool(rooms)


def _is_marked(folder: str) -> bool:
    """Whether the tag of a cache folder is one that msalint wrote."""
    try:
        with open(os.path.join(folder, TAG), encoding="utf-8", errors="replace") as file:
            return file.read() == SIGNATURE
    except OSError:
        return False
