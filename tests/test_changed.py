"""`--since`: findings on lines that git says have changed, and on no others."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from msalint import cli
from msalint.changed import GitError, changed_lines, changes_since

IDLE = "x = 1  # noqa: MSA901\n"


def git(*arguments: str) -> str:
    identity = {f"GIT_{who}_{what}": "a@b.c" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environment = {**os.environ, **identity, "GIT_CONFIG_GLOBAL": os.devnull}
    done = subprocess.run(["git", *arguments], check=True, capture_output=True, text=True, env=environment)
    return done.stdout.strip()


def commit(message: str = "more") -> None:
    git("add", "-A")
    git("commit", "-q", "--allow-empty", "-m", message)


@pytest.fixture(autouse=True)
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with one commit, in which a.py has three findings."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    git("init", "-q", "-b", "main")
    (tmp_path / "a.py").write_text(IDLE * 3)
    commit()
    return tmp_path


def found(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert cli.run(["--output-format", "concise", "-q", *arguments]) in (0, 1)
    return [":".join(line.split(":")[:2]) for line in capsys.readouterr().out.splitlines()]


def test_nothing_changed(capsys: pytest.CaptureFixture[str]) -> None:
    assert found(capsys, "--since", "HEAD") == []
    assert len(found(capsys)) == 3


def test_changed_and_added_lines_count_whether_staged_or_not(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (repository / "a.py").write_text(IDLE + IDLE.replace("1 ", "2 ") + IDLE + IDLE.replace("1 ", "3 "))
    assert found(capsys, "--since", "HEAD") == ["a.py:2", "a.py:4"]
    git("add", "-A")
    assert found(capsys, "--since", "HEAD") == ["a.py:2", "a.py:4"]
    commit()
    assert found(capsys, "--since", "HEAD") == []
    assert found(capsys, "--since", "HEAD~1") == ["a.py:2", "a.py:4"]


def test_lines_that_moved_down_have_not_changed(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (repository / "a.py").write_text("y = 0\n" + IDLE * 3)
    assert found(capsys, "--since", "HEAD") == []


def test_lines_that_went_away_leave_nothing(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (repository / "a.py").write_text(IDLE * 2)
    assert found(capsys, "--since", "HEAD") == []


def test_files_that_git_does_not_know_are_new(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (repository / "new.py").write_text(IDLE)
    (repository / "staged.py").write_text(IDLE)
    git("add", "staged.py")
    assert found(capsys, "--since", "HEAD") == ["new.py:1", "staged.py:1"]


def test_a_renamed_file_is_not_new(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (repository / "a.py").write_text("".join(IDLE.replace("x", f"x{n}") for n in range(20)))
    commit()
    git("mv", "a.py", "b.py")
    assert found(capsys, "--since", "HEAD") == []
    lines = (repository / "b.py").read_text().splitlines(keepends=True)
    (repository / "b.py").write_text("".join([*lines[:5], IDLE, *lines[5:]]))
    assert found(capsys, "--since", "HEAD") == ["b.py:6"]


def test_a_finding_of_several_lines_counts_by_any_of_them(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from msalint.changed import Changes
    from msalint.diagnostic import Diagnostic, Level, Position, Span

    span = Span(Position(3, 1), Position(6, 1))
    one = Diagnostic("MSA101", "n", Level.ERROR, "w", "a.py", span)
    for lines, touched in (([range(6, 7)], True), ([range(1, 3), range(7, 9)], False), ([range(3, 4)], True)):
        changes = Changes("HEAD", str(repository), {"a.py": lines}, frozenset({"a.py"}))
        assert changes.touch(one) is touched


def test_from_a_folder_below(
    repository: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (repository / "sub").mkdir()
    (repository / "sub" / "b.py").write_text(IDLE)
    commit()
    (repository / "sub" / "b.py").write_text(IDLE * 2)
    monkeypatch.chdir(repository / "sub")
    assert found(capsys, "--since", "HEAD", "..") == ["../sub/b.py:2"]


@pytest.mark.parametrize("name", ["ü.py", "with space.py", 'quote".py', "tab\t.py", "back\\slash.py"])
def test_odd_names(repository: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    (repository / name).write_text(IDLE)
    commit()
    assert found(capsys, "--since", "HEAD", name) == []
    (repository / name).write_text(IDLE * 2)
    assert found(capsys, "--since", "HEAD", name) == [f"{name}:2"]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("diff.noprefix", "true"),
        ("diff.mnemonicPrefix", "true"),
        ("diff.external", "false"),
        ("color.ui", "always"),
        ("diff.context", "5"),
        ("diff.interHunkContext", "5"),
        ("diff.relative", "true"),
        ("core.quotePath", "false"),
    ],
)
def test_settings_of_git_change_nothing(
    repository: Path, capsys: pytest.CaptureFixture[str], key: str, value: str
) -> None:
    git("config", key, value)
    (repository / "a.py").write_text(IDLE + IDLE.replace("1 ", "2 ") + IDLE)
    assert found(capsys, "--since", "HEAD") == ["a.py:2"]


def test_since_a_branch_was_left(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    git("checkout", "-q", "-b", "feature")
    (repository / "feature.py").write_text(IDLE)
    commit()
    git("checkout", "-q", "main")
    (repository / "a.py").write_text(IDLE.replace("1 ", "9 ") + IDLE * 2)
    commit()
    git("checkout", "-q", "feature")
    assert found(capsys, "--since", "main...") == ["feature.py:1"]
    assert found(capsys, "--since", "main") == ["a.py:1", "feature.py:1"]


def test_lines_that_look_like_a_diff(repository: Path) -> None:
    (repository / "a.py").write_text("++ b/other.py\n@@ -1 +1 @@\n")
    commit()
    (repository / "a.py").write_text("++ b/third.py\n@@ -7 +7 @@\n-- a/x\n")
    assert changes_since("HEAD").lines == {"a.py": [range(1, 4)]}


def test_a_diff_is_read() -> None:
    hunks = "@@ -3 +3,2 @@ def f():\n-a\n+b\n+c\n@@ -9,2 +10,0 @@\n-d\n-e\n"
    diff = "diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n" + hunks
    assert changed_lines(diff) == {"x.py": [range(3, 5)]}
    assert changed_lines("") == {}


@pytest.mark.parametrize("revision", ["nope", "", "--output=x", "HEAD~99", "nope..."])
def test_a_revision_that_is_none_is_told(repository: Path, capsys: pytest.CaptureFixture[str], revision: str) -> None:
    assert cli.run(["--since", revision]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert f"--since: `{revision.removesuffix('...')}` names no commit of this repository" in captured.err
    assert sorted(path.name for path in repository.iterdir()) == [".git", "a.py"]


def test_outside_of_a_repository_it_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    monkeypatch.chdir(outside)
    assert cli.run(["--since", "HEAD"]) == 2
    assert "--since needs a git repository, and this folder is in none" in capsys.readouterr().err


def test_without_git_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(GitError, match="--since needs git, which can't be run"):
        changes_since("HEAD")


def test_stdin_has_no_history(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["--since", "HEAD", "-"]) == 2
    assert "stdin has no file on disk" in capsys.readouterr().err
