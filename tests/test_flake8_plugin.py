"""The real flake8 finds the plugin by its entry point and tells what msalint finds."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent

FAULT = """import torch


def attend(q, k, v, heads):
    b, h, t, d = q.shape
    weights = torch.softmax(q @ k.transpose(-2, -1) / d ** 0.5, dim=-1)
    return (weights @ v).transpose(1, 2).view(b, t, h * d)
"""
LINE = "t, h * d)"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project, with msalint installed beside it as far as flake8 can tell."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    info = tmp_path / "site" / "msalint-0.1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: msalint\nVersion: 0.1.0\n")
    rows = project["entry-points"]["flake8.extension"].items()
    (info / "entry_points.txt").write_text("[flake8.extension]\n" + "".join(f"{key} = {to}\n" for key, to in rows))
    here = tmp_path / "project"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path / "site"), str(ROOT)]))
    return here


def flake8(*arguments: str, stdin: str | None = None) -> tuple[int, list[str]]:
    done = subprocess.run(
        [sys.executable, "-m", "flake8", "--select", "MSA", *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, (done.stdout + done.stderr).splitlines()


def test_flake8_knows_the_plugin(here: Path) -> None:
    (version,) = flake8("--version")[1][:1]
    assert re.search(r"\bmsalint: \d+\.\d+", version)


def test_a_finding_is_told_at_the_place_that_msalint_tells(here: Path) -> None:
    (here / "a.py").write_text(FAULT)
    (here / "clean.py").write_text("import torch\n")
    code, lines = flake8(".")
    assert code == 1 and len(lines) == 1
    assert lines[0].startswith("./a.py:7:12: MSA101 this view merges")


def test_flake8s_own_noqa_and_select_rule(here: Path) -> None:
    (here / "a.py").write_text(FAULT.replace(LINE, LINE + "  # noqa: MSA101"))
    assert flake8(".") == (0, [])
    code, lines = flake8("--disable-noqa", ".")
    assert code == 1 and [line.split()[1] for line in lines] == ["MSA101"]
    assert flake8("--disable-noqa", "--extend-ignore", "MSA1", ".") == (0, [])
    (here / "a.py").write_text(FAULT.replace(LINE, LINE + "  # noqa"))
    assert flake8(".") == (0, [])


def test_our_own_suppressions_and_settings_count(here: Path) -> None:
    (here / "a.py").write_text(FAULT.replace(LINE, LINE + "  # msalint: ignore[MSA101] -- one head"))
    assert flake8("--disable-noqa", ".") == (0, [])
    (here / "a.py").write_text(FAULT)
    for settings in ('ignore = ["MSA101"]', 'extend-exclude = ["a.py"]', 'per-file-ignores = { "a.py" = ["MSA"] }'):
        (here / "msalint.toml").write_text(settings + "\n")
        assert flake8(".") == (0, []), settings


def test_wrong_settings_are_told(here: Path) -> None:
    (here / "a.py").write_text(FAULT)
    (here / "msalint.toml").write_text("selct = []\n")
    code, lines = flake8(".")
    assert code == 1 and lines == ["msalint: msalint.toml: unknown key `selct`, did you mean `select`?"]
    (here / "msalint.toml").rename(here / "sub.toml")
    (here / "sub").mkdir()
    (here / "a.py").rename(here / "sub" / "a.py")
    (here / "sub.toml").rename(here / "sub" / "msalint.toml")
    code, lines = flake8("-j", "1", ".")
    assert code == 1 and len(lines) == 1 and "MSA903 sub/msalint.toml: unknown key" in lines[0]


def test_helpers_of_the_project_are_known(here: Path) -> None:
    (here / "helper.py").write_text("def merge(x):\n    return x.transpose(1, 2)\n")
    body = FAULT.replace("(weights @ v).transpose(1, 2)", "merge(weights @ v)")
    (here / "a.py").write_text("from helper import merge\n" + body)
    code, lines = flake8(".")
    assert code == 1 and [line.split(":")[0] for line in lines] == ["./a.py"]


def test_stdin(here: Path) -> None:
    code, lines = flake8("-", "--stdin-display-name", "x/a.py", stdin=FAULT)
    assert code == 1 and lines[0].startswith("x/a.py:7:12: MSA101")


def test_many_files_in_several_processes(here: Path) -> None:
    for number in range(4):
        (here / f"a{number}.py").write_text(FAULT)
    assert len(flake8("-j", "2", ".")[1]) == 4
