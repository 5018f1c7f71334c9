"""The hooks under the real pre-commit, in a repository of their own, from a clone of this one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.test_fix_cli import UNSCALED, VIEW, VIEWED

ROOT = Path(__file__).resolve().parent.parent

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


@dataclass(frozen=True)
class Repository:
    """A scratch repository whose commits pre-commit looks at."""

    folder: Path
    environment: dict[str, str]

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=600
        )

    def git(self, *arguments: str) -> str:
        done = self.run("git", *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.strip()

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def commit(self, *hooks: str) -> subprocess.CompletedProcess[str]:
        """Try to commit all there is, with some of the hooks."""
        rows = "".join(f"      - id: {hook}\n" for hook in hooks)
        config = f"repos:\n  - repo: {self.environment['HOOKS']}\n    rev: v0\n    hooks:\n{rows}"
        self.write(".pre-commit-config.yaml", config)
        self.git("add", "--all")
        return self.run("git", "commit", "--message", "words")

    def commits(self) -> int:
        return int(self.git("rev-list", "--count", "HEAD"))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What all tests here share: a clone with the hooks, a git that knows nobody else, pre-commit's environments."""
    place = tmp_path_factory.mktemp("home")
    (place / "gitconfig").write_text("[user]\n  name = N\n  email = n@example.org\n[init]\n  defaultBranch = main\n")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "PRE_COMMIT"))}
    environment = kept | {
        "GIT_CONFIG_GLOBAL": str(place / "gitconfig"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "PRE_COMMIT_HOME": str(place / "cache"),
        "HOOKS": str(place / "hooks"),
    }
    hooks = Repository(place / "hooks", environment)
    hooks.folder.mkdir()
    for name in ("msalint", "rules"):
        shutil.copytree(ROOT / name, hooks.folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", ".pre-commit-hooks.yaml"):
        shutil.copy(ROOT / name, hooks.folder)
    hooks.git("init", "--quiet")
    hooks.git("add", "--all")
    hooks.git("commit", "--quiet", "--message", "hooks")
    hooks.git("tag", "v0")
    return environment


@pytest.fixture
def repository(home: dict[str, str], tmp_path: Path) -> Repository:
    """A repository with one commit and pre-commit installed in it."""
    found = Repository(tmp_path, home)
    found.git("init", "--quiet")
    found.git("commit", "--quiet", "--allow-empty", "--message", "first")
    done = found.run(sys.executable, "-m", "pre_commit", "install")
    assert done.returncode == 0, done.stdout + done.stderr
    return found


def test_a_clean_file_is_committed(repository: Repository) -> None:
    repository.write("net.py", VIEWED)
    done = repository.commit("msalint")
    assert done.returncode == 0, done.stdout + done.stderr
    assert repository.commits() == 2


def test_a_finding_stops_the_commit_and_is_shown(repository: Repository) -> None:
    repository.write("src/net.py", VIEW)
    done = repository.commit("msalint")
    assert done.returncode == 1 and repository.commits() == 1
    assert "src/net.py:16:16: MSA101 [error] [*]" in done.stdout + done.stderr
    assert (repository.folder / "src" / "net.py").read_text() == VIEW


def test_the_fix_hook_mends_and_the_next_commit_passes(repository: Repository) -> None:
    repository.write("net.py", VIEW)
    done = repository.commit("msalint-fix")
    assert done.returncode == 1 and "files were modified by this hook" in done.stdout + done.stderr
    assert (repository.folder / "net.py").read_text() == VIEWED
    assert repository.commit("msalint-fix").returncode == 0
    assert repository.commits() == 2


def test_what_the_fix_hook_can_not_mend_stops_the_commit(repository: Repository) -> None:
    repository.write("net.py", UNSCALED)
    done = repository.commit("msalint-fix")
    assert done.returncode == 1 and "MSA201" in done.stdout + done.stderr
    assert "files were modified" not in done.stdout + done.stderr


def test_excluded_files_and_other_languages_are_left_alone(repository: Repository) -> None:
    repository.write("pyproject.toml", '[tool.msalint]\nextend-exclude = ["third_party"]\n')
    repository.write("third_party/net.py", VIEW)
    repository.write("net.txt", VIEW)
    done = repository.commit("msalint", "msalint-fix")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (repository.folder / "third_party" / "net.py").read_text() == VIEW


def test_notebooks_are_checked_and_mended(repository: Repository) -> None:
    cell: dict[str, object] = {
        "cell_type": "code",
        "execution_count": None,
        "id": "a",
        "metadata": {},
        "outputs": [],
        "source": VIEW,
    }
    notebook = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    repository.write("net.ipynb", json.dumps(notebook))
    done = repository.commit("msalint")
    assert done.returncode == 1 and "net.ipynb:cell 1:16:16: MSA101" in done.stdout + done.stderr
    assert repository.commit("msalint-fix").returncode == 1
    mended = json.loads((repository.folder / "net.ipynb").read_text())
    assert "".join(mended["cells"][0]["source"]) == VIEWED


def test_the_environment_of_the_hooks_holds_no_torch(repository: Repository) -> None:
    repository.write("net.py", VIEWED)
    assert repository.commit("msalint").returncode == 0
    installed = {
        path.name for path in Path(repository.environment["PRE_COMMIT_HOME"]).glob("repo*/py_env*/**/site-packages/*")
    }
    assert "msalint" in installed and "libcst" in installed
    assert not {name for name in installed if name.startswith(("torch", "jaxtyping", "beartype", "numpy"))}
