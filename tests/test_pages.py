"""The examples of every rule's page are true: the first is reported, what to use instead is not."""

from __future__ import annotations

import pytest

from msalint import registry
from msalint.check import lint_source
from msalint.docs import Page
from msalint.settings import Selection, Settings

PAGES = registry.load().pages

EVERYTHING = Settings(selections=(Selection(select=("ALL",)),))

TOO_LARGE_TO_PRINT = {"MSA904"}
"""Rules whose example can't stand on a page; each has a test of its own."""


def codes(text: str) -> set[str]:
    return {one.code for one in lint_source(text, "example.py", EVERYTHING)}


@pytest.mark.parametrize("page", [page for page in PAGES if page.code not in TOO_LARGE_TO_PRINT], ids=lambda p: p.code)
def test_the_example_is_reported(page: Page) -> None:
    for example in page.examples("Example"):
        assert page.code in codes(example), f"not reported:\n{example}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.code)
def test_what_to_use_instead_is_not(page: Page) -> None:
    for example in page.examples("Use instead"):
        found = codes(example)
        assert page.code not in found, f"reported:\n{example}"
        assert "MSA901" not in found, f"not Python:\n{example}"


def test_giving_up_is_reported_when_asked_for() -> None:
    nested = "(" * 5_000 + "scores" + ")" * 5_000
    assert "MSA904" in codes(f"import torch\n\n\ndef weights(scores):\n    return torch.softmax({nested}, dim=-1)\n")
