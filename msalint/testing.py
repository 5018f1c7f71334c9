"""Fixtures as proofs: what a fixture says should be found, what is found, and where the two part.

A fixture is a folder of modules and, beside them, a `prove.py` that runs them under torch. Comments say what a check
must report, at the end of the faulty line or on a line of their own above it:

    context = context.view(b, l, width)  # expect: MSA101
    # expect: 15 MSA101 "merges axes"
    context = context.view(b, l, width)

`# expect: [column] CODE ["words of the message"]` stands for one diagnostic; a comment may hold several.
`# expect-not: CODE -- reason` records a known miss, and fails once the check finds it.
`# reveal: (B, H, T, d)` states what the engine knows of the value revealed on its line.

Everything works for the rules of other packages too: `collect` the fixtures, then `disagreements`, `run_proof`, `mend`.
"""

from __future__ import annotations

import io
import re
import runpy
import shutil
import sys
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from msalint.diagnostic import Diagnostic, Span

if TYPE_CHECKING:
    from msalint.facts import Revealed

__all__ = [
    "Expected",
    "Fixture",
    "FixtureError",
    "KnownMiss",
    "Notes",
    "Revealing",
    "collect",
    "compare",
    "compare_reveals",
    "disagreements",
    "findings",
    "mend",
    "mended_folder",
    "read_notes",
    "reveal_disagreements",
    "run_proof",
]

PROOF = "prove.py"
KIT = "proofkit.py"

_MARK = re.compile(r"#\s*(?P<kind>expect-not|expect|reveal)\b(?P<colon>:?)")
_EXPECT = re.compile(r'(?:(?P<column>\d+)\s+)?(?P<code>[A-Z]+\d+)(?:\s+"(?P<words>[^"]+)")?')
_MISS = re.compile(r"(?P<code>[A-Z]+\d+)\s+--\s+(?P<reason>\S.*)")
_BLANK_TOKENS = frozenset(
    {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING, tokenize.ENDMARKER}
)


class FixtureError(ValueError):
    """A comment of a fixture that can't be read; the message names file and line."""


@dataclass(frozen=True)
class Expected:
    """A diagnostic that must be reported: `line` and `column` are those of its first character."""

    line: int
    code: str
    column: int | None = None
    words: str | None = None

    def matches(self, found: Diagnostic) -> bool:
        start = found.span.start
        return (
            start.line == self.line
            and found.code == self.code
            and self.column in (None, start.column)
            and (self.words is None or self.words in found.message)
        )

    def __str__(self) -> str:
        column = f" in column {self.column}" if self.column is not None else ""
        words = f' saying "{self.words}"' if self.words is not None else ""
        return f"{self.code}{column}{words}"


@dataclass(frozen=True)
class KnownMiss:
    """A fault of a line that the check does not find yet, and why."""

    line: int
    code: str
    reason: str


@dataclass(frozen=True)
class Revealing:
    """What the engine must know of the value revealed on a line."""

    line: int
    text: str


@dataclass(frozen=True)
class Notes:
    """All that the comments of one file say."""

    expected: tuple[Expected, ...] = ()
    misses: tuple[KnownMiss, ...] = ()
    reveals: tuple[Revealing, ...] = ()


@dataclass(frozen=True)
class Fixture:
    """A folder of modules with, perhaps, their proof."""

    folder: Path
    sources: tuple[Path, ...]
    proof: Path | None = None

    @property
    def faulty(self) -> tuple[Path, ...]:
        """The modules with a fault: `bad.py` and `bad_*.py`."""
        return tuple(path for path in self.sources if path.stem == "bad" or path.stem.startswith("bad_"))


def collect(root: Path) -> list[Fixture]:
    """Every folder at or below `root` that holds modules, in the order of their paths."""
    folders: dict[Path, list[Path]] = {}
    for path in sorted(root.rglob("*.py")):
        if path.name != KIT and "__pycache__" not in path.parts:
            folders.setdefault(path.parent, []).append(path)
    return [
        Fixture(
            folder,
            tuple(path for path in paths if path.name != PROOF),
            next((path for path in paths if path.name == PROOF), None),
        )
        for folder, paths in sorted(folders.items())
    ]


# -- reading the comments ----------------------------------------------------------------------------------------------


def read_notes(text: str, filename: str = "<fixture>") -> Notes:
    """What the comments of a module say; raises `FixtureError` for an `expect` or `expect-not` that can't be read."""
    expected: list[Expected] = []
    misses: list[KnownMiss] = []
    reveals: list[Revealing] = []
    for line, comment in _placed_comments(text):
        for kind, body in _marks(comment, f"{filename}:{line}"):
            if kind == "reveal":
                reveals.append(Revealing(line, body))
            elif kind == "expect" and (match := _EXPECT.fullmatch(body)):
                column = int(match["column"]) if match["column"] else None
                expected.append(Expected(line, match["code"], column, match["words"]))
            elif kind == "expect-not" and (match := _MISS.fullmatch(body)):
                misses.append(KnownMiss(line, match["code"], match["reason"]))
            else:
                raise FixtureError(f"{filename}:{line}: can't read `# {kind}: {body}`")
    return Notes(tuple(expected), tuple(misses), tuple(reveals))


def _marks(comment: str, place: str) -> Iterator[tuple[str, str]]:
    """The kind and body of each mark of a comment: `# expect: A1  # expect: B2` holds two."""
    marks = list(_MARK.finditer(comment))
    bounds = [mark.start() for mark in marks] + [len(comment)]
    for mark, end in zip(marks, bounds[1:], strict=True):
        body = comment[mark.end() : end].strip()
        if not mark["colon"] or not body:
            raise FixtureError(f"{place}: can't read `{comment[mark.start() : end].strip()}`")
        yield mark["kind"], body


def _placed_comments(text: str) -> Iterator[tuple[int, str]]:
    """Each comment with the line it speaks of: its own, or the next line of code where it stands alone."""
    waiting: list[str] = []
    for kind, string, line, alone in _tokens(text):
        if kind == tokenize.COMMENT and alone:
            waiting.append(string)
        elif kind == tokenize.COMMENT:
            yield line, string
        elif kind not in _BLANK_TOKENS:
            for comment in waiting:
                yield line, comment
            waiting.clear()
    last = text.count("\n") + 1
    for comment in waiting:
        yield last, comment


def _tokens(text: str) -> Iterator[tuple[int, str, int, bool]]:
    """Kind, text, line, and whether nothing stands before it; from the line where Python gives up, line by line."""
    reached = 0
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            reached = token.start[0]
            yield token.type, token.string, reached, not token.line[: token.start[1]].strip()
    except (tokenize.TokenError, SyntaxError):
        for number, line in enumerate(text.splitlines()[reached:], reached + 1):
            code, mark, comment = line.partition("#")
            if code.strip():
                yield tokenize.NAME, code, number, True
            if mark:
                yield tokenize.COMMENT, mark + comment, number, not code.strip()


# -- comparing with what is found --------------------------------------------------------------------------------------


def compare(notes: Notes, found: Iterable[Diagnostic], filename: str) -> list[str]:
    """One sentence for each difference between what a file says and what was found in it."""
    left = list(found)
    complaints: list[tuple[int, str]] = []
    # The narrowest expectation picks first, so that a bare `CODE` can't take the diagnostic of a worded one.
    for wanted in sorted(notes.expected, key=lambda one: (one.column is None) + (one.words is None)):
        match = next((diagnostic for diagnostic in left if wanted.matches(diagnostic)), None)
        if match is None:
            complaints.append((wanted.line, f"{filename}:{wanted.line}: {wanted} is expected and not reported"))
        else:
            left.remove(match)
    misses = {(miss.line, miss.code): miss for miss in notes.misses}
    for diagnostic in left:
        line, column = diagnostic.span.start
        place = f"{filename}:{line}:{column}"
        miss = misses.get((line, diagnostic.code))
        if miss is None:
            complaint = f"{place}: {diagnostic.code} is reported and not expected: {diagnostic.message}"
        else:
            complaint = f"{place}: {miss.code} is no longer missed ({miss.reason}): make it an `expect`"
        complaints.append((line, complaint))
    return [complaint for _, complaint in sorted(complaints)]


def compare_reveals(notes: Notes, revealed: Iterable[Revealed], filename: str) -> list[str]:
    """One sentence for each difference between the `reveal` comments of a file and the engine's facts."""
    stated = {(one.line, one.text) for one in notes.reveals}
    known = {(one.at.span.start.line, one.text) for one in revealed}
    complaints = [(line, f"{filename}:{line}: {text} is stated and not revealed") for line, text in stated - known]
    complaints += [(line, f"{filename}:{line}: {text} is revealed and not stated") for line, text in known - stated]
    return [complaint for _, complaint in sorted(complaints)]


def findings(fixture: Fixture) -> dict[Path, list[Diagnostic]]:
    """What every rule that is on by default reports in each module of a fixture, whichever module led there."""
    from msalint.check import lint_source
    from msalint.project import Project

    project = Project([str(fixture.folder)])
    found: dict[Path, dict[tuple[str, Span], Diagnostic]] = {path: {} for path in fixture.sources}
    for path in fixture.sources:
        for one in lint_source(path.read_text(encoding="utf-8"), filename=str(path), project=project):
            found.setdefault(Path(one.filename), {}).setdefault((one.code, one.span), one)
    return {path: list(of_path.values()) for path, of_path in found.items()}


def disagreements(fixture: Fixture) -> list[str]:
    """Where the comments of a fixture's modules and the findings in them disagree."""
    complaints: list[str] = []
    for path, found in findings(fixture).items():
        notes = read_notes(path.read_text(encoding="utf-8"), path.name)
        complaints += compare(notes, found, path.name)
    return complaints


def reveal_disagreements(path: Path) -> list[str]:
    """Where the `reveal` comments of a module and what the engine knows disagree."""
    from msalint.facts import Revealed
    from msalint.flow import analyse
    from msalint.project import Project

    text = path.read_text(encoding="utf-8")
    revealed = [fact for fact in analyse(text, str(path), Project([str(path.parent)])) if isinstance(fact, Revealed)]
    return compare_reveals(read_notes(text, path.name), revealed, path.name)


# -- fixes -------------------------------------------------------------------------------------------------------------


def mend(text: str, filename: str, *, unsafe: bool = False) -> str:
    """The text with every safe fix applied, and the unsafe ones if asked, again and again until none is left.

    Raises FixtureError for a fix that leaves no Python behind, and for fixes that come to no end.
    """
    from msalint.check import lint_source
    from msalint.fix import fix_source

    done = fix_source(text, filename, lambda changed: lint_source(changed, filename=filename), unsafe=unsafe)
    for one in done.broken:
        raise FixtureError(f"{filename}:{one.span.start.line}: the fix of {one.code} breaks the file")
    if not done.settled:
        raise FixtureError(f"{filename}: the fixes of {', '.join(one.code for one in done.mended)} come to no end")
    return done.text


def mended_folder(fixture: Fixture, mended: Mapping[Path, str], place: Path) -> Fixture:
    """A copy of a fixture below `place` where the mended text of each `bad` module stands in for its `good` twin.

    Its proof then shows that the fix does what the hand-written good module does. The copy keeps the names of two
    folders above it, and the modules in them, so that a proof finds them the same way.
    """
    parent, top = fixture.folder.parent, fixture.folder.parent.parent
    folder = place / top.name / parent.name / fixture.folder.name
    shutil.copytree(fixture.folder, folder, ignore=shutil.ignore_patterns("__pycache__"))
    for module in (*parent.glob("*.py"), *top.glob("*.py")):
        shutil.copy(module, place / module.relative_to(top.parent))
    for path, text in mended.items():
        twin = folder / path.name.replace("bad", "good", 1)
        if not twin.exists():
            raise FixtureError(f"{path}: there is no {twin.name} beside it")
        twin.write_text(text, encoding="utf-8")
    return next(one for one in collect(folder) if one.folder == folder)


# -- proofs ------------------------------------------------------------------------------------------------------------


def run_proof(path: Path) -> None:
    """Run a proof in this interpreter as a script; it proves by raising nothing. torch is imported once for many."""
    with _as_if_fresh(path.parent):
        try:
            runpy.run_path(str(path), run_name="__main__")
        except SystemExit as leaving:
            if leaving.code not in (None, 0):
                raise AssertionError(f"{path} left with {leaving.code}") from leaving


@contextmanager
def _as_if_fresh(folder: Path) -> Iterator[None]:
    """The import path of a script in `folder`; what it loads from there, or from two folders above, is forgotten."""
    near = (folder, folder.parent, folder.parent.parent)
    before = list(sys.path)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path[:] = before
        for name, module in list(sys.modules.items()):
            origin = getattr(module, "__file__", None)
            if isinstance(origin, str) and (Path(origin).parent in near or folder in Path(origin).parents):
                del sys.modules[name]
