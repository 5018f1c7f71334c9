"""`msalint config`: the keys of the settings, and what each one means."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from msalint.cli import completing

if TYPE_CHECKING:
    from msalint.keys import Key


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("name", metavar="[KEY]", required=False, shell_complete=completing.key)
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(name: str | None, output_format: str) -> int:
    """List the keys of [tool.msalint], or show what one of them means."""
    from msalint.keys import KEYS, did_you_mean, key_of

    if name is None:
        everything = {key.name: asdict(key) for key in KEYS}
        click.echo(json.dumps(everything, indent=2) if output_format == "json" else "\n".join(everything))
        return 0
    key = key_of(name.removeprefix("tool.msalint."))
    if key is None:
        raise click.UsageError(f"`{name}` is no key of [tool.msalint]{did_you_mean(name, [key.name for key in KEYS])}")
    click.echo(json.dumps(asdict(key), indent=2) if output_format == "json" else page(key))
    return 0


def page(key: Key) -> str:
    """A key as `msalint config KEY` and docs/settings.md show it."""
    return "\n".join(
        (
            key.text,
            "",
            f"Default value: `{key.default}`  ",
            f"Type: `{key.kind}`  ",
            "Example:",
            "",
            f"```toml\n{key.toml}```",
        )
    )
