"""Check files one by one, here or in several processes: one result a file, in the order of the files."""

from __future__ import annotations

import gc
import os
import signal
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from msalint.bytes_of import bytes_of
from msalint.diagnostic import Diagnostic
from msalint.files import File
from msalint.project import Lookup, Project
from msalint.report import Failure
from msalint.source import digest_of

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

    from msalint.mending import Mended

FEW_FILES = 40
"""So many files are checked sooner by one process than others have started."""
CHUNK = 8
"""Files that a process is given at a time."""


@dataclass(frozen=True)
class Result:
    """What the check of one file gave, and what it rests on: the file's bytes and the modules looked up for it.

    `digest` is "" where the file could not be read.
    """

    path: str
    diagnostics: tuple[Diagnostic, ...] = ()
    failure: Failure | None = None
    digest: str = ""
    lookups: tuple[Lookup, ...] = ()
    hidden: tuple[Diagnostic, ...] = ()
    """Findings in other files that comments over there hide."""
    mended: Mended | None = None
    """The file with its fixes made, if there are some to be made."""


def results(
    files: Sequence[File], jobs: int, roots: Sequence[str], project: Project | None = None
) -> Generator[Result, None, None]:
    """One result a file, in order. `jobs` 0: as many processes as it pays to start.

    Closing the iterator ends its processes at once.
    """
    jobs = jobs or (1 if len(files) < FEW_FILES else _processors())
    jobs = min(jobs, -(-len(files) // 2))
    if jobs > 1:
        yield from _in_processes(files, jobs, tuple(roots))
    else:
        project = project or Project(roots)
        yield from (check_one(file, project) for file in files)


def _processors() -> int:
    """The processors that this process may use."""
    affinity: Callable[[int], set[int]] | None = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


def check_one(file: File, project: Project) -> Result:
    """Check a file, and mend it in memory if that is wanted; a fault of ours is part of the result."""
    from msalint.check import lint_bytes, lint_file

    project.begin_file()
    try:
        data = bytes_of(file.path)
    except OSError:
        return guarded(file.path, lambda: lint_file(file.path, file.settings, project))
    result = guarded(file.path, lambda: lint_bytes(data, file.path, file.settings, project))
    result = replace(result, digest=digest_of(data), lookups=project.lookups(), hidden=tuple(project.hidden))
    return result if file.mend is None else _mended(result, file, project)


def _mended(result: Result, file: File, project: Project) -> Result:
    from msalint.check import InternalError
    from msalint.mending import mend_file, wants_mending

    if file.mend is None or not wants_mending(result.diagnostics, file.path, file.mend):
        return result
    try:
        return replace(result, mended=mend_file(file.path, file.settings, project, file.mend))
    except InternalError as error:
        return replace(result, failure=Failure(file.path, f"internal error: {error}", error.detail))


def guarded(path: str, check: Callable[[], list[Diagnostic]]) -> Result:
    """The result of a check of one file, also where it fails."""
    from msalint.check import InternalError

    try:
        return Result(path, tuple(check()))
    except InternalError as error:
        return Result(path, failure=Failure(path, f"internal error: {error}", error.detail))


def collect_rarely() -> None:
    """For a process that checks and ends: what a file's analysis makes lives as long as the file is read.

    Searching it for cycles on Python's usual schedule takes a third of a run's time and frees next to nothing: the
    engine ties no knots, so that what a file leaves behind goes by itself.
    """
    gc.set_threshold(1_000_000, 20, 1_000)


@dataclass
class _Worker:
    """A process, the pipe to it, and the numbers of the files it has been given, the one in hand first."""

    process: BaseProcess
    pipe: Connection
    given: deque[int] = field(default_factory=deque)


def _in_processes(files: Sequence[File], jobs: int, roots: tuple[str, ...]) -> Iterator[Result]:
    """A process that dies costs the file it had in hand: a new one goes on with the others."""
    waiting = deque(range(len(files)))
    done: dict[int, Result] = {}
    workers: list[_Worker] = []
    told = 0
    try:
        while told < len(files):
            _employ(workers, min(jobs, len(workers) + len(waiting)), roots)
            if waiting and not workers:  # the system starts no more processes
                number = waiting.popleft()
                done[number] = check_one(files[number], Project(roots))
            for worker in workers:
                if not worker.given:
                    _give(worker, files, waiting)
            done.update(_next_results(workers, files, waiting))
            while told in done:
                yield done.pop(told)
                told += 1
    finally:
        for worker in workers:
            worker.process.kill()
            worker.pipe.close()
        for worker in workers:
            worker.process.join()


def _employ(workers: list[_Worker], wanted: int, roots: tuple[str, ...]) -> None:
    """Have so many processes, or as many as can be had; idle ones that have died are replaced."""
    workers[:] = [worker for worker in workers if worker.given or worker.process.is_alive()]
    with suppress(OSError):
        while len(workers) < wanted:
            workers.append(_started(roots))


def _give(worker: _Worker, files: Sequence[File], waiting: deque[int]) -> None:
    """Hand the next files to an idle process. One that has just died is found out when it is listened to."""
    numbers = [waiting.popleft() for _ in range(min(CHUNK, len(waiting)))]
    worker.given.extend(numbers)
    if numbers:
        with suppress(OSError):
            worker.pipe.send([(number, files[number]) for number in numbers])


def _next_results(workers: list[_Worker], files: Sequence[File], waiting: deque[int]) -> dict[int, Result]:
    """Wait for whatever comes first: results, or the death of a process. The dead are taken off the list."""
    from multiprocessing.connection import wait

    found: dict[int, Result] = {}
    busy = [worker for worker in workers if worker.given]
    ready = wait([worker.pipe for worker in busy]) if busy else ()
    for worker in busy:
        if worker.pipe not in ready:
            continue
        try:
            number, result = worker.pipe.recv()
        except (EOFError, OSError):
            number = worker.given.popleft()
            result = Result(files[number].path, failure=_death(files[number].path, _buried(worker)))
            waiting.extendleft(reversed(worker.given))
            workers.remove(worker)
        else:
            worker.given.remove(number)
        found[number] = result
    return found


def _buried(worker: _Worker) -> int | None:
    """The exit code of a process whose pipe has broken."""
    worker.pipe.close()
    worker.process.join(1)
    if worker.process.exitcode is None:
        worker.process.kill()
        worker.process.join()
    return worker.process.exitcode


def _death(path: str, code: int | None) -> Failure:
    how = f"exit code {code}"
    if code is not None and code < 0:
        with suppress(ValueError):
            how = signal.Signals(-code).name
    return Failure(path, f"{path}: the process that checked this file died ({how}); the other files were checked")


def _started(roots: tuple[str, ...]) -> _Worker:
    from multiprocessing import get_context

    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs, roots), daemon=True)
    with _deaf_to_interrupts():
        process.start()
    theirs.close()
    return _Worker(process, ours)


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Ctrl-C waits until the new process, which inherits this, can ignore it: it is for the one that started it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _work(pipe: Connection, roots: tuple[str, ...]) -> None:
    """The life of a process: check what comes through the pipe until its other end is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    collect_rarely()
    project = Project(roots)
    with closing(pipe), suppress(EOFError, OSError):
        while True:
            for number, file in pipe.recv():
                pipe.send((number, check_one(file, project)))
