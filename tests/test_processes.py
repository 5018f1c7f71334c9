"""Several processes: results in order, a death costs one file, Ctrl-C ends them all at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from msalint import processes
from msalint.files import File
from msalint.processes import results
from msalint.settings import Settings

ROOT = Path(__file__).resolve().parent.parent
PATIENCE = 60.0
IDLE = "x = 1  # noqa: MSA901\n"

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs POSIX signals")


@pytest.fixture
def files(tmp_path: Path) -> list[File]:
    return [_file(tmp_path / f"{number:02}.py", IDLE + f"# {number}\n") for number in range(40)]


@pytest.fixture
def endless(tmp_path: Path) -> Iterator[File]:
    """A file whose check lasts as long as someone may write into it, or until its process is killed: a named pipe."""
    os.mkfifo(tmp_path / "endless.py")
    yield File(str(tmp_path / "endless.py"), Settings())


def _file(path: Path, text: str) -> File:
    path.write_text(text)
    return File(str(path), Settings())


def children(of: int) -> list[int]:
    """The processes that check for process `of`; not the one that Python keeps beside them to count semaphores."""
    told = subprocess.run(["ps", "-ww", "-eo", "pid,ppid,stat,args"], capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 3) for line in told.splitlines()[1:]]
    return [
        int(pid) for pid, parent, stat, args in rows if int(parent) == of and "spawn_main" in args and stat[0] != "Z"
    ]


def until(true: Callable[[], object]) -> None:
    """Wait for something that must come."""
    for _ in range(int(PATIENCE / 0.02)):
        if true():
            return
        time.sleep(0.02)
    raise AssertionError("it never came")


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_results_come_in_the_order_of_the_files(files: list[File]) -> None:
    found = list(results(files, 2, ()))
    assert [result.path for result in found] == [file.path for file in files]
    assert all([one.code for one in result.diagnostics] == ["MSA902"] for result in found)
    assert found == list(results(files, 1, ()))


def test_no_process_is_left_when_all_is_done(files: list[File]) -> None:
    list(results(files, 2, ()))
    assert children(os.getpid()) == []


def test_no_process_is_left_when_nobody_listens_any_more(files: list[File], endless: File) -> None:
    with closing(results([*files[:1], endless, *files], 2, ())) as found:
        assert next(found).path == files[0].path
        assert children(os.getpid())
    assert children(os.getpid()) == []


def reader_of(pipe: str, among: Callable[[], list[int]]) -> tuple[int, int]:
    """The process that reads a named pipe, and the writing end that keeps it waiting there."""
    writers: list[int] = []

    def opened() -> bool:
        try:
            writers.append(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
        except OSError:
            return False
        return True

    def holders() -> list[int]:
        return [pid for pid in among() if pipe in map(_link, Path(f"/proc/{pid}/fd").glob("*"))]

    until(opened)
    until(holders)
    return holders()[0], writers[0]


def _link(path: Path) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


needs_proc = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs /proc to see who reads a file")


@needs_proc
def test_a_process_that_is_killed_costs_the_file_in_its_hand(files: list[File], endless: File) -> None:
    """Two processes; the one that holds the endless file is killed from outside, as by a kernel short of memory."""
    everything = [*files[:11], endless, *files[11:]]

    def kill() -> None:
        pid, writer = reader_of(endless.path, lambda: children(os.getpid()))
        os.kill(pid, signal.SIGKILL)
        until(lambda: not alive(pid))
        os.close(writer)

    killer = threading.Thread(target=kill)
    killer.start()
    found = list(results(everything, 2, ()))
    killer.join()
    assert [result.path for result in found] == [file.path for file in everything]
    (lost,) = [result for result in found if result.failure]
    assert lost.failure is not None
    assert lost.failure.message == (
        f"{endless.path}: the process that checked this file died (SIGKILL); the other files were checked"
    )
    assert sum(len(result.diagnostics) for result in found) == len(files)


@needs_proc
def test_processes_that_all_die_leave_the_rest_to_new_ones(files: list[File], endless: File) -> None:
    everything = [endless, *files]

    def kill_all() -> None:
        _, writer = reader_of(endless.path, lambda: children(os.getpid()))
        for pid in children(os.getpid()):
            os.kill(pid, signal.SIGKILL)
        os.close(writer)

    killer = threading.Thread(target=kill_all)
    killer.start()
    found = list(results(everything, 2, ()))
    killer.join()
    assert [result.path for result in found] == [file.path for file in everything]
    lost = [result.path for result in found if result.failure]
    assert lost[0] == endless.path
    assert len(lost) <= 2
    assert children(os.getpid()) == []


def test_where_no_process_can_be_started_this_one_checks(files: list[File], monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(roots: object) -> object:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(processes, "_started", refused)
    assert [result.path for result in results(files, 2, ())] == [file.path for file in files]


# The command line


@pytest.fixture
def running(files: list[File], endless: File, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """`msalint` in a group of its own, as a terminal starts it, busy with a file that has no end."""
    process = subprocess.Popen(
        [sys.executable, "-m", "msalint", "-j", "2", "--output-format", "concise", endless.path, "."],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=PATIENCE)


def interrupt(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Ctrl-C, which a terminal sends to the whole group."""
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, out, err


@needs_proc
def test_ctrl_c_ends_all_processes_and_says_nothing(running: subprocess.Popen[str], endless: File) -> None:
    _, writer = reader_of(endless.path, lambda: children(running.pid))
    workers = children(running.pid)
    assert len(workers) == 2
    code, out, err = interrupt(running)
    os.close(writer)
    assert code == 130
    assert (out, err.strip()) == ("", "")
    until(lambda: not any(alive(pid) for pid in workers))


def test_ctrl_c_while_the_processes_start(running: subprocess.Popen[str]) -> None:
    until(lambda: children(running.pid))
    workers = children(running.pid)
    code, _, err = interrupt(running)
    assert code == 130
    assert "Traceback" not in err
    until(lambda: not any(alive(pid) for pid in workers))


@needs_proc
def test_processes_end_by_themselves_when_the_one_that_started_them_is_killed(
    running: subprocess.Popen[str], endless: File
) -> None:
    _, writer = reader_of(endless.path, lambda: children(running.pid))
    workers = children(running.pid)
    running.kill()
    running.wait(PATIENCE)
    os.close(writer)
    until(lambda: not any(alive(pid) for pid in workers))


@needs_proc
def test_the_run_tells_of_the_lost_file_and_of_all_the_others(running: subprocess.Popen[str], endless: File) -> None:
    pid, writer = reader_of(endless.path, lambda: children(running.pid))
    os.kill(pid, signal.SIGKILL)
    os.close(writer)
    out, err = running.communicate(timeout=PATIENCE)
    assert running.returncode == 2
    assert out.count("MSA902") == 40
    assert f"error: {endless.path}: the process that checked this file died (SIGKILL)" in err
    assert "please report" not in err
