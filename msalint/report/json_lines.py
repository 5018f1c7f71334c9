"""The objects of the JSON report, one a line, for readers that take them as they come."""

from __future__ import annotations

import json

from msalint.report import Report
from msalint.report.json import as_dict


def render(report: Report, *, color: bool = False) -> str:
    return "".join(json.dumps(as_dict(one, report), separators=(",", ":")) + "\n" for one in report.diagnostics)
