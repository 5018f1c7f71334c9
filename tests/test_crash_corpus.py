"""Every installed module goes through: no internal error, none takes long. A sample; all of them with CORPUS=all."""

from __future__ import annotations

import os
import random
import sysconfig
import time
from pathlib import Path

import pytest

from msalint.check import InternalError, lint_file
from msalint.gate import is_about_attention, is_torch
from msalint.source import SourceError, read

SITE = Path(sysconfig.get_paths()["purelib"])
SEED = 20
ABOUT_ATTENTION, OTHERS = 120, 600
LONG = 10.0
"""Seconds of processor time that no file may take."""
BUDGET = 30.0
"""Seconds of processor time for a sample; what is left of it then is not checked."""


def _installed() -> list[Path]:
    return sorted(path for path in SITE.rglob("*.py") if path.is_file())


def _is_about_attention(path: Path) -> bool:
    try:
        text = read(str(path)).text
    except SourceError:
        return False
    return is_about_attention(text) and is_torch(text)


def _sample() -> tuple[list[Path], list[Path]]:
    """Modules that are analysed, and modules that the gate stops, both drawn in a fixed order."""
    draw = random.Random(SEED)
    paths = _installed()
    draw.shuffle(paths)
    if os.environ.get("CORPUS") == "all":
        return [path for path in paths if _is_about_attention(path)], paths
    drawn = paths[: 10 * ABOUT_ATTENTION]
    attention = [path for path in drawn if _is_about_attention(path)]
    torch = [path for path in paths if "torch" in path.parts and "attention" in path.name]
    return [*torch, *attention][:ABOUT_ATTENTION], drawn[:OTHERS]


def _check(paths: list[Path], budget: float) -> tuple[int, list[str]]:
    """How many files were checked within the budget, and what went wrong."""
    wrong: list[str] = []
    begun = time.process_time()
    for number, path in enumerate(paths):
        started = time.process_time()
        if started - begun > budget:
            return number, wrong
        try:
            lint_file(str(path))
        except InternalError as error:
            wrong.append(error.detail)
        spent = time.process_time() - started
        if spent > LONG:
            wrong.append(f"{path} took {spent:.1f} s")
    return len(paths), wrong


@pytest.fixture(scope="module")
def sample() -> tuple[list[Path], list[Path]]:
    return _sample()


def test_installed_modules_about_attention_go_through(sample: tuple[list[Path], list[Path]]) -> None:
    budget = float("inf") if os.environ.get("CORPUS") == "all" else BUDGET
    number, wrong = _check(sample[0], budget)
    assert not wrong, "\n".join(wrong)
    assert number >= 20


def test_other_installed_modules_go_through(sample: tuple[list[Path], list[Path]]) -> None:
    budget = float("inf") if os.environ.get("CORPUS") == "all" else BUDGET / 2
    number, wrong = _check(sample[1], budget)
    assert not wrong, "\n".join(wrong)
    assert number >= 200
