"""Findings about the check itself (MSA901 to MSA904): unreadable files, idle and misspelt suppressions, giving up."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from msalint.diagnostic import Diagnostic, Edit, Fix, Position, Safety, Span
from msalint.registry import Registry
from msalint.settings import Settings, position_of
from msalint.source import LineTable, SourceError
from msalint.suppress import Suppression, Word

SYNTAX_ERROR, UNUSED, UNKNOWN, GAVE_UP = "MSA901", "MSA902", "MSA903", "MSA904"


@dataclass(frozen=True)
class Place:
    """A place that no tree node stands for: a comment, a line that can't be parsed."""

    filename: str
    span: Span
    text: str = ""


def report(registry: Registry, code: str, place: Place, message: str, fix: Fix | None = None) -> Diagnostic:
    """A finding about the check itself, in the name of the rule that the manual has for it."""
    rule = registry.rule(code)
    if rule is None:
        raise LookupError(f"the registry has no {code}")
    return rule.report(place, message, fix=fix)


def unreadable(filename: str, error: SourceError, registry: Registry) -> Diagnostic:
    line, column = error.position
    span = Span(Position(line, column), Position(line, column + 1))
    return report(registry, SYNTAX_ERROR, Place(filename, span), str(error))


def nested_too_deeply(filename: str, line: int, registry: Registry) -> Diagnostic:
    place = Place(filename, Span(Position(line, 1), Position(line, 1)))
    return report(registry, GAVE_UP, place, "nested too deeply to be followed, so the whole file was left out")


def unknown_codes(filename: str, comments: Iterable[Suppression], registry: Registry) -> Iterator[Diagnostic]:
    """MSA903 for each word of a suppression that names no rule."""
    for comment in comments:
        for word in comment.words or ():
            if not registry.codes(word.text):
                yield report(
                    registry,
                    UNKNOWN,
                    Place(filename, word.span),
                    f"`{word.text}` names no rule, so nothing is hidden by it{registry.suggestion(word.text)}",
                )


def unused_suppressions(
    text: str,
    filename: str,
    unused: Iterable[tuple[Suppression, tuple[Word, ...]]],
    registry: Registry,
    on: frozenset[str],
) -> Iterator[Diagnostic]:
    """MSA902 for suppressions that hid nothing.

    Only what would have been reported can be said to be unused: codes of rules that are off are passed over.
    """
    everything = registry.enabled(Settings()) <= on
    lines = LineTable(text)
    for comment, words in unused:
        idle = tuple(word for word in words if (codes := registry.codes(word.text)) and _could_hide(codes & on))
        if (words and not idle) or (not words and not everything):
            continue
        names = ", ".join(f"`{word.text}`" for word in idle)
        yield report(
            registry,
            UNUSED,
            Place(filename, comment.span, lines.slice(comment.span)),
            f"this suppression of {names} hides nothing" if idle else "this suppression hides nothing",
            fix=Fix("take the suppression out", (_without(lines, comment, idle),), Safety.SAFE),
        )


def _could_hide(codes: frozenset[str]) -> bool:
    """Whether some code is that of a finding, not of the suppressions themselves."""
    return bool(codes - {UNUSED, UNKNOWN})


def _without(lines: LineTable, comment: Suppression, idle: tuple[Word, ...]) -> Edit:
    """Take a comment out, or only the words of it that are idle where others are not."""
    start, end = comment.span
    written = lines.slice(comment.span)
    line = lines.line(start.line)
    if idle and (comment.foreign or len(idle) < len(comment.words or ())):
        rest = written
        for word in idle:
            begin = word.span.start.column - start.column
            rest = rest[:begin] + "\0" * len(word.text) + rest[begin + len(word.text) :]
        return Edit(comment.span, _tidy(rest))
    behind = line[end.column - 1 :]
    if behind.strip():
        return Edit(Span(start, Position(end.line, end.column + len(behind) - len(behind.lstrip()))), "")
    before = line[: start.column - 1].rstrip()
    if before:
        return Edit(Span(Position(start.line, len(before) + 1), Position(start.line, len(line) + 1)), "")
    return Edit(Span(Position(start.line, 1), Position(start.line + 1, 1)), "")


def _tidy(written: str) -> str:
    """The list of codes without the ones struck out, and without the commas and spaces that parted them."""
    struck = re.sub(r"\0+[\s,]*", "", written)
    return re.sub(r"[\s,]+(?=\])|[\s,]+$", "", struck)


def unknown_in_settings(settings: Settings, registry: Registry) -> Iterator[Diagnostic]:
    """MSA903 for each entry of the settings files that names no rule, at its place in that file."""
    for file, words in settings.words:
        for word in registry.unknown(word.strip() for word in words):
            line, column = position_of(file, word)
            span = Span(Position(line, column), Position(line, column + len(word) + 2))
            message = f"`{word}` names no rule, so it selects nothing{registry.suggestion(word)}"
            yield report(registry, UNKNOWN, Place(file, span), message)
