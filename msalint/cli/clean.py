"""`msalint clean`: remove the cache."""

from __future__ import annotations

import os

import click

from msalint.cli.caching import cache_dir_option


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@cache_dir_option
def command(cache_dir: str | None) -> int:
    """Remove the cache of the project around the current folder."""
    from msalint.cache import clean, folder_of
    from msalint.settings import SettingsError, SettingsFinder

    try:
        folder = folder_of(cache_dir, SettingsFinder().for_folder("."))
    except SettingsError as error:
        raise click.ClickException(str(error)) from error
    shown = os.path.relpath(folder)
    try:
        removed = clean(folder)
    except OSError as error:
        raise click.ClickException(f"{shown}: can't remove the cache: {error.strerror or error}") from error
    click.echo(f"Removed the cache in {shown}." if removed else f"There is no cache in {shown}.", err=True)
    return 0
