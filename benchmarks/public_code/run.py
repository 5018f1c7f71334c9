"""Runs msalint over released wheels of public packages, file by file, and tells what it found and how long it took.

    python -m benchmarks.public_code.run WHEELS --download     # fetch the released wheels first, then check them
    python -m benchmarks.public_code.run WHEELS --only timm --json findings.json

WHEELS is a folder of wheels; each is unpacked once, into WHEELS/src/NAME. Nothing is installed, and nothing is run.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import time
import zipfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from msalint.check import InternalError, lint_file
from msalint.diagnostic import Diagnostic
from msalint.gate import candidates
from msalint.project import Project
from msalint.source import read

PACKAGES = (
    "timm==1.0.31",
    "transformers==5.24.0",
    "diffusers==0.42.1",
    "x-transformers==2.31.10",
    "vit-pytorch==1.26.14",
    "torchtune==0.6.1",
    "litgpt==0.5.13",
    "espnet==202511",
    "speechbrain==1.1.2",
    "open_clip_torch==3.3.0",
    "peft==0.21.2",
    "trl==1.16.0",
    "torchtitan==0.3.0",
    "xformers==0.0.35",
)

HANG = 60
"""Seconds after which a file counts as a hang."""


@dataclass
class Tally:
    """What the check of one package gave."""

    name: str
    version: str
    files: int = 0
    candidates: int = 0
    seconds: float = 0.0
    errors: list[str] = field(default_factory=list)
    slowest: list[tuple[float, str]] = field(default_factory=list)
    findings: list[Diagnostic] = field(default_factory=list)


class Hang(BaseException):
    """A file took too long."""


@contextmanager
def _time_limit(seconds: int) -> Iterator[None]:
    def ring(*_: object) -> None:
        raise Hang

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def download(wheels: Path) -> None:
    """Fetch the pinned wheels, without what they depend on."""
    for package in PACKAGES:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(wheels), package]
        subprocess.run(command, check=True)


def unpacked(wheels: Path) -> list[tuple[str, str, Path]]:
    """Name, version and folder of each wheel, unpacked where it was not yet."""
    found = []
    for wheel in sorted(wheels.glob("*.whl")):
        name, version = wheel.name.split("-")[:2]
        folder = wheels / "src" / name
        if not folder.is_dir():
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(folder)
        found.append((name, version, folder))
    return found


def check_package(name: str, version: str, folder: Path) -> Tally:
    """Check every file of a package in this process."""
    tally = Tally(name, version)
    project = Project([folder])
    for path in sorted(folder.rglob("*.py")):
        tally.files += 1
        tally.candidates += _is_candidate(path)
        started = time.process_time()
        try:
            with _time_limit(HANG):
                tally.findings += lint_file(str(path), project=project)
        except InternalError as error:
            tally.errors.append(error.detail)
        except Hang:
            tally.errors.append(f"{path}: no end after {HANG} s")
        spent = time.process_time() - started
        tally.seconds += spent
        tally.slowest.append((spent, str(path.relative_to(folder))))
    tally.slowest.sort(reverse=True)
    return tally


def _is_candidate(path: Path) -> bool:
    try:
        return candidates(read(str(path)).text, str(path)) is not None
    except Exception:
        return False


def as_json(tally: Tally, folder: Path) -> dict[str, object]:
    """The tally of a package as plain data."""
    return {
        "package": tally.name,
        "version": tally.version,
        "files": tally.files,
        "candidates": tally.candidates,
        "seconds": round(tally.seconds, 2),
        "errors": tally.errors,
        "slowest": [[round(seconds, 2), path] for seconds, path in tally.slowest[:20]],
        "findings": [
            {
                "file": str(Path(one.filename).relative_to(folder)),
                "line": one.span.start.line,
                "code": one.code,
                "level": one.level.value,
                "message": one.message,
                "trail": [[step.span.start.line, step.message] for step in one.trail],
            }
            for one in tally.findings
        ],
    }


def _print(tally: Tally, slow: float) -> None:
    codes = Counter(one.code for one in tally.findings)
    counts = "  ".join(f"{code}:{number}" for code, number in sorted(codes.items()))
    print(
        f"{tally.name:16} {tally.version:10} files {tally.files:5}  candidates {tally.candidates:4}  "
        f"internal errors {len(tally.errors):2}  {tally.seconds:7.1f} s  {counts}",
        flush=True,
    )
    for seconds, path in tally.slowest:
        if seconds < slow:
            break
        print(f"    {seconds:6.1f} s  {path}")
    for error in tally.errors:
        print("    " + error.strip().replace("\n", "\n    "))


def main() -> int:
    """The command line; 1 where a file broke or hung."""
    parser = argparse.ArgumentParser(description="Run msalint over released wheels of public packages.")
    parser.add_argument("wheels", type=Path, help="a folder of wheels")
    parser.add_argument("--download", action="store_true", help="fetch the released wheels into the folder first")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="check this package alone")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all that was found to a file")
    parser.add_argument("--slow", type=float, default=3.0, metavar="SECONDS", help="name the files that take longer")
    options = parser.parse_args()
    if options.download:
        options.wheels.mkdir(parents=True, exist_ok=True)
        download(options.wheels)
    told: list[dict[str, object]] = []
    broken = False
    for name, version, folder in unpacked(options.wheels):
        if options.only and name not in options.only:
            continue
        tally = check_package(name, version, folder)
        _print(tally, options.slow)
        broken = broken or bool(tally.errors)
        told.append(as_json(tally, folder))
    if options.json is not None:
        options.json.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    return 1 if broken else 0


if __name__ == "__main__":
    raise SystemExit(main())
