"""msalint finds nothing in its own code."""

from __future__ import annotations

from pathlib import Path

import pytest

from msalint import lint_paths

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize("folder", ["msalint", "rules", "scripts", "tests"])
def test_the_code_of_the_project_is_clean(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert lint_paths([folder]) == []
