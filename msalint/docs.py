"""A rule's docstring as its manual page: the fixed sections, their examples, and the page as text, Markdown or JSON."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from typing import Any

from msalint.diagnostic import Level
from msalint.rule import Rule

SECTIONS = (
    "What it does",
    "Why is this bad?",
    "Example",
    "Use instead",
    "Fix safety",
    "Known limits",
    "References",
)

HEADING = re.compile(r"^##\s+(.+?)\s*$", re.MULTILINE)
FENCE = re.compile(r"^```python\s*\n(.*?)^```\s*$", re.MULTILINE | re.DOTALL)


class PageError(ValueError):
    """A docstring that is no page; the message says which section is missing, empty or out of place."""


@dataclass(frozen=True)
class Page:
    """The manual page of one rule. `sections` pairs each title of SECTIONS with its text."""

    code: str
    name: str
    level: Level
    since: str
    sections: tuple[tuple[str, str], ...]

    @property
    def url(self) -> str:
        return f"https://msalint.readthedocs.io/rules/{self.name}"

    @property
    def on_by_default(self) -> bool:
        return self.level is not Level.NOTE

    @property
    def summary(self) -> str:
        """The first sentence of "What it does", on one line."""
        text = " ".join(self.section("What it does").split("\n\n")[0].split())
        return re.split(r"(?<=[.:]) (?=[A-Z`])", text)[0]

    def section(self, title: str) -> str:
        return dict(self.sections)[title]

    def examples(self, title: str) -> tuple[str, ...]:
        """The Python code blocks of a section."""
        return tuple(FENCE.findall(self.section(title)))


def page_of(rule: Rule) -> Page:
    """The page of a rule, from the docstring of its class or else of its file. Raises PageError."""
    module = inspect.getmodule(type(rule))
    own = type(rule).__dict__.get("__doc__") or ""
    text = own if "##" in own else (module.__doc__ if module else "") or own
    meta = rule.meta
    return Page(meta.code, meta.name, meta.level, meta.since, parse(text))


def parse(docstring: str) -> tuple[tuple[str, str], ...]:
    """The sections of a docstring, which must be exactly SECTIONS, in that order, none empty."""
    text = inspect.cleandoc(docstring)
    headings = list(HEADING.finditer(text))
    titles = [heading.group(1) for heading in headings]
    for title in SECTIONS:
        if title not in titles:
            raise PageError(f"the docstring has no section `## {title}`")
    for title in titles:
        if title not in SECTIONS:
            raise PageError(f"the docstring has a section `## {title}`, which a page doesn't have")
    if tuple(titles) != SECTIONS:
        raise PageError(f"the sections of the docstring must stand once each, in the order {', '.join(SECTIONS)}")
    found = []
    for heading, following in zip(headings, [*headings[1:], None], strict=True):
        body = text[heading.end() : following.start() if following else len(text)].strip()
        if not body:
            raise PageError(f"the section `## {heading.group(1)}` of the docstring is empty")
        found.append((heading.group(1), body))
    return tuple(found)


def as_markdown(page: Page) -> str:
    """The page as it stands on the web and in `msalint rule CODE`."""
    default = "" if page.on_by_default else ", off by default"
    body = "\n\n".join(f"## {title}\n{text}" for title, text in page.sections)
    return f"# {page.name} ({page.code})\n\nLevel: {page.level.value}{default}. Since {page.since}.\n\n{body}\n"


def as_json(page: Page) -> dict[str, Any]:
    return {
        "code": page.code,
        "name": page.name,
        "level": page.level.value,
        "default": page.on_by_default,
        "since": page.since,
        "summary": page.summary,
        "explanation": as_markdown(page),
        "url": page.url,
    }
