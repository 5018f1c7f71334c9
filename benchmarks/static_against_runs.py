"""Whether the shapes that reading claims are those of a run, on the attention classes of installed packages.

    python benchmarks/static_against_runs.py FOLDER...

Each class of the folders' files with `att` in its name that can be built and run by guess is traced, and what `msalint
shapes` reads from its code is put beside the run.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import re
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from msalint.cli.trace import claims_of
from msalint.runtime.request import Request
from msalint.runtime.static_comparison import compare
from msalint.runtime.target import TargetError, candidates, load_file
from msalint.runtime.trace_target import trace_target

_ATTENTION = re.compile(r"^class (\w*att\w*)\(", re.IGNORECASE | re.MULTILINE)


def classes(folder: Path) -> Iterator[tuple[Path, Any | TargetError]]:
    """The attention classes of a folder's files; the error of a file that can't be imported."""
    for path in sorted(folder.rglob("*.py")):
        names = _ATTENTION.findall(path.read_text(encoding="utf-8", errors="replace"))
        if not names:
            continue
        try:
            module = load_file(path)
        except TargetError as error:
            yield path, error
            continue
        yield from ((path, getattr(module, name)) for name in candidates(module) if name in names)


def judge(path: Path, target: Any, told: Counter[str]) -> list[str]:
    """What there is to tell of one class, a line each."""
    try:
        trace = trace_target(target, Request())
    except TargetError as error:
        told["not built"] += 1
        return [str(error)]
    if trace.failure is not None:
        told["no run, or no attention in it"] += 1
        return [str(trace.failure)]
    told["run"] += 1
    filename, name = trace.source
    lines = [f"{problem.kind}, line {problem.op.line}" for problem in trace.flow.problems]
    lines += [f"comment {one.comment}, line {one.line}: {one.reason}" for one in trace.flow.comments]
    for one in compare(claims_of(filename, name), trace.subject.call, filename):
        told["claims"] += 1
        told["claims that ran"] += one.shape is not None
        told["claims that disagree"] += one.reason is not None
        if one.reason is not None:
            claim = f"{one.claim.name} ({', '.join(one.claim.axes)})"
            lines.append(f"line {one.claim.line}: {claim} is {one.shape}: {one.reason}")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    for folder in options.folders:
        told: Counter[str] = Counter()
        for path, target in classes(folder):
            told["classes"] += 1
            quiet = io.StringIO()
            with contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet):
                lines = [str(target)] if isinstance(target, TargetError) else judge(path, target, told)
            for line in lines:
                print(f"{path.relative_to(folder)}  {getattr(target, '__name__', '')}  {line}")
        print(f"{folder.name}: {', '.join(f'{number} {what}' for what, number in told.items())}\n", flush=True)


if __name__ == "__main__":
    sys.exit(main())
