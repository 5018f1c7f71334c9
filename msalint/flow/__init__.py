"""The flow analysis: what a file's attention code does to values, told as facts.

Imported only once a file has passed the gate.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msalint.facts import Fact

if TYPE_CHECKING:
    from msalint.project import Project


def analyse(
    text: str, filename: str, project: Project | None = None, *, target_torch: str | None = None, trace: bool = False
) -> Iterator[Fact]:
    """The facts of a file, in the order they happen on each path; none for a file without attention code.

    `project` finds helpers and base classes in other files. With `trace`, every binding is told too.
    Raises SourceError where the file is not Python, TooDeep where it nests too deeply.
    """
    from msalint.flow.paths import Analysis
    from msalint.flow.program import Program
    from msalint.gate import candidates
    from msalint.syntax.module import Module
    from msalint.syntax.outline import outline

    found = candidates(text, filename, project.outline if project is not None else outline)
    if found is None:
        return
    module = Module(found, filename)
    yield from Analysis(Program(module, project), trace).facts()
