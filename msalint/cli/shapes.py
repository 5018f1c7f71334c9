"""`msalint shapes`: the flow of axes through code, as a reader would draw it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from msalint.source import SourceError


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("targets", nargs=-1, required=True, type=click.Path(), metavar="FILE[::NAME]...")
@click.option("--summary", is_flag=True, help="Count the attention sites of files and folders, and those understood.")
def command(targets: tuple[str, ...], summary: bool) -> int:
    """Show each line of a function or module with the axes of its value. NAME is `function` or `Class.method`.

    The lines of a notebook are counted by cell, as a check counts them.
    """
    from msalint.source import SourceError

    if summary:
        from msalint.flow.tallying import summarise

        try:
            click.echo(summarise(targets), nl=False)
        except SourceError as error:
            raise click.ClickException(str(error)) from error
        return 0
    for target in targets:
        filename, _, name = target.partition("::")
        try:
            _show(filename, name or None)
        except SourceError as error:
            raise click.ClickException(f"{_place(filename, error)}: {error}") from error
        except (LookupError, RecursionError) as error:
            raise click.ClickException(f"{filename}: {error.args[0] if error.args else error}") from error
    return 0


def _place(filename: str, error: SourceError) -> str:
    """The file alone where the fault is at no place of its own: one that can't be opened, for instance."""
    line, column = error.position
    return filename if (line, column) == (1, 1) else f"{filename}:{line}:{column}"


def _show(filename: str, name: str | None) -> None:
    from msalint.documents.kinds import NOTEBOOK
    from msalint.flow.drawing import draw
    from msalint.source import SourceError, read

    text = read(filename).text
    if filename.lower().endswith(NOTEBOOK):
        from msalint.documents.notebook import foreign_language

        foreign = foreign_language(text)
        if foreign is not None:
            raise SourceError(f"this notebook's code is {foreign}, not Python")
    drawing = draw(text, filename, name)
    for left_out in drawing.left_out:
        click.echo(f"warning: {left_out}", err=True)
    click.echo(drawing.text, nl=False)
