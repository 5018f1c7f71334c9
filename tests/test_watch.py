"""`--watch` checks again when a file changes, outlives mistakes in the settings, and ends with Ctrl-C."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from msalint import cli
from msalint.documents.kinds import PROSE
from msalint.files import CODE
from msalint.runner import Request, run
from msalint.watching import concerns

pytest.importorskip("watchfiles")

ROOT = Path(__file__).resolve().parent.parent
PATIENCE = 60.0
IDLE = "x = 1  # noqa: MSA901\n"
WAITING = "Watching for file changes."


class Watch:
    """`msalint --watch` as it runs in a folder, and what it says line by line."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "msalint", "--watch", "--output-format", "concise", *arguments],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line.rstrip("\n"))

    def until_waiting(self) -> list[str]:
        """What is said until the next check is done."""
        said: list[str] = []
        while not said or said[-1] != WAITING:
            said.append(self._lines.get(timeout=PATIENCE))
        return said

    def end(self) -> int:
        os.killpg(self.process.pid, signal.SIGINT)
        return self.process.wait(PATIENCE)


Start = Callable[..., Watch]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    begun: list[Watch] = []

    def begin(*arguments: str) -> Watch:
        begun.append(Watch(tmp_path, *arguments))
        return begun[-1]

    yield begin
    for watch in begun:
        watch.process.kill()
        watch.process.wait(PATIENCE)


def findings(said: list[str]) -> list[str]:
    return [line.split(" ")[0] for line in said if "MSA902" in line]


def replace(path: Path, text: str) -> None:
    """As many editors save: a new file takes the place of the old one."""
    beside = path.with_name(f".{path.name}.swp")
    beside.write_text(text)
    os.replace(beside, path)


def test_a_folder_is_checked_again_whenever_a_file_changes(tmp_path: Path, start: Start) -> None:
    (tmp_path / "a.py").write_text(IDLE)
    watch = start(".")
    assert findings(watch.until_waiting()) == ["a.py:1:8:"]
    (tmp_path / "a.py").write_text("\n" + IDLE)
    said = watch.until_waiting()
    assert said[0] == "File change detected: a.py"
    assert findings(said) == ["a.py:2:8:"]
    (tmp_path / "b.py").write_text(IDLE)
    assert findings(watch.until_waiting()) == ["a.py:2:8:", "b.py:1:8:"]
    (tmp_path / "a.py").unlink()
    assert findings(watch.until_waiting()) == ["b.py:1:8:"]
    assert watch.end() == 130


def test_a_file_that_is_replaced_again_and_again(tmp_path: Path, start: Start) -> None:
    (tmp_path / "a.py").write_text(IDLE)
    watch = start("a.py")
    watch.until_waiting()
    for number in (2, 3, 4):
        replace(tmp_path / "a.py", "\n" * (number - 1) + IDLE)
        assert findings(watch.until_waiting()) == [f"a.py:{number}:8:"]


def test_settings_are_watched_and_mistakes_in_them_outlived(tmp_path: Path, start: Start) -> None:
    (tmp_path / "msalint.toml").write_text("")
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text(IDLE)
    watch = start("src")
    assert findings(watch.until_waiting()) == ["src/a.py:1:8:"]
    (tmp_path / "msalint.toml").write_text("ignore = 3\n")
    assert "Error: msalint.toml: `ignore` must be a list of strings" in "\n".join(watch.until_waiting())
    (tmp_path / "msalint.toml").write_text('ignore = ["MSA902"]\n')
    assert findings(watch.until_waiting()) == []


def test_fixes_are_made_and_the_watch_goes_on(tmp_path: Path, start: Start) -> None:
    watch = start("--fix", ".")
    watch.until_waiting()
    (tmp_path / "a.py").write_text(IDLE)
    watch.until_waiting()
    assert (tmp_path / "a.py").read_text() == "x = 1\n"
    assert watch.end() == 130


@pytest.mark.parametrize(
    ("name", "matters"),
    [
        ("src/a.py", True),
        ("nb.ipynb", True),
        ("pyproject.toml", True),
        (".gitignore", True),
        (".msalint_cache/0.1.0-py3.11/x.json", False),
        ("a.pyc", False),
        (".git/index", False),
    ],
)
def test_which_files_matter(name: str, matters: bool) -> None:
    assert concerns(name) is matters


def test_every_kind_of_document_matters() -> None:
    assert all(concerns(f"a{ending}") for ending in (*CODE, *PROSE))


def test_the_cache_of_the_first_check_is_no_change(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(IDLE)
    run(Request((str(tmp_path),), cached=True, cache_dir=str(tmp_path / "cache")))
    made = [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    assert any(path.name == ".gitignore" for path in made)
    assert not any(concerns(str(path)) for path in made)
    assert concerns(str(tmp_path / ".gitignore"))


def test_without_the_library_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    assert cli.run(["--watch"]) == 2
    assert 'pip install "msalint[watch]"' in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"), [(["-w", "-"], "`-` (stdin)"), (["-w", "none.py"], "none.py: no such file or folder")]
)
def test_what_cannot_be_watched_is_told(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("msalint.cli.watch.MISSING_SECONDS", 0.0)
    assert cli.run(arguments) == 2
    assert said in capsys.readouterr().err
