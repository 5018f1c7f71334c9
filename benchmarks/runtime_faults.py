"""Which faults of the fixtures trace and probe see, beside the static rules: the table of docs/runtime_faults.md.

    python benchmarks/runtime_faults.py [--write]

Every torch module of every `bad*.py` of `fixtures/rules` and `fixtures/field` that can be built and run by guess is
traced and probed, and so is the `good*.py` beside it: what both show is not the fault.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from msalint import lint_source
from msalint.runtime.probing import probe
from msalint.runtime.request import Request
from msalint.runtime.target import TargetError, candidates, load_file
from msalint.runtime.trace_target import trace_target

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "runtime_faults.md"
HEAD = """# Which faults a run shows

Made by `python benchmarks/runtime_faults.py --write`. Each row is a faulty file of `fixtures/`. *Static*: the rules
that report it. *Trace*: where the flow of one run breaks the contract of attention, or the error that ends it.
*Probe*: the properties that fail on the faulty file and hold on the mended one. A dash: the module runs and nothing is
seen. *not run*: it can't be built or called by guess; `--set`, `--input` or `--call` may do it.

"""


@dataclass(frozen=True)
class Seen:
    """What one file shows: None where nothing of it could be run."""

    trace: frozenset[str] | None
    probe: frozenset[str] | None


def look(path: Path) -> Seen:
    """Trace and probe whatever can be run of a file, quietly."""
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        warnings.simplefilter("ignore")
        try:
            module = load_file(path)
        except TargetError:
            return Seen(None, None)
        traces, probes = [], []
        for name in candidates(module):
            target = getattr(module, name)
            with contextlib.suppress(TargetError):
                traces.append(_traced(target))
            with contextlib.suppress(TargetError):
                probes.append({finding.name for finding in probe(target).failures})
    ran = [found for found in traces if found is not None]
    return Seen(
        frozenset().union(*ran) if ran else None,
        frozenset().union(*probes) if probes else None,
    )


def _traced(target: object) -> set[str] | None:
    trace = trace_target(target, Request())
    found = {problem.kind for problem in trace.flow.problems} | {"comment disagrees" for _ in trace.flow.comments}
    if trace.failure is not None and not found:
        # An error from the middle of attention is the fault showing itself; one before it is a wrong guess of ours.
        return {"raises"} if trace.flow.sites or (len(trace.flow.rows) > 4 and "raises" in str(trace.failure)) else None
    return found


def rows() -> Iterator[tuple[str, str, Seen, Seen | None]]:
    """Each faulty file: its name, the codes that static rules report, what is seen in it and in the mended one."""
    for bad in sorted([*ROOT.glob("fixtures/rules/*/bad*.py"), *ROOT.glob("fixtures/field/*/bad*.py")]):
        codes = sorted({d.code for d in lint_source(bad.read_text(encoding="utf-8"), filename=str(bad))})
        good = bad.with_name(bad.name.replace("bad", "good", 1))
        mended = look(good) if good.exists() else None
        yield f"{bad.parent.name}/{bad.stem}", ", ".join(codes), look(bad), mended


def _cell(bad: frozenset[str] | None, good: frozenset[str] | None) -> str:
    if bad is None:
        return "not run"
    return ", ".join(sorted(bad - (good or frozenset()))) or "-"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    options = parser.parse_args()
    torch.set_num_threads(1)
    lines, ran, by_trace, by_probe, false = ["| fixture | static | trace | probe |", "|---|---|---|---|"], 0, 0, 0, 0
    for name, codes, bad, good in rows():
        trace = _cell(bad.trace, good.trace if good else None)
        behaviour = _cell(bad.probe, good.probe if good else None)
        lines.append(f"| {name} | {codes or '-'} | {trace} | {behaviour} |")
        ran += bad.trace is not None or bad.probe is not None
        by_trace += trace not in ("-", "not run")
        by_probe += behaviour not in ("-", "not run")
        false += bool(good and good.trace and good.trace - {"raises"})
    total = len(lines) - 2
    summary = (
        f"{total} faulty files, {ran} of them run by guess; trace sees {by_trace}, probe sees {by_probe}; "
        f"trace finds a broken contract in {false} of the mended "
        "files.\n\n"
    )
    text = HEAD + summary + "\n".join(lines) + "\n"
    if options.write:
        PAGE.write_text(text, encoding="utf-8")
    print(re.sub(r"(?s)^# .*?\n\n(?=\d)", "", text) if not options.write else summary)


if __name__ == "__main__":
    main()
