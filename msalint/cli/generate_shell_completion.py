"""`msalint generate-shell-completion`: the script that a shell reads to complete commands and options."""

from __future__ import annotations

import click

SHELLS = ("bash", "zsh", "fish")


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> int:
    """Print the completion script of SHELL, to be read by it at its start.

    bash: eval "$(msalint generate-shell-completion bash)" in ~/.bashrc; zsh: the same in ~/.zshrc; fish: msalint
    generate-shell-completion fish > ~/.config/fish/completions/msalint.fish
    """
    from click.shell_completion import get_completion_class

    from msalint.cli import main

    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"there is no completion for {shell}")
    complete = kind(main, {}, "msalint", "_MSALINT_COMPLETE")
    click.echo(complete.source_template % complete.source_vars())
    return 0
