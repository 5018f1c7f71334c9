"""`[tool.msalint]` of the closest pyproject.toml, or a msalint.toml, as one frozen value."""

from __future__ import annotations

import difflib
import os
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from msalint.source import LineTable

DEFAULT_SELECT = ("error", "warning")

DEFAULT_EXCLUDE = (
    ".bzr .direnv .eggs .git .hg .ipynb_checkpoints .mypy_cache .nox .pyenv .pytest_cache .ruff_cache .svn .tox .venv "
    ".vscode __pycache__ __pypackages__ _build build dist node_modules site-packages venv"
).split()
"""Folders that hold no code of the project's own."""


class SettingsError(Exception):
    """Settings that can't be used; the message names the file and the key."""


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

    def selectors(self) -> tuple[str, ...]:
        return (*self.fixable, *self.unfixable, *self.extend_safe, *self.extend_unsafe)


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

    def over(self, layer: Selection, target_torch: str | None = None) -> Settings:
        """These settings with the command line's own on top."""
        return replace(
            self, selections=(*self.selections, layer), target_torch=check_torch(target_torch) or self.target_torch
        )


def load(path: str | Path) -> Settings | None:
    """The settings of one file, or None for a pyproject.toml with no [tool.msalint]. Raises SettingsError."""
    path = _shown(Path(path))
    document = _parse(path)
    if path.name == "pyproject.toml":
        tool = document.get("tool", {})
        table = tool.get("msalint") if isinstance(tool, dict) else None
        if table is None:
            return None
    else:
        table = document
    if not isinstance(table, dict):
        raise SettingsError(f"{path}: tool.msalint must be a table")
    return _settings(path, table)


def _shown(path: Path) -> Path:
    """A path as the person at the current folder would write it."""
    try:
        return path.resolve().relative_to(Path.cwd().resolve())
    except (OSError, ValueError):
        return path


def load_named(path: str | Path) -> Settings:
    """The settings of a file that was asked for by name; raises SettingsError if it has none."""
    settings = load(path)
    if settings is None:
        raise SettingsError(f"{path}: has no [tool.msalint] table")
    return settings


class SettingsFinder:
    """The settings for a file: those of the closest folder, upwards, that has some. Remembers what it found."""

    def __init__(self) -> None:
        self._found: dict[Path, Settings] = {}

    def for_folder(self, folder: str | os.PathLike[str]) -> Settings:
        here = Path(folder).resolve()
        missing: list[Path] = []
        found = None
        for place in (here, *here.parents):
            found = self._found.get(place) or _settings_in(place)
            if found is not None:
                break
            missing.append(place)
        found = found or Settings(root=str(here.anchor))
        for place in missing:
            self._found[place] = found
        self._found.setdefault(here, found)
        return found


def _settings_in(folder: Path) -> Settings | None:
    for name in ("msalint.toml", "pyproject.toml"):
        path = folder / name
        if path.is_file():
            settings = load(path)
            if settings is not None:
                return settings
    return None


def _parse(path: Path) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        parsed: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
        return parsed
    except OSError as error:
        raise SettingsError(f"{path}: can't read the settings: {error.strerror or error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path}: not valid TOML: {error}") from error


KEYS = (
    "select",
    "extend-select",
    "ignore",
    "per-file-ignores",
    "exclude",
    "extend-exclude",
    "target-torch",
    "fix",
    "fix-only",
    "show-fixes",
    "unsafe-fixes",
    "fixable",
    "unfixable",
    "extend-safe-fixes",
    "extend-unsafe-fixes",
)


def _settings(path: Path, table: Mapping[str, Any]) -> Settings:
    for key in table:
        if key not in KEYS:
            raise SettingsError(f"{path}: unknown key `{key}`{did_you_mean(key, KEYS)}")
    exclude = _strings(path, table, "exclude")
    select = _strings(path, table, "select")
    try:
        target = check_torch(table.get("target-torch"))
    except SettingsError as error:
        raise SettingsError(f"{path}: {error}") from error
    return Settings(
        root=str(path.resolve().parent),
        file=str(path),
        selections=(
            Selection(select, _strings(path, table, "extend-select") or (), _strings(path, table, "ignore") or ()),
        ),
        per_file_ignores=_per_file_ignores(path, table.get("per-file-ignores", {})),
        exclude=(
            *(tuple(DEFAULT_EXCLUDE) if exclude is None else exclude),
            *(_strings(path, table, "extend-exclude") or ()),
        ),
        fixing=Fixing(
            fix=_flag(path, table, "fix"),
            fix_only=_flag(path, table, "fix-only"),
            show_fixes=_flag(path, table, "show-fixes"),
            unsafe_fixes=_flag(path, table, "unsafe-fixes"),
        ),
        fix_rules=_fix_rules(path, table),
        target_torch=target,
    )


def _fix_rules(path: Path, table: Mapping[str, Any]) -> FixRules:
    fixable = _strings(path, table, "fixable")
    return FixRules(
        fixable=FixRules().fixable if fixable is None else fixable,
        unfixable=_strings(path, table, "unfixable") or (),
        extend_safe=_strings(path, table, "extend-safe-fixes") or (),
        extend_unsafe=_strings(path, table, "extend-unsafe-fixes") or (),
    )


def _flag(path: Path, table: Mapping[str, Any], key: str) -> bool | None:
    value = table.get(key)
    if value is not None and not isinstance(value, bool):
        raise SettingsError(f"{path}: `{key}` must be true or false, not {value!r}")
    return value


def _strings(path: Path, table: Mapping[str, Any], key: str) -> tuple[str, ...] | None:
    value = table.get(key)
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(item, str) and item.strip() for item in value):
        raise SettingsError(f"{path}: `{key}` must be a list of strings, such as {key} = [{_EXAMPLES[key]}]")
    return tuple(item.strip() for item in value)


_EXAMPLES = {
    "select": '"MSA1"',
    "extend-select": '"note"',
    "ignore": '"MSA401"',
    "exclude": '"third_party"',
    "extend-exclude": '"third_party"',
    "fixable": '"MSA1"',
    "unfixable": '"MSA902"',
    "extend-safe-fixes": '"MSA304"',
    "extend-unsafe-fixes": '"MSA404"',
}


def _per_file_ignores(path: Path, value: Any) -> tuple[tuple[str, tuple[str, ...]], ...]:
    if not isinstance(value, dict):
        raise SettingsError(f'{path}: `per-file-ignores` must be a table, such as "tests/*" = ["MSA401"]')
    found = []
    for pattern, codes in value.items():
        if not isinstance(codes, list) or not all(isinstance(code, str) for code in codes):
            raise SettingsError(f"{path}: `per-file-ignores` of {pattern!r} must be a list of codes")
        found.append((pattern, tuple(codes)))
    return tuple(found)


def check_torch(version: object) -> str | None:
    """A torch version of the form 2.4 or 2.4.1; raises SettingsError for anything else."""
    if version is None:
        return None
    if not isinstance(version, str) or not re.fullmatch(r"\d+\.\d+(\.\d+)?", version):
        raise SettingsError(f'`target-torch` must be a version such as "2.4", not {version!r}')
    return version


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """ ", did you mean `x`?", or "" where nothing is close."""
    known = list(known)
    folded = {name.lower(): name for name in known}
    close = difflib.get_close_matches(word.lower().replace("_", "-"), list(folded), n=1, cutoff=0.6)
    return f", did you mean `{folded[close[0]]}`?" if close else ""


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
