"""`msalint check`: the options of a check, its output, its exit code."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click

from msalint.cli import completing
from msalint.cli.adoption import (
    Adoption,
    ReasonsByEquals,
    adopt,
    adoption_options,
    fixing_beside,
    refuse_contradictions,
    yardsticks,
)
from msalint.cli.caching import Caching, caching_options
from msalint.cli.fixes import Fixes, closing, exit_code, fix_options, is_silent, print_text, takes_stdout
from msalint.cli.groups import options_of
from msalint.cli.showing import Showing, show, showing_options
from msalint.cli.sources import Sources, resolved, sources_options
from msalint.cli.watch import watched
from msalint.report import FORMATS, Report
from msalint.settings import Selection, SettingsError, check_torch

QUIET_SECONDS = 1.0
"""Progress is shown for runs that take longer."""


def _words(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    """`--select MSA1,MSA2 --select note` as one tuple."""
    return tuple(word.strip() for item in value for word in item.split(",") if word.strip())


def _torch(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    try:
        return check_torch(value)
    except SettingsError as error:
        raise click.BadParameter(str(error)) from error


_RULE_LIST: dict[str, Any] = {
    "multiple": True,
    "callback": _words,
    "metavar": "RULE[,RULE...]",
    "shell_complete": completing.rules,
}


@dataclass(frozen=True)
class Output:
    """How a report is shown."""

    output_format: str
    output_file: str | None
    statistics: bool
    quiet: bool
    color: str


output_options = options_of(
    Output,
    click.option(
        "--output-format",
        type=click.Choice(FORMATS),
        default="full",
        show_default=True,
        envvar="MSALINT_OUTPUT_FORMAT",
        show_envvar=True,
    ),
    click.option(
        "--output-file",
        "-o",
        type=click.Path(),
        metavar="FILE",
        envvar="MSALINT_OUTPUT_FILE",
        show_envvar=True,
        help="Write the report to a file instead of stdout.",
    ),
    click.option("--statistics", is_flag=True, help="Count the findings of each rule instead of listing them."),
    click.option("--quiet", "-q", is_flag=True, help="Print findings and nothing else."),
    click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", show_default=True),
)


@click.command(cls=ReasonsByEquals, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("paths", nargs=-1, type=click.Path())
@click.option("--select", **_RULE_LIST, help="Check these rules and no others.")
@click.option("--extend-select", **_RULE_LIST, help="Check these rules too.")
@click.option("--ignore", **_RULE_LIST, help="Leave out these rules.")
@output_options
@fix_options
@click.option(
    "--include-docs/--no-include-docs",
    default=None,
    help="Check code in docstrings, Markdown and reStructuredText too.",
)
@click.option("--stdin-filename", metavar="FILE", help="The name of what comes on stdin (path `-`).")
@click.option("--jobs", "-j", type=click.IntRange(min=0), default=0, metavar="N", help="Processes; 0 chooses.")
@caching_options
@sources_options
@showing_options
@adoption_options
@click.option("--target-torch", callback=_torch, metavar="VERSION", help="The torch version the code is for.")
@click.option("--watch", "-w", is_flag=True, help="Check again whenever a file changes (needs msalint[watch]).")
@click.option("--force-exclude", is_flag=True, help="Leave out excluded files even if they are named.")
@click.option("--exit-zero", is_flag=True, help="Exit with 0 even if something was found.")
def command(
    paths: tuple[str, ...],
    select: tuple[str, ...],
    extend_select: tuple[str, ...],
    ignore: tuple[str, ...],
    stdin_filename: str | None,
    jobs: int,
    target_torch: str | None,
    watch: bool,
    force_exclude: bool,
    exit_zero: bool,
    include_docs: bool | None,
    output: Output,
    caching: Caching,
    sources: Sources,
    showing: Showing,
    fixes: Fixes,
    adoption: Adoption,
) -> int:
    """Check Python files and folders (the current one, if none is named) for mistakes in attention code.

    RULE is a code (MSA101), a prefix of codes (MSA1), a name (view-needs-contiguous), a level (error, warning, note) or
    ALL. Settings come from [tool.msalint] in the closest pyproject.toml, or from msalint.toml.
    """
    from msalint.processes import collect_rarely
    from msalint.runner import Request, run, run_text

    collect_rarely()

    refuse_contradictions(adoption, fixes, stdin="-" in paths)
    named, overrides = resolved(sources)
    request = Request(
        paths=paths or (".",),
        selection=Selection(select or None, extend_select, ignore),
        target_torch=target_torch,
        jobs=jobs,
        force_exclude=force_exclude,
        config=named,
        overrides=overrides,
        isolated=sources.isolated,
        cached=not caching.no_cache,
        cache_dir=caching.cache_dir,
        fixing=fixing_beside(adoption, fixes),
        diff=fixes.diff,
        include_docs=include_docs,
    )
    _refuse_unknown((*request.selection.selectors(), *(overrides.rules() if overrides else ())))
    if "-" in paths and (len(paths) > 1 or watch):
        raise click.UsageError("`-` (stdin) can't be mixed with other paths, nor be watched")

    def once() -> int:
        try:
            held = yardsticks(adoption, request)
            if "-" in paths:
                report = run_text(sys.stdin.buffer.read(), stdin_filename, request)
            else:
                report = run(request, _progress(output.quiet))
            report, code = adopt(adoption, held, report, output.quiet)
        except SettingsError as error:
            raise click.ClickException(str(error)) from error
        if code is not None:
            return code
        _print(report, output)
        return exit_code(report, fixes, exit_zero)

    if watch:
        return watched(request, once)
    shown = show(showing, request)
    return once() if shown is None else shown


def _refuse_unknown(words: tuple[str, ...]) -> None:
    if not words:
        return
    from msalint.registry import load

    registry = load()
    for word in registry.unknown(words):
        raise click.UsageError(f"`{word}` names no rule{registry.suggestion(word)}")


def _print(report: Report, output: Output) -> None:
    from msalint import report as reports

    painted = _colored(output.color) and output.output_file is None
    print_text(report)
    shown = ""
    if not is_silent(report):
        if output.statistics:
            shown = reports.statistics(report)
        else:
            shown = reports.render(report, output.output_format, color=painted)
    last = "" if output.quiet or output.output_format not in reports.FOR_PEOPLE else closing(report)
    if output.output_file is not None:
        from msalint.cli.output_file import write

        write(output.output_file, shown + last)
    else:
        click.echo(shown, nl=False, color=painted, err=takes_stdout(report))
    for notice in () if output.quiet else report.notices:
        click.echo(f"warning: {notice}", err=True)
    for failure in report.failures:
        click.echo(f"error: {failure.message}", err=True)
        if failure.detail:
            if os.environ.get("MSALINT_DEBUG"):
                click.echo(failure.detail, err=True, nl=False)
            click.echo("  This is a fault of msalint: please report it (MSALINT_DEBUG=1 shows where).", err=True)
    if last and output.output_file is None:
        click.echo(
            last, nl=False, err=takes_stdout(report) or (not sys.stdout.isatty() and output.output_format != "full")
        )


def _colored(color: str) -> bool:
    """Colour for a terminal, unless NO_COLOR or FORCE_COLOR or the option says otherwise."""
    if color != "auto":
        return color == "always"
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (sys.stdout.isatty() and os.environ.get("TERM") != "dumb")


def _progress(quiet: bool) -> Callable[[int, int], None] | None:
    """A counter on stderr, for long runs before a terminal; it wipes itself."""
    if quiet or not sys.stderr.isatty():
        return None
    begun = time.monotonic()
    shown = 0.0

    def show(done: int, total: int) -> None:
        nonlocal shown
        now = time.monotonic()
        if done == total:
            if shown:
                click.echo("\r\x1b[K", nl=False, err=True)
        elif now - begun > QUIET_SECONDS and now - shown > 0.1:
            shown = now
            click.echo(f"\r\x1b[K{done}/{total} files", nl=False, err=True)

    return show
