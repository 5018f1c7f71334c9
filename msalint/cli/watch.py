"""`--watch`: check, wait for a change, check again."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from msalint.runner import Request

MISSING_SECONDS = 2.0
"""So long a file may be gone while an editor replaces it."""


def watched(request: Request, once: Callable[[], int]) -> int:
    """Check whenever something changes, until Ctrl-C. A mistake in the settings is shown, and may be mended."""
    from msalint.watching import WatchError, next_change

    click.echo("Starting in watch mode...", err=True)
    others: tuple[str, ...] = ()
    while True:
        _wait_for(request.paths)
        others = _settings_files(request) or others
        try:
            with closing(next_change(request.paths, others)) as coming:
                next(coming)  # what changes from here on is not missed
                _once(once)
                click.echo("Watching for file changes.", err=True)
                changed = next(coming)
        except WatchError as error:
            raise click.ClickException(str(error)) from error
        if sys.stdout.isatty():
            click.clear()
        click.echo(f"File change detected: {_named(changed)}\n", err=True)


def _once(once: Callable[[], int]) -> None:
    try:
        once()
    except click.ClickException as error:
        error.show()


def _settings_files(request: Request) -> tuple[str, ...]:
    from msalint.runner import found_files
    from msalint.settings import SettingsError

    try:
        files, _ = found_files(request)
    except SettingsError:
        return ()
    return tuple(dict.fromkeys(name for file in files for name, _ in file.settings.words))


def _wait_for(paths: Iterable[str]) -> None:
    for path in paths:
        end = time.monotonic() + MISSING_SECONDS
        while not os.path.exists(path):
            if time.monotonic() > end:
                raise click.ClickException(f"{path}: no such file or folder, so it can't be watched")
            time.sleep(0.02)


def _named(changed: Iterable[str]) -> str:
    names = sorted(os.path.relpath(path) for path in changed)
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
