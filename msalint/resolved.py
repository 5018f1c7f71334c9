"""Settings as they hold for one file, written as TOML: what `--show-settings` prints."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

from msalint.cache import FOLDER
from msalint.check import enabled_for
from msalint.files import File
from msalint.keys import KEYS
from msalint.registry import Registry


def as_toml(file: File, registry: Registry) -> str:
    """The settings of a file: where they come from, each key that was resolved, and the rules that are on."""
    settings = file.settings
    sources = [name for name, _ in reversed(settings.words)]
    origin = ", which extends ".join(sources) if sources else "no settings file"
    lines = [f"# {file.path}: {origin}", f"# patterns start at {settings.root}"]
    lines += _pairs(_values(file))
    on = enabled_for(file.path, settings, registry)
    lines.append(f"# {len(on)} rules are on in this file:")
    lines += (f"#   {rule.meta.code}  {rule.meta.name}" for rule in registry.rules if rule.meta.code in on)
    return "\n".join(lines) + "\n"


def _values(file: File) -> dict[str, Any]:
    """The values that are left when files, layers and the command line have been made one, by key.

    Keys that add to others are part of those; the selections are shown as the rules that they turn on.
    """
    settings = file.settings
    values: dict[str, Any] = {
        "per-file-ignores": {pattern: list(codes) for pattern, codes in settings.per_file_ignores},
        "cache-dir": os.path.join(settings.root, settings.cache_dir) if settings.cache_dir else FOLDER,
    }
    for key in KEYS:
        field = key.name.replace("-", "_")
        for part in (settings, settings.fixing, settings.fix_rules):
            for name in (field, field.removesuffix("_fixes")):
                if hasattr(part, name):
                    values.setdefault(key.name, getattr(part, name))
    return values


def _pairs(values: dict[str, Any]) -> Iterator[str]:
    for name, value in values.items():
        if value is None:
            yield f"# {name} is not set"
        elif isinstance(value, dict):
            inner = ", ".join(f"{json.dumps(key)} = {json.dumps(item)}" for key, item in value.items())
            yield f"{name} = {{ {inner} }}" if inner else f"{name} = {{}}"
        else:
            yield f"{name} = {json.dumps(list(value) if isinstance(value, tuple) else value)}"
