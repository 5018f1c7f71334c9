"""A JSON array with ruff's keys (cell, code, name, filename, location, end_location, ...), level, help and trail."""

from __future__ import annotations

import json
import os
from typing import Any

from msalint.diagnostic import Diagnostic, Fix, Span
from msalint.report import Report


def render(report: Report, *, color: bool = False) -> str:
    return json.dumps([as_dict(one, report) for one in report.diagnostics], indent=2) + "\n"


def as_dict(one: Diagnostic, report: Report) -> dict[str, Any]:
    return {
        "code": one.code,
        "name": one.name,
        "level": one.level.value,
        "message": one.message,
        "filename": _path(one.filename),
        **_stretch(one.filename, one.span, report),
        "trail": [
            {"filename": _path(step.filename), **_stretch(step.filename, step.span, report), "message": step.message}
            for step in one.trail
        ],
        "help": one.help,
        "fix": _fix(one.filename, one.fix, report),
        "url": one.url,
    }


def _path(filename: str) -> str:
    return filename if filename.startswith("<") else os.path.abspath(filename)


def _stretch(filename: str, span: Span, report: Report) -> dict[str, Any]:
    """The place of something; rows of a notebook count from the beginning of `cell`, which is null elsewhere."""
    start, end = (report.place(filename, position) for position in span)
    return {
        "cell": start.cell,
        "location": {"row": start.line, "column": start.column},
        "end_location": {"row": end.line, "column": end.column},
    }


def _fix(filename: str, fix: Fix | None, report: Report) -> dict[str, Any] | None:
    if fix is None:
        return None
    return {
        "applicability": fix.safety.value,
        "message": fix.title,
        "edits": [{"content": edit.text, **_stretch(filename, edit.span, report)} for edit in fix.edits],
        "imports": list(fix.imports),
    }
