"""What start-up leaves unimported: torch always, libcst where nothing is analysed, commands that were not given."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

HEAVY = {"torch", "jaxtyping", "beartype", "numpy", "matplotlib", "rich"}


def loaded(arguments: list[str], cwd: Path = ROOT) -> set[str]:
    """The top-level modules and those of msalint that a run of the command line leaves in memory."""
    code = (
        "import sys, io; sys.path.insert(0, sys.argv.pop(1)); out = sys.stdout; sys.stdout = io.StringIO();"
        "from msalint.cli import run; code = run(sys.argv[1:]);"
        "out.write(' '.join(n for n in sys.modules if '.' not in n or n.startswith('msalint')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(ROOT), *arguments], cwd=cwd, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "plain.py").write_text("import torch\n\nx = 1\n")
    return tmp_path


@pytest.fixture
def attention(tmp_path: Path) -> Path:
    (tmp_path / "attention.py").write_text(
        "import torch\n\n\ndef attend(q, k, v):\n    return torch.softmax(q @ k.transpose(-2, -1), dim=-1) @ v\n"
    )
    return tmp_path


def test_help_imports_neither_rules_nor_the_analysis() -> None:
    names = loaded(["--help"])
    assert not names & (HEAVY | {"libcst", "pathspec"})
    assert not {name for name in names if name.startswith(("msalint.rule", "msalint.flow", "msalint.check"))}


def test_the_manual_imports_no_libcst() -> None:
    assert not loaded(["rule", "MSA901"]) & (HEAVY | {"libcst"})


def test_a_run_over_files_without_attention_imports_no_libcst(folder: Path) -> None:
    assert not loaded(["check", "."], folder) & (HEAVY | {"libcst"})


def test_a_check_never_imports_torch(attention: Path) -> None:
    names = loaded(["check", "--exit-zero", "."], attention)
    assert not names & HEAVY
    assert "libcst" not in names


def test_the_public_api_is_lazy() -> None:
    code = "import sys, msalint; print(*[n for n in sys.modules if n.startswith('msalint')])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["msalint"]


def test_the_public_api_is_there() -> None:
    import msalint

    for name in msalint.__all__:
        assert getattr(msalint, name) is not None
    assert set(dir(msalint)) == set(msalint.__all__)
    with pytest.raises(AttributeError):
        _ = msalint.lint_everything
