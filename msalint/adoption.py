"""Adopting msalint bit by bit: what of a report is new or known, and comments for what is put up with."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from msalint.baseline import Baseline, Checked, Entry, write_baseline
from msalint.changed import Changes
from msalint.diagnostic import Diagnostic, Position, Span
from msalint.documents.document import Piece
from msalint.documents.kinds import NOTEBOOK, rewritten
from msalint.report import Failure, Report
from msalint.rewrite import RewriteError, replace_file
from msalint.source import Source, SourceError, decode
from msalint.suppressing import Comments, Suppressed, suppressed

STALE_SHOWN = 10
"""So many stale entries are named, the rest is counted."""


@dataclass(frozen=True)
class Narrowed:
    """A report without what need not be told, and sentences on what was left out."""

    report: Report
    notes: tuple[str, ...] = ()


def on_changed_lines(report: Report, changes: Changes) -> Narrowed:
    """Only the findings on lines that have changed."""
    kept = tuple(one for one in report.diagnostics if changes.touch(_in_file(one, report)))
    left_out = len(report.diagnostics) - len(kept)
    note = f"{_counted(left_out, 'finding')} on lines that have not changed since {changes.revision}."
    return Narrowed(replace(report, diagnostics=kept), (note,) if left_out else ())


def _in_file(one: Diagnostic, report: Report) -> Diagnostic:
    """A finding on the lines of the file itself, which git counts: in a notebook those of its JSON."""
    start, end = (Position(report.file_line(one.filename, place.line), place.column) for place in one.span)
    return replace(one, span=Span(start, end))


def beside_baseline(report: Report, baseline: Baseline, *, prune: bool = False) -> Narrowed:
    """Only the findings that a baseline doesn't know; with `prune`, what is stale in it is taken out of the file.

    Raises BaselineError where it can't be written.
    """
    path = baseline.path
    compared = baseline.compared(_checked(report))
    notes = [f"{_counted(len(compared.known), 'finding')} in the baseline {path}."] if compared.known else []
    if compared.stale and prune:
        write_baseline(baseline.without(compared.stale))
        notes.append(f"{_entries(compared.stale)} of {path} fitted nothing any more, and went out of it.")
    elif compared.stale:
        notes += _stale(path, compared.stale)
    return Narrowed(replace(report, diagnostics=compared.new), tuple(notes))


def update_baseline(report: Report, before: Baseline) -> str:
    """Make all findings of a report known to a baseline; what was done. Raises BaselineError.

    Entries of files, and of rules, that this run didn't look at are kept.
    """
    after = before.updated(_checked(report))
    write_baseline(after)
    added, gone = after.entries - before.entries, before.entries - after.entries
    return f"{before.path}: {_entries(after.entries)}, {added.total()} of them new; {gone.total()} went out."


def _checked(report: Report) -> Checked:
    """A file that could not be checked was not looked at, so nothing of it is stale."""
    from msalint.check import enabled_for
    from msalint.registry import load

    registry = load()
    failed = {failure.filename for failure in report.failures}
    files = {file.path: file for file in report.checked if file.path not in failed}

    def looked(name: str, code: str) -> bool:
        file = files[name]
        return registry.rule(code) is None or code in enabled_for(file.path, file.settings, registry)

    return Checked(report.diagnostics, tuple(files), report.text, looked)


def _stale(path: str, stale: Counter[Entry]) -> Iterable[str]:
    yield f"{_entries(stale)} of {path} fit nothing any more (--prune-baseline takes them out):"
    for entry in list(stale)[:STALE_SHOWN]:
        where = f" in {entry.inside}" if entry.inside else ""
        yield f"  {entry.file}: {entry.code}{where}: {entry.line}"
    if len(stale) > STALE_SHOWN:
        yield f"  and {len(stale) - STALE_SHOWN} more"


def _entries(entries: Counter[Entry]) -> str:
    return f"{entries.total()} {'entry' if entries.total() == 1 else 'entries'}"


def _counted(number: int, what: str) -> str:
    return f"Left out {number} {what}{'' if number == 1 else 's'}"


@dataclass(frozen=True)
class Hidden:
    """What came of writing suppressions: on how many lines, which findings are left, which files failed."""

    lines: int
    left: tuple[Diagnostic, ...] = ()
    failures: tuple[Failure, ...] = ()


def hide(report: Report, comments: Comments) -> Hidden:
    """Write a suppression for each finding of a report into its file. A file is changed whole or not at all."""
    by_file: dict[str, list[Diagnostic]] = {}
    for one in report.diagnostics:
        by_file.setdefault(one.filename, []).append(one)
    known = {file.path for file in report.checked}
    lines = 0
    left: list[Diagnostic] = []
    failures: list[Failure] = []
    for filename, findings in by_file.items():
        if filename not in known or not filename.endswith((".py", NOTEBOOK)):
            left += findings
            continue
        try:
            done = _hide_in(filename, findings, comments)
        except (OSError, SourceError, RewriteError, UnicodeEncodeError) as error:
            failures.append(Failure(filename, f"{filename}: {error}"))
        else:
            lines += done.lines
            left += done.left
    return Hidden(lines, tuple(left), tuple(failures))


def _hide_in(filename: str, findings: list[Diagnostic], comments: Comments) -> Hidden:
    with open(filename, "rb") as file:
        data = file.read()
    try:
        source: Source = decode(data, filename)
    except SourceError:
        return Hidden(0, tuple(findings))
    if filename.endswith(NOTEBOOK):
        text, parts = rewritten(source.text, filename, lambda piece: _with_comments(piece, findings, comments))
        done = parts[0] if parts else Suppressed(text, 0, tuple(findings))
    else:
        done = suppressed(source.text, findings, comments)
        text = done.text
    if done.lines:
        replace_file(filename, source.encode(text), expected=data)
    return Hidden(done.lines, done.left)


def _with_comments(piece: Piece, findings: list[Diagnostic], comments: Comments) -> tuple[str, Suppressed]:
    done = suppressed(piece.text, findings, comments)
    return done.text, done


def baseline_path(named: str | None, root: str, setting: str | None) -> str | None:
    """The file of the baseline: the one that was named, or the one that the settings name, as seen from here."""
    if named or not setting:
        return named
    return os.path.relpath(os.path.join(root, setting))
