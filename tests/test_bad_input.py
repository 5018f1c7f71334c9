"""Whatever a file holds: a clear finding or a clean pass, never a traceback, and every other file is still checked."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from msalint.cli import run

ROOT = Path(__file__).resolve().parent.parent

ATTENTION = "import torch\n\n\ndef attend(q, k, v):\n    return torch.softmax(q @ k.transpose(-2, -1), dim=-1) @ v\n"

needs_pipes = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")

NEIGHBOUR = "x = 1  # noqa: MSA901\n"
"""A file with one warning, checked beside the bad one."""


def check(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-m", "msalint", "-j", "1", "--output-format", "concise", "-q", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        env=environment,
    )


def deep(levels: int) -> str:
    return ATTENTION + f"x = {'(' * levels}1{')' * levels}\n"


CASES: dict[str, tuple[bytes, str | None]] = {
    # what the file holds, and the words of the finding (None: a clean pass as far as MSA901 goes)
    "empty": (b"", None),
    "only_a_byte_order_mark": (b"\xef\xbb\xbf", None),
    "byte_order_mark": (b"\xef\xbb\xbf" + ATTENTION.encode(), None),
    "windows_newlines": (ATTENTION.replace("\n", "\r\n").encode(), None),
    "old_mac_newlines": (ATTENTION.replace("\n", "\r").encode(), None),
    "no_newline_at_the_end": (ATTENTION.rstrip().encode(), None),
    "form_feeds": (ATTENTION.replace("\n\n", "\n\x0c\n").encode(), None),
    "latin_1_with_a_coding_line": (("# coding: latin-1\n# é\n" + ATTENTION).encode("latin-1"), None),
    "latin_1_without_one": (("# é\n" + ATTENTION).encode("latin-1"), "is not valid utf-8"),
    "unknown_coding": (b"# coding: nonsense\n" + ATTENTION.encode(), "unknown encoding"),
    "utf_16": (ATTENTION.encode("utf-16"), "UTF-16"),
    "nul_bytes": (ATTENTION.encode() + b"x = '\x00'\n", "NUL"),
    "binary": (bytes(range(256)) * 20, "is not valid utf-8"),
    "newer_syntax": (
        (ATTENTION + "type Pair[T] = tuple[T, T]\n\n\ndef first[T](x: T) -> T:\n    return x\n").encode(),
        None,
    ),
    "python_2": ((ATTENTION + "print 'softmax'\n").encode(), "MSA901"),
    "unfinished": ((ATTENTION + "def f(:\n").encode(), "MSA901"),
    "a_bad_indentation": ((ATTENTION + "    x = 1\n  y = 2\n").encode(), "MSA901"),
    "surrogates": ((ATTENTION + "x = '\\ud800'\n").encode(), None),
    "deep_nesting": (deep(90).encode(), None),
    "deeper_nesting": (deep(5_000).encode(), None),
    "a_long_sum": ((ATTENTION + "x = " + " + ".join(["a"] * 5_000) + "\n").encode(), None),
    "a_long_elif": (
        (ATTENTION + "if a:\n    x = 0\n" + "".join(f"elif a == {n}:\n    x = {n}\n" for n in range(500))).encode(),
        None,
    ),
    "a_long_line": ((ATTENTION + "x = [" + "1, " * 200_000 + "]\n").encode(), None),
}


@pytest.mark.parametrize("name", CASES)
def test_a_file_of_a_kind(name: str, tmp_path: Path) -> None:
    data, words = CASES[name]
    (tmp_path / "bad.py").write_bytes(data)
    (tmp_path / "neighbour.py").write_text(NEIGHBOUR)
    done = check(tmp_path)
    assert "Traceback" not in done.stderr and "internal error" not in done.stderr, done.stderr
    assert done.returncode == 1
    assert "neighbour.py:1:8: MSA902" in done.stdout
    found = [line for line in done.stdout.splitlines() if line.startswith("bad.py") and "MSA901" in line]
    if words is None:
        assert not found
    else:
        assert len(found) == 1 and words in found[0]


def test_a_generated_file_of_50_000_lines(tmp_path: Path) -> None:
    table = "".join(f"VALUE_{number} = {number}\n" for number in range(50_000))
    (tmp_path / "generated.py").write_text(ATTENTION + table)
    done = check(tmp_path)
    assert done.returncode in (0, 1) and done.stderr == ""


def test_a_broken_link_and_a_link_in_circles(tmp_path: Path) -> None:
    (tmp_path / "broken.py").symlink_to("nowhere.py")
    (tmp_path / "circle.py").symlink_to("circle.py")
    (tmp_path / "around").symlink_to(tmp_path)
    (tmp_path / "neighbour.py").write_text(NEIGHBOUR)
    done = check(tmp_path)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.count("MSA902") == 1
    named = check(tmp_path, "broken.py", "circle.py", "neighbour.py")
    assert named.returncode == 2 and "Traceback" not in named.stderr
    assert "broken link to nowhere.py" in named.stderr and "MSA902" in named.stdout


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_and_a_folder_without_permission(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir()
    (tmp_path / "secret.py").write_text(ATTENTION)
    (tmp_path / "neighbour.py").write_text(NEIGHBOUR)
    (tmp_path / "closed").chmod(0)
    (tmp_path / "secret.py").chmod(0)
    try:
        done = check(tmp_path)
    finally:
        (tmp_path / "closed").chmod(0o755)
    assert done.returncode == 1 and done.stderr == ""
    assert "closed:1:1: MSA901" in done.stdout and "secret.py:1:1: MSA901" in done.stdout
    assert "MSA902" in done.stdout


@needs_pipes
def test_a_named_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "neighbour.py").write_text(NEIGHBOUR)
    done = check(tmp_path)
    assert done.returncode == 1 and "MSA902" in done.stdout


@needs_pipes
@pytest.mark.parametrize("command", [["check", "pipe.py"], ["shapes", "pipe.py"], ["shapes", "--summary", "pipe.py"]])
def test_a_named_pipe_that_nobody_writes_to_is_told(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("msalint.bytes_of.PATIENCE", 0.0)
    os.mkfifo("pipe.py")
    assert run(command) in (1, 2)
    done = capsys.readouterr()
    assert "can't read this file: a pipe that nobody writes to" in done.out + done.err


@needs_pipes
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_pipe_is_read_once_and_shown_in_the_report(jobs: str, tmp_path: Path) -> None:
    for name in ("a.py", "b.py", "c.py"):
        (tmp_path / name).write_text(NEIGHBOUR)
    (tmp_path / "code").write_text(NEIGHBOUR)
    line = f'"{sys.executable}" -m msalint -j {jobs} --isolated --no-cache a.py b.py c.py <(cat code)'
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True, env=environment)
    shown = done.stdout[done.stdout.index("/dev/fd/") :]
    assert "MSA902" in shown.splitlines()[0]
    assert "1 | x = 1  # noqa: MSA901" in shown


@needs_pipes
def test_special_files_that_settings_might_come_from_are_not_waited_for(tmp_path: Path) -> None:
    for name in (".gitignore", "pyproject.toml", "msalint.toml", ".msalint.toml"):
        os.mkfifo(tmp_path / name)
    (tmp_path / "neighbour.py").write_text(NEIGHBOUR)
    done = check(tmp_path)
    assert done.returncode == 1 and "MSA902" in done.stdout


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="no such device here")
def test_a_device_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["shapes", "/dev/zero"]) == 2
    assert "can't read this file: neither a file nor a pipe" in capsys.readouterr().err
    assert run(["check", "/dev/zero"]) == 2
    assert "/dev/zero: neither a file nor a folder" in capsys.readouterr().err


def test_a_folder_named_like_a_module(tmp_path: Path) -> None:
    (tmp_path / "package.py").mkdir()
    (tmp_path / "package.py" / "inner.py").write_text(NEIGHBOUR)
    done = check(tmp_path)
    assert done.returncode == 1 and done.stdout.startswith(os.path.join("package.py", "inner.py"))


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no such device here")
@pytest.mark.parametrize("command", [["check", "a.py"], ["check", "--fix", "-"], ["rule", "MSA101"], ["config"]])
def test_a_full_disk_behind_stdout_is_told(command: list[str], tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(NEIGHBOUR)
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "msalint", *command],
            cwd=tmp_path,
            input=NEIGHBOUR,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == "error: can't write the output: No space left on device"
    assert "Traceback" not in done.stderr and "fault of msalint" not in done.stderr
