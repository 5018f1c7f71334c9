"""`[tool.msalint]` of the closest pyproject.toml, or a msalint.toml, as one frozen value."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from msalint import tables
from msalint.keys import DEFAULT_EXCLUDE, DEFAULT_SELECT, did_you_mean
from msalint.source import LineTable
from msalint.tables import SettingsError, Table, check_torch

__all__ = [
    "DEFAULT_EXCLUDE",
    "DEFAULT_SELECT",
    "FixRules",
    "Fixing",
    "Selection",
    "Settings",
    "SettingsError",
    "SettingsFinder",
    "check_torch",
    "did_you_mean",
    "load",
    "load_named",
    "position_of",
]


@dataclass(frozen=True)
class Selection:
    """Which rules one layer (the file, the command line) turns on and off; None keeps what the layers below say."""

    select: tuple[str, ...] | None = None
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()

    def selectors(self) -> tuple[str, ...]:
        return (*(self.select or ()), *self.extend_select, *self.ignore)


@dataclass(frozen=True)
class Fixing:
    """What a run does with fixes; None leaves it to the layer below."""

    fix: bool | None = None
    fix_only: bool | None = None
    show_fixes: bool | None = None
    unsafe_fixes: bool | None = None
    """Undecided at the end, unsafe fixes are not made, and it is told that there are some."""

    @property
    def on(self) -> bool:
        return bool(self.fix or self.fix_only)

    def over(self, below: Fixing) -> Fixing:
        mine = {name: value for name, value in vars(self).items() if value is not None}
        return replace(below, **mine)


@dataclass(frozen=True)
class FixRules:
    """Which rules' fixes may be made, and which count as safe or unsafe whatever the rules say themselves."""

    fixable: tuple[str, ...] = ("ALL",)
    unfixable: tuple[str, ...] = ()
    extend_safe: tuple[str, ...] = ()
    extend_unsafe: tuple[str, ...] = ()


@dataclass(frozen=True)
class Settings:
    """What one folder's files are checked with. `root` is the folder that patterns are relative to."""

    root: str = ""
    file: str | None = None
    """The file that these settings came from; None for the defaults."""
    selections: tuple[Selection, ...] = ()
    """The layers, the strongest last."""
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    exclude: tuple[str, ...] = tuple(DEFAULT_EXCLUDE)
    fixing: Fixing = Fixing()
    """Of the settings of the folder that the command is run in, these alone count."""
    fix_rules: FixRules = FixRules()
    target_torch: str | None = None
    """The torch version that the checked code is for, such as "2.4"; None for the newest known."""
    include_docs: bool = False
    """Whether the code in docstrings, Markdown and reStructuredText is checked too."""
    cache_dir: str | None = None
    """The folder of the cache, from `root`; None for the usual one."""
    baseline: str | None = None
    """The file of the baseline, from `root`."""
    words: tuple[tuple[str, tuple[str, ...]], ...] = field(default=(), repr=False)
    """The words that name rules in each file that these settings came from."""

    def over(self, layer: Selection, target_torch: str | None = None) -> Settings:
        """These settings with the command line's own on top."""
        return replace(
            self, selections=(*self.selections, layer), target_torch=check_torch(target_torch) or self.target_torch
        )


def load(path: str | Path, overrides: Table | None = None) -> Settings | None:
    """The settings of one file, or None for a pyproject.toml with no [tool.msalint]. Raises SettingsError."""
    found = tables.chain(path)
    return _settings(found, overrides, found[-1].folder) if found else None


def load_named(path: str | Path, overrides: Table | None = None) -> Settings:
    """The settings of a file that was asked for by name; raises SettingsError if it has none."""
    settings = load(path, overrides)
    if settings is None:
        raise SettingsError(f"{path}: has no [tool.msalint] table")
    return settings


class SettingsFinder:
    """The settings for a file: those of the closest folder, upwards, that has some. Remembers what it found."""

    def __init__(self, overrides: Table | None = None, named: str | None = None, *, isolated: bool = False) -> None:
        """`overrides` count before the files; `named` is the one file for all, and `isolated` leaves all files out."""
        self._found: dict[Path, Settings] = {}
        self._overrides = overrides
        self._fixed = load_named(named, overrides) if named else None
        if isolated:
            self._fixed = self._default(os.getcwd())

    def for_folder(self, folder: str | os.PathLike[str]) -> Settings:
        if self._fixed is not None:
            return self._fixed
        here = Path(folder).resolve()
        missing: list[Path] = []
        found = None
        for place in (here, *here.parents):
            found = self._found.get(place) or self._in(place)
            if found is not None:
                break
            missing.append(place)
        found = found or self._default(os.getcwd() if self._overrides else here.anchor)
        for place in missing:
            self._found[place] = found
        self._found.setdefault(here, found)
        return found

    def _in(self, folder: Path) -> Settings | None:
        for name in ("msalint.toml", "pyproject.toml"):
            path = folder / name
            if path.is_file():
                settings = load(path, self._overrides)
                if settings is not None:
                    return settings
        return None

    def _default(self, root: str) -> Settings:
        return _settings((), self._overrides, root)


def _settings(files: Sequence[Table], overrides: Table | None, root: str) -> Settings:
    """The settings that some tables say together, the strongest last."""
    every = (*files, overrides) if overrides is not None else tuple(files)
    values = tables.merged(every, root)
    return Settings(
        root=root,
        file=files[-1].name if files else None,
        selections=tuple(_selection(table.values) for table in every),
        per_file_ignores=(*_by_pattern(values, "per-file-ignores"), *_by_pattern(values, "extend-per-file-ignores")),
        exclude=(*values.get("exclude", DEFAULT_EXCLUDE), *values.get("extend-exclude", ())),
        fixing=Fixing(values.get("fix"), values.get("fix-only"), values.get("show-fixes"), values.get("unsafe-fixes")),
        fix_rules=FixRules(
            fixable=_stripped(values.get("fixable", FixRules().fixable)),
            unfixable=_stripped(values.get("unfixable", ())),
            extend_safe=_stripped(values.get("extend-safe-fixes", ())),
            extend_unsafe=_stripped(values.get("extend-unsafe-fixes", ())),
        ),
        target_torch=check_torch(values.get("target-torch")),
        include_docs=values.get("include-docs", False),
        cache_dir=values.get("cache-dir"),
        baseline=values.get("baseline"),
        words=tuple((table.name, table.rules()) for table in files),
    )


def _selection(values: Mapping[str, Any]) -> Selection:
    select = values.get("select")
    return Selection(
        _stripped(select) if select is not None else None,
        _stripped(values.get("extend-select", ())),
        _stripped(values.get("ignore", ())),
    )


def _by_pattern(values: Mapping[str, Any], name: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return tuple((pattern, tuple(codes)) for pattern, codes in values.get(name, {}).items())


def _stripped(words: Sequence[str]) -> tuple[str, ...]:
    return tuple(word.strip() for word in words)


def position_of(file: str, value: str) -> tuple[int, int]:
    """Line and column (from 1) of a quoted value in a settings file; (1, 1) where it can't be found."""
    try:
        lines = LineTable(Path(file).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return 1, 1
    for number in range(1, len(lines) + 1):
        for quote in "\"'":
            column = lines.line(number).find(f"{quote}{value}{quote}")
            if column >= 0:
                return number, column + 1
    return 1, 1
