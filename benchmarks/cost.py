"""What a cold single-process check costs, as a ratio to `ast.parse` of the files that pass the gate, in one run.

    python benchmarks/cost.py FOLDER...        folders of unpacked packages

The unit is CPU time of this machine in this run; only the ratio means anything. The check starts a fresh interpreter,
reads every file of the folder, and reports; the yardstick parses only the files that pass the gate, already read.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))


def candidate_texts(folder: Path) -> tuple[int, list[str]]:
    """How many Python files a folder has, and the texts of those that pass the gate."""
    from msalint.gate import candidates
    from msalint.source import SourceError, read

    files = sorted(folder.rglob("*.py"))
    texts = []
    for path in files:
        try:
            text = read(str(path)).text
            if candidates(text, str(path)) is not None:
                texts.append(text)
        except (SourceError, RecursionError):
            continue
    return len(files), texts


def parse_seconds(texts: list[str], rounds: int = 3) -> float:
    """CPU seconds of `ast.parse` over the texts, the best of some rounds."""
    best = float("inf")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(rounds):
            begin = time.process_time()
            for text in texts:
                ast.parse(text)
            best = min(best, time.process_time() - begin)
    return best


def check_seconds(folder: Path) -> float:
    """CPU seconds of `msalint check FOLDER` in one fresh process."""
    command = [sys.executable, "-m", "msalint", "check", str(folder), "-j", "1", "--no-cache", "--quiet"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    before = os.times()
    subprocess.run(command, env=environment, capture_output=True, check=False)
    after = os.times()
    spent = after.children_user + after.children_system
    return spent - before.children_user - before.children_system


def main(folders: list[str]) -> None:
    if not folders:
        sys.exit(__doc__)
    print(f"{'folder':<24}{'files':>7}{'candidates':>12}{'ast.parse':>11}{'check':>9}{'ratio':>8}")
    for name in folders:
        folder = Path(name)
        files, texts = candidate_texts(folder)
        parse, check = parse_seconds(texts), check_seconds(folder)
        print(f"{folder.name:<24}{files:>7}{len(texts):>12}{parse:>10.2f}s{check:>8.2f}s{check / parse:>8.1f}")


if __name__ == "__main__":
    main(sys.argv[1:])
