"""The registry finds every rule, refuses bad ones by file and line, and selects by code, prefix, name and level."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from msalint import docs, registry
from msalint.diagnostic import Level
from msalint.registry import RegistryError
from msalint.settings import Selection, Settings

ROOT = Path(__file__).resolve().parent.parent
REAL = registry.load()

SECTIONS = "\n".join(f"    ## {title}\n    Words.\n" for title in docs.SECTIONS)

SOUND = f'''"""One rule."""

from dataclasses import dataclass

from msalint.rule import Level, Meta, Rule, on


@dataclass
class Happened:
    at: object


class Sample(Rule):
    """
{SECTIONS}    """

    meta = Meta(code="MSA199", name="sample", level=Level.ERROR, since="0.1.0")

    @on(Happened)
    def speak(self, fact):
        yield self.report(fact.at, "it happened")
'''


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty package of rules by the name `some_rules`."""
    folder = tmp_path / "some_rules"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    registry.load.cache_clear()
    yield folder
    for name in [name for name in sys.modules if name.split(".")[0] == "some_rules"]:
        del sys.modules[name]
    registry.load.cache_clear()


def write(package: Path, text: str, name: str = "layout/msa199_sample.py") -> Path:
    path = package / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def refusal(package: Path) -> str:
    with pytest.raises(RegistryError) as caught:
        registry.load("some_rules")
    return str(caught.value)


def test_every_rule_file_of_the_checkout_is_loaded() -> None:
    files = {path.stem.split("_")[0].upper() for path in (ROOT / "rules").glob("*/msa*.py")}
    assert {rule.meta.code for rule in REAL.rules} == files
    assert files >= {"MSA901", "MSA902", "MSA903", "MSA904"}


def test_rules_are_in_the_order_of_their_codes() -> None:
    codes = [rule.meta.code for rule in REAL.rules]
    assert codes == sorted(codes) == [page.code for page in REAL.pages]


def test_a_sound_rule_is_accepted(package: Path) -> None:
    write(package, SOUND)
    (rule,) = registry.load("some_rules").rules
    assert rule.meta.code == "MSA199"


@pytest.mark.parametrize("title", docs.SECTIONS)
def test_a_page_without_a_section_is_refused(package: Path, title: str) -> None:
    path = write(package, SOUND.replace(f"    ## {title}\n    Words.\n", ""))
    line = SOUND[: SOUND.index("class Sample")].count("\n") + 1
    assert refusal(package) == f"{path}:{line}: Sample: the docstring has no section `## {title}`"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("Words.\n", "\n", "is empty"),
        ("## References", "## Sources", "no section `## References`"),
        ("## References", "## References\n    Words.\n    ## More", "has a section `## More`"),
        ('"MSA199"', '"MSA198"', "the code is MSA198, but the file is named for MSA199"),
        ('"sample"', '"simple"', "the name is simple, but the file is named for sample"),
        ("Level.ERROR", '"error"', "the level must be one of Level"),
        ('since="0.1.0"', 'since="soon"', "`since` must be a version"),
        ('since="0.1.0"', 'since="0.1.0", needs="softmax"', "`needs` must be a tuple of words"),
        ('since="0.1.0"', 'since="0.1.0", yields_to=("MSA199",)', "yields_to names no other rule"),
        ("    @on(Happened)\n", "", "no method is marked @on"),
        ("@on(Happened)", '@on("Happened")', "not a kind of fact"),
        ("yield self", "return self", "yields nothing"),
        ("    meta = ", "    data = ", "has no `meta = Meta(...)`"),
        ("class Sample(Rule)", "class Sample", "holds 0"),
    ],
)
def test_a_bad_rule_is_refused(package: Path, old: str, new: str, words: str) -> None:
    path = write(package, SOUND.replace(old, new))
    message = refusal(package)
    assert words in message
    assert message.startswith(str(path))


def test_a_misspelt_fact_is_refused_at_its_line(package: Path) -> None:
    path = write(package, SOUND.replace("@on(Happened)", "@on(Hapened)"))
    line = SOUND[: SOUND.index("@on(Happened)")].count("\n") + 1
    assert refusal(package) == f"{path}:{line}: NameError: name 'Hapened' is not defined"


def test_a_rule_file_that_does_not_parse_is_refused_at_its_line(package: Path) -> None:
    path = write(package, "x = 1\nclass Sample(Rule:\n")
    assert refusal(package).startswith(f"{path}:2: SyntaxError:")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("layout/sample.py", "named after it"),
        ("masks/msa199_sample.py", "MSA199 belongs in rules/layout/, not in rules/masks/"),
    ],
)
def test_a_file_in_the_wrong_place_is_refused(package: Path, name: str, words: str) -> None:
    write(package, SOUND, name)
    assert words in refusal(package)


def test_a_code_or_a_name_is_taken_once(package: Path) -> None:
    write(package, SOUND)
    write(package, SOUND.replace("MSA199", "MSA198"), "layout/msa198_sample.py")
    assert "the name sample is taken by" in refusal(package)


def test_a_rule_about_the_check_itself_needs_no_handler(package: Path) -> None:
    text = SOUND.replace("    @on(Happened)\n", "").replace("MSA199", "MSA999")
    write(package, text, "about/msa999_sample.py")
    assert len(registry.load("some_rules").rules) == 1


def enabled(*layers: Selection) -> set[str]:
    return set(REAL.enabled(Settings(selections=layers)))


def test_errors_and_warnings_are_on_by_default_and_notes_are_off() -> None:
    on = enabled()
    for rule in REAL.rules:
        assert (rule.meta.code in on) == (rule.meta.level is not Level.NOTE)


@pytest.mark.parametrize("selector", ["MSA902", "msa902", "unused-suppression"])
def test_a_code_and_a_name_select_one_rule(selector: str) -> None:
    assert enabled(Selection(select=(selector,))) == {"MSA902"}


def test_a_prefix_selects_a_family() -> None:
    assert enabled(Selection(select=("MSA90",))) == {"MSA901", "MSA902", "MSA903", "MSA904"}


def test_a_level_selects_its_rules() -> None:
    assert enabled(Selection(select=("note",))) == {r.meta.code for r in REAL.rules if r.meta.level is Level.NOTE}


def test_extend_select_adds_to_what_is_on() -> None:
    assert enabled(Selection(extend_select=("MSA904",))) == enabled() | {"MSA904"}


def test_ignore_takes_away() -> None:
    assert enabled(Selection(ignore=("unused-suppression",))) == enabled() - {"MSA902"}


def test_the_more_exact_selector_wins() -> None:
    assert "MSA902" in enabled(Selection(select=("MSA902",), ignore=("MSA9",)))
    assert "MSA902" not in enabled(Selection(select=("MSA9",), ignore=("MSA902",)))
    assert "MSA902" not in enabled(Selection(select=("MSA902",), ignore=("MSA902",)))


def test_a_later_layer_with_select_starts_anew() -> None:
    assert enabled(Selection(ignore=("MSA902",)), Selection(select=("MSA902",))) == {"MSA902"}


def test_a_later_layer_without_select_adds() -> None:
    assert enabled(Selection(select=("MSA901",)), Selection(extend_select=("MSA902",))) == {"MSA901", "MSA902"}


def test_unknown_selectors_are_told_with_what_was_meant() -> None:
    assert REAL.unknown(("MSA901", "MSA909", "error", "unused-supression")) == ("MSA909", "unused-supression")
    assert REAL.suggestion("MSA999") == "" and REAL.suggestion("MAS901") == ", did you mean `MSA901`?"
    assert REAL.suggestion("unused-supression") == ", did you mean `unused-suppression`?"


def test_a_rule_that_needs_a_word_is_left_out_of_files_without_it(package: Path) -> None:
    write(package, SOUND.replace('since="0.1.0"', 'since="0.1.0", needs=("softmax", "sdpa")'))
    loaded = registry.load("some_rules")
    on = frozenset({"MSA199"})
    assert not loaded.handlers(on, "import torch".__contains__)
    assert loaded.handlers(on, "torch.softmax(x)".__contains__)


@pytest.mark.parametrize("page", REAL.pages, ids=lambda page: page.code)
def test_a_page_has_examples_and_a_summary(page: docs.Page) -> None:
    assert page.examples("Example"), "the section Example has no ```python block"
    assert page.examples("Use instead"), "the section Use instead has no ```python block"
    assert page.summary.endswith((".", ":")) and "TODO" not in docs.as_markdown(page)
    assert docs.as_json(page)["url"].endswith(page.name)
