"""Applies msalint's fixes to copies of released packages: what is mended still parses, and a second run mends nothing.

    python -m benchmarks.public_code.fixes WHEELS              # safe fixes
    python -m benchmarks.public_code.fixes WHEELS --unsafe     # unsafe ones too
    python -m benchmarks.public_code.fixes WHEELS --only timm --diffs DIFFS

WHEELS is a folder of wheels as `benchmarks.public_code.run --download` fetches them. Each class of a mended file that
can be built and run is, as it was and as it is, and the outputs are compared (see `numbers.py`; that needs torch).
"""

from __future__ import annotations

import argparse
import ast
import json
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.public_code.run import unpacked
from msalint.mending import Mended, as_diff
from msalint.report import Report
from msalint.runner import Request, run
from msalint.settings import Fixing, Selection
from msalint.source import read


@dataclass
class Outcome:
    """What the fixes did to one package."""

    name: str
    version: str
    mended: Counter[str] = field(default_factory=Counter)
    changed: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    """Whatever must not be: fixes that break a file or come to no end, files that don't parse, a busy second run."""
    numbers: Counter[str] = field(default_factory=Counter)


def fix_package(name: str, version: str, original: Path, copy: Path, unsafe: bool) -> Outcome:
    """Mend a copy of a package and look at it again."""
    outcome = Outcome(name, version)
    report = _fix(copy, unsafe)
    outcome.mended = Counter(one.code for one in report.mended)
    outcome.complaints += [failure.message for failure in report.failures]
    for path in sorted(copy.rglob("*.py")):
        inner = path.relative_to(copy)
        if path.read_bytes() != (original / inner).read_bytes():
            outcome.changed.append(str(inner))
            outcome.complaints += _unparsable(path, original / inner)
    again = _fix(copy, unsafe)
    outcome.complaints += [f"{one.filename}:{one.span.start.line}: {one.code} mended again" for one in again.mended]
    return outcome


def _fix(folder: Path, unsafe: bool) -> Report:
    selection = Selection(select=("ALL",))
    return run(Request((str(folder),), selection, jobs=1, fixing=Fixing(fix=True, unsafe_fixes=unsafe)))


def _unparsable(after: Path, before: Path) -> Iterator[str]:
    try:
        ast.parse(read(after).text)
    except SyntaxError as error:
        try:
            ast.parse(read(before).text)
        except SyntaxError:
            return
        yield f"{after}:{error.lineno}: {error.msg}"


def diff_of(outcome: Outcome, original: Path, copy: Path) -> str:
    """All that was changed, as one patch."""
    files = (Mended(name, (original / name).read_bytes(), (copy / name).read_bytes()) for name in outcome.changed)
    return "".join(map(as_diff, files))


def compare_numbers(outcome: Outcome, original: Path, copy: Path) -> None:
    """Build and run the classes of each mended file as they were and as they are, in a process that may die."""
    for name in outcome.changed:
        command = [sys.executable, "-m", "benchmarks.public_code.numbers", str(original), str(copy), name]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=300)
            told = json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else {}
        except (subprocess.TimeoutExpired, ValueError, IndexError):
            told = {}
        if not told:
            outcome.numbers["files not loaded"] += 1
        for cls, verdict in told.items():
            outcome.numbers[verdict.partition(":")[0]] += 1
            if verdict.startswith("differs"):
                print(f"    {name}: {cls} {verdict}")


def main() -> int:
    """The command line; 1 where a fix did harm."""
    parser = argparse.ArgumentParser(description="Apply msalint's fixes to copies of released packages.")
    parser.add_argument("wheels", type=Path, help="a folder of wheels")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="this package alone")
    parser.add_argument("--unsafe", action="store_true", help="make unsafe fixes too")
    parser.add_argument("--diffs", type=Path, metavar="FOLDER", help="write what was changed, a patch a package")
    options = parser.parse_args()
    harm = False
    for name, version, folder in unpacked(options.wheels):
        if options.only and name not in options.only:
            continue
        with tempfile.TemporaryDirectory() as place:
            copy = Path(place) / name
            shutil.copytree(folder, copy)
            outcome = fix_package(name, version, folder, copy, options.unsafe)
            compare_numbers(outcome, folder, copy)
            if options.diffs is not None:
                options.diffs.mkdir(parents=True, exist_ok=True)
                (options.diffs / f"{name}.diff").write_text(diff_of(outcome, folder, copy), encoding="utf-8")
        counts = "  ".join(f"{code}:{number}" for code, number in sorted(outcome.mended.items()))
        numbers = ", ".join(f"{number} {what}" for what, number in sorted(outcome.numbers.items()))
        print(
            f"{name:16} {version:10} files changed {len(outcome.changed):3}  {counts or '-'}  [{numbers}]", flush=True
        )
        for complaint in outcome.complaints:
            print(f"    {complaint}")
        harm = harm or bool(outcome.complaints)
    return int(harm)


if __name__ == "__main__":
    raise SystemExit(main())
