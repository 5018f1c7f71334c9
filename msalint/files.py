"""Which files a check reads: walks folders in order, leaves out what .gitignore and the settings exclude."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from msalint.diagnostic import Safety
from msalint.documents.kinds import NOTEBOOK, PROSE, PYTHON
from msalint.settings import Settings, SettingsFinder

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

CODE = (PYTHON, NOTEBOOK)


@dataclass(frozen=True)
class File:
    """A file to check, named as the person who asked would name it, and the settings it falls under.

    `mend`: the fixes to make in it, safe ones or unsafe ones too; None for none.
    """

    path: str
    settings: Settings
    mend: Safety | None = None


@dataclass(frozen=True)
class Unreadable:
    """A folder or a file that could not be looked at. `asked`: it was named on the command line."""

    path: str
    reason: str
    asked: bool = False


def find(paths: Iterable[str], finder: SettingsFinder, *, force_exclude: bool = False) -> Iterator[File | Unreadable]:
    """The files below `paths`, each once, folders in alphabetical order.

    A file that is named itself is checked whatever its ending and the excludes say, unless `force_exclude`.
    """
    seen: set[str] = set()
    for path in paths:
        for item in _below(path, finder, force_exclude):
            absolute = os.path.abspath(item.path)
            if absolute not in seen:
                seen.add(absolute)
                yield item


def _below(path: str, finder: SettingsFinder, force_exclude: bool) -> Iterator[File | Unreadable]:
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        broken = os.path.islink(path) and not os.path.exists(path)
        reason = f"broken link to {os.readlink(path)}" if broken else error.strerror or str(error)
        yield Unreadable(path, reason, asked=True)
        return
    folder = path if stat.S_ISDIR(mode) else os.path.dirname(path) or "."
    settings = finder.for_folder(folder)
    if force_exclude:
        ignores = _Ignores.above(folder).entering(folder)
        if excluded_by_parents(path, settings) or ignores.ignores(path, is_folder=False):
            return
    if stat.S_ISDIR(mode):
        yield from _walk(path, finder, _Ignores.above(path))
    elif stat.S_ISREG(mode) or stat.S_ISFIFO(mode):
        yield File(path, settings)
    else:
        yield Unreadable(path, "neither a file nor a folder", asked=True)


def _walk(folder: str, finder: SettingsFinder, ignores: _Ignores) -> Iterator[File | Unreadable]:
    """Links to folders are not followed: they lead in circles, or out of the project."""
    try:
        with os.scandir(folder) as scan:
            entries = sorted(scan, key=lambda entry: entry.name)
    except OSError as error:
        yield Unreadable(folder, error.strerror or str(error))
        return
    settings = finder.for_folder(folder)
    ignores = ignores.entering(folder)
    endings = (*CODE, *PROSE) if settings.include_docs else CODE
    for entry in entries:
        path = entry.name if folder == "." else os.path.join(folder, entry.name)
        try:
            is_folder = entry.is_dir(follow_symlinks=False)
            wanted = is_folder or (entry.name.endswith(endings) and entry.is_file())
        except OSError:
            continue
        if not wanted or excluded(path, settings) or ignores.ignores(path, is_folder):
            continue
        if is_folder:
            yield from _walk(path, finder, ignores)
        else:
            yield File(path, settings)


def excluded(path: str, settings: Settings) -> bool:
    """Whether `exclude` or `extend-exclude` leaves out a path whose parents are not left out."""
    return matches(path, settings.root, settings.exclude)


def excluded_by_parents(path: str, settings: Settings) -> bool:
    """Whether `exclude` or `extend-exclude` leaves out a path, by itself or by a folder that it is in."""
    absolute = Path(os.path.abspath(path))
    inside = [place for place in (absolute, *absolute.parents) if str(place).startswith(settings.root)]
    return any(excluded(str(place), settings) for place in inside)


def matches(path: str, root: str, patterns: tuple[str, ...]) -> bool:
    """Whether a path fits one of some .gitignore-style patterns, which are relative to `root`.

    A plain name fits a file or folder of that name anywhere, "tests/*.py" and "/build" start at the root.
    """
    names, rest = _sorted_patterns(patterns)
    if os.path.basename(path) in names:
        return True
    if rest is None:
        return False
    relative = os.path.relpath(os.path.abspath(path), root or os.getcwd())
    if relative.startswith(".."):
        relative = os.path.basename(path)
    relative = relative.replace(os.sep, "/")
    return rest.match_file(relative) or rest.match_file(relative + "/")


@lru_cache(maxsize=256)
def _sorted_patterns(patterns: tuple[str, ...]) -> tuple[frozenset[str], GitIgnoreSpec | None]:
    """Plain names, looked up in a set, and the patterns that need the slower reading."""
    plain = frozenset(pattern for pattern in patterns if not set(pattern) & set("*?[]!/\\# "))
    rest = [pattern.removeprefix("./") for pattern in patterns if pattern not in plain]
    return plain, _spec(rest) if rest else None


def _spec(lines: list[str]) -> GitIgnoreSpec:
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines(lines)


@dataclass(frozen=True)
class _Ignores:
    """The .gitignore files that apply in a folder, the closest last: the last one that has an opinion decides."""

    specs: tuple[tuple[str, GitIgnoreSpec], ...] = ()

    @staticmethod
    def above(folder: str) -> _Ignores:
        """Those of the folders above, up to the root of the repository; none outside of one."""
        here = Path(os.path.abspath(folder))
        chain = [here, *here.parents]
        top = next((place for place in chain if (place / ".git").exists()), None)
        if top is None or top == here:
            return _Ignores()
        ignores = _Ignores()
        for place in reversed(chain[1 : chain.index(top) + 1]):
            ignores = ignores.entering(str(place))
        return ignores

    def entering(self, folder: str) -> _Ignores:
        found = self.specs
        for name in (os.path.join(".git", "info", "exclude"), ".gitignore"):
            place = os.path.join(folder, name)
            if not os.path.isfile(place):
                continue
            try:
                with open(place, encoding="utf-8", errors="replace") as file:
                    lines = [line for line in file.read().splitlines() if line.strip() and not line.startswith("#")]
            except OSError:
                continue
            if lines:
                found = (*found, (os.path.abspath(folder), _spec(lines)))
        return _Ignores(found)

    def ignores(self, path: str, is_folder: bool) -> bool:
        if not self.specs:
            return False
        absolute = os.path.abspath(path)
        for folder, spec in reversed(self.specs):
            relative = os.path.relpath(absolute, folder).replace(os.sep, "/") + ("/" if is_folder else "")
            verdict = spec.check_file(relative).include
            if verdict is not None:
                return verdict
        return False
