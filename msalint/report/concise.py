"""One line a finding."""

from __future__ import annotations

from msalint.report import Report
from msalint.report.full import headline
from msalint.report.paint import Paint


def render(report: Report, *, color: bool = False) -> str:
    paint = Paint(color)
    return "".join(headline(one, report, paint) + "\n" for one in report.diagnostics)
