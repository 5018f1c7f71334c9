"""`msalint shapes` reads notebooks and prose as a check does, and says where and why it can't."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from msalint.cli import run

IMPORTS = "%matplotlib inline\nimport torch"
ATTEND = """\
def attend(q, k, v):
    b, h, t, d = q.shape
    scores = q @ k.transpose(-2, -1) / d**0.5
    weights = scores.softmax(-1)
    return weights @ v
"""
USED = "class Block(torch.nn.Module):\n    def forward(self, x):\n        y = attend(x, x, x)\n        return y"


def notebook(path: str, *codes: str, language: str = "python", **metadata: Any) -> None:
    cells: list[dict[str, Any]] = [{"cell_type": "markdown", "metadata": {}, "source": "# Attention"}] + [
        {"cell_type": "code", "metadata": metadata, "source": code, "outputs": [], "execution_count": None}
        for code in codes
    ]
    data = {"cells": cells, "metadata": {"language_info": {"name": language}}, "nbformat": 4, "nbformat_minor": 5}
    Path(path).write_text(json.dumps(data))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_notebook_is_drawn_as_one_flow_by_cell(capsys: pytest.CaptureFixture[str]) -> None:
    notebook("a.ipynb", IMPORTS, ATTEND, USED)
    assert run(["shapes", "a.ipynb"]) == 0
    out = capsys.readouterr().out
    alone, used = out.split("\n\n")
    assert alone.startswith("attend  a.ipynb\n") and "cell 3:3  scores" in alone and "cell 3:4  weights" in alone
    assert used.startswith("Block.forward  a.ipynb\n") and "cell 4:3  y" in used and "cell 3:3  scores" in used


def test_a_definition_of_a_notebook_is_found_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    notebook("a.ipynb", IMPORTS, ATTEND, USED)
    assert run(["shapes", "a.ipynb::Block.forward"]) == 0
    assert capsys.readouterr().out.startswith("Block.forward  a.ipynb\n")
    assert run(["shapes", "a.ipynb::Block.backward"]) == 2
    assert "there are attend, Block" in capsys.readouterr().err


def test_a_cell_that_is_no_python_is_told_and_the_others_are_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    notebook("a.ipynb", IMPORTS, "def torch_attention(:\n    pass", ATTEND)
    assert run(["shapes", "a.ipynb"]) == 0
    done = capsys.readouterr()
    assert done.err.startswith("warning: a.ipynb:cell 3:1:") and "cell 4:3  scores" in done.out


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"cells": [', "a.ipynb:1:12: a notebook is a JSON file, and this is not valid JSON"),
        ("[1, 2]", "a.ipynb: this is no Jupyter notebook"),
        ('{"nbformat": 3, "worksheets": []}', "a.ipynb: notebooks of format 4 are read"),
        (ATTEND, "a.ipynb: a notebook is a JSON file"),
    ],
)
def test_what_is_no_notebook_is_one_clear_error(text: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.ipynb").write_text(text)
    assert run(["shapes", "a.ipynb"]) == 2
    done = capsys.readouterr()
    assert done.out == "" and done.err.startswith(f"Error: {words}") and done.err.count("\n") == 1
    assert run(["shapes", "--summary", "a.ipynb"]) == 2
    assert capsys.readouterr().err.startswith("Error: a.ipynb: ")


def test_a_notebook_in_another_language_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    notebook("a.ipynb", "x <- softmax(torch)", language="R")
    assert run(["shapes", "a.ipynb"]) == 2
    assert "this notebook's code is R, not Python" in capsys.readouterr().err


def test_jupytext_s_python_is_python(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.py").write_text(f"# %% [markdown]\n# # Attention\n\n# %%\nimport torch\n\n# %%\n# %time\n{ATTEND}")
    assert run(["shapes", "a.py"]) == 0
    assert "    11  scores" in capsys.readouterr().out


def test_code_in_prose_is_drawn_at_its_place_in_the_file(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.md").write_text(f"# Attention\n\n```python\nnot Python\n```\n\n```python\n{ATTEND}```\n")
    assert run(["shapes", "a.md"]) == 0
    assert "    10  scores" in capsys.readouterr().out


def test_what_is_no_python_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.py").write_text("def attend(:\n    pass\n")
    assert run(["shapes", "a.py"]) == 2
    assert capsys.readouterr().err == "Error: a.py:1:12: invalid syntax\n"
    Path("a.py").write_text("x = " + "(" * 5_000 + ")" * 5_000)
    assert run(["shapes", "a.py"]) == 2
    assert "internal error" not in capsys.readouterr().err


def test_a_summary_counts_notebooks_by_cell_and_refuses_what_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    odd = "import torch\n\n\ndef attend(q, k, v):\n    return torch.softmax(mix(q, k), -1) @ v\n"
    notebook("a.ipynb", IMPORTS, odd)
    Path("broken.ipynb").write_text("{")
    assert run(["shapes", "--summary", "."]) == 0
    out = capsys.readouterr().out
    assert out.startswith("1 files with attention code, 1 sites") and "a.ipynb:cell 3:5)" in out
    assert run(["shapes", "--summary", "none.py"]) == 2
    assert capsys.readouterr().err == "Error: none.py: can't read this: No such file or directory\n"
