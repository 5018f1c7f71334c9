"""`msalint rule`: the manual page of one rule, or of all."""

from __future__ import annotations

import json

import click

from msalint.cli import completing


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("word", metavar="CODE", required=False, shell_complete=completing.rule)
@click.option("--all", "everything", is_flag=True, help="All rules: a line each, or every page as JSON.")
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(word: str | None, everything: bool, output_format: str) -> int:
    """Show what a rule reports, why, and how to mend it. CODE is a code (MSA101) or a name (view-needs-contiguous)."""
    from msalint.docs import as_json, as_markdown
    from msalint.registry import load

    if bool(word) == everything:
        raise click.UsageError("name one rule, or ask for --all")
    registry = load()
    if everything:
        if output_format == "json":
            click.echo(json.dumps([as_json(page) for page in registry.pages], indent=2))
            return 0
        width = max(len(page.name) for page in registry.pages)
        for page in registry.pages:
            click.echo(f"{page.code}  {page.name:<{width}}  {page.level.value:<7}  {page.summary}")
        return 0
    rule = registry.rule(word or "")
    if rule is None:
        raise click.UsageError(f"`{word}` is no rule{registry.suggestion(word or '')}")
    page = registry.page(rule.meta.code)
    click.echo(json.dumps(as_json(page), indent=2) if output_format == "json" else as_markdown(page), nl=False)
    return 0
