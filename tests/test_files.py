"""The walk finds Python files in order, leaves out what is ignored or excluded, and tells what it can't read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from msalint.files import File, Unreadable, find, matches
from msalint.settings import SettingsFinder


def tree(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x = 1\n")


def walked(*paths: str, force_exclude: bool = False) -> list[str]:
    items = find(paths, SettingsFinder(), force_exclude=force_exclude)
    return [item.path.replace(os.sep, "/") for item in items if isinstance(item, File)]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_python_files_in_alphabetical_order(here: Path) -> None:
    tree(here, "b.py", "a/z.py", "a/b/c.py", "a/notes.txt", "c.pyi", "setup.cfg")
    assert walked(".") == ["a/b/c.py", "a/z.py", "b.py"]


def test_a_file_is_found_once(here: Path) -> None:
    tree(here, "a/b.py")
    assert walked("a", "a/b.py", str(here / "a"), ".") == ["a/b.py"]


def test_folders_that_hold_no_code_of_the_project_are_left_out(here: Path) -> None:
    tree(here, "a.py", ".venv/lib/b.py", "node_modules/c.py", "build/d.py", "x/__pycache__/e.py", "site-packages/f.py")
    assert walked(".") == ["a.py"]


def test_a_folder_that_is_named_is_checked_wherever_it_lies(here: Path) -> None:
    tree(here, "venv/lib/site-packages/timm/a.py", "venv/lib/site-packages/timm/build/b.py")
    assert walked("venv/lib/site-packages/timm") == ["venv/lib/site-packages/timm/a.py"]


def test_a_file_that_is_named_is_checked_whatever_its_ending(here: Path) -> None:
    tree(here, "script", "build/a.py")
    assert walked("script", "build/a.py") == ["script", "build/a.py"]


def test_force_exclude_leaves_out_named_files_too(here: Path) -> None:
    tree(here, "a.py", "old/b.py", "new/c.py", "local.py")
    (here / "msalint.toml").write_text('extend-exclude = ["old"]\n')
    (here / ".git").mkdir()
    (here / ".gitignore").write_text("new/\nlocal.py\n")
    names = ["a.py", "old/b.py", "new/c.py", "local.py"]
    assert walked(*names) == names
    assert walked(*names, force_exclude=True) == ["a.py"]


def test_exclude_takes_gitignore_patterns(here: Path) -> None:
    tree(here, "a.py", "gen/x_pb2.py", "gen/x.py", "lib/gen/y.py", "top/z.py", "lib/top/z.py")
    (here / "msalint.toml").write_text('extend-exclude = ["*_pb2.py", "lib/gen", "/top"]\n')
    assert walked(".") == ["a.py", "gen/x.py", "lib/top/z.py"]


def test_excludes_are_relative_to_their_file_not_to_the_current_folder(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree(here, "lib/gen/y.py", "lib/ok.py")
    (here / "msalint.toml").write_text('extend-exclude = ["lib/gen"]\n')
    monkeypatch.chdir(here / "lib")
    assert walked(".") == ["ok.py"]


def test_gitignore_is_respected_with_its_exceptions(here: Path) -> None:
    tree(here, "a.py", "out/b.py", "gen/c.py", "gen/keep.py", "sub/d.py", "sub/e.py")
    (here / ".gitignore").write_text("# words\nout/\n/gen/*\n!/gen/keep.py\n")
    (here / "sub" / ".gitignore").write_text("e.py\n")
    assert walked(".") == ["a.py", "gen/keep.py", "sub/d.py"]


def test_a_closer_gitignore_has_the_last_word(here: Path) -> None:
    tree(here, "sub/d.py", "d.py")
    (here / ".gitignore").write_text("d.py\n")
    (here / "sub" / ".gitignore").write_text("!d.py\n")
    assert walked(".") == ["sub/d.py"]


def test_the_gitignore_of_the_repository_holds_below_it(here: Path) -> None:
    tree(here, "a/b/out.py", "a/b/in.py", ".git/info/x")
    (here / ".gitignore").write_text("/a/b/out.py\n")
    assert walked("a/b") == ["a/b/in.py"]


def test_a_gitignore_outside_of_the_repository_does_not(here: Path) -> None:
    tree(here, "repo/a.py", "repo/.git/info/x")
    (here / ".gitignore").write_text("a.py\n")
    assert walked("repo") == ["repo/a.py"]


def test_links_to_folders_are_not_followed_in_circles(here: Path) -> None:
    tree(here, "a/b.py")
    (here / "a" / "loop").symlink_to(here / "a")
    assert walked(".") == ["a/b.py"]


def test_a_broken_link_is_passed_over_in_a_walk_and_told_when_named(here: Path) -> None:
    tree(here, "b.py")
    (here / "a.py").symlink_to("nowhere.py")
    assert walked(".") == ["b.py"]
    assert list(find(["a.py"], SettingsFinder())) == [Unreadable("a.py", "broken link to nowhere.py", asked=True)]


def test_a_path_that_is_not_there_is_told(here: Path) -> None:
    tree(here, "b.py")
    missing, other = find(["none.py", "b.py"], SettingsFinder())
    assert missing == Unreadable("none.py", "No such file or directory", asked=True)
    assert isinstance(other, File)


def test_a_folder_without_permission_is_told_and_the_others_walked(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree(here, "a.py", "closed/b.py", "open/c.py")
    scandir = os.scandir

    def refusing(path: str) -> object:
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    items = list(find(["."], SettingsFinder()))
    assert Unreadable("closed", "Permission denied") in items
    assert [item.path for item in items if isinstance(item, File)] == ["a.py", os.path.join("open", "c.py")]


def test_each_folder_has_its_own_settings(here: Path) -> None:
    tree(here, "a.py", "sub/b.py")
    (here / "sub" / "msalint.toml").write_text('ignore = ["MSA1"]\n')
    outer, inner = (item for item in find(["."], SettingsFinder()) if isinstance(item, File))
    assert outer.settings.file is None
    assert inner.settings.file == os.path.join("sub", "msalint.toml")


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("tests/*", "tests/test_a.py", True),
        ("tests/*", "tests/deep/test_a.py", True),
        ("tests/*", "src/tests/test_a.py", False),
        ("test_*.py", "src/test_a.py", True),
        ("__init__.py", "a/b/__init__.py", True),
        ("src/**/old.py", "src/a/b/old.py", True),
        ("/old.py", "a/old.py", False),
    ],
)
def test_patterns_of_per_file_ignores(here: Path, pattern: str, path: str, fits: bool) -> None:
    assert matches(path, str(here), (pattern,)) is fits
