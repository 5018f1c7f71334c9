"""Workflow commands, which GitHub Actions shows as annotations at the lines of a pull request."""

from __future__ import annotations

from msalint.diagnostic import Diagnostic, Level, Step
from msalint.report import Report

_COMMANDS = {Level.ERROR: "error", Level.WARNING: "warning", Level.NOTE: "notice"}


def render(report: Report, *, color: bool = False) -> str:
    return "".join(_command(one, report) + "\n" for one in report.diagnostics)


def _command(one: Diagnostic, report: Report) -> str:
    start, end = report.span_in_file(one)
    fields = {
        "title": f"msalint ({one.code})",
        "file": one.filename,
        "line": start.line,
        "endLine": end.line,
    }
    if start.line == end.line:  # columns are ignored over several lines
        fields |= {"col": start.column, "endColumn": end.column}
    body = [f"{one.code} {one.name}: {report.message_in_file(one)}"]
    body += [f"{step.filename}:{_line(step, report)}: {step.message}" for step in one.trail]
    if one.help:
        body.append(f"help: {one.help}")
    settings = ",".join(f"{key}={_property(str(value))}" for key, value in fields.items())
    return f"::{_COMMANDS[one.level]} {settings}::{_data(chr(10).join(body))}"


def _line(step: Step, report: Report) -> str:
    """`12`, or `cell 3:12` in a notebook."""
    return str(report.place(step.filename, step.span.start)).rpartition(":")[0]


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
