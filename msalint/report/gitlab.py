"""GitLab's Code Quality report: a JSON array with a fingerprint for each finding, by which merge requests compare."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from typing import Any

from msalint.diagnostic import Diagnostic, Level, Position
from msalint.report import Report
from msalint.source import LineTable

_SEVERITIES = {Level.ERROR: "major", Level.WARNING: "minor", Level.NOTE: "info"}


def render(report: Report, *, color: bool = False) -> str:
    fingerprints = _Fingerprints(report)
    return json.dumps([_issue(one, report, fingerprints.of(one)) for one in report.diagnostics], indent=2) + "\n"


def _issue(one: Diagnostic, report: Report, fingerprint: str) -> dict[str, Any]:
    start, end = report.span_in_file(one)
    return {
        "check_name": one.code,
        "description": f"{one.code}: {report.message_in_file(one)}",
        "severity": _SEVERITIES[one.level],
        "fingerprint": fingerprint,
        "location": {"path": _path(one.filename), "positions": {"begin": _position(start), "end": _position(end)}},
    }


def _position(position: Position) -> dict[str, int]:
    return {"line": position.line, "column": position.column}


def _path(filename: str) -> str:
    """The path from the root of the repository, as GitLab names files: from $CI_PROJECT_DIR, or from here."""
    if filename.startswith("<"):
        return filename
    return os.path.relpath(filename, os.environ.get("CI_PROJECT_DIR") or os.curdir).replace(os.sep, "/")


class _Fingerprints:
    """A name for each finding that stays the same while the lines around it move.

    It is made of the file, the code and the text of the line. Findings alike in all three are told apart by number.
    """

    def __init__(self, report: Report) -> None:
        self._report = report
        self._lines: dict[str, LineTable] = {}
        self._seen: Counter[tuple[str, str, str]] = Counter()

    def of(self, one: Diagnostic) -> str:
        if one.filename not in self._lines:
            self._lines[one.filename] = LineTable(self._report.text(one.filename))
        written = " ".join(self._lines[one.filename].line(one.span.start.line).split())
        key = (_path(one.filename), one.code, written)
        self._seen[key] += 1
        name = "\0".join((*key, str(self._seen[key]))).encode("utf-8", "backslashreplace")
        return hashlib.sha256(name).hexdigest()[:32]
