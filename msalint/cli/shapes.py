"""`msalint shapes`: the flow of axes through code, as a reader would draw it."""

from __future__ import annotations

import click


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("targets", nargs=-1, required=True, metavar="FILE[::NAME]...")
@click.option("--summary", is_flag=True, help="Count the attention sites of files and folders, and those understood.")
def command(targets: tuple[str, ...], summary: bool) -> int:
    """Show each line of a function or module with the axes of its value. NAME is `function` or `Class.method`."""
    if summary:
        from msalint.flow.drawing import summarise

        click.echo(summarise(targets), nl=False)
        return 0
    from msalint.flow.drawing import draw
    from msalint.source import SourceError, read

    for target in targets:
        filename, _, name = target.partition("::")
        try:
            source = read(filename)
        except SourceError as error:
            raise click.ClickException(f"{filename}: {error}") from error
        try:
            click.echo(draw(source.text, filename, name or None), nl=False)
        except LookupError as error:
            raise click.ClickException(f"{filename}: {error.args[0] if error.args else error}") from error
    return 0
