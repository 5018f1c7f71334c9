"""The options of the cache, as `check` and `clean` take them."""

from __future__ import annotations

from dataclasses import dataclass

import click

from msalint.cli.groups import options_of


@dataclass(frozen=True)
class Caching:
    """Whether there is a cache, and where."""

    no_cache: bool
    cache_dir: str | None


cache_dir_option = click.option(
    "--cache-dir",
    type=click.Path(file_okay=False),
    envvar="MSALINT_CACHE_DIR",
    metavar="DIR",
    help="The folder of the cache, .msalint_cache beside the settings by default [env: MSALINT_CACHE_DIR].",
)
caching_options = options_of(
    Caching,
    click.option(
        "--no-cache",
        "-n",
        is_flag=True,
        envvar="MSALINT_NO_CACHE",
        help="Neither read nor write the cache [env: MSALINT_NO_CACHE].",
    ),
    cache_dir_option,
)
