"""All that a rule file imports: `Rule`, `Meta`, `Level`, `on`, the facts, and ways to build a fix."""

from __future__ import annotations

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
        """A diagnostic of this rule at `at`. `level` overrides the rule's own where the case is less certain."""
        meta = self.meta
        return Diagnostic(
            code=meta.code,
            name=meta.name,
            level=level or meta.level,
            message=message,
            filename=at.filename,
            span=at.span,
            trail=trail,
            help=help or (fix.title if fix else None),
            fix=fix,
        )


def step(at: Site | None, message: str) -> tuple[Step, ...]:
    """A trail of one step, empty where the place is not known; trails are joined with `+`."""
    return () if at is None else (Step(at.filename, at.span, message),)


def replace(at: Site, text: str) -> Edit:
    """Replace the whole of a place."""
    return Edit(at.span, text)


def insert_after(at: Site, text: str) -> Edit:
    """Put text right behind a place, as in `x` -> `x.contiguous()`."""
    end = at.span.end
    return Edit(Span(end, end), text)


def wrap(at: Site, before: str, after: str) -> tuple[Edit, Edit]:
    """Put text around a place."""
    start = at.span.start
    return Edit(Span(start, start), before), insert_after(at, after)


def append_argument(call: Site, argument: str) -> Edit:
    """Add an argument behind the others of a call, before its closing parenthesis; a trailing comma is kept."""
    text, end = call.text, call.span.end
    inner = text[:-1].rstrip()
    spread = len(text[:-1]) - len(inner)
    separator = "" if inner.endswith("(") else " " if inner.endswith(",") else ", "
    if "\n" in text[len(inner) : -1]:
        # The closing parenthesis stands on a line of its own: write behind the last argument instead.
        lines = text[: len(inner)].count("\n")
        last = text[: len(inner)].rsplit("\n", 1)[-1]
        column = len(last) + (call.span.start.column if lines == 0 else 1)
        place = Position(call.span.start.line + lines, column)
    else:
        place = Position(end.line, end.column - 1 - spread)
    return Edit(Span(place, place), separator + argument)
