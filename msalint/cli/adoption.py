"""The options for adopting msalint bit by bit: a baseline, changed lines only, suppressions written for you."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from msalint.cli.fixes import Fixes
from msalint.cli.groups import options_of

if TYPE_CHECKING:
    from msalint.baseline import Baseline
    from msalint.changed import Changes
    from msalint.report import Failure, Report
    from msalint.runner import Request
    from msalint.settings import Fixing


@dataclass(frozen=True)
class Adoption:
    """What is left out of a report, and what is done to leave it out."""

    baseline: str | None
    update_baseline: bool
    prune_baseline: bool
    since: str | None
    add_noqa: bool
    add_ignore: str | None
    """The reason to write, "" for none; None where no suppressions are asked for."""

    @property
    def writes_comments(self) -> bool:
        return self.add_noqa or self.add_ignore is not None

    @property
    def leaves_code_alone(self) -> bool:
        """Whether fixes would reach further than what was asked for: they know nothing of changed lines."""
        return self.since is not None or self.writes_comments or self.update_baseline


class ReasonsByEquals(click.Command):
    """A command whose `--add-ignore` takes a reason only as `--add-ignore=REASON`, never the argument behind it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        end = args.index("--") if "--" in args else len(args)
        before = [f"{word}=" if word == "--add-ignore" else word for word in args[:end]]
        return super().parse_args(ctx, [*before, *args[end:]])


def _reason(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    if value is not None and ("#" in value or len(value.splitlines()) > 1):
        raise click.BadParameter("a reason is one line without `#`")
    return value.strip() if value is not None else None


adoption_options = options_of(
    Adoption,
    click.option(
        "--baseline", type=click.Path(dir_okay=False), metavar="FILE", help="Leave out the findings that FILE knows."
    ),
    click.option("--update-baseline", is_flag=True, help="Make all findings known to the baseline."),
    click.option("--prune-baseline", is_flag=True, help="Take out of the baseline what is found no more."),
    click.option(
        "--since",
        metavar="REV",
        help="Only findings on lines changed since a git revision; `main...`: since leaving it.",
    ),
    click.option("--add-noqa", is_flag=True, help="Write `# noqa: CODE` on the lines of all findings."),
    click.option(
        "--add-ignore",
        callback=_reason,
        metavar="[=REASON]",
        help="Write `# msalint: ignore[CODE] -- REASON` on the lines of all findings.",
    ),
)


def refuse_contradictions(adoption: Adoption, fixes: Fixes, stdin: bool) -> None:
    """Raise UsageError for options that can't go together."""
    if adoption.leaves_code_alone and (fixes.fix or fixes.fix_only or fixes.diff):
        raise click.UsageError(
            "fixes can't be made together with --since, --add-noqa, --add-ignore or --update-baseline"
        )
    if adoption.add_noqa and adoption.add_ignore is not None:
        raise click.UsageError("--add-noqa and --add-ignore are two ways to do the same: choose one")
    if adoption.update_baseline and (adoption.since or adoption.prune_baseline or adoption.writes_comments):
        raise click.UsageError(
            "--update-baseline takes in all findings: no --since, --prune-baseline or --add-... can go with it"
        )
    if stdin and (adoption.since or adoption.writes_comments or adoption.update_baseline or adoption.prune_baseline):
        raise click.UsageError("stdin has no file on disk, so only --baseline can be used with it")


def fixing_beside(adoption: Adoption, fixes: Fixes) -> Fixing:
    """What is done with fixes: none are made, whatever the settings say, where code is left alone."""
    fixing = fixes.layer()
    return replace(fixing, fix=False, fix_only=False) if adoption.leaves_code_alone else fixing


@dataclass(frozen=True)
class Yardsticks:
    """What a report is held against, read before the check begins: mistakes are told at once."""

    baseline: Baseline | None
    changes: Changes | None


def yardsticks(adoption: Adoption, request: Request) -> Yardsticks:
    """Raises SettingsError, UsageError and ClickException."""
    from msalint import adoption as work
    from msalint.runner import settings_here

    settings = settings_here(request)
    path = work.baseline_path(adoption.baseline, settings.root, settings.baseline)
    if path is None and (adoption.update_baseline or adoption.prune_baseline):
        raise click.UsageError("which baseline? Name it with --baseline FILE, or by `baseline` in the settings")
    if path is None and adoption.since is None:
        return Yardsticks(None, None)
    from msalint.baseline import BaselineError, read_baseline
    from msalint.changed import GitError, changes_since

    try:
        baseline = read_baseline(path, may_be_missing=adoption.update_baseline) if path is not None else None
        return Yardsticks(baseline, changes_since(adoption.since) if adoption.since is not None else None)
    except (BaselineError, GitError) as error:
        raise click.ClickException(str(error)) from error


def adopt(adoption: Adoption, held: Yardsticks, report: Report, quiet: bool) -> tuple[Report, int | None]:
    """The report without what is left out; an exit code where something else than a report was asked for."""
    from msalint import adoption as work
    from msalint.baseline import BaselineError

    notes: list[str] = []
    try:
        if adoption.update_baseline and held.baseline is not None:
            click.echo(work.update_baseline(report, held.baseline), err=True)
            return report, _failed(report.failures)
        if held.baseline is not None:
            narrowed = work.beside_baseline(report, held.baseline, prune=adoption.prune_baseline)
            report, notes = narrowed.report, [*narrowed.notes]
    except BaselineError as error:
        raise click.ClickException(str(error)) from error
    if held.changes is not None:
        narrowed = work.on_changed_lines(report, held.changes)
        report, notes = narrowed.report, [*notes, *narrowed.notes]
    for note in notes if not quiet else ():
        click.echo(note, err=True)
    return report, _hide(adoption, report) if adoption.writes_comments else None


def _hide(adoption: Adoption, report: Report) -> int:
    from msalint import adoption as work
    from msalint.report.concise import render
    from msalint.suppressing import Comments

    done = work.hide(report, Comments(adoption.add_noqa, adoption.add_ignore or ""))
    what = "noqa directive" if adoption.add_noqa else "ignore comment"
    click.echo(f"Added {done.lines} {what}{'' if done.lines == 1 else 's'}.", err=True)
    if done.left:
        click.echo("No comment can hide these:", err=True)
        click.echo(render(replace(report, diagnostics=done.left)), err=True, nl=False)
    return _failed((*report.failures, *done.failures))


def _failed(failures: tuple[Failure, ...]) -> int:
    """Tell what went wrong, and give the exit code."""
    for failure in failures:
        click.echo(f"error: {failure.message}", err=True)
    return 2 if failures else 0
