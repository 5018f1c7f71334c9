"""JUnit's XML: a test suite for each file with findings, each finding a failed test."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from itertools import groupby
from xml.sax.saxutils import escape, quoteattr

from msalint.diagnostic import Diagnostic
from msalint.report import Failure, Report

PACKAGE = "org.msalint"
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 has no way to write, not even as a reference."""


def render(report: Report, *, color: bool = False) -> str:
    suites = [
        _suite(name, tuple(found), report) for name, found in groupby(report.diagnostics, lambda one: one.filename)
    ]
    suites += [_failed(failure) for failure in report.failures]
    failures, errors = len(report.diagnostics), len(report.failures)
    tests = failures + errors
    if not suites:
        tests, suites = 1, [_passed()]
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<testsuites name="msalint" tests="{tests}" failures="{failures}" errors="{errors}">\n'
        f"{''.join(suites)}</testsuites>\n"
    )


def _suite(filename: str, found: Sequence[Diagnostic], report: Report) -> str:
    name = _absolute(filename)
    cases = "".join(_case(one, report, os.path.splitext(name)[0]) for one in found)
    return _wrapped(name, cases, tests=len(found), failures=len(found))


def _case(one: Diagnostic, report: Report, classname: str) -> str:
    place = report.place(one.filename, one.span.start)
    cell = "" if place.cell is None else f"cell {place.cell}, "
    body = f"{cell}line {place.line}, col {place.column}, {one.message}"
    return (
        f"        <testcase name={_quoted(f'{PACKAGE}.{one.code}')} classname={_quoted(classname)}>\n"
        f"            <failure type={_quoted(one.level.value)} message={_quoted(one.message)}>"
        f"{escape(_written(body))}</failure>\n"
        "        </testcase>\n"
    )


def _failed(failure: Failure) -> str:
    name = _absolute(failure.filename)
    case = (
        f'        <testcase name="{PACKAGE}.failure" classname={_quoted(os.path.splitext(name)[0])}>\n'
        f"            <error message={_quoted(failure.message)}>{escape(_written(failure.detail))}</error>\n"
        "        </testcase>\n"
    )
    return _wrapped(name, case, tests=1, errors=1)


def _passed() -> str:
    return _wrapped("msalint", '        <testcase name="No errors found" classname="msalint"/>\n', tests=1)


def _wrapped(name: str, cases: str, *, tests: int, failures: int = 0, errors: int = 0) -> str:
    counts = f'tests="{tests}" skipped="0" errors="{errors}" failures="{failures}"'
    return f'    <testsuite name={_quoted(name)} {counts} package="{PACKAGE}">\n{cases}    </testsuite>\n'


def _absolute(filename: str) -> str:
    return filename if filename.startswith("<") else os.path.abspath(filename)


def _quoted(text: str) -> str:
    return quoteattr(_written(text))


def _written(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)
