"""The life of one file: text, facts, rules' diagnostics, suppressions, what is left."""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from msalint import about, suppress
from msalint.diagnostic import Diagnostic, Span
from msalint.documents.document import Piece, outward
from msalint.documents.kinds import PYTHON, read_document
from msalint.documents.usual_names import with_usual_imports
from msalint.files import matches
from msalint.fix import allowed
from msalint.gate import is_about_attention, is_torch
from msalint.registry import Handler, Registry, load
from msalint.rule import Rule
from msalint.settings import FixRules, Settings
from msalint.source import SourceError, decode, read

if TYPE_CHECKING:
    from msalint.project import Project


class InternalError(Exception):
    """A fault of msalint itself while it checked one file; `detail` is the traceback."""

    def __init__(self, filename: str, cause: BaseException) -> None:
        super().__init__(f"{filename}: {type(cause).__name__}: {cause}")
        self.filename = filename
        self.detail = "".join(traceback.format_exception(cause))

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.filename, str(self), self.detail)


def _rebuild(filename: str, message: str, detail: str) -> InternalError:
    error = InternalError(filename, Exception())
    error.args, error.detail = (message,), detail
    return error


def lint_source(
    text: str,
    filename: str = "<stdin>",
    settings: Settings | None = None,
    rules: Iterable[Rule] | None = None,
    project: Project | None = None,
) -> list[Diagnostic]:
    """What is wrong with one text, by position.

    `rules` are all those that `settings` turn on, unless given. A finding inside a helper from another file of
    `project` is reported at that file's place, under its suppressions. Raises InternalError for a fault of ours.
    """
    registry = load() if rules is None else Registry(tuple(rules), ())
    settings = settings or Settings()
    on = enabled_for(filename, settings, registry) if rules is None else registry.codes("ALL")
    try:
        found = _findings(text, filename, settings, registry, on, project)
    except SourceError as error:
        found = [about.unreadable(filename, error, registry)] if about.SYNTAX_ERROR in on else []
    except _TooDeepAt as error:
        found = [about.nested_too_deeply(filename, error.line, registry)] if about.GAVE_UP in on else []
    except Exception as error:
        raise InternalError(filename, error) from error
    own = _after_suppressions(text, filename, [one for one in found if one.filename == filename], registry, on)
    elsewhere = _kept_elsewhere([one for one in found if one.filename != filename], registry, project)
    kept = _with_allowed_fixes([*own, *elsewhere], registry, settings)
    return sorted(kept, key=lambda one: (one.filename != filename, one.filename, one.span, one.code))


def _with_allowed_fixes(found: list[Diagnostic], registry: Registry, settings: Settings) -> list[Diagnostic]:
    rules = settings.fix_rules
    if rules == FixRules():
        return found
    fixable = registry.picked(rules.fixable, rules.unfixable)
    safe = registry.picked(rules.extend_safe, rules.extend_unsafe)
    unsafe = registry.picked(rules.extend_unsafe, ()) - safe
    return [allowed(one, fixable, safe, unsafe) for one in found]


def lint_document(
    text: str, filename: str, settings: Settings | None = None, project: Project | None = None
) -> list[Diagnostic]:
    """What is wrong in a file by its kind: a Python file, a notebook, the code in a text. Positions are the document's.

    Raises SourceError where the file is not of the kind that its name says.
    """
    settings = settings or Settings()
    document = read_document(text, filename, settings.include_docs)
    found: list[Diagnostic] = []
    in_prose: list[Diagnostic] = []
    for piece in document.pieces:
        said = outward(piece, filename, lint_piece(piece, piece.text, filename, settings, project))
        (in_prose if piece.prose else found).extend(said)
    registry = load()
    if in_prose and filename.lower().endswith(PYTHON):
        found, in_prose = _under_comments(document.shown, found, in_prose, registry)
    found += in_prose
    if document.faults and about.SYNTAX_ERROR in enabled_for(filename, settings, registry):
        found += [about.unreadable(filename, fault, registry) for fault in document.faults]
    return sorted(found, key=lambda one: (one.filename != filename, one.filename, one.span, one.code))


def _under_comments(
    text: str, found: list[Diagnostic], in_docstrings: list[Diagnostic], registry: Registry
) -> tuple[list[Diagnostic], list[Diagnostic]]:
    """Findings of a Python file and of its docstrings, where a comment of the code covers a docstring too."""
    comments = suppress.find(text)
    outcome = suppress.apply(in_docstrings, comments, registry.codes)
    busy = {one.span for one in comments if suppress.apply(outcome.hidden, [one], registry.codes).hidden}
    return [one for one in found if one.code != about.UNUSED or one.span not in busy], list(outcome.kept)


def lint_piece(
    piece: Piece, text: str, filename: str, settings: Settings | None = None, project: Project | None = None
) -> list[Diagnostic]:
    """What is wrong with a text that is, or may come, in the place of a piece. Positions are the text's.

    Examples in prose may leave out the usual imports, be no Python at all, and show a suppression for its own sake.
    """
    if not piece.prose:
        return lint_source(text, filename, settings, project=project)
    found = lint_source(with_usual_imports(text), filename, settings, project=project)
    return [one for one in found if one.code not in (about.SYNTAX_ERROR, about.GAVE_UP, about.UNUSED)]


def lint_file(path: str, settings: Settings | None = None, project: Project | None = None) -> list[Diagnostic]:
    """`lint_document` of a file; one that can't be read is a syntax-error finding."""
    return _lint_bytes(path, None, settings, project)


def lint_bytes(
    data: bytes, filename: str, settings: Settings | None = None, project: Project | None = None
) -> list[Diagnostic]:
    """`lint_document` of what was read, came through a pipe or from an editor."""
    return _lint_bytes(filename, data, settings, project)


def _lint_bytes(
    filename: str, data: bytes | None, settings: Settings | None, project: Project | None
) -> list[Diagnostic]:
    try:
        source = read(filename) if data is None else decode(data, filename)
        return lint_document(source.text, filename, settings, project)
    except SourceError as error:
        registry = load()
        on = enabled_for(filename, settings or Settings(), registry)
        return [about.unreadable(filename, error, registry)] if about.SYNTAX_ERROR in on else []


@lru_cache(maxsize=64)
def _enabled(registry: Registry, settings: Settings) -> frozenset[str]:
    return registry.enabled(settings)


def enabled_for(filename: str, settings: Settings, registry: Registry) -> frozenset[str]:
    """The codes that are on for one file, its per-file-ignores taken off."""
    on = _enabled(registry, settings)
    for pattern, words in settings.per_file_ignores:
        if matches(filename, settings.root, (pattern,)):
            on = on.difference(*(registry.codes(word) for word in words))
    return on


def _anything(word: str) -> bool:
    return True


def _findings(
    text: str, filename: str, settings: Settings, registry: Registry, on: frozenset[str], project: Project | None
) -> list[Diagnostic]:
    # A helper in another file may hold the words that this one lacks.
    handlers = registry.handlers(on, text.__contains__ if project is None else _anything)
    if (not handlers and about.SYNTAX_ERROR not in on) or not is_about_attention(text) or not is_torch(text):
        return []
    from msalint.flow import analyse
    from msalint.syntax.depth import TooDeep

    try:
        facts = analyse(text, filename, project, target_torch=settings.target_torch)
        return _most_specific(_first_of_each(_reported(facts, handlers)), registry)
    except (TooDeep, RecursionError) as error:
        raise _TooDeepAt(getattr(error, "line", 1)) from error


class _TooDeepAt(Exception):
    """The whole file is nested deeper than can be followed; `line` is where it begins to be."""

    def __init__(self, line: int) -> None:
        super().__init__(line)
        self.line = line


def _reported(facts: Iterable[object], handlers: dict[type, list[tuple[Rule, Handler]]]) -> Iterator[Diagnostic]:
    """What the rules say of the facts, as they come. Rules that need every path are asked until all are walked."""
    polled = _Poll()
    for fact in facts:
        for rule, handler in handlers.get(type(fact), ()):
            if rule.meta.every_path:
                polled.ask(rule, fact, list(handler(fact)))
            else:
                yield from handler(fact)
    yield from polled.agreed()


class _Poll:
    """Which diagnostics each fact of a kind at one place gave: one path that differs takes a diagnostic away."""

    def __init__(self) -> None:
        self._asked: dict[tuple[str, type, int], tuple[object, int, dict[tuple[str, Span], list[Diagnostic]]]] = {}

    def ask(self, rule: Rule, fact: object, said: list[Diagnostic]) -> None:
        # The place is kept beside its id, so that no other object can be given the same one.
        place = getattr(fact, "at", None)
        key = (rule.meta.code, type(fact), id(place))
        _, times, answers = self._asked.get(key, (place, 0, {}))
        for one in {(one.code, one.span): one for one in reversed(said)}.values():
            answers.setdefault((one.code, one.span), []).append(one)
        self._asked[key] = (place, times + 1, answers)

    def agreed(self) -> Iterator[Diagnostic]:
        for _, times, answers in self._asked.values():
            for same in answers.values():
                if len(same) == times:
                    yield same[0]


def _first_of_each(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """One code speaks once of one place, however many paths led there."""
    found: dict[tuple[str, str, Span], Diagnostic] = {}
    for one in diagnostics:
        found.setdefault((one.code, one.filename, one.span), one)
    return list(found.values())


def _most_specific(diagnostics: list[Diagnostic], registry: Registry) -> list[Diagnostic]:
    """Without those whose rule yields to one that speaks on the same lines."""
    yields = {rule.meta.code: rule.meta.yields_to for rule in registry.rules if rule.meta.yields_to}

    def outdone(one: Diagnostic) -> bool:
        return any(
            other.code in yields.get(one.code, ())
            and other.filename == one.filename
            and other.span.start.line <= one.span.end.line
            and one.span.start.line <= other.span.end.line
            for other in diagnostics
        )

    return [one for one in diagnostics if not outdone(one)]


def _after_suppressions(
    text: str, filename: str, found: list[Diagnostic], registry: Registry, on: frozenset[str]
) -> list[Diagnostic]:
    comments = suppress.find(text)
    if not comments:
        return found
    outcome = suppress.apply(found, comments, registry.codes)
    told: list[Diagnostic] = []
    if about.UNKNOWN in on:
        told += about.unknown_codes(filename, comments, registry)
    if about.UNUSED in on:
        told += about.unused_suppressions(text, filename, outcome.unused, registry, on)
    # A comment that names no code hides every fault, but not that it is idle itself.
    named = [comment for comment in comments if comment.words is not None]
    return [*outcome.kept, *suppress.apply(told, named, registry.codes).kept]


def _comments_of(filename: str) -> list[suppress.Suppression]:
    try:
        return suppress.find(read(filename).text)
    except SourceError:
        return []


def _kept_elsewhere(found: list[Diagnostic], registry: Registry, project: Project | None) -> Iterator[Diagnostic]:
    """Findings in other files, without those that a comment over there hides."""
    for one in found:
        outcome = suppress.apply([one], _comments_of(one.filename), registry.codes)
        yield from outcome.kept
        if project is not None:
            project.hidden += outcome.hidden
