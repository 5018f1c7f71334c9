"""What a run costs whose every result is in the cache, as a ratio to the same run without one, and to doing nothing.

    python benchmarks/cached.py FOLDER...        folders of unpacked packages

The units are wall time of this machine in this run, the best of some rounds; only the ratios mean anything. "nothing"
is `msalint --version`: an interpreter and the command line, no file read.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROUNDS = 5


def seconds(arguments: list[str], rounds: int = ROUNDS) -> float:
    """Wall seconds of a run of the command line, the best of some rounds."""
    command = [sys.executable, "-m", "msalint", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    best = float("inf")
    for _ in range(rounds):
        begin = time.perf_counter()
        subprocess.run(command, env=environment, capture_output=True, check=False)
        best = min(best, time.perf_counter() - begin)
    return best


def main(folders: list[str]) -> None:
    if not folders:
        sys.exit(__doc__)
    nothing = seconds(["--version"])
    print(f"{'folder':<24}{'files':>7}{'no cache':>10}{'cached':>9}{'times faster':>14}{'times nothing':>15}")
    for name in folders:
        folder = Path(name)
        files = sum(1 for _ in folder.rglob("*.py"))
        check = ["check", str(folder), "-j", "1", "--quiet"]
        with tempfile.TemporaryDirectory() as cache:
            without = seconds([*check, "--no-cache"], rounds=1)
            seconds([*check, "--cache-dir", cache], rounds=1)
            cached = seconds([*check, "--cache-dir", cache])
        faster, times = without / cached, cached / nothing
        print(f"{folder.name:<24}{files:>7}{without:>9.2f}s{cached:>8.2f}s{faster:>14.0f}{times:>15.1f}")


if __name__ == "__main__":
    main(sys.argv[1:])
