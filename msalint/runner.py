"""Many files: which, in how many processes, in what order, and one report of it all."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from msalint import __version__
from msalint.bytes_of import is_handed_down
from msalint.cache import Cache, Known, folder_of
from msalint.diagnostic import Diagnostic, Safety, Span, Step
from msalint.documents.kinds import NOTEBOOK
from msalint.documents.shown import Shown
from msalint.files import File, Unreadable, find
from msalint.processes import Result, guarded, results
from msalint.project import Project
from msalint.report import Failure, Report
from msalint.settings import Fixing, Selection, Settings, SettingsFinder
from msalint.source import SourceError, decode, digest_of, read
from msalint.tables import Table

if TYPE_CHECKING:
    from msalint.docs import Page

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
    overrides: Table | None = None
    """Settings that count before those of the files."""
    isolated: bool = False
    """Whether settings files are left out."""
    cached: bool = False
    """Whether results of earlier runs are used, and kept for later ones."""
    cache_dir: str | None = None
    fixing: Fixing = field(default_factory=Fixing)
    diff: bool = False
    """Show what the fixes would change, and write nothing."""
    include_docs: bool | None = None
    """Whether to check the code in docs too; None for what the settings say."""


def lint_paths(paths: Iterable[str], selection: Selection | None = None) -> list[Diagnostic]:
    """What is wrong in some files and folders, with the settings of each; raises InternalError for a fault of ours."""
    from msalint.check import InternalError

    report = run(Request(tuple(str(path) for path in paths), selection or Selection(), jobs=1))
    for failure in report.failures:
        raise InternalError(failure.filename, RuntimeError(failure.message))
    return list(report.diagnostics)


def run(request: Request, progress: Progress | None = None) -> Report:
    """Check files and folders. Raises SettingsError; whatever goes wrong in one file is part of the report."""
    finder = _Layered(request)
    here = finder.for_folder(".")
    fixing = request.fixing.over(here.fixing)
    files, unread = _found(request, finder)
    files = [replace(file, mend=_mend(fixing, request)) for file in files]
    cache = Cache(folder_of(request.cache_dir, here)) if request.cached and files else None
    every = _all_results(files, request, cache, progress)
    diff = "".join(_diff(result) for result in every) if request.diff else None
    written: tuple[Diagnostic, ...] = ()
    complaints: tuple[Failure, ...] = ()
    if any(result.mended for result in every):
        every, written, complaints = _written(every, lambda: _all_results(files, request, cache), dry=request.diff)
    diagnostics = [
        *_settings_findings(files, cache),
        *_unreadable_folders(unread),
        *_under_known_names(every, files),
    ]
    if cache is not None:
        cache.save()
    shown = Shown()
    return Report(
        diagnostics=tuple(diagnostics),
        failures=(
            *(Failure(item.path, f"{item.path}: {item.reason}") for item in unread if item.asked),
            *(result.failure for result in every if result.failure),
            *complaints,
        ),
        files=len(files),
        checked=tuple(files),
        text=shown.text,
        pages=_Manual(),
        version=__version__,
        fixing=fixing,
        mended=written,
        diff=diff,
        cells=shown.cells,
        file_line=shown.file_line,
        notices=tuple(_in_other_languages(request.paths)),
    )


def _mend(fixing: Fixing, request: Request) -> Safety | None:
    if not (fixing.on or request.diff):
        return None
    return Safety.UNSAFE if fixing.unsafe_fixes else Safety.SAFE


def _diff(result: Result) -> str:
    if result.mended is None:
        return ""
    from msalint.mending import as_diff

    return as_diff(result.mended)


def _written(
    results: list[Result], again: Callable[[], list[Result]], dry: bool
) -> tuple[list[Result], tuple[Diagnostic, ...], tuple[Failure, ...]]:
    """Write what was mended and check again, until nothing is left to mend: a mended file may be another's helper.

    What is left at the end, what was mended, and what went wrong.
    """
    from msalint.fix import ROUNDS
    from msalint.mending import Writing

    writing = Writing(dry=dry)
    for _ in range(ROUNDS):
        if not writing.write(result.mended for result in results if result.mended):
            break
        results = again()
    return results, tuple(writing.mended), tuple(_complaints(writing.complaints))


def _complaints(by_file: Mapping[str, Iterable[str]]) -> Iterator[Failure]:
    for path, complaints in by_file.items():
        yield from (Failure(path, f"{path}: {complaint}") for complaint in complaints)


def found_files(request: Request) -> tuple[list[File], list[Failure]]:
    """The files that `run` would check, and the paths that lead to none. Raises SettingsError."""
    files, unread = _found(request, _Layered(request))
    return files, [Failure(item.path, f"{item.path}: {item.reason}") for item in unread if item.asked]


def settings_here(request: Request) -> Settings:
    """The settings of the current folder. Raises SettingsError."""
    return _Layered(request).for_folder(".")


def _found(request: Request, finder: SettingsFinder) -> tuple[list[File], list[Unreadable]]:
    found = list(find(request.paths, finder, force_exclude=request.force_exclude))
    files = [item for item in found if isinstance(item, File)]
    return files, [item for item in found if isinstance(item, Unreadable)]


def run_text(data: bytes, named: str | None, request: Request) -> Report:
    """Check what came through a pipe, under the settings that a file of this name would have."""
    from msalint.check import lint_bytes
    from msalint.mending import Mended, as_diff, mend_bytes, wants_mending

    filename = named or "<stdin>"
    settings = _Layered(request).for_folder(os.path.dirname(os.path.abspath(filename)))
    fixing = request.fixing.over(settings.fixing)
    result = guarded(filename, lambda: lint_bytes(data, filename, settings))
    mended = Mended(filename, data, data)
    if (mend := _mend(fixing, request)) and wants_mending(result.diagnostics, filename, mend):
        mended = mend_bytes(data, filename, settings, None, mend)
        if not request.diff:
            result = guarded(filename, lambda: lint_bytes(mended.after, filename, settings))
    try:
        shown = Shown({filename: decode(data if request.diff else mended.after, filename).text})
    except SourceError:
        shown = Shown({filename: ""})
    return Report(
        diagnostics=(*_settings_findings([File(filename, settings)], None), *result.diagnostics),
        failures=(
            *((result.failure,) if result.failure else ()),
            *_complaints({filename: mended.complaints}),
        ),
        files=1,
        checked=(File(filename, settings),),
        text=shown.text,
        pages=_Manual(),
        version=__version__,
        fixing=fixing,
        mended=mended.diagnostics,
        diff=as_diff(mended, named is not None) if request.diff else None,
        fixed_text=mended.after if mend and not request.diff else None,
        cells=shown.cells,
    )


class _Manual(Sequence["Page"]):
    """The pages of all rules. The rules are loaded only for a report that asks: a cached run needs none."""

    @overload
    def __getitem__(self, index: int) -> Page: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Page]: ...
    def __getitem__(self, index: Any) -> Any:
        return self._pages()[index]

    def __len__(self) -> int:
        return len(self._pages())

    def _pages(self) -> tuple[Page, ...]:
        from msalint.registry import load

        return load().pages


class _Layered(SettingsFinder):
    """Settings of files with the command line's own on top."""

    def __init__(self, request: Request) -> None:
        super().__init__(request.overrides, request.config, isolated=request.isolated)
        self._request = request
        self._layered: dict[int, tuple[Settings, Settings]] = {}

    def for_folder(self, folder: str | os.PathLike[str]) -> Settings:
        base = super().for_folder(folder)
        if id(base) not in self._layered:
            layered = base.over(self._request.selection, self._request.target_torch)
            if self._request.include_docs is not None:
                layered = replace(layered, include_docs=self._request.include_docs)
            self._layered[id(base)] = (base, layered)
        return self._layered[id(base)][1]


def _counted(results: Iterable[Result], total: int, progress: Progress | None) -> Iterator[Result]:
    for number, result in enumerate(results, 1):
        if progress:
            progress(number, total)
        yield result


def _all_results(
    files: Sequence[File], request: Request, cache: Cache | None, progress: Progress | None = None
) -> list[Result]:
    with closing(_results(files, request, cache)) as found:
        return list(_counted(found, len(files), progress))


def _results(files: Sequence[File], request: Request, cache: Cache | None) -> Generator[Result, None, None]:
    """One result a file, in the order of the files: what is known from earlier runs, the rest anew."""
    project = Project(request.paths)
    known: dict[int, Result] = {}
    for number, file in enumerate(files if cache is not None else ()):
        found = _known(file, cache, project) if cache is not None else None
        if found is not None:
            known[number] = found
    unknown = [file for number, file in enumerate(files) if number not in known]
    jobs = 1 if any(is_handed_down(path) for path in request.paths) else request.jobs
    with closing(results(unknown, jobs, request.paths, project)) as fresh:
        for number in range(len(files)):
            result = known.get(number) or next(fresh)
            if cache is not None and number not in known:
                _keep(files[number], result, cache)
            yield result


def _known(file: File, cache: Cache, project: Project) -> Result | None:
    if not cache.may_know(file) or not os.path.isfile(file.path):  # a pipe can be read only once
        return None
    try:
        with open(file.path, "rb") as opened:
            found = cache.known(file, digest_of(opened.read()), project)
    except OSError:
        return None
    if found is None or _to_be_mended(file, found):
        return None
    return Result(file.path, found.diagnostics, hidden=found.hidden)


def _to_be_mended(file: File, known: Known) -> bool:
    if file.mend is None:
        return False
    from msalint.mending import wants_mending

    return wants_mending(known.diagnostics, file.path, file.mend)


def _keep(file: File, result: Result, cache: Cache) -> None:
    """Keep a result that follows from what the cache compares: a file that only a newer parser may read does not."""
    from msalint.about import SYNTAX_ERROR

    if result.digest and result.failure is None and all(one.code != SYNTAX_ERROR for one in result.diagnostics):
        cache.keep(file, result.digest, result.lookups, Known(result.diagnostics, result.hidden))


def _settings_findings(files: Iterable[File], cache: Cache | None) -> Iterator[Diagnostic]:
    """What is wrong with the settings of some files, each settings file once."""
    seen: set[str | None] = {None}
    told: dict[Diagnostic, None] = {}
    for file in files:
        name = file.settings.file
        if name is not None and name not in seen:
            seen.add(name)
            told.update(dict.fromkeys(_settings_finding(File(name, file.settings), cache)))
    yield from told


def _settings_finding(file: File, cache: Cache | None) -> tuple[Diagnostic, ...]:
    digest = _digest_of_files(name for name, _ in file.settings.words) if cache is not None else ""
    known = cache.known(file, digest, Project()) if cache is not None and digest else None
    if known is not None:
        return known.diagnostics
    from msalint import about
    from msalint.registry import load

    registry = load()
    wanted = about.UNKNOWN in registry.enabled(file.settings)
    found = tuple(about.unknown_in_settings(file.settings, registry)) if wanted else ()
    if cache is not None and digest:
        cache.keep(file, digest, (), Known(found))
    return found


def _digest_of_files(names: Iterable[str]) -> str:
    """Of some files together; "" if one of them can't be read."""
    try:
        return digest_of(b"\0".join(Path(name).read_bytes() for name in names))
    except OSError:
        return ""


def _unreadable_folders(unread: Iterable[Unreadable]) -> Iterator[Diagnostic]:
    for item in unread:
        if not item.asked:
            from msalint import about
            from msalint.registry import load

            yield about.unreadable(item.path, SourceError(f"can't read this folder: {item.reason}"), load())


def _under_known_names(results: Sequence[Result], files: Sequence[File]) -> list[Diagnostic]:
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
                if home is None or not _wants(home, one.code):
                    continue
                one = replace(one, filename=home.path)
            one = _with_known_steps(one, known)
            kept.setdefault((one.filename, one.span, one.code), one)
    hidden = [one for result in results for one in result.hidden if os.path.abspath(one.filename) in known]
    told = _without_busy_comments(list(kept.values()), hidden) if hidden else kept.values()
    return sorted(told, key=lambda one: (order[one.filename], one.span, one.code))


def _without_busy_comments(found: list[Diagnostic], hidden: list[Diagnostic]) -> list[Diagnostic]:
    """Findings without the suppressions that are called idle, but hide what another file's check found."""
    from msalint import about, suppress
    from msalint.registry import load

    busy: dict[str, set[Span]] = {}
    shown = Shown()
    for one in hidden:
        comments = suppress.find(shown.text(one.filename))
        spans = (comment.span for comment in comments if suppress.apply([one], [comment], load().codes).hidden)
        busy.setdefault(os.path.abspath(one.filename), set()).update(spans)
    return [
        one for one in found if one.code != about.UNUSED or one.span not in busy.get(os.path.abspath(one.filename), ())
    ]


def _wants(file: File, code: str) -> bool:
    from msalint.check import enabled_for
    from msalint.registry import load

    return code in enabled_for(file.path, file.settings, load())


def _with_known_steps(one: Diagnostic, known: dict[str, File]) -> Diagnostic:
    """The steps of a trail under the names that the reader knows their files by."""
    if all(step.filename == one.filename for step in one.trail):
        return one

    def named(step: Step) -> Step:
        home = known.get(os.path.abspath(step.filename))
        return replace(step, filename=home.path if home else os.path.relpath(step.filename))

    return replace(one, trail=tuple(named(step) for step in one.trail))


def _in_other_languages(paths: Iterable[str]) -> Iterator[str]:
    """A word about each notebook that was asked for by name and is in a language that isn't checked."""
    for path in paths:
        if path.lower().endswith(NOTEBOOK) and os.path.isfile(path):
            from msalint.documents.notebook import foreign_language

            try:
                language = foreign_language(read(path).text)
            except SourceError:
                continue
            if language is not None:
                yield f"{path}: left out: the code of this notebook is {language}, not Python"
