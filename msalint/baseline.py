"""A baseline: findings that are known and put up with for now, by what they are about rather than by line number.

    {
      "version": 1,
      "files": {
        "src/net.py": [
          {"code": "MSA101", "in": "Attention.forward", "line": "context.view(b, l, d)", "count": 1}
        ]
      }
    }

An entry fits a finding of the same code, in the same file, class or function, on a line with the same text; lines may
shift. Files are named from the folder of the baseline.
"""

from __future__ import annotations

import ast
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from msalint.bytes_of import bytes_of
from msalint.diagnostic import Diagnostic
from msalint.rewrite import RewriteError, replace_file
from msalint.source import LineTable

VERSION = 1


class BaselineError(Exception):
    """A baseline that can't be used; the message names the file and what to do."""


class Entry(NamedTuple):
    """What a known finding is about."""

    file: str
    code: str
    inside: str
    line: str


@dataclass(frozen=True)
class Compared:
    """Findings beside a baseline: those that are new, those that are known, and the entries that fit none any more."""

    new: tuple[Diagnostic, ...]
    known: tuple[Diagnostic, ...]
    stale: Counter[Entry]


@dataclass(frozen=True)
class Checked:
    """What a run found, and where it looked.

    `looked` says whether a code would have been found in a file, by its name, if it had been there.
    """

    findings: tuple[Diagnostic, ...]
    files: tuple[str, ...]
    text: Callable[[str], str]
    looked: Callable[[str, str], bool]


@dataclass(frozen=True)
class Baseline:
    """The entries of one baseline file, each with how often it may be found."""

    path: str
    entries: Counter[Entry]

    def compared(self, run: Checked) -> Compared:
        """Which findings are known. An entry can be stale only where the run looked, or in a file that is gone."""
        left = Counter(self.entries)
        new: list[Diagnostic] = []
        known: list[Diagnostic] = []
        for one, entry in self._entries_of(run):
            (known if left[entry] > 0 else new).append(one)
            left[entry] -= 1
        seen = self._seen(run)
        stale = Counter({entry: count for entry, count in left.items() if count > 0 and seen(entry)})
        return Compared(tuple(new), tuple(known), stale)

    def updated(self, run: Checked) -> Baseline:
        """A baseline that knows all findings of a run, and nothing else where it looked or in files that are gone."""
        seen = self._seen(run)
        kept = Counter({entry: count for entry, count in self.entries.items() if not seen(entry)})
        kept.update(entry for _, entry in self._entries_of(run))
        return Baseline(self.path, kept)

    def without(self, stale: Counter[Entry]) -> Baseline:
        return Baseline(self.path, self.entries - stale)

    def _entries_of(self, run: Checked) -> Iterator[tuple[Diagnostic, Entry]]:
        places: dict[str, _Places] = {}
        for one in run.findings:
            if one.filename not in places:
                places[one.filename] = _Places(run.text(one.filename))
            inside, line = places[one.filename].at(one.span.start.line)
            yield one, Entry(self._name(one.filename), one.code, inside, line)

    def _name(self, file: str) -> str:
        """A file from the folder of the baseline, with slashes."""
        folder = os.path.dirname(os.path.abspath(self.path))
        return os.path.relpath(os.path.abspath(file), folder).replace(os.sep, "/")

    def _seen(self, run: Checked) -> Callable[[Entry], bool]:
        """Whether an entry's finding would have been found if it were still there."""
        files = {self._name(file): file for file in run.files}
        folder = os.path.dirname(os.path.abspath(self.path))

        def seen(entry: Entry) -> bool:
            if entry.file in files:
                return run.looked(files[entry.file], entry.code)
            return not os.path.exists(os.path.join(folder, entry.file))

        return seen


class _Places:
    """What the lines of a text are known by."""

    def __init__(self, text: str) -> None:
        self._lines = LineTable(text)
        self._definitions = list(_definitions(text))

    def at(self, line: int) -> tuple[str, str]:
        """The definitions around a line, outermost first, joined by dots, and its text with single spaces."""
        around = [name for first, last, name in self._definitions if first <= line <= last]
        return ".".join(around), " ".join(self._lines.line(line).split())


def _definitions(text: str) -> Iterator[tuple[int, int, str]]:
    """First line, last line and name of each class and function, outer ones before inner ones."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            yield first, node.end_lineno or node.lineno, node.name
        waiting.extend(child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr))


# The file


def read_baseline(path: str, *, may_be_missing: bool = False) -> Baseline:
    """The baseline in a file. Raises BaselineError where there is none, or it is none."""
    try:
        stored = json.loads(bytes_of(path))
    except FileNotFoundError as error:
        if may_be_missing:
            return Baseline(path, Counter())
        raise BaselineError(f"{path}: there is no such baseline: make it with --update-baseline") from error
    except OSError as error:
        raise BaselineError(f"{path}: can't read the baseline: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise BaselineError(f"{path}: not a baseline: {error}; mend it, or remove it and make a new one") from error
    return Baseline(path, _entries(path, stored))


def _entries(path: str, stored: Any) -> Counter[Entry]:
    if not isinstance(stored, dict) or not isinstance(stored.get("files"), dict):
        raise BaselineError(f"{path}: not a baseline of msalint: it has no table of `files`")
    if stored.get("version") != VERSION:
        raise BaselineError(f"{path}: a baseline of version {stored.get('version')!r}, this msalint reads {VERSION}")
    found: Counter[Entry] = Counter()
    for name, items in stored["files"].items():
        for number, item in enumerate(items if isinstance(items, list) else [items], 1):
            entry, count = _entry(name, item)
            if entry is None:
                raise BaselineError(
                    f"{path}: entry {number} of {name!r} is none: "
                    'it needs the strings "code", "in" and "line", and a "count" above 0'
                )
            found[entry] += count
    return found


def _entry(name: str, item: Any) -> tuple[Entry | None, int]:
    if not isinstance(item, dict):
        return None, 0
    code, inside, line, count = item.get("code"), item.get("in"), item.get("line"), item.get("count", 1)
    if not (isinstance(code, str) and isinstance(inside, str) and isinstance(line, str)):
        return None, 0
    return (Entry(name, code, inside, line), count) if type(count) is int and count > 0 else (None, 0)


def write_baseline(baseline: Baseline) -> None:
    """Write a baseline, sorted, so that it can be read, compared and merged. Raises BaselineError."""
    files: dict[str, list[str]] = {}
    for entry, count in sorted(baseline.entries.items()):
        item = {"code": entry.code, "in": entry.inside, "line": entry.line, "count": count}
        files.setdefault(entry.file, []).append(json.dumps(item, ensure_ascii=False))
    blocks = []
    for name, items in files.items():
        rows = ",\n      ".join(items)
        blocks.append(f"    {json.dumps(name, ensure_ascii=False)}: [\n      {rows}\n    ]")
    body = "{\n" + ",\n".join(blocks) + "\n  }" if blocks else "{}"
    text = f'{{\n  "version": {VERSION},\n  "files": {body}\n}}\n'
    try:
        replace_file(baseline.path, text.encode())
    except RewriteError as error:
        raise BaselineError(f"{baseline.path}: {error}") from error
