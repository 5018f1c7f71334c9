"""`path:line: [CODE] message`, the lines of `pylint --output-format=parseable`, which many editors and CIs read."""

from __future__ import annotations

import os

from msalint.diagnostic import Diagnostic
from msalint.report import Report


def render(report: Report, *, color: bool = False) -> str:
    return "".join(_line(one, report) + "\n" for one in report.diagnostics)


def _line(one: Diagnostic, report: Report) -> str:
    filename = one.filename if one.filename.startswith("<") else os.path.relpath(one.filename)
    message = " ".join(report.message_in_file(one).split())
    return f"{filename}:{report.span_in_file(one).start.line}: [{one.code}] {message}"
