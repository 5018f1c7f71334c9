"""Diagnostics as text: a module a format, each a function from a `Report` to a string, loaded when it is asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING

from msalint.diagnostic import Diagnostic

if TYPE_CHECKING:
    from msalint.docs import Page

FORMATS = ("full", "concise", "json", "sarif", "github")


@dataclass(frozen=True)
class Failure:
    """A file that msalint itself failed on, or a path that isn't there; `detail` is a traceback, if there is one."""

    filename: str
    message: str
    detail: str = ""


@dataclass(frozen=True)
class Report:
    """All that a run found. `text` gives the source of a file by its name, "" where it can't be had."""

    diagnostics: tuple[Diagnostic, ...]
    failures: tuple[Failure, ...] = ()
    files: int = 0
    text: Callable[[str], str] = field(default=lambda filename: "", compare=False)
    pages: tuple[Page, ...] = ()
    version: str = ""


def render(report: Report, style: str, *, color: bool = False) -> str:
    """The report in one of FORMATS."""
    module = import_module(f"msalint.report.{style}")
    rendered: str = module.render(report, color=color)
    return rendered


def statistics(report: Report) -> str:
    """How many findings each rule has, the commonest first."""
    counts = Counter((one.code, one.name) for one in report.diagnostics)
    width = max((len(str(count)) for count in counts.values()), default=1)
    rows = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return "".join(f"{count:>{width}}  {code}  {name}\n" for (code, name), count in rows)
