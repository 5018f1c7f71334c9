"""`msalint probe`: run a module and test how it behaves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from msalint.cli.trace import need_runtime, request_of, target_options

if TYPE_CHECKING:
    from msalint.runtime.request import Request


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@target_options
@click.option("--plot", type=click.Path(dir_okay=False), help="Write a picture of the attention weights, a map a head.")
@click.option("--health", is_flag=True, help="Add a table of the health of each head.")
@click.option("--output-format", type=click.Choice(["table", "json"]), default="table")
def command(plot: str | None, health: bool, output_format: str, **options: Any) -> int:
    """Run TARGET and test the properties of attention: masks, leaks, scale, gradients, dtypes, caches.

    TARGET is `pkg.module:Class`, `path/file.py:Class` or `path/file.py:function`. This RUNS the target's code, with the
    rights you have. A --call may name m (the module), x, memory, ids, keep (padding), causal and both; masks are True
    where a key is seen.

    Exit code: 0 every property holds or does not apply, 1 one fails, 2 the target can't be run.
    """
    need_runtime()
    from msalint.runtime.target import TargetError

    try:
        return _probe(request_of(options, dropout=0.2), options["target"], output_format, plot, health)
    except TargetError as error:
        if options["debug"]:
            import traceback

            traceback.print_exc()
        raise click.ClickException(str(error)) from error


def _probe(request: Request, target: str, output_format: str, plot: str | None, health: bool) -> int:
    from msalint.runtime.probing import probe_subject
    from msalint.runtime.subject import subject_of
    from msalint.runtime.target import load_target
    from msalint.runtime.trace_target import settled

    subject, _, _ = settled(subject_of(load_target(target), request), request)
    report = probe_subject(subject, request)
    click.echo(report.as_json() if output_format == "json" else report.text(), nl=False)
    if plot is not None or health:
        from msalint.runtime.pictures import show

        click.echo(show(subject, plot, health), nl=False, err=output_format == "json")
    return 1 if report.failures else 0
