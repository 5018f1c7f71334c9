"""A JSON array with ruff's keys (code, name, filename, location, end_location, message, url, fix), level and trail."""

from __future__ import annotations

import json
import os
from typing import Any

from msalint.diagnostic import Diagnostic, Fix, Position
from msalint.report import Report


def render(report: Report, *, color: bool = False) -> str:
    return json.dumps([as_dict(one) for one in report.diagnostics], indent=2) + "\n"


def as_dict(one: Diagnostic) -> dict[str, Any]:
    return {
        "code": one.code,
        "name": one.name,
        "level": one.level.value,
        "message": one.message,
        "filename": os.path.abspath(one.filename) if one.filename != "<stdin>" else one.filename,
        "location": _position(one.span.start),
        "end_location": _position(one.span.end),
        "trail": [
            {
                "filename": os.path.abspath(step.filename) if step.filename != "<stdin>" else step.filename,
                "location": _position(step.span.start),
                "end_location": _position(step.span.end),
                "message": step.message,
            }
            for step in one.trail
        ],
        "help": one.help,
        "fix": _fix(one.fix),
        "url": one.url,
    }


def _position(position: Position) -> dict[str, int]:
    return {"row": position.line, "column": position.column}


def _fix(fix: Fix | None) -> dict[str, Any] | None:
    if fix is None:
        return None
    return {
        "applicability": fix.safety.value,
        "message": fix.title,
        "edits": [
            {
                "content": edit.text,
                "location": _position(edit.span.start),
                "end_location": _position(edit.span.end),
            }
            for edit in fix.edits
        ],
        "imports": list(fix.imports),
    }
