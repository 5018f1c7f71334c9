"""All that a rule file imports: `Rule`, `Meta`, `Level`, `on`, the facts, and ways to build a fix."""

from __future__ import annotations

import io
import tokenize
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from msalint.diagnostic import Diagnostic, Edit, Fix, Level, Position, Safety, Site, Span, Step

__all__ = [
    "Diagnostic",
    "Edit",
    "Fix",
    "Iterator",
    "Level",
    "Meta",
    "Rule",
    "Safety",
    "Site",
    "Span",
    "append_argument",
    "insert_after",
    "on",
    "replace",
    "step",
    "wrap",
]


@dataclass(frozen=True)
class Meta:
    """What the registry and the manual know of a rule before it runs.

    `needs`: words of which at least one must stand in a file for the rule to be able to fire; empty for any file.
    `every_path`: report only where every path through the code that reaches the place agrees (for rules that speak of
    something missing); otherwise one path is enough.
    `yields_to`: codes of more specific rules; where one of them speaks on the same lines, this rule is silent.
    """

    code: str
    name: str
    level: Level
    since: str
    needs: tuple[str, ...] = ()
    every_path: bool = False
    yields_to: tuple[str, ...] = ()


Handler = TypeVar("Handler", bound=Callable[..., Iterator[Diagnostic]])


def on(*facts: type) -> Callable[[Handler], Handler]:
    """Mark a method of a rule as the reader of these kinds of fact."""

    def mark(method: Handler) -> Handler:
        method.listens_to = facts  # type: ignore[attr-defined]
        return method

    return mark


class Rule:
    """One rule of the catalogue. Subclasses keep no state: `@on(Fact)` methods yield what `report` makes."""

    meta: ClassVar[Meta]

    def handlers(self) -> Iterator[tuple[type, Callable[[Any], Iterator[Diagnostic]]]]:
        """Each kind of fact the rule reads, with the bound method that reads it."""
        for name in dir(type(self)):
            method = getattr(self, name)
            for fact in getattr(method, "listens_to", ()):
                yield fact, method

    def report(
        self,
        at: Site,
        message: str,
        *,
        trail: tuple[Step, ...] = (),
        help: str | None = None,
        fix: Fix | None = None,
        level: Level | None = None,
    ) -> Diagnostic:
        """A diagnostic of this rule at `at`. `level` overrides the rule's own where the case is less certain.

        A fix that would have to change another file than the one at fault is told as help and not offered.
        """
        meta = self.meta
        help = help or (fix.title if fix else None)
        if fix is not None and any(edit.filename not in ("", at.filename) for edit in fix.edits):
            fix = None
        return Diagnostic(
            code=meta.code,
            name=meta.name,
            level=level or meta.level,
            message=message,
            filename=at.filename,
            span=at.span,
            trail=trail,
            help=help,
            fix=fix,
        )


def step(at: Site | None, message: str) -> tuple[Step, ...]:
    """A trail of one step, empty where the place is not known; trails are joined with `+`."""
    return () if at is None else (Step(at.filename, at.span, message),)


def replace(at: Site, text: str) -> Edit:
    """Replace the whole of a place."""
    return Edit(at.span, text, at.filename)


def insert_after(at: Site, text: str) -> Edit:
    """Put text right behind a place, as in `x` -> `x.contiguous()`."""
    end = at.span.end
    return Edit(Span(end, end), text, at.filename)


def wrap(at: Site, before: str, after: str) -> tuple[Edit, Edit]:
    """Put text around a place."""
    start = at.span.start
    return Edit(Span(start, start), before, at.filename), insert_after(at, after)


def append_argument(call: Site, argument: str) -> Edit:
    """Add an argument behind the last one of a call, before the comments that follow it; a trailing comma is kept."""
    before, line, column = _last_token(call.text)
    separator = "" if before == "(" else " " if before == "," else ", "
    start = call.span.start
    place = Position(start.line + line, column + (start.column if line == 0 else 1))
    return Edit(Span(place, place), separator + argument, call.filename)


_NO_CODE = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)


def _last_token(call: str) -> tuple[str, int, int]:
    """What stands before a call's closing parenthesis, the line (from 0) and column (from 0) where it ends."""
    # In parentheses, so that a call may go over several lines.
    tokens = tokenize.generate_tokens(io.StringIO(f"({call})", newline="").readline)
    code = [token for token in tokens if token.type not in _NO_CODE]
    last = code[-3]
    line, column = last.end
    return last.string, line - 1, column - (1 if line == 1 else 0)
