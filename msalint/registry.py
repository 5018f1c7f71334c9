"""Find, validate and select rules: every file below `msalint/rules/` holds one, and a bad one is refused loudly."""

from __future__ import annotations

import importlib
import inspect
import re
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from msalint.diagnostic import Diagnostic, Level
from msalint.docs import Page, PageError, page_of
from msalint.rule import Meta, Rule
from msalint.settings import DEFAULT_SELECT, Selection, Settings, did_you_mean

Handler = Callable[[Any], Iterator[Diagnostic]]

FILE_NAME = re.compile(r"([a-z]+\d{3})_([a-z0-9_]+)")
FAMILIES = ("layout", "scores", "masks", "modules", "torch_api", "dropout", "cache", "cost", "about")
"""The folder of codes MSA1xx, MSA2xx, ..."""
EVERYTHING = "ALL"


class RegistryError(Exception):
    """A rule file that is no rule; the message begins with its file and line."""


@dataclass(frozen=True, eq=False)
class Registry:
    """All rules, by code. A selector is a code, a prefix of codes, a name, a level or ALL."""

    rules: tuple[Rule, ...]
    pages: tuple[Page, ...]

    def rule(self, word: str) -> Rule | None:
        """The rule of a code or a name."""
        folded = word.strip().lower()
        return next((rule for rule in self.rules if folded in (rule.meta.code.lower(), rule.meta.name)), None)

    def page(self, code: str) -> Page:
        return next(page for page in self.pages if page.code == code)

    def codes(self, selector: str) -> frozenset[str]:
        """The codes that a selector stands for; none if it names no rule."""
        return frozenset(rule.meta.code for rule in self.rules if _names(selector, rule.meta))

    def unknown(self, selectors: Iterable[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(word for word in selectors if not self.codes(word)))

    def suggestion(self, selector: str) -> str:
        """What was probably meant by a selector that names no rule, as the end of a sentence."""
        digits = re.sub(r"\D", "", selector)
        codes = [rule.meta.code for rule in self.rules if digits and rule.meta.code.endswith(digits)]
        names = [rule.meta.name for rule in self.rules] + [level.value for level in Level]
        return did_you_mean(selector, codes if digits else names)

    def enabled(self, settings: Settings) -> frozenset[str]:
        """The codes that are on. In each layer the more exact selector wins, and `ignore` wins a draw.

        A layer with a `select` starts from nothing; one without adds to the layers below.
        """
        on: frozenset[str] = frozenset()
        for layer in (Selection(DEFAULT_SELECT), *settings.selections):
            if layer.select is not None:
                on = frozenset()
            on = self.picked((*(layer.select or ()), *layer.extend_select), layer.ignore, on)
        return on

    def picked(
        self, wanted: Iterable[str], unwanted: Iterable[str], before: frozenset[str] = frozenset()
    ) -> frozenset[str]:
        """Codes with those of some selectors put in and of others taken out; the more exact one has the last word."""
        on = before
        turned = [(_exactness(word), True, word) for word in wanted]
        turned += [(_exactness(word), False, word) for word in unwanted]
        for _, keep, word in sorted(turned, key=lambda item: (item[0], not item[1])):
            on = on | self.codes(word) if keep else on - self.codes(word)
        return on

    def handlers(self, codes: frozenset[str], words: Callable[[str], bool]) -> dict[type, list[tuple[Rule, Handler]]]:
        """Which rules read which facts, without those that can't fire in a file: `words` says what stands in it."""
        there = lru_cache(maxsize=None)(words)
        found: dict[type, list[tuple[Rule, Handler]]] = {}
        for rule, handlers in self._listening:
            if rule.meta.code in codes and (not rule.meta.needs or any(map(there, rule.meta.needs))):
                for fact, handler in handlers:
                    found.setdefault(fact, []).append((rule, handler))
        return found

    @cached_property
    def _listening(self) -> tuple[tuple[Rule, tuple[tuple[type, Handler], ...]], ...]:
        return tuple((rule, tuple(rule.handlers())) for rule in self.rules)


def _names(selector: str, meta: Meta) -> bool:
    folded = selector.strip().lower()
    if folded in (EVERYTHING.lower(), meta.name, meta.level.value):
        return bool(folded)
    return bool(re.fullmatch(r"[a-z]+\d*", folded)) and meta.code.lower().startswith(folded)


def _exactness(selector: str) -> int:
    """ALL < a level < a prefix, the longer the more exact < a whole code or a name."""
    if selector.upper() == EVERYTHING:
        return 0
    if selector.lower() in {level.value for level in Level}:
        return 1
    return 100 if "-" in selector else 1 + len(selector)


@lru_cache(maxsize=8)
def load(package: str = "msalint.rules") -> Registry:
    """All rules of a package of families. Raises RegistryError at the first file that is no rule."""
    root = importlib.import_module(package)
    rules: dict[str, Rule] = {}
    pages: list[Page] = []
    for path in _rule_files(root):
        rule = _load_file(package, path)
        page = _page(rule, path)
        for other in rules.values():
            for what in ("code", "name"):
                if getattr(other.meta, what) == getattr(rule.meta, what):
                    where = inspect.getsourcefile(type(other))
                    raise _refused(path, rule, f"the {what} {getattr(rule.meta, what)} is taken by {where}")
        rules[rule.meta.code] = rule
        pages.append(page)
    for rule in rules.values():
        for code in rule.meta.yields_to:
            if not re.fullmatch(r"[A-Z]+\d{3}", code) or code == rule.meta.code:
                raise RegistryError(f"{inspect.getsourcefile(type(rule))}: yields_to names no other rule: {code!r}")
    ordered = sorted(rules)
    return Registry(tuple(rules[code] for code in ordered), tuple(sorted(pages, key=lambda page: page.code)))


def _rule_files(root: ModuleType) -> list[Path]:
    folders = [Path(folder) for folder in root.__path__]
    found = {path for folder in folders for path in folder.glob("*/*.py") if not path.name.startswith("_")}
    return sorted(found, key=lambda path: (path.name, str(path)))


def _load_file(package: str, path: Path) -> Rule:
    family, stem = path.parent.name, path.stem
    named = FILE_NAME.fullmatch(stem)
    if not named:
        raise RegistryError(f"{path}:1: a rule's file is named after it, as in msa101_view_needs_contiguous.py")
    try:
        module = importlib.import_module(f"{package}.{family}.{stem}")
    except Exception as error:
        raise RegistryError(f"{path}:{_line_in(error, path)}: {type(error).__name__}: {error}") from error
    classes = [
        item
        for item in vars(module).values()
        if isinstance(item, type) and issubclass(item, Rule) and item.__module__ == module.__name__
    ]
    if len(classes) != 1:
        raise RegistryError(f"{path}:1: a rule's file holds one class derived from Rule, this one holds {len(classes)}")
    rule = classes[0]()
    meta = getattr(rule, "meta", None)
    if not isinstance(meta, Meta):
        raise _refused(path, rule, "the class has no `meta = Meta(...)`")
    _check_meta(path, rule, meta, named)
    _check_handlers(path, rule, family)
    return rule


def _check_meta(path: Path, rule: Rule, meta: Meta, named: re.Match[str]) -> None:
    code, name = named.group(1).upper(), named.group(2).replace("_", "-")
    if meta.code != code:
        raise _refused(path, rule, f"the code is {meta.code}, but the file is named for {code}")
    if meta.name != name:
        raise _refused(path, rule, f"the name is {meta.name}, but the file is named for {name}")
    if not isinstance(meta.level, Level):
        raise _refused(path, rule, f"the level must be one of Level, not {meta.level!r}")
    if not re.fullmatch(r"\d+\.\d+\.\d+", meta.since):
        raise _refused(path, rule, f"`since` must be a version such as 0.1.0, not {meta.since!r}")
    if isinstance(meta.needs, str) or not all(isinstance(word, str) and word for word in meta.needs):
        raise _refused(path, rule, "`needs` must be a tuple of words")
    family = path.parent.name
    if code.startswith("MSA") and code[3] != "0" and family != FAMILIES[int(code[3]) - 1]:
        raise _refused(path, rule, f"{code} belongs in rules/{FAMILIES[int(code[3]) - 1]}/, not in rules/{family}/")


def _check_handlers(path: Path, rule: Rule, family: str) -> None:
    """Rules about the check itself may have no handler: the check reports them when it meets their case."""
    handlers = list(rule.handlers())
    if not handlers and family != "about":
        raise _refused(path, rule, "no method is marked @on(...), so the rule can't report anything")
    for fact, method in handlers:
        if not isinstance(fact, type):
            raise _refused(path, rule, f"@on({fact!r}) on `{_name(method)}`: not a kind of fact")
        if not inspect.isgeneratorfunction(method):
            raise _refused(path, rule, f"`{_name(method)}` is marked @on({fact.__name__}) but yields nothing")


def _name(method: Handler) -> str:
    return getattr(method, "__name__", repr(method))


def _page(rule: Rule, path: Path) -> Page:
    try:
        return page_of(rule)
    except PageError as error:
        raise _refused(path, rule, str(error)) from error


def _refused(path: Path, rule: Rule, why: str) -> RegistryError:
    try:
        line = inspect.getsourcelines(type(rule))[1]
    except (OSError, TypeError):
        line = 1
    return RegistryError(f"{path}:{line}: {type(rule).__name__}: {why}")


def _line_in(error: BaseException, path: Path) -> int:
    """The line of a rule file where loading it went wrong."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return error.lineno or 1
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return frames[-1].lineno or 1 if frames else 1
