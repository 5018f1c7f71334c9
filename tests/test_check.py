"""The life of one file: facts to diagnostics, one fault one diagnostic, suppressions, faults of our own."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

import msalint.flow
from msalint import registry
from msalint.about import Place
from msalint.check import InternalError, lint_bytes, lint_file, lint_source
from msalint.diagnostic import Diagnostic, Level, Position, Safety, Span
from msalint.fix import apply
from msalint.rule import Meta, Rule, on
from msalint.settings import Selection, Settings
from msalint.source import SourceError

TEXT = "import torch\nweights = torch.softmax(scores, -1)\nmore = 1\n"
"""A text that the gate lets through."""


@dataclass(frozen=True)
class Happened:
    at: Place
    wrong: bool = True


def place(line: int, first: int = 1, last: int = 5, filename: str = "net.py") -> Place:
    return Place(filename, Span(Position(line, first), Position(line, last)))


def rule(code: str, **meta: Any) -> Rule:
    class Speaks(Rule):
        @on(Happened)
        def speak(self, fact: Happened) -> Iterator[Diagnostic]:
            if fact.wrong:
                yield self.report(fact.at, f"{self.meta.code} happened")

    Speaks.meta = Meta(code=code, name=code.lower(), level=Level.ERROR, since="0.1.0", **meta)
    return Speaks()


Facts = Callable[..., None]


@pytest.fixture
def facts(monkeypatch: pytest.MonkeyPatch) -> Facts:
    """Lets the flow analysis tell just the given facts, or raise the given errors."""

    def give(*happenings: object) -> None:
        def analyse(*args: object, **kwargs: object) -> Iterator[object]:
            for item in happenings:
                if isinstance(item, BaseException):
                    raise item
                yield item

        monkeypatch.setattr(msalint.flow, "analyse", analyse, raising=False)

    return give


def codes(*rules: Rule, text: str = TEXT) -> list[tuple[str, int]]:
    return [(one.code, one.span.start.line) for one in lint_source(text, "net.py", rules=rules)]


def test_diagnostics_come_by_position(facts: Facts) -> None:
    facts(Happened(place(2)), Happened(place(1)))
    assert codes(rule("MSA102"), rule("MSA101")) == [("MSA101", 1), ("MSA102", 1), ("MSA101", 2), ("MSA102", 2)]


def test_a_code_speaks_once_of_a_place(facts: Facts) -> None:
    facts(Happened(place(2)), Happened(place(2)))
    assert codes(rule("MSA101")) == [("MSA101", 2)]


def test_one_path_is_enough_unless_the_rule_wants_every_path(facts: Facts) -> None:
    here, there = place(1), place(2)
    facts(Happened(here), Happened(here, wrong=False), Happened(there), Happened(there))
    assert codes(rule("MSA101")) == [("MSA101", 1), ("MSA101", 2)]
    assert codes(rule("MSA101", every_path=True)) == [("MSA101", 2)]


def test_the_more_specific_rule_speaks(facts: Facts) -> None:
    facts(Happened(place(1)))
    general, specific = rule("MSA101", yields_to=("MSA102",)), rule("MSA102")
    assert codes(general, specific) == [("MSA102", 1)]
    assert codes(general) == [("MSA101", 1)]


def test_a_rule_yields_only_on_the_same_lines(facts: Facts) -> None:
    class Elsewhere(Rule):
        meta = Meta("MSA102", "elsewhere", Level.ERROR, "0.1.0")

        @on(Happened)
        def speak(self, fact: Happened) -> Iterator[Diagnostic]:
            yield self.report(place(3), "words")

    facts(Happened(place(1)))
    assert codes(rule("MSA101", yields_to=("MSA102",)), Elsewhere()) == [("MSA101", 1), ("MSA102", 3)]


def test_a_rule_that_can_not_fire_is_not_asked(facts: Facts) -> None:
    facts(Happened(place(1)))
    assert codes(rule("MSA101", needs=("masked_fill",))) == []
    assert codes(rule("MSA101", needs=("masked_fill", "softmax"))) == [("MSA101", 1)]


def test_a_file_that_is_not_about_attention_is_not_analysed(facts: Facts) -> None:
    facts(Happened(place(1)))
    assert codes(rule("MSA101"), text="import torch\nx = 1\n") == []
    assert codes(rule("MSA101"), text="import jax\nx = jax.nn.softmax(y)\n") == []


def test_a_suppression_hides(facts: Facts) -> None:
    facts(Happened(place(2)), Happened(place(3)))
    text = TEXT.replace("-1)\n", "-1)  # msalint: ignore[MSA101] -- shown on purpose\n")
    assert codes(rule("MSA101"), text=text) == [("MSA101", 3)]


def real(text: str, *layers: Selection, filename: str = "net.py") -> list[tuple[str, int, str]]:
    found = lint_source(text, filename, Settings(selections=layers))
    return [(one.code, one.span.start.line, one.message) for one in found]


def test_an_idle_suppression_is_reported_with_a_safe_fix(facts: Facts) -> None:
    facts()
    text = TEXT.replace("more = 1", "more = 1  # msalint: ignore[MSA901, syntax-error] -- why")
    (one,) = lint_source(text, "net.py")
    assert (one.code, one.message) == ("MSA902", "this suppression of `MSA901`, `syntax-error` hides nothing")
    assert one.fix is not None and one.fix.safety is Safety.SAFE


@pytest.mark.parametrize(
    ("comment", "mended"),
    [
        ("more = 1  # noqa: MSA901", "more = 1"),
        ("more = 1  # noqa: E501, MSA901", "more = 1  # noqa: E501"),
        ("more = 1  # noqa: MSA901, E501", "more = 1  # noqa: E501"),
        ("more = 1  # msalint: ignore[MSA901] -- why", "more = 1"),
        ("more = 1  # msalint: ignore", "more = 1"),
        ("more = 1  # msalint: ignore[MSA901] # other words", "more = 1  # other words"),
        ("# msalint: ignore-file[MSA901]\nmore = 1", "more = 1"),
    ],
)
def test_the_fix_of_an_idle_suppression_takes_out_what_is_idle(facts: Facts, comment: str, mended: str) -> None:
    facts()
    text = TEXT.replace("more = 1", comment)
    done = apply(text, lint_source(text, "net.py"))
    assert done.text == TEXT.replace("more = 1", mended)
    assert lint_source(done.text, "net.py") == []


def test_suppressions_of_rules_that_are_off_are_passed_over(facts: Facts) -> None:
    facts()
    text = TEXT.replace("more = 1", "more = 1  # noqa: MSA904")
    assert real(text) == []
    assert [code for code, _, _ in real(text, Selection(extend_select=("MSA904",)))] == ["MSA902"]
    bare = TEXT.replace("more = 1", "more = 1  # msalint: ignore")
    assert real(bare, Selection(select=("MSA902",))) == []


def test_an_idle_suppression_can_itself_be_hidden(facts: Facts) -> None:
    facts()
    assert real(TEXT.replace("more = 1", "more = 1  # noqa: MSA901, MSA902")) == []
    assert real("# msalint: ignore-file[MSA902]\n" + TEXT.replace("more = 1", "more = 1  # noqa: MSA901")) == []


def test_a_suppression_that_names_no_rule_is_reported(facts: Facts) -> None:
    facts()
    text = TEXT.replace("more = 1", "more = 1  # msalint: ignore[unused-supression]")
    assert real(text) == [
        (
            "MSA903",
            3,
            "`unused-supression` names no rule, so nothing is hidden by it, did you mean `unused-suppression`?",
        )
    ]


def test_suppressions_are_checked_in_files_that_are_not_about_attention() -> None:
    assert [code for code, _, _ in real("x = 1  # noqa: MSA999\n")] == ["MSA903"]


def test_text_that_is_not_python_is_a_finding(facts: Facts) -> None:
    facts(SourceError("invalid syntax", Position(2, 7)))
    (one,) = lint_source(TEXT, "net.py")
    assert (one.code, one.message, one.span.start) == ("MSA901", "invalid syntax", Position(2, 7))
    assert real(TEXT, Selection(ignore=("MSA901",))) == []


def test_a_file_nested_too_deeply_is_a_note(facts: Facts) -> None:
    facts(RecursionError())
    assert real(TEXT) == []
    assert [code for code, _, _ in real(TEXT, Selection(extend_select=("MSA904",)))] == ["MSA904"]


def test_a_fault_of_our_own_names_the_file(facts: Facts) -> None:
    facts(KeyError("axis"))
    with pytest.raises(InternalError, match=r"net\.py: KeyError: 'axis'") as caught:
        lint_source(TEXT, "net.py")
    assert "Traceback" in caught.value.detail
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.filename, again.detail) == (
        str(caught.value),
        "net.py",
        caught.value.detail,
    )


def test_a_fault_in_a_rule_names_the_file_too(facts: Facts) -> None:
    class Breaks(Rule):
        meta = Meta("MSA101", "breaks", Level.ERROR, "0.1.0")

        @on(Happened)
        def speak(self, fact: Happened) -> Iterator[Diagnostic]:
            yield self.report(fact.at, str(1 // 0))

    facts(Happened(place(1)))
    with pytest.raises(InternalError, match="ZeroDivisionError"):
        lint_source(TEXT, "net.py", rules=[Breaks()])


def test_a_finding_in_another_file_falls_under_the_comments_there(facts: Facts, tmp_path: Any) -> None:
    helper = tmp_path / "helper.py"
    helper.write_text("x = 1\ny = 2  # noqa: MSA101\n")
    facts(Happened(place(1, filename=str(helper))), Happened(place(2, filename=str(helper))))
    found = lint_source(TEXT, "net.py", rules=[rule("MSA101")])
    assert [(one.filename, one.span.start.line) for one in found] == [(str(helper), 1)]


def test_per_file_ignores_take_codes_off(facts: Facts) -> None:
    facts(SourceError("invalid syntax"))
    settings = Settings(per_file_ignores=(("tests/*", ("MSA9",)),))
    assert lint_source(TEXT, "tests/net.py", settings) == []
    assert len(lint_source(TEXT, "src/net.py", settings)) == 1


def test_bytes_and_files_are_read_first(tmp_path: Any) -> None:
    assert [one.code for one in lint_bytes(b"x = '\xff'\n", "<stdin>")] == ["MSA901"]
    assert [one.code for one in lint_file(str(tmp_path / "none.py"))] == ["MSA901"]
    path = tmp_path / "a.py"
    path.write_bytes(b"\xef\xbb\xbfx = 1\r\n")
    assert lint_file(str(path)) == []


def test_the_same_text_gives_the_same_findings(facts: Facts) -> None:
    facts(Happened(place(1)))
    rules = [rule("MSA101")]
    assert lint_source(TEXT, "net.py", rules=rules) == lint_source(TEXT, "net.py", rules=rules)


def test_every_code_about_the_check_has_its_rule() -> None:
    for code in ("MSA901", "MSA902", "MSA903", "MSA904"):
        assert registry.load().rule(code) is not None
