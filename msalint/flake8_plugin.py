"""The plugin that flake8 finds by its entry point: `flake8 --select MSA`. Knows flake8's protocol, not flake8."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msalint import __version__, about
from msalint.check import InternalError, lint_source
from msalint.files import excluded_by_parents
from msalint.project import Project
from msalint.settings import SettingsError, SettingsFinder

if TYPE_CHECKING:
    from msalint.diagnostic import Diagnostic

Found = tuple[int, int, str, type]
"""What flake8 takes: line from 1, column from 0, "CODE message", and a type that it ignores."""

_NOQA = re.compile(r"(#\s*)noqa", re.IGNORECASE)


class Plugin:
    """One file's check. flake8 makes one for each file, in several processes at a time."""

    name = "msalint"
    version = __version__
    noqa = True
    """Whether `# noqa` counts; flake8's --disable-noqa says no."""
    _finder: SettingsFinder | None = None
    _project: Project | None = None

    def __init__(self, tree: ast.AST, filename: str, lines: Sequence[str]) -> None:
        self._filename = filename
        self._lines = lines

    @classmethod
    def parse_options(cls, options: Any) -> None:
        """Told once, before any file. Settings that can't be read end the run here."""
        cls.noqa = not getattr(options, "disable_noqa", False)
        cls._finder, cls._project = SettingsFinder(), Project([Path.cwd()])
        try:
            cls._finder.for_folder(Path.cwd())
        except SettingsError as error:
            raise SystemExit(f"msalint: {error}") from error

    def run(self) -> Iterator[Found]:
        try:
            found = self._check()
        except SettingsError as error:
            yield 1, 0, f"{about.UNKNOWN} {error}", Plugin
        except InternalError as error:
            yield 1, 0, f"{about.GAVE_UP} internal error of msalint, please report it: {error}", Plugin
        else:
            for one in found:
                # flake8 takes what is about the file at hand. What a helper elsewhere does wrong, the command tells.
                if one.filename == self._filename:
                    line, column = one.span.start
                    yield line, column - 1, f"{one.code} {one.message}", Plugin

    def _check(self) -> list[Diagnostic]:
        finder = Plugin._finder or SettingsFinder()
        settings = finder.for_folder(Path(self._filename).parent)
        if excluded_by_parents(self._filename, settings):
            return []
        text = "".join(self._lines)
        if not Plugin.noqa:
            text = _NOQA.sub(r"\1----", text)
        return lint_source(text, self._filename, settings, project=Plugin._project)
