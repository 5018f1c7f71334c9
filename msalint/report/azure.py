"""Logging commands, which Azure Pipelines shows as issues of a run."""

from __future__ import annotations

import os
import re

from msalint.diagnostic import Diagnostic, Level
from msalint.report import Report

_TYPES = {Level.ERROR: "error", Level.WARNING: "warning", Level.NOTE: "warning"}
"""Azure knows no others."""
_DECODED = re.compile(r"%(?=3B|0D|0A|5D|AZP25)", re.IGNORECASE)
"""The percent signs that an agent would read as the beginning of an escape. It leaves all others as they are."""


def render(report: Report, *, color: bool = False) -> str:
    return "".join(_command(one, report) + "\n" for one in report.diagnostics)


def _command(one: Diagnostic, report: Report) -> str:
    line, column = report.span_in_file(one).start
    fields = {
        "type": _TYPES[one.level],
        "sourcepath": one.filename if one.filename.startswith("<") else os.path.abspath(one.filename),
        "linenumber": line,
        "columnnumber": column,
        "code": one.code,
    }
    settings = "".join(f"{key}={_property(str(value))};" for key, value in fields.items())
    return f"##vso[task.logissue {settings}]{_data(report.message_in_file(one))}"


def _data(text: str) -> str:
    return _DECODED.sub("%AZP25", text).replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(";", "%3B").replace("]", "%5D")
