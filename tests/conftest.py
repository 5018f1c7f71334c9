"""Where the fixtures are."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def root() -> Path:
    """The top of the project."""
    return ROOT


@pytest.fixture(scope="session")
def fixtures(root: Path) -> Path:
    """The folder of all fixtures."""
    return root / "fixtures"
