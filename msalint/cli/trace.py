"""`msalint trace`: run a module and show each operation with its axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from msalint.runtime.request import Request
    from msalint.runtime.static_comparison import StaticClaim
    from msalint.runtime.trace_target import TargetTrace

MASKS = ("none", "causal", "padding", "both")


class ShapeOption(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """`x=2,5,21` as ("x", (2, 5, 21))."""

    name = "NAME=SIZES"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, Any]:
        name, equals, sizes = str(value).partition("=")
        try:
            if not equals:
                raise ValueError
            return name.strip(), tuple(int(size) for size in sizes.split(","))
        except ValueError:
            self.fail(f"{value!r} is not of the form x=2,5,21", param, ctx)


class SettingOption(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """`num_heads=3` as ("num_heads", 3): a Python literal, else the text itself."""

    name = "NAME=VALUE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, Any]:
        import ast

        name, equals, text = str(value).partition("=")
        if not equals or not name.strip().isidentifier():
            self.fail(f"{value!r} is not of the form num_heads=3", param, ctx)
        try:
            return name.strip(), ast.literal_eval(text)
        except (ValueError, SyntaxError):
            return name.strip(), text


def target_options(command: Any) -> Any:
    """The options that `trace` and `probe` share: how the target is built and called."""
    for option in (
        click.argument("target", metavar="TARGET"),
        click.option("--set", "settings", multiple=True, type=SettingOption(), help="A constructor argument."),
        click.option("--input", "inputs", multiple=True, type=ShapeOption(), help="The shape of an input of forward."),
        click.option("--call", metavar="CODE", help='How to call it, as in "m(x, x, x, key_padding_mask=~keep)[0]".'),
        click.option("--mask-true", type=click.Choice(["keep", "hide"]), help="What True in its mask means."),
        click.option("--batch", type=click.IntRange(1), help="Size of the batch."),
        click.option("--seq", type=click.IntRange(1), help="Length of the sequence."),
        click.option("--debug", is_flag=True, help="Show the traceback of an error."),
    ):
        command = option(command)
    return command


def request_of(options: dict[str, Any], mask: str = "none", device: str = "cpu", dropout: float = 0.0) -> Request:
    """The request that the shared options state."""
    from msalint.runtime.request import Request

    return Request(
        settings=dict(options["settings"]),
        inputs=dict(options["inputs"]),
        mask=mask,  # type: ignore[arg-type]
        mask_true=options["mask_true"],
        device=device,
        call=options["call"],
        dropout=dropout,
        batch=options["batch"],
        seq=options["seq"],
    )


def need_runtime() -> None:
    """Say which extra is missing, rather than that a module can't be imported."""
    from msalint.runtime.extras import missing_package

    missing = missing_package()
    if missing is not None:
        raise click.UsageError(f"this command runs torch code and needs `pip install msalint[runtime]` ({missing})")


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@target_options
@click.option("--mask", type=click.Choice(MASKS), default="none", help="The mask to pass where forward takes one.")
@click.option("--meta", is_flag=True, help="Run on the meta device: any size, no memory, no values.")
@click.option("--against-static", is_flag=True, help="Put beside it what `msalint shapes` reads from the code.")
@click.option("--output-format", type=click.Choice(["table", "json"]), default="table")
def command(mask: str, meta: bool, against_static: bool, output_format: str, **options: Any) -> int:
    """Run TARGET once on small distinct sizes and show each torch operation with its axes by name.

    TARGET is `pkg.module:Class`, `path/file.py:Class` or `path/file.py:function`. This RUNS the target's code, with the
    rights you have.

    Exit code: 0 the flow keeps the (batch, head, seq, d_k) contract, 1 it breaks it, 2 the target can't be run.
    """
    need_runtime()
    from msalint.runtime.target import TargetError

    try:
        request = request_of(options, mask, "meta" if meta else "cpu")
        return _trace(request, options["target"], output_format, against_static)
    except TargetError as error:
        if options["debug"]:
            import traceback

            traceback.print_exc()
        raise click.ClickException(str(error)) from error


def _trace(request: Request, target: str, output_format: str, against_static: bool) -> int:
    from msalint.runtime.flow_report import as_json, table
    from msalint.runtime.target import load_target
    from msalint.runtime.trace_target import trace_target

    traced = trace_target(load_target(target), request)
    text = as_json(traced.flow, target) if output_format == "json" else table(traced.flow, target, traced.layout)
    click.echo(text, nl=False)
    agrees = _agrees(traced, as_json=output_format == "json") if against_static else True
    if traced.failure is not None:
        raise traced.failure
    return 0 if traced.flow.sound and agrees else 1


def _agrees(traced: TargetTrace, as_json: bool) -> bool:
    """Print what reading the target's code says beside the run; whether they agree."""
    from msalint.runtime.static_comparison import compare, comparison_table
    from msalint.source import SourceError

    filename, name = traced.source
    try:
        compared = compare(claims_of(filename, name), traced.subject.call, filename)
    except (SourceError, LookupError) as error:
        raise click.ClickException(f"{filename}: {error}") from error
    click.echo(f"\nread from the code, and run\n{comparison_table(compared)}", nl=False, err=as_json)
    return all(one.reason is None for one in compared)


def claims_of(filename: str, name: str) -> list[list[StaticClaim]]:
    """What reading claims of a definition, path by path. Raises LookupError and `SourceError`."""
    from msalint.flow.drawing import drawn_paths
    from msalint.runtime.static_comparison import StaticClaim
    from msalint.source import read

    return [
        [StaticClaim(line.number, line.name, line.axes, line.strided) for line in lines if line.name]
        for lines in drawn_paths(read(filename).text, filename, name)
    ]
