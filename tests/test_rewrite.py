"""A file is replaced whole or not at all: nothing half written, nothing left beside it, its attributes kept."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from msalint.rewrite import RewriteError, replace_file


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "net.py"
    path.write_bytes(b"old\n")
    return path


def full_disk(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def interrupted(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_the_new_bytes_are_there(file: Path) -> None:
    replace_file(file, b"new\r\n")
    assert file.read_bytes() == b"new\r\n"
    assert os.listdir(file.parent) == ["net.py"]


@pytest.mark.parametrize("step", ["fsync", "replace", "chmod"])
def test_a_full_disk_leaves_the_old_file_and_nothing_else(
    file: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    monkeypatch.setattr(os, step, full_disk)
    with pytest.raises(RewriteError, match="No space left on device"):
        replace_file(file, b"new\n")
    assert file.read_bytes() == b"old\n"
    assert os.listdir(file.parent) == ["net.py"]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_an_interrupt_leaves_the_old_file_and_nothing_else(
    file: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    monkeypatch.setattr(os, step, interrupted)
    with pytest.raises(KeyboardInterrupt):
        replace_file(file, b"new\n")
    assert file.read_bytes() == b"old\n"
    assert os.listdir(file.parent) == ["net.py"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_write_that_runs_out_of_room_leaves_the_old_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import tempfile

    def on_a_full_disk(**where: object) -> tuple[int, str]:
        return os.open("/dev/full", os.O_WRONLY), str(file.parent / "gone.tmp")

    monkeypatch.setattr(tempfile, "mkstemp", on_a_full_disk)
    with pytest.raises(RewriteError, match="No space left on device"):
        replace_file(file, b"new\n" * 100_000)
    assert file.read_bytes() == b"old\n"


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o755, 0o664])
def test_permissions_are_kept(file: Path, mode: int) -> None:
    file.chmod(mode)
    replace_file(file, b"new\n")
    assert stat.S_IMODE(file.stat().st_mode) == mode


def test_a_new_file_has_the_permissions_of_any_other(tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(b"")
    replace_file(tmp_path / "new", b"x")
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_what_a_link_leads_to_is_written_and_the_link_stays(file: Path, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    link = tmp_path / "sub" / "link.py"
    link.symlink_to("../net.py")
    replace_file(link, b"new\n")
    assert link.is_symlink() and os.readlink(link) == "../net.py"
    assert file.read_bytes() == b"new\n" and not file.is_symlink()
    assert os.listdir(tmp_path / "sub") == ["link.py"]


def test_a_file_that_was_changed_in_the_meantime_is_left_alone(file: Path) -> None:
    with pytest.raises(RewriteError, match="changed by someone else"):
        replace_file(file, b"new\n", expected=b"older\n")
    assert file.read_bytes() == b"old\n"
    assert os.listdir(file.parent) == ["net.py"]
    replace_file(file, b"new\n", expected=b"old\n")
    assert file.read_bytes() == b"new\n"


def test_a_read_only_file_is_left_alone(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.chmod(0o444)
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # the superuser may write everything
    with pytest.raises(RewriteError, match="read-only"):
        replace_file(file, b"new\n")
    assert file.read_bytes() == b"old\n"


def test_a_pipe_is_no_file_to_replace(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(RewriteError, match="no regular file"):
        replace_file(tmp_path / "pipe", b"new\n")


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(RewriteError, match="No such file or directory"):
        replace_file(tmp_path / "none" / "net.py", b"new\n")
