"""SARIF 2.1.0, for code scanning: the trail of a finding as related locations and as a code flow."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from urllib.parse import quote

from msalint.diagnostic import Diagnostic, Edit, Fix, Span
from msalint.docs import Page, as_markdown
from msalint.report import Report

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
ROOT = "SRCROOT"


def render(report: Report, *, color: bool = False) -> str:
    rules = {page.code: number for number, page in enumerate(report.pages)}
    run = {
        "tool": {
            "driver": {
                "name": "msalint",
                "version": report.version or "0",
                "informationUri": "https://msalint.readthedocs.io",
                "rules": [_rule(page) for page in report.pages],
            }
        },
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {ROOT: {"uri": Path.cwd().as_uri() + "/"}},
        "invocations": [_invocation(report)],
        "results": [_result(one, rules, report) for one in report.diagnostics],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _rule(page: Page) -> dict[str, Any]:
    return {
        "id": page.code,
        "name": "".join(word.capitalize() for word in page.name.split("-")),
        "shortDescription": {"text": page.summary},
        "fullDescription": {"text": page.section("Why is this bad?")},
        "help": {"text": as_markdown(page), "markdown": as_markdown(page)},
        "helpUri": page.url,
        "defaultConfiguration": {"level": page.level.value, "enabled": page.on_by_default},
    }


def _invocation(report: Report) -> dict[str, Any]:
    return {
        "executionSuccessful": not report.failures,
        "toolExecutionNotifications": [
            {
                "level": "error",
                "message": {"text": failure.message},
                "locations": [{"physicalLocation": {"artifactLocation": _artifact(failure.filename)}}],
            }
            for failure in report.failures
        ],
    }


def _result(one: Diagnostic, rules: dict[str, int], report: Report) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": one.code,
        "level": one.level.value,
        "message": {"text": report.message_in_file(one) + (f"\nhelp: {one.help}" if one.help else "")},
        "locations": [_location(report, one.filename, one.span)],
    }
    if one.code in rules:
        result["ruleIndex"] = rules[one.code]
    if one.trail:
        result["relatedLocations"] = [
            {"id": number} | _location(report, step.filename, step.span, step.message)
            for number, step in enumerate(one.trail, 1)
        ]
        steps = [
            *((step.filename, step.span, step.message) for step in one.trail),
            (one.filename, one.span, one.message),
        ]
        flow = [{"location": _location(report, *step)} for step in steps]
        result["codeFlows"] = [{"threadFlows": [{"locations": flow}]}]
    if one.fix and one.fix.edits and report.cells(one.filename) is None:
        result["fixes"] = [_fix(one.filename, one.fix)]
    return result


def _location(report: Report, filename: str, span: Span, message: str | None = None) -> dict[str, Any]:
    """A place in a file; in a notebook, whose cells SARIF has no lines for, its cell by name."""
    start = report.place(filename, span.start)
    place: dict[str, Any] = {"physicalLocation": {"artifactLocation": _artifact(filename)}}
    if start.cell is None:
        place["physicalLocation"]["region"] = _region(span)
    else:
        place["logicalLocations"] = [{"name": f"cell {start.cell}", "fullyQualifiedName": str(start)}]
    return place | ({"message": {"text": message}} if message else {})


def _artifact(filename: str) -> dict[str, str]:
    """A file below the current folder relative to it, any other as an absolute address."""
    absolute = os.path.abspath(filename)
    relative = os.path.relpath(absolute)
    if filename.startswith("<"):
        return {"uri": quote(filename)}
    if relative.startswith(".."):
        return {"uri": Path(absolute).as_uri()}
    return {"uri": quote(relative.replace(os.sep, "/")), "uriBaseId": ROOT}


def _region(span: Span) -> dict[str, int]:
    (line, column), (end_line, end_column) = span
    return {"startLine": line, "startColumn": column, "endLine": end_line, "endColumn": end_column}


def _fix(filename: str, fix: Fix) -> dict[str, Any]:
    return {
        "description": {"text": f"{fix.title} ({fix.safety.value})"},
        "artifactChanges": [
            {"artifactLocation": _artifact(filename), "replacements": [_replacement(edit) for edit in fix.edits]}
        ],
    }


def _replacement(edit: Edit) -> dict[str, Any]:
    return {"deletedRegion": _region(edit.span), "insertedContent": {"text": edit.text}}
