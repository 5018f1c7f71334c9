"""The last lines of a report for people: how much was found, how much was mended, how much could be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from msalint.report import Report

LEVELS = ("error", "warning", "note")


def summary(report: Report) -> str:
    """`Found 2 errors in 3 files (1 fixed, 1 remaining).`, and what `--fix` could do."""
    files = _counted(report.files, "file")
    if not report.files and not report.diagnostics:
        return "No Python files to check."
    failed = f"; {len(report.failures)} could not be checked" if report.failures else ""
    levels = [one.level.value for one in (*report.diagnostics, *report.mended)]
    if not levels:
        return f"Nothing found in {files}{failed}."
    counts = ", ".join(_counted(levels.count(level), level) for level in LEVELS if level in levels)
    fixed = f" ({len(report.mended)} fixed, {len(report.diagnostics)} remaining)" if report.mended else ""
    return "\n".join([f"Found {counts} in {files}{fixed}{failed}.", *_fixable(report)])


def _fixable(report: Report) -> Iterator[str]:
    fixable = sum(map(report.marked, report.diagnostics))
    hidden = report.hidden()
    more = f"{_counted(hidden, 'hidden fix')} can be enabled with `--unsafe-fixes`"
    if fixable:
        yield f"[*] {fixable} fixable with `--fix`" + (f" ({more})." if hidden else ".")
    elif hidden:
        yield f"No fixes available ({more})."


def fixes_only(report: Report) -> str:
    """What a run that makes fixes and reports nothing else did, or would do; "" if there was nothing to do."""
    hidden = report.hidden()
    done, failed = ("Would fix", "would be fixed") if report.diff is not None else ("Fixed", "fixed")
    number = len(report.mended)
    if number:
        more = f" ({_counted(hidden, 'additional fix')} available with `--unsafe-fixes`)" if hidden else ""
        return f"{done} {_counted(number, 'finding')}{more}."
    return f"No findings {failed} ({_counted(hidden, 'fix')} available with `--unsafe-fixes`)." if hidden else ""


def fixes_made(report: Report) -> str:
    """The fixes by file and rule, for `--show-fixes`."""
    by_file: dict[str, Counter[tuple[str, str]]] = {}
    for one in report.mended:
        by_file.setdefault(one.filename, Counter())[(one.code, one.name)] += 1
    if not by_file:
        return ""
    rows = [f"Fixed {_counted(len(report.mended), 'finding')}:"]
    for filename in sorted(by_file):
        rows.append(f"- {filename}:")
        rows += [f"    {count} × {code} ({name})" for (code, name), count in by_file[filename].most_common()]
    return "\n".join(rows)


def _counted(number: int, what: str) -> str:
    """`1 fix`, `2 fixes`, `3 errors`"""
    return f"{number} {what}{'' if number == 1 else 'es' if what.endswith('x') else 's'}"
