"""Choose fixes whose edits don't overlap, apply them, check that the result still parses, and repeat."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from msalint.diagnostic import Diagnostic, Edit, Fix, Position, Safety, Span
from msalint.source import LineTable

ROUNDS = 10
"""Fixes that are still not done after so many rounds undo each other."""

Check = Callable[[str], Sequence[Diagnostic]]


@dataclass(frozen=True)
class Fixed:
    """The text after some fixes, and the diagnostics that were mended."""

    text: str
    mended: tuple[Diagnostic, ...]


def fix_source(text: str, filename: str, check: Check, *, unsafe: bool = False) -> Fixed:
    """Mend a text until nothing more can be mended. `check` finds what is wrong with a text.

    Only the fixes of findings in `filename` itself are applied. A round whose result no longer parses is thrown away
    fix by fix: the ones that do no harm are kept.
    """
    mended: list[Diagnostic] = []
    for _ in range(ROUNDS):
        wanted = [found for found in check(text) if found.filename == filename and applicable(found.fix, unsafe)]
        done = apply(text, wanted)
        if not done.mended:
            break
        if not _parses(done.text, before=text):
            done = _harmless(text, wanted)
            if not done.mended:
                break
        text = done.text
        mended += done.mended
    return Fixed(text, tuple(mended))


def applicable(fix: Fix | None, unsafe: bool = False) -> bool:
    """Whether a fix may be applied: a safe one always, an unsafe one when asked, one for display never."""
    if fix is None or not fix.edits:
        return False
    return fix.safety is Safety.SAFE or (unsafe and fix.safety is Safety.UNSAFE)


def apply(text: str, diagnostics: Iterable[Diagnostic]) -> Fixed:
    """Apply the fixes of some diagnostics to one text. Of two that touch the same place, the first one is taken."""
    lines = LineTable(text)
    taken: list[tuple[int, int, str]] = []
    mended: list[Diagnostic] = []
    imports: dict[str, None] = {}
    for diagnostic in diagnostics:
        fix = diagnostic.fix
        if fix is None:
            continue
        edits = [_offsets(lines, edit) for edit in dict.fromkeys(fix.edits)]
        if any(_collide(edit, other) for edit in edits for other in taken):
            continue
        taken += edits
        mended.append(diagnostic)
        imports.update(dict.fromkeys(fix.imports))
    for start, end, new in sorted(taken, reverse=True):
        text = text[:start] + new + text[end:]
    return Fixed(_with_imports(text, tuple(imports)), tuple(mended))


def _offsets(lines: LineTable, edit: Edit) -> tuple[int, int, str]:
    return lines.offset(edit.span.start), lines.offset(edit.span.end), edit.text


def _collide(edit: tuple[int, int, str], other: tuple[int, int, str]) -> bool:
    """Two insertions at one place collide too: which comes first is not said."""
    if edit[0] == edit[1] or other[0] == other[1]:
        return edit[0] <= other[1] and other[0] <= edit[1]
    return edit[0] < other[1] and other[0] < edit[1]


def _harmless(text: str, diagnostics: Sequence[Diagnostic]) -> Fixed:
    """Apply fixes one by one, leaving out those after which the text doesn't parse."""
    kept: list[Diagnostic] = []
    for diagnostic in diagnostics:
        if _parses(apply(text, [*kept, diagnostic]).text, before=text):
            kept.append(diagnostic)
    return apply(text, kept)


def _parses(text: str, before: str) -> bool:
    """Whether a text is Python; a file that this Python couldn't read before either is given the benefit of doubt."""
    return _tree(text) is not None or _tree(before) is None


def _tree(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _with_imports(text: str, statements: Sequence[str]) -> str:
    """Put the imports that new text relies on behind the module's own, unless they are there."""
    missing = [statement for statement in statements if not _imported(text, statement)]
    if not missing:
        return text
    lines = LineTable(text)
    newline = "\r\n" if "\r\n" in text else "\n"
    line = _line_behind_imports(text)
    at = lines.offset(Position(line, 1)) if line <= len(lines) else len(text)
    block = "".join(statement + newline for statement in missing)
    glue = newline if at == len(text) and text and not text.endswith(("\n", "\r")) else ""
    return text[:at] + glue + block + text[at:]


def _imported(text: str, statement: str) -> bool:
    return re.search(rf"^{re.escape(statement)}[ \t]*(?:#.*)?\r?$", text, re.MULTILINE) is not None


def _line_behind_imports(text: str) -> int:
    """The line behind the last plain import at the top of a module, else behind its docstring and `__future__`."""
    tree = _tree(text)
    line = 1
    for number, statement in enumerate(tree.body if tree else ()):
        docstring = number == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if not docstring and not isinstance(statement, ast.Import | ast.ImportFrom):
            break
        line = (statement.end_lineno or statement.lineno) + 1
    return line


def touched(fix: Fix) -> Span | None:
    """The stretch from the first edit of a fix to the last."""
    if not fix.edits:
        return None
    return Span(min(edit.span.start for edit in fix.edits), max(edit.span.end for edit in fix.edits))
