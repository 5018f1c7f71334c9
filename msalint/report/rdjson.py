"""Reviewdog's diagnostic format, for review comments with suggestions to apply."""

from __future__ import annotations

import json
import os
from typing import Any

from msalint.diagnostic import Diagnostic, Level, Position, Safety, Span
from msalint.report import Report
from msalint.source import LineTable

_SEVERITIES = {Level.ERROR: "ERROR", Level.WARNING: "WARNING", Level.NOTE: "INFO"}


def render(report: Report, *, color: bool = False) -> str:
    columns = _Columns(report)
    result = {
        "source": {"name": "msalint", "url": "https://msalint.readthedocs.io"},
        "severity": "WARNING",
        "diagnostics": [_diagnostic(one, report, columns) for one in report.diagnostics],
    }
    return json.dumps(result, indent=2) + "\n"


def _diagnostic(one: Diagnostic, report: Report, columns: _Columns) -> dict[str, Any]:
    found: dict[str, Any] = {
        "message": report.message_in_file(one),
        "severity": _SEVERITIES[one.level],
        "code": {"value": one.code, "url": one.url},
        "location": columns.location(one.filename, one.span),
    }
    if one.trail:
        found["related_locations"] = [
            {"message": step.message, "location": columns.location(step.filename, step.span)} for step in one.trail
        ]
    if one.fix and one.fix.edits and one.fix.safety is not Safety.DISPLAY and report.cells(one.filename) is None:
        found["suggestions"] = [
            {"range": columns.range(one.filename, edit.span), "text": edit.text} for edit in one.fix.edits
        ]
    return found


class _Columns:
    """Positions with columns in bytes of UTF-8, which is how reviewdog counts them."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._lines: dict[str, LineTable] = {}

    def location(self, filename: str, span: Span) -> dict[str, Any]:
        """A file and a stretch of it; no stretch in a notebook, since a line of a cell is no line of the file."""
        path = filename if filename.startswith("<") else os.path.abspath(filename)
        if self._report.cells(filename) is not None:
            return {"path": path}
        return {"path": path, "range": self.range(filename, span)}

    def range(self, filename: str, span: Span) -> dict[str, dict[str, int]]:
        return {"start": self._position(filename, span.start), "end": self._position(filename, span.end)}

    def _position(self, filename: str, position: Position) -> dict[str, int]:
        if filename not in self._lines:
            self._lines[filename] = LineTable(self._report.text(filename))
        before = self._lines[filename].line(position.line)[: position.column - 1]
        wider = len(before.encode("utf-8", "surrogatepass")) - len(before)
        return {"line": position.line, "column": position.column + wider}
