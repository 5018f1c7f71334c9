"""The options that say where settings come from, and what counts before them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from msalint.cli.groups import options_of

if TYPE_CHECKING:
    from msalint.tables import Table


@dataclass(frozen=True)
class Sources:
    """Settings files and single settings, as they are named on the command line."""

    config: tuple[str, ...]
    isolated: bool


sources_options = options_of(
    Sources,
    click.option(
        "--config",
        multiple=True,
        metavar="FILE|KEY=VALUE",
        help="A settings file for all files, or a setting as in TOML, such as 'ignore = [\"MSA401\"]'.",
    ),
    click.option("--isolated", is_flag=True, help="Leave out all settings files."),
)


def resolved(sources: Sources) -> tuple[str | None, Table | None]:
    """The settings file that was named, and the settings that count before those of files."""
    from msalint.tables import SettingsError, overrides

    files = [item for item in sources.config if os.path.exists(item) or "=" not in item]
    if len(files) > 1:
        raise click.UsageError(f"--config can name one settings file, not {len(files)}")
    if files and sources.isolated:
        raise click.UsageError(f"--isolated leaves out all settings files, so --config {files[0]} makes no sense")
    try:
        table = overrides([item for item in sources.config if item not in files])
    except SettingsError as error:
        raise click.ClickException(str(error)) from error
    return (files[0] if files else None), table
