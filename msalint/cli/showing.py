"""`--show-files` and `--show-settings`: what a check would do, without doing it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from msalint.cli.groups import options_of

if TYPE_CHECKING:
    from msalint.runner import Request


@dataclass(frozen=True)
class Showing:
    """What to show instead of a check."""

    show_files: bool
    show_settings: bool


showing_options = options_of(
    Showing,
    click.option("--show-files", is_flag=True, help="List the files that would be checked, and check none."),
    click.option("--show-settings", is_flag=True, help="Show the settings of the first file, and check none."),
)


def show(showing: Showing, request: Request) -> int | None:
    """Show what was asked for, and give the exit code; None where a check was asked for."""
    if not showing.show_files and not showing.show_settings:
        return None
    from msalint.runner import found_files
    from msalint.settings import SettingsError

    try:
        files, failures = found_files(request)
    except SettingsError as error:
        raise click.ClickException(str(error)) from error
    for failure in failures:
        click.echo(f"error: {failure.message}", err=True)
    if showing.show_files:
        for file in files:
            click.echo(file.path)
    elif files:
        from msalint.registry import load
        from msalint.resolved import as_toml

        click.echo(as_toml(files[0], load()), nl=False)
    else:
        click.echo("No files to check, so no settings to show.", err=True)
    return 2 if failures else 0
