"""Adopting msalint bit by bit: what of a report is new or known, and comments for what is put up with."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from msalint.baseline import Baseline, Checked, Entry, write_baseline
from msalint.changed import Changes
from msalint.diagnostic import Diagnostic, Position, Span
from msalint.documents.document import Piece
from msalint.documents.kinds import read_document, rewritten
from msalint.files import File
from msalint.report import Failure, Report
from msalint.rewrite import RewriteError, replace_file
from msalint.source import LineTable, SourceError, decode
from msalint.suppressing import Comments, suppressed

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
    known = {file.path: file for file in report.checked}
    lines = 0
    left: list[Diagnostic] = []
    failures: list[Failure] = []
    for filename, findings in by_file.items():
        if filename not in known:
            left += findings
            continue
        try:
            done = _hide_in(known[filename], findings, comments)
        except (OSError, SourceError, RewriteError, UnicodeEncodeError) as error:
            failures.append(Failure(filename, f"{filename}: {error}"))
        else:
            lines += done.lines
            left += done.left
    return Hidden(lines, tuple(left), tuple(failures))


def _hide_in(file: File, findings: list[Diagnostic], comments: Comments) -> Hidden:
    with open(file.path, "rb") as opened:
        data = opened.read()
    try:
        source = decode(data, file.path)
        pieces = read_document(source.text, file.path, file.settings.include_docs).pieces
    except SourceError:
        return Hidden(0, tuple(findings))
    waiting = iter(_by_piece(pieces, findings))

    def commented(piece: Piece) -> tuple[str, tuple[int, tuple[Diagnostic, ...]]]:
        within = next(waiting)
        done = suppressed(piece.text, [moved for _, moved in within], comments)
        left = {id(one) for one in done.left}
        return done.text, (done.lines, tuple(one for one, moved in within if id(moved) not in left))

    text, parts = rewritten(source.text, file.path, commented, file.settings.include_docs)
    lines = sum(number for number, _ in parts)
    hidden = {id(one) for _, those in parts for one in those}
    if lines:
        replace_file(file.path, source.encode(text), expected=data)
    return Hidden(lines, tuple(one for one in findings if id(one) not in hidden))


def _by_piece(pieces: Sequence[Piece], findings: list[Diagnostic]) -> list[list[tuple[Diagnostic, Diagnostic]]]:
    """For each piece of a document its findings, each beside itself as at its line of the piece.

    A line of a docstring is also one of the file around it: the piece inside has it.
    """
    owners: dict[int, tuple[int, int]] = {}
    for number, piece in enumerate(pieces):
        table = LineTable(piece.text)
        for line in range(1, len(table) + 1):
            if table.line(line).strip():
                owners[piece.outward(Position(line, 1)).line] = number, line
    found: list[list[tuple[Diagnostic, Diagnostic]]] = [[] for _ in pieces]
    for one in findings:
        if one.span.start.line in owners:
            number, line = owners[one.span.start.line]
            start = Position(line, 1)
            found[number].append((one, replace(one, span=Span(start, start))))
    return found


def baseline_path(named: str | None, root: str, setting: str | None) -> str | None:
    """The file of the baseline: the one that was named, or the one that the settings name, as seen from here."""
    if named or not setting:
        return named
    return os.path.relpath(os.path.join(root, setting))
