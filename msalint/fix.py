"""Choose fixes whose edits don't overlap, apply them, check that the result still parses, and repeat."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from msalint.diagnostic import Diagnostic, Edit, Fix, Safety, Span
from msalint.fix_imports import insertion, parsed
from msalint.source import NEWLINE, LineTable, newline_of

ROUNDS = 10
"""Fixes that are still not done after so many rounds undo each other."""

Check = Callable[[str], Sequence[Diagnostic]]


@dataclass(frozen=True)
class Fixed:
    """The text after some fixes, and the diagnostics that were mended.

    `broken` holds those whose fix would leave no Python behind, and which were therefore passed over. `settled` is
    False where fixes were still being made when the rounds were over.
    """

    text: str
    mended: tuple[Diagnostic, ...]
    broken: tuple[Diagnostic, ...] = ()
    settled: bool = True


def fix_source(text: str, filename: str, check: Check, *, unsafe: bool = False) -> Fixed:
    """Mend a text until nothing more can be mended. `check` finds what is wrong with a text.

    Only the fixes of findings in `filename` itself are applied. A round whose result no longer parses is thrown away
    fix by fix: the ones that do no harm are kept.
    """
    mended: list[Diagnostic] = []
    broken: tuple[Diagnostic, ...] = ()
    for _ in range(ROUNDS):
        wanted = [found for found in check(text) if found.filename == filename and applicable(found.fix, unsafe)]
        done = apply(text, wanted)
        if done.mended and not _parses(done.text, before=text):
            done = _harmless(text, wanted)
        broken = done.broken
        if not done.mended:
            return Fixed(text, tuple(mended), broken)
        text = done.text
        mended += done.mended
    return Fixed(text, tuple(mended), broken, settled=False)


def applicable(fix: Fix | None, unsafe: bool = False) -> bool:
    """Whether a fix may be applied: a safe one always, an unsafe one when asked, one for display never."""
    if fix is None or not fix.edits:
        return False
    return fix.safety is Safety.SAFE or (unsafe and fix.safety is Safety.UNSAFE)


def apply(text: str, diagnostics: Iterable[Diagnostic]) -> Fixed:
    """Apply the fixes of some diagnostics to one text. Of two that touch the same place, the first one is taken.

    A fix that relies on a name which means something else in this module is left out.
    """
    lines, newline = LineTable(text), newline_of(text)
    taken: list[tuple[int, int, str]] = []
    mended: list[Diagnostic] = []
    imports: tuple[str, ...] = ()
    for diagnostic in diagnostics:
        fix = diagnostic.fix
        if fix is None:
            continue
        edits = [_offsets(lines, edit, newline) for edit in dict.fromkeys(fix.edits)]
        if any(_collide(edit, other) for edit in edits for other in taken):
            continue
        if fix.imports:
            together = tuple(dict.fromkeys((*imports, *fix.imports)))
            if insertion(text, together) is None:
                continue
            imports = together
        taken += edits
        mended.append(diagnostic)
    at, block = insertion(text, imports) or (0, "")
    # From the back, so that offsets stay true; of two insertions at one place the first listed ends up in front.
    in_order = sorted([*taken, (at, at, block)], key=lambda edit: edit[:2])
    for start, end, new in in_order[::-1]:
        text = text[:start] + new + text[end:]
    return Fixed(text, tuple(mended))


def _offsets(lines: LineTable, edit: Edit, newline: str) -> tuple[int, int, str]:
    new = NEWLINE.sub(lambda found: newline, edit.text)
    return lines.offset(edit.span.start), lines.offset(edit.span.end), new


def _collide(edit: tuple[int, int, str], other: tuple[int, int, str]) -> bool:
    """Two insertions at one place collide too: which comes first is not said."""
    if edit[0] == edit[1] or other[0] == other[1]:
        return edit[0] <= other[1] and other[0] <= edit[1]
    return edit[0] < other[1] and other[0] < edit[1]


def _harmless(text: str, diagnostics: Sequence[Diagnostic]) -> Fixed:
    """Apply fixes one by one, leaving out those after which the text doesn't parse."""
    kept: list[Diagnostic] = []
    broken: list[Diagnostic] = []
    for diagnostic in diagnostics:
        parses = _parses(apply(text, [*kept, diagnostic]).text, before=text)
        (kept if parses else broken).append(diagnostic)
    return replace(apply(text, kept), broken=tuple(broken))


def _parses(text: str, before: str) -> bool:
    """Whether a text is Python; a file that this Python couldn't read before either is given the benefit of doubt."""
    return parsed(text) is not None or parsed(before) is None


def allowed(one: Diagnostic, fixable: frozenset[str], safe: frozenset[str], unsafe: frozenset[str]) -> Diagnostic:
    """A diagnostic with the fix that settings leave it: none but for `fixable` codes, and as safe as they say.

    What a fix is shown for alone stays so.
    """
    fix = one.fix
    if fix is None:
        return one
    if one.code not in fixable:
        return replace(one, fix=None)
    if fix.safety is Safety.DISPLAY or one.code not in safe | unsafe:
        return one
    return replace(one, fix=replace(fix, safety=Safety.UNSAFE if one.code in unsafe else Safety.SAFE))


def touched(fix: Fix) -> Span | None:
    """The stretch from the first edit of a fix to the last."""
    if not fix.edits:
        return None
    return Span(min(edit.span.start for edit in fix.edits), max(edit.span.end for edit in fix.edits))
