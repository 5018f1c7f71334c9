"""Many files: which, in how many processes, in what order, and one report of it all."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from msalint import __version__, about
from msalint.check import InternalError, enabled_for, lint_bytes, lint_file
from msalint.diagnostic import Diagnostic, Safety, Step
from msalint.files import File, Unreadable, find
from msalint.fix import ROUNDS
from msalint.mending import Mended, Writing, as_diff, mend_bytes, mend_file, wants_mending
from msalint.project import Project
from msalint.registry import Registry, load
from msalint.report import Failure, Report
from msalint.settings import Fixing, Selection, Settings, SettingsFinder, load_named
from msalint.source import SourceError, decode, read

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

FEW_FILES = 40
"""So many files are checked sooner by one process than a pool of them has started."""
CHUNK = 8

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Request:
    """What the command line asks for. `jobs` 0: as many processes as it pays to start."""

    paths: tuple[str, ...] = (".",)
    selection: Selection = field(default_factory=Selection)
    target_torch: str | None = None
    jobs: int = 0
    force_exclude: bool = False
    config: str | None = None
    """One settings file for all, in place of the closest ones."""
    fixing: Fixing = field(default_factory=Fixing)
    diff: bool = False
    """Show what the fixes would change, and write nothing."""


@dataclass(frozen=True)
class Result:
    """What the check of one file gave; `mended` if there are fixes to be made in it."""

    path: str
    diagnostics: tuple[Diagnostic, ...] = ()
    failure: Failure | None = None
    mended: Mended | None = None


def lint_paths(paths: Iterable[str], selection: Selection | None = None) -> list[Diagnostic]:
    """What is wrong in some files and folders, with the settings of each; raises InternalError for a fault of ours."""
    report = run(Request(tuple(str(path) for path in paths), selection or Selection(), jobs=1))
    for failure in report.failures:
        raise InternalError(failure.filename, RuntimeError(failure.message))
    return list(report.diagnostics)


def run(request: Request, progress: Progress | None = None) -> Report:
    """Check files and folders. Raises SettingsError; whatever goes wrong in one file is part of the report."""
    registry = load()
    layered = _Layered(request)
    fixing = request.fixing.over(layered.for_folder(".").fixing)
    found = list(find(request.paths, layered, force_exclude=request.force_exclude))
    files = [replace(item, mend=_mend(fixing, request)) for item in found if isinstance(item, File)]
    unread = [item for item in found if isinstance(item, Unreadable)]
    results = list(_counted(_results(files, request), len(files), progress))
    diff = "".join(as_diff(result.mended) for result in results if result.mended) if request.diff else None
    writing = Writing(dry=request.diff)
    results = _written(results, lambda: list(_results(files, request)), writing)
    diagnostics = [
        *_settings_findings(files, registry),
        *_unreadable_folders(unread, registry),
        *_under_known_names(results, files, registry),
    ]
    return Report(
        diagnostics=tuple(diagnostics),
        failures=(
            *(Failure(item.path, f"{item.path}: {item.reason}") for item in unread if item.asked),
            *(result.failure for result in results if result.failure),
            *_complaints(writing.complaints),
        ),
        files=len(files),
        text=_text_of,
        pages=registry.pages,
        version=__version__,
        fixing=fixing,
        mended=tuple(writing.mended),
        diff=diff,
    )


def _mend(fixing: Fixing, request: Request) -> Safety | None:
    if not (fixing.on or request.diff):
        return None
    return Safety.UNSAFE if fixing.unsafe_fixes else Safety.SAFE


def _written(results: list[Result], again: Callable[[], list[Result]], writing: Writing) -> list[Result]:
    """Write what was mended and check again, until nothing is left to mend: a mended file may be another's helper."""
    for _ in range(ROUNDS):
        if not writing.write(result.mended for result in results if result.mended):
            break
        results = again()
    return results


def _complaints(by_file: Mapping[str, Iterable[str]]) -> Iterator[Failure]:
    for path, complaints in by_file.items():
        yield from (Failure(path, f"{path}: {complaint}") for complaint in complaints)


def run_text(data: bytes, named: str | None, request: Request) -> Report:
    """Check what came through a pipe, under the settings that a file of this name would have."""
    filename = named or "<stdin>"
    registry = load()
    settings = _Layered(request).for_folder(os.path.dirname(os.path.abspath(filename)))
    fixing = request.fixing.over(settings.fixing)
    result = _guarded(filename, lambda: lint_bytes(data, filename, settings))
    mended = Mended(filename, data, data)
    if (mend := _mend(fixing, request)) and wants_mending(result.diagnostics, filename, mend):
        mended = mend_bytes(data, filename, settings, None, mend)
        if not request.diff:
            result = _guarded(filename, lambda: lint_bytes(mended.after, filename, settings))
    try:
        text = decode(data if request.diff else mended.after, filename).text
    except SourceError:
        text = ""
    return Report(
        diagnostics=(*_settings_findings([File(filename, settings)], registry), *result.diagnostics),
        failures=(
            *((result.failure,) if result.failure else ()),
            *_complaints({filename: mended.complaints}),
        ),
        files=1,
        text=lambda name: text if name == filename else _text_of(name),
        pages=registry.pages,
        version=__version__,
        fixing=fixing,
        mended=mended.diagnostics,
        diff=as_diff(mended, named is not None) if request.diff else None,
        fixed_text=mended.after if mend and not request.diff else None,
    )


class _Layered(SettingsFinder):
    """Settings of files with the command line's own on top."""

    def __init__(self, request: Request) -> None:
        super().__init__()
        self._request = request
        self._named = load_named(request.config) if request.config else None
        self._layered: dict[int, tuple[Settings, Settings]] = {}

    def for_folder(self, folder: str | os.PathLike[str]) -> Settings:
        base = self._named or super().for_folder(folder)
        if id(base) not in self._layered:
            self._layered[id(base)] = (base, base.over(self._request.selection, self._request.target_torch))
        return self._layered[id(base)][1]


def _counted(results: Iterable[Result], total: int, progress: Progress | None) -> Iterator[Result]:
    for number, result in enumerate(results, 1):
        if progress:
            progress(number, total)
        yield result


def _results(files: Sequence[File], request: Request) -> Iterator[Result]:
    """One result a file, in the order of the files."""
    jobs = request.jobs or (1 if len(files) < FEW_FILES else os.cpu_count() or 1)
    if jobs == 1 or len(files) < 2:
        project = Project(request.paths)
        return (_checked(file, project) for file in files)
    return _in_processes(files, min(jobs, len(files)), request.paths)


def _checked(file: File, project: Project) -> Result:
    result = _guarded(file.path, lambda: lint_file(file.path, file.settings, project))
    if file.mend is None or not wants_mending(result.diagnostics, file.path, file.mend):
        return result
    try:
        return replace(result, mended=mend_file(file.path, file.settings, project, file.mend))
    except InternalError as error:
        return replace(result, failure=Failure(file.path, f"internal error: {error}", error.detail))


def _guarded(path: str, check: Callable[[], list[Diagnostic]]) -> Result:
    try:
        return Result(path, tuple(check()))
    except InternalError as error:
        return Result(path, failure=Failure(path, f"internal error: {error}", error.detail))


_project = Project()


def collect_rarely() -> None:
    """For a process that checks and ends: what a file's analysis makes lives as long as the file is read.

    Searching it for cycles on Python's usual schedule takes a third of a run's time and frees next to nothing: the
    engine ties no knots, so that what a file leaves behind goes by itself.
    """
    gc.set_threshold(1_000_000, 20, 1_000)


def _start(roots: tuple[str, ...]) -> None:
    """Give a new process its own view of the project. Ctrl-C is for the process that started it."""
    global _project
    collect_rarely()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _project = Project(roots)


def _check_chunk(chunk: Sequence[File]) -> list[Result]:
    return [_checked(file, _project) for file in chunk]


def _pool(jobs: int, roots: tuple[str, ...]) -> ProcessPoolExecutor:
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    return ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_start, initargs=(roots,))


def _in_processes(files: Sequence[File], jobs: int, roots: tuple[str, ...]) -> Iterator[Result]:
    from concurrent.futures.process import BrokenProcessPool

    chunks = [files[start : start + CHUNK] for start in range(0, len(files), CHUNK)]
    pool = _pool(jobs, roots)
    try:
        futures = [pool.submit(_check_chunk, chunk) for chunk in chunks]
        for chunk, future in zip(chunks, futures, strict=True):
            try:
                yield from future.result()
            except BrokenProcessPool:
                yield from _one_by_one(chunk, roots)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _one_by_one(files: Sequence[File], roots: tuple[str, ...]) -> Iterator[Result]:
    """After a process died: a process of its own for each file, so that only the file that kills it is lost."""
    from concurrent.futures.process import BrokenProcessPool

    for file in files:
        with _pool(1, roots) as pool:
            try:
                yield from pool.submit(_check_chunk, [file]).result()
            except BrokenProcessPool:
                yield Result(file.path, failure=Failure(file.path, f"internal error: {file.path}: the process died"))


def _settings_findings(files: Iterable[File], registry: Registry) -> Iterator[Diagnostic]:
    seen: set[str | None] = set()
    for file in files:
        if file.settings.file not in seen:
            seen.add(file.settings.file)
            if about.UNKNOWN in registry.enabled(file.settings):
                yield from about.unknown_in_settings(file.settings, registry)


def _unreadable_folders(unread: Iterable[Unreadable], registry: Registry) -> Iterator[Diagnostic]:
    for item in unread:
        if not item.asked:
            yield about.unreadable(item.path, SourceError(f"can't read this folder: {item.reason}"), registry)


def _under_known_names(results: Iterable[Result], files: Sequence[File], registry: Registry) -> list[Diagnostic]:
    """All findings by file, each once.

    A finding inside a helper belongs to the helper's file: it is kept if that file is checked too and its settings
    want the code, under the name that it was found by.
    """
    known = {os.path.abspath(file.path): file for file in files}
    kept: dict[tuple[str, object, str], Diagnostic] = {}
    order = {file.path: number for number, file in enumerate(files)}
    for result in results:
        for one in result.diagnostics:
            if one.filename != result.path:
                home = known.get(os.path.abspath(one.filename))
                if home is None or one.code not in enabled_for(home.path, home.settings, registry):
                    continue
                one = replace(one, filename=home.path)
            one = _with_known_steps(one, known)
            kept.setdefault((one.filename, one.span, one.code), one)
    return sorted(kept.values(), key=lambda one: (order[one.filename], one.span, one.code))


def _with_known_steps(one: Diagnostic, known: dict[str, File]) -> Diagnostic:
    """The steps of a trail under the names that the reader knows their files by."""
    if all(step.filename == one.filename for step in one.trail):
        return one

    def named(step: Step) -> Step:
        home = known.get(os.path.abspath(step.filename))
        return replace(step, filename=home.path if home else os.path.relpath(step.filename))

    return replace(one, trail=tuple(named(step) for step in one.trail))


def _text_of(filename: str) -> str:
    try:
        return read(filename).text
    except SourceError:
        return ""
