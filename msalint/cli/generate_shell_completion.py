"""`msalint generate-shell-completion`: the script that a shell reads to complete commands and options."""

from __future__ import annotations

import click

SHELLS = ("bash", "zsh", "fish")

_BASH = """\
%(complete_func)s() {
    local IFS=$'\\n'
    local response completion type value files

    response=$(env COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD=$COMP_CWORD %(complete_var)s=bash_complete $1)
    COMPREPLY=()
    for completion in $response; do
        IFS=',' read type value <<< "$completion"
        case $type in
            plain) COMPREPLY+=("$value") ;;
            dir) compopt -o dirnames ;;
            file) files=1 ;;
        esac
    done
    if [[ -n $files && ${#COMPREPLY[@]} -eq 0 ]]; then
        compopt -o default
    elif [[ -n $files ]]; then
        compopt -o filenames
        COMPREPLY+=($(compgen -f -- "${COMP_WORDS[COMP_CWORD]}"))
    fi
}

complete -o nosort -F %(complete_func)s %(prog_name)s
"""
"""Click's own drops the commands where files may stand as well, as they may for `msalint ru` and `msalint src/`."""


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
    template = _BASH if shell == "bash" else complete.source_template
    if shell == "fish":  # Click's own cuts a description at its first comma.
        template = template.replace('string split ","', 'string split --max 1 ","')
    click.echo(template % complete.source_vars())
    return 0
