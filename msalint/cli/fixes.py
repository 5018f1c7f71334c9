"""The options about fixes, what is printed of them, and what they make of the exit code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from msalint.cli.groups import options_of

if TYPE_CHECKING:
    from msalint.report import Report
    from msalint.settings import Fixing


@dataclass(frozen=True)
class Fixes:
    """What the command line says of fixes; None where it says nothing."""

    fix: bool | None
    unsafe_fixes: bool | None
    diff: bool
    fix_only: bool | None
    show_fixes: bool | None
    exit_non_zero_on_fix: bool

    def layer(self) -> Fixing:
        """These as the strongest layer of settings. Raises UsageError for what can't go together."""
        from msalint.settings import Fixing

        if self.diff and self.show_fixes:
            raise click.UsageError("--diff can't be used with --show-fixes: it makes none")
        return Fixing(self.fix, self.fix_only, self.show_fixes, self.unsafe_fixes)


fix_options = options_of(
    Fixes,
    click.option("--fix/--no-fix", default=None, help="Mend what can be mended safely, and report the rest."),
    click.option(
        "--unsafe-fixes/--no-unsafe-fixes", default=None, help="Allow fixes that change what correct code computes."
    ),
    click.option("--diff", is_flag=True, help="Show what --fix would change, and write nothing."),
    click.option("--fix-only/--no-fix-only", default=None, help="Mend, and report nothing of what is left."),
    click.option("--show-fixes/--no-show-fixes", default=None, help="List the fixes that were made."),
    click.option("--exit-non-zero-on-fix", is_flag=True, help="Exit with 1 if something was mended, too."),
)


def is_silent(report: Report) -> bool:
    """Whether findings that are left are not to be reported."""
    return report.diff is not None or bool(report.fixing.fix_only)


def takes_stdout(report: Report) -> bool:
    """Whether stdout belongs to a diff, or to what came through a pipe and goes on with its fixes made."""
    return report.diff is not None or report.fixed_text is not None


def print_text(report: Report) -> None:
    """What stdout was given over to."""
    if report.diff is not None:
        click.echo(report.diff, nl=False)
    elif report.fixed_text is not None:
        click.echo(report.fixed_text, nl=False)


def closing(report: Report) -> str:
    """The last lines for people."""
    from msalint.report.closing import fixes_made, fixes_only, summary

    made = fixes_made(report) if report.fixing.show_fixes and report.diff is None else ""
    last = fixes_only(report) if is_silent(report) else summary(report)
    return (f"\n{made}\n\n" if made else "") + (f"{last}\n" if last else "")


def exit_code(report: Report, fixes: Fixes, exit_zero: bool) -> int:
    """0, 1 for findings (or for fixes, where that is asked for), 2 for failures."""
    if report.failures:
        return 2
    if exit_zero:
        return 0
    if fixes.diff:
        return int(bool(report.mended))
    left = bool(report.diagnostics) and not report.fixing.fix_only
    return int(left or (fixes.exit_non_zero_on_fix and bool(report.mended)))
