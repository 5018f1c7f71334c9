"""What a shell is offered for the arguments that click has no list of: rules, keys of the settings."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem


def rule(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Codes with the names of their rules, or the names where one is being written."""
    from msalint.registry import load

    pages = load().pages
    codes = [CompletionItem(page.code, help=page.name) for page in pages if page.code.startswith(incomplete.upper())]
    return codes or [CompletionItem(page.name) for page in pages if page.name.startswith(incomplete)]


def rules(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The last of some rules with commas between them."""
    before, comma, last = incomplete.rpartition(",")
    return [CompletionItem(before + comma + str(item.value), help=item.help) for item in rule(ctx, param, last)]


def key(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The keys of [tool.msalint]."""
    from msalint.keys import KEYS

    return [CompletionItem(one.name) for one in KEYS if one.name.startswith(incomplete)]
