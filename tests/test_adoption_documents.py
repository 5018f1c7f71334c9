"""Adopting msalint where the code is in notebooks and in docs."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from msalint import cli

ATTENTION = """\
def attend(q, k, v):
    scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(q.size(-1))
    weights = torch.softmax(scores, dim=-2)
    return torch.matmul(weights, v)
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def notebook(path: Path, *cells: str) -> None:
    code: list[dict[str, object]] = [
        {"cell_type": "code", "metadata": {}, "execution_count": None, "outputs": [], "source": cell.splitlines(True)}
        for cell in cells
    ]
    path.write_text(json.dumps({"cells": code, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1) + "\n")


def sources(path: Path) -> list[str]:
    return ["".join(cell["source"]) for cell in json.loads(path.read_text())["cells"]]


def test_comments_in_a_notebook(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = here / "a.ipynb"
    notebook(path, "%matplotlib inline\nimport math\nimport torch\n", ATTENTION)
    assert cli.run(["--output-format", "concise"]) == 1
    assert cli.run(["--add-ignore=shown in the talk"]) == 0
    assert "Added 1 ignore comment." in capsys.readouterr().err
    assert sources(path)[1] == ATTENTION.replace("dim=-2)", "dim=-2)  # msalint: ignore[MSA211] -- shown in the talk")
    assert cli.run([]) == 0


def test_comments_in_a_code_block(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = here / "a.md"
    path.write_text(f"Before.\n\n```python\nimport math, torch\n{ATTENTION}```\n\nAfter.\n")
    before = path.read_text()
    assert cli.run(["--include-docs", "--add-noqa"]) == 0
    assert path.read_text() == before.replace("dim=-2)", "dim=-2)  # noqa: MSA211")
    assert cli.run(["--include-docs"]) == 0


def test_comments_in_a_docstring(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A finding belongs to the piece inside: a comment behind the docstring would not hide it."""
    code = "import math, torch\n" + ATTENTION
    example = "".join(f"    {line}" for line in code.splitlines(True))
    path = here / "a.py"
    path.write_text(f'def f():\n    """For instance:\n\n    ```python\n{example}    ```\n    """\n\n\n{code}')
    before = path.read_text()
    assert cli.run(["--include-docs", "--add-ignore"]) == 0
    assert "Added 2 ignore comments." in capsys.readouterr().err
    assert path.read_text() == before.replace("dim=-2)", "dim=-2)  # msalint: ignore[MSA211]")
    assert cli.run(["--include-docs"]) == 0


def test_changed_lines_of_a_notebook(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def git(*arguments: str) -> None:
        identity = {f"GIT_{who}_{what}": "a@b.c" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        subprocess.run(["git", *arguments], check=True, capture_output=True, env={**os.environ, **identity})

    path = here / "a.ipynb"
    notebook(path, "import math\nimport torch\n", ATTENTION)
    git("init", "-q")
    git("add", "-A")
    git("commit", "-q", "-m", "one")
    assert cli.run(["--since", "HEAD"]) == 0
    notebook(path, "import math\nimport torch\nx = 1\n", ATTENTION)
    assert cli.run(["--since", "HEAD"]) == 0
    notebook(path, "import math\nimport torch\n", ATTENTION.replace("dim=-2", "dim = -2"))
    assert cli.run(["--since", "HEAD"]) == 1
