"""Where the fixtures are."""

from __future__ import annotations

from collections.abc import Iterator
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


@pytest.fixture(autouse=True, scope="session")
def no_cache() -> Iterator[None]:
    """A test sees what a check finds now; those of the cache turn it on."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MSALINT_NO_CACHE", "1")
        yield
