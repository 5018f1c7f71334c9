"""`msalint shapes --summary`: how much of the attention in files and folders is understood."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from msalint.documents.document import Piece
from msalint.documents.kinds import read_document
from msalint.documents.usual_names import with_usual_imports
from msalint.facts import AttentionSite, Fact, Softmaxed
from msalint.flow.drawing import numbered
from msalint.flow.paths import Analysis
from msalint.flow.program import Program
from msalint.flow.sites import unread_sites
from msalint.source import SourceError, read
from msalint.syntax.depth import TooDeep
from msalint.syntax.module import Module

if TYPE_CHECKING:
    from msalint.project import Project


@dataclass
class Tally:
    """Attention sites of some files: how many, how many understood, and why not the others."""

    files: int = 0
    sites: int = 0
    understood: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)

    def add(self, other: Tally) -> None:
        self.files += other.files
        self.sites += other.sites
        self.understood += other.understood
        self.reasons += other.reasons
        for reason, place in other.examples.items():
            self.examples.setdefault(reason, place)


def tally(text: str, filename: str, project: Project | None = None) -> Tally:
    """The attention sites of one file. Raises SourceError where it can't be read as what its name says."""
    document = read_document(text, filename)
    total = Tally()
    for piece in document.pieces:
        total.add(_tally(piece, filename, project, partial(numbered, piece, document.cells)))
    total.files = min(total.files, 1)
    return total


def _tally(piece: Piece, filename: str, project: Project | None, numbered: Callable[[int], str]) -> Tally:
    from msalint.gate import candidates

    text = with_usual_imports(piece.text) if piece.prose else piece.text

    outline = candidates(text, filename)
    if outline is None:
        return Tally()
    module = Module(outline, filename)
    found: dict[tuple[str, int, int], str] = {}
    analysis = Analysis(Program(module, project))
    for fact in analysis.facts():
        place = _place(fact)
        if isinstance(fact, AttentionSite) and place[0] == filename:
            if not fact.understood and found.get(place) == "":
                continue
            found[place] = fact.reason
        elif isinstance(fact, Softmaxed) and fact.product is not None and fact.attention and place[0] == filename:
            found.setdefault(place, "weights were not followed to the values")
    for node in unread_sites(module):
        span = node.span
        found.setdefault((filename, span.start.line, span.start.column), "scores are not a product that was followed")
    result = Tally(files=1, sites=len(found), understood=sum(not reason for reason in found.values()))
    for (_, line, _), reason in found.items():
        if reason:
            result.reasons[reason] += 1
            result.examples.setdefault(reason, f"{filename}:{numbered(line)}")
    return result


def _place(fact: Fact) -> tuple[str, int, int]:
    start = fact.at.span.start
    return fact.at.filename, start.line, start.column


def summarise(paths: Sequence[str]) -> str:
    """How many attention sites some files and folders hold, how many are understood, and why the others are not.

    Files of a folder that can't be read are passed over. Raises SourceError for one that was named.
    """
    from msalint.files import File, find
    from msalint.project import Project
    from msalint.settings import SettingsFinder

    total = Tally()
    project = Project(paths)
    named = {os.path.abspath(path) for path in paths}
    for item in find(paths, SettingsFinder()):
        try:
            if not isinstance(item, File):
                raise SourceError(f"can't read this: {item.reason}")
            total.add(tally(read(item.path).text, item.path, project))
        except (SourceError, TooDeep, RecursionError) as error:
            if os.path.abspath(item.path) in named:
                raise SourceError(f"{item.path}: {error}") from error
    share = f" ({total.understood / total.sites:.0%})" if total.sites else ""
    rows = [f"{total.files} files with attention code, {total.sites} sites, {total.understood} understood{share}"]
    for reason, number in total.reasons.most_common(10):
        rows.append(f"{number:>6}  {reason}  (as in {total.examples[reason]})")
    return "\n".join(rows) + "\n"
