"""A block a file, one line a finding, for people."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from msalint.diagnostic import Diagnostic
from msalint.report import Report
from msalint.report.full import verdict
from msalint.report.paint import Paint


def render(report: Report, *, color: bool = False) -> str:
    paint = Paint(color)
    files = groupby(report.diagnostics, key=lambda one: one.filename)
    return "".join(_block(filename, tuple(found), report, paint) + "\n" for filename, found in files)


def _block(filename: str, found: Iterable[Diagnostic], report: Report, paint: Paint) -> str:
    rows = [(str(report.place(filename, one.span.start)), one) for one in found]
    width = max(len(place) for place, _ in rows)
    lines = [f"  {paint('gutter', f'{place:<{width}}')} {verdict(one, report, paint)}\n" for place, one in rows]
    return paint("place", f"{filename}:") + "\n" + "".join(lines)
