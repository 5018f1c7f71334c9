"""The fixes of a whole file, whatever its kind: each piece is mended by itself and put back in its place."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from msalint.check import lint_piece
from msalint.documents.document import Piece, outward
from msalint.documents.kinds import rewritten
from msalint.fix import Fixed, fix_source
from msalint.settings import Settings

if TYPE_CHECKING:
    from msalint.project import Project


def fix_document(
    text: str, filename: str, settings: Settings, project: Project | None = None, *, unsafe: bool = False
) -> Fixed:
    """The text of a file after its fixes, and what they mended.

    Raises SourceError where the file can't be read as what its name says, and InternalError as a check does.
    """

    def mend(piece: Piece) -> tuple[str, Fixed]:
        done = fix_source(
            piece.text, filename, lambda now: lint_piece(piece, now, filename, settings, project), unsafe=unsafe
        )
        return done.text, replace(done, broken=tuple(outward(piece, filename, done.broken)))

    new, parts = rewritten(text, filename, mend, settings.include_docs)
    return Fixed(
        new,
        tuple(one for part in parts for one in part.mended),
        tuple(one for part in parts for one in part.broken),
        settled=all(part.settled for part in parts),
    )
