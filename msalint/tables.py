"""[tool.msalint] as tables: read from files, followed through `extend`, overridden by the command line, made one."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from msalint.keys import FLAG, KEYS, STRING, STRINGS, TABLE, Key, did_you_mean, key_of

COMMAND_LINE = "--config"
PATTERNS = ("exclude", "extend-exclude")
PATHS = ("cache-dir", "baseline")
PATTERN_TABLES = ("per-file-ignores", "extend-per-file-ignores")


class SettingsError(Exception):
    """Settings that can't be used; the message names the file and the key."""


@dataclass(frozen=True)
class Table:
    """One table: `name` is where it stands, as messages say it, `folder` where its patterns and paths start."""

    name: str
    folder: str
    values: Mapping[str, Any] = field(default_factory=dict)

    def rules(self) -> tuple[str, ...]:
        """All words of it that name rules."""
        words: list[str] = []
        for key in KEYS:
            value = self.values.get(key.name, ()) if key.rules else ()
            for part in value.values() if isinstance(value, dict) else [value]:
                words += part
        return tuple(words)


def chain(path: str | Path) -> tuple[Table, ...]:
    """The table of a file, the one it extends in front of it, and so on; empty for a pyproject.toml without ours.

    Raises SettingsError, also for files that extend each other in a circle.
    """
    found: list[Table] = []
    seen: list[Path] = []
    here = Path(path)
    while True:
        seen.append(here.resolve())
        table = _of_file(here)
        if table is None:
            if not found:
                return ()
            raise SettingsError(f"{found[0].name}: `extend` leads to {_shown(here)}, which has no [tool.msalint] table")
        found.insert(0, table)
        base = table.values.get("extend")
        if base is None:
            return tuple(found)
        here = Path(table.folder, os.path.expanduser(os.path.expandvars(base)))
        if here.resolve() in seen:
            circle = " -> ".join(str(_shown(one)) for one in (*seen[seen.index(here.resolve()) :], here))
            raise SettingsError(f"{table.name}: `extend` goes in a circle: {circle}")
        if not here.is_file():
            raise SettingsError(f"{table.name}: `extend` leads to {_shown(here)}, which is no file")


def overrides(texts: Sequence[str]) -> Table | None:
    """What `--config KEY=VALUE` says, as one table; None if nothing was said. Raises SettingsError."""
    values: dict[str, Any] = {}
    for text in texts:
        try:
            said = _toml().loads(text)
        except ValueError as error:
            pair = "'ignore = [\"MSA401\"]'"
            raise SettingsError(
                f"{COMMAND_LINE}: {text!r} is neither a file nor a TOML pair such as {pair}: {error}"
            ) from error
        if "extend" in said:
            raise SettingsError(f"{COMMAND_LINE}: `extend` works in settings files only: name the file itself")
        values.update(said)
    if not values:
        return None
    table = Table(COMMAND_LINE, os.getcwd(), values)
    _check(table)
    return table


def merged(tables: Sequence[Table], root: str) -> dict[str, Any]:
    """Some tables as one, the last the strongest, with patterns and paths that start at `root`."""
    values: dict[str, Any] = {}
    for table in tables:
        for name, value in _moved(table, root).items():
            before = values.get(name)
            if not name.startswith("extend-") or before is None:
                values[name] = value
            else:
                values[name] = {**before, **value} if isinstance(value, dict) else [*before, *value]
    return values


def _moved(table: Table, root: str) -> dict[str, Any]:
    """The values of a table with their patterns and paths told from another folder."""
    values = dict(table.values)
    if os.path.realpath(table.folder) == os.path.realpath(root):
        return values
    for name in PATTERNS:
        if name in values:
            values[name] = [found for one in values[name] if (found := moved_pattern(one, table.folder, root))]
    for name in PATTERN_TABLES:
        if name in values:
            moved = {moved_pattern(one, table.folder, root): codes for one, codes in values[name].items()}
            values[name] = {pattern: codes for pattern, codes in moved.items() if pattern}
    for name in PATHS:
        if name in values:
            values[name] = os.path.join(table.folder, values[name])
    return values


def moved_pattern(pattern: str, folder: str, root: str) -> str:
    """A pattern that is relative to `folder`, as one relative to `root`; "" if it can fit nothing below `root`.

    "src/old/*.py" of the folder above src/ is "/old/*.py" inside of it; "build" fits anywhere, and stays.
    """
    if pattern.startswith("!"):
        moved = moved_pattern(pattern[1:], folder, root)
        return moved and "!" + moved
    anchored = "/" in pattern.rstrip("/")
    if not anchored or pattern.startswith("**/"):
        return pattern
    way = os.path.relpath(os.path.realpath(root), os.path.realpath(folder)).split(os.sep)
    if way[0] == os.pardir:
        return ""
    parts = pattern.lstrip("/").split("/")
    for step in way:
        if parts[0] == "**":
            return "/".join(parts)
        if not fnmatchcase(step, parts[0]):
            return ""
        parts = parts[1:]
        if not "".join(parts):
            return "*"
    return "/" + "/".join(parts)


def _of_file(path: Path) -> Table | None:
    shown = _shown(path)
    document = _parse(path, shown)
    table: Any = document
    if path.name == "pyproject.toml":
        tool = document.get("tool", {})
        table = tool.get("msalint") if isinstance(tool, dict) else None
        if table is None:
            return None
    if not isinstance(table, dict):
        raise SettingsError(f"{shown}: tool.msalint must be a table")
    found = Table(str(shown), str(path.resolve().parent), table)
    _check(found)
    return found


def _shown(path: Path) -> Path:
    """A path as the person at the current folder would write it."""
    try:
        return path.resolve().relative_to(Path.cwd().resolve())
    except (OSError, ValueError):
        return Path(os.path.normpath(path))


def _toml() -> Any:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    return tomllib


def _parse(path: Path, shown: Path) -> dict[str, Any]:
    try:
        parsed: dict[str, Any] = _toml().loads(path.read_text(encoding="utf-8"))
        return parsed
    except OSError as error:
        raise SettingsError(f"{shown}: can't read the settings: {error.strerror or error}") from error
    except ValueError as error:  # TOMLDecodeError and UnicodeDecodeError
        raise SettingsError(f"{shown}: not valid TOML: {error}") from error


def _check(table: Table) -> None:
    """Raise SettingsError for a key that isn't there, or a value of the wrong type."""
    for name, value in table.values.items():
        key = key_of(name)
        if key is None:
            raise SettingsError(f"{table.name}: unknown key `{name}`{did_you_mean(name, [one.name for one in KEYS])}")
        if not _fits(value, key):
            instead = f"not {value!r}" if key.kind == FLAG else f"such as {_example(key)}"
            raise SettingsError(f"{table.name}: `{name}` must be {_KINDS[key.kind]}, {instead}")
    try:
        check_torch(table.values.get("target-torch"))
    except SettingsError as error:
        raise SettingsError(f"{table.name}: {error}") from error


_KINDS = {STRINGS: "a list of strings", STRING: "a string", TABLE: "a table of lists of rules", FLAG: "true or false"}


def _fits(value: Any, key: Key) -> bool:
    if key.name == "target-torch":
        return True  # `check_torch` says more
    if key.kind == FLAG:
        return isinstance(value, bool)
    if key.kind == STRING:
        return isinstance(value, str) and bool(value.strip())
    if key.kind == STRINGS:
        return isinstance(value, list) and all(isinstance(item, str) and item.strip() for item in value)
    return isinstance(value, dict) and all(
        isinstance(codes, list) and all(isinstance(code, str) for code in codes) for codes in value.values()
    )


def _example(key: Key) -> str:
    return key.example if key.kind not in (STRINGS, STRING) else f"{key.name} = {key.example}"


def check_torch(version: object) -> str | None:
    """A torch version of the form 2.4 or 2.4.1; raises SettingsError for anything else."""
    if version is None:
        return None
    if not isinstance(version, str) or not re.fullmatch(r"\d+\.\d+(\.\d+)?", version):
        raise SettingsError(f'`target-torch` must be a version such as "2.4", not {version!r}')
    return version
