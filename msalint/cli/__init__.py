"""The command line: a module a command, imported when its command is given; `msalint PATHS` means `msalint check`."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

from msalint import __version__

COMMANDS = {
    "check": "Check files and folders (the default command).",
    "rule": "Show the manual page of a rule, or of all.",
    "shapes": "Draw how the axes flow through a function or module.",
    "config": "List the settings, or show what one of them means.",
    "clean": "Remove the cache.",
    "generate-shell-completion": "Print the script that lets a shell complete msalint's commands and options.",
    "trace": "Run a module and show each operation with its axes (needs msalint[runtime]).",
    "probe": "Run a module and test how it behaves (needs msalint[runtime]).",
}
DEFAULT = "check"
USAGE_ERROR = 2
INTERRUPTED = 130


class Commands(click.Group):
    """A group that knows its commands by name and loads one only to run it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"msalint.cli.{cmd_name.replace('-', '_')}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The commands, and what the default command takes, since its name can be left out."""
        default = self.get_command(ctx, DEFAULT)
        items = super().shell_complete(ctx, incomplete)
        if default is not None:
            inner = click.Context(default, parent=ctx, resilient_parsing=True)
            items += [
                item for item in default.shell_complete(inner, incomplete) if item.value not in ctx.help_option_names
            ]
        return [*items, CompletionItem(incomplete, type="file")] if not incomplete.startswith("-") else items

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if ctx.resilient_parsing and not args:
            return super().parse_args(ctx, args)
        if not args or (args[0] not in COMMANDS and args[0] not in ("--help", "-h", "--version", "-V")):
            args = [DEFAULT, *args]
        return super().parse_args(ctx, args)


@click.group(
    cls=Commands,
    options_metavar="",
    subcommand_metavar="[check] [PATHS]... | COMMAND",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, "--version", "-V", message="msalint %(version)s")
def main() -> None:
    """Find mistakes in PyTorch attention code. Reads code and runs nothing, unless you ask for trace or probe.

    `msalint src/` checks a folder; `msalint check --help` lists the options.

    Exit code: 0 nothing found, 1 something found, 2 wrong usage or settings, or an internal error.
    """


def run(arguments: Sequence[str]) -> int:
    """Run the command line and return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure: Any = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
    try:
        result = main.main(args=list(arguments), prog_name="msalint", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.Exit as exit_:
        return exit_.exit_code
    except click.ClickException as error:
        error.show()
        return USAGE_ERROR
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except BrokenPipeError:
        # The reader (`head`) has gone; so must what Python would still write to it on its way out.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        if error.errno not in _NO_ROOM:
            return _fault(error)
        # What is left in the buffer would fail once more on the way out.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        click.echo(f"error: can't write the output: {error.strerror}", err=True)
        return USAGE_ERROR
    except Exception as error:
        return _fault(error)
    return result if isinstance(result, int) else 0


_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""Why stdout takes no more: a full disk, a quota, a limit, a device that fails."""


def _fault(error: Exception) -> int:
    """Whatever no command has an answer for: a message, and a traceback only for those who ask."""
    if os.environ.get("MSALINT_DEBUG"):
        import traceback

        traceback.print_exc()
    click.echo(f"error: internal error: {type(error).__name__}: {error}", err=True)
    click.echo("  This is a fault of msalint: please report it (MSALINT_DEBUG=1 shows where).", err=True)
    return USAGE_ERROR
