"""Many files: findings in helpers come home, and every finding is told once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import msalint.flow
from msalint import lint_paths, runner
from msalint.check import InternalError
from msalint.diagnostic import Diagnostic, Level, Position, Span, Step
from msalint.files import File
from msalint.processes import Result
from msalint.runner import Request, run
from msalint.settings import Selection, Settings

ATTENTION = "import torch\nweights = torch.softmax(scores, -1)\n"
IDLE = "x = 1  # noqa: MSA901\n"


def span(line: int) -> Span:
    return Span(Position(line, 1), Position(line, 5))


def finding(filename: str, line: int = 1, code: str = "MSA901", *steps: Step) -> Diagnostic:
    return Diagnostic(code, "a-rule", Level.ERROR, "words", filename, span(line), trail=steps)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def merged(files: dict[str, Settings], *results: Result) -> list[tuple[str, int, str]]:
    known = [File(path, settings) for path, settings in files.items()]
    found = runner._under_known_names(results, known)
    return [(one.filename, one.span.start.line, one.code) for one in found]


def test_a_finding_in_a_helper_is_told_once_under_the_name_it_is_known_by(here: Path) -> None:
    elsewhere = finding(str(here / "helper.py"), 3)
    assert merged(
        {"a.py": Settings(), "b.py": Settings(), "helper.py": Settings()},
        Result("a.py", (finding("a.py"), elsewhere)),
        Result("b.py", (elsewhere,)),
        Result("helper.py", (finding("helper.py", 3),)),
    ) == [("a.py", 1, "MSA901"), ("helper.py", 3, "MSA901")]


def test_a_finding_in_a_file_that_is_not_checked_is_not_told(here: Path) -> None:
    assert merged({"a.py": Settings()}, Result("a.py", (finding(str(here / "helper.py")),))) == []


def test_a_finding_in_a_helper_falls_under_the_settings_there(here: Path) -> None:
    quiet = Settings(selections=(Selection(ignore=("MSA901",)),))
    elsewhere = Result("a.py", (finding(str(here / "helper.py")),))
    assert merged({"a.py": Settings(), "helper.py": quiet}, elsewhere) == []


def test_the_steps_of_a_trail_have_the_names_their_files_are_known_by(here: Path) -> None:
    steps = (Step(str(here / "helper.py"), span(1), "x"), Step(str(here / "other.py"), span(1), "x"))
    result = Result("sub/a.py", (finding("sub/a.py", 1, "MSA901", *steps),))
    known = [File(path, Settings()) for path in ("sub/a.py", "helper.py")]
    (one,) = runner._under_known_names([result], known)
    assert [step.filename for step in one.trail] == ["helper.py", "other.py"]


def test_the_project_leads_from_one_file_to_another(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The analysis is handed a project in which the imports of a checked file can be found."""
    (here / "helper.py").write_text("# the helper\n")
    (here / "a.py").write_text("from helper import merge\n" + ATTENTION)
    asked: list[str] = []

    def analyse(text: str, filename: str, project: object = None, **kwargs: object) -> Iterator[object]:
        module = project.find("helper.merge", filename)  # type: ignore[attr-defined]
        asked.append(module.text)
        yield from ()

    monkeypatch.setattr(msalint.flow, "analyse", analyse, raising=False)
    assert run(Request((".",), jobs=1)).failures == ()
    assert asked == ["# the helper\n"]


def test_progress_counts_every_file(here: Path) -> None:
    for number in range(3):
        (here / f"{number}.py").write_text("x = 1\n")
    told: list[tuple[int, int]] = []
    run(Request((".",), jobs=1), lambda done, total: told.append((done, total)))
    assert told == [(1, 3), (2, 3), (3, 3)]


def test_the_public_function(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "a.py").write_text(IDLE)
    assert [(one.filename, one.code) for one in lint_paths(["a.py"])] == [("a.py", "MSA902")]
    assert lint_paths(["."], Selection(ignore=("MSA902",))) == []
    with pytest.raises(InternalError, match=r"none\.py"):
        lint_paths(["none.py"])


def test_a_fault_in_a_helper_is_found_though_the_caller_lacks_its_words(tmp_path: Path) -> None:
    (tmp_path / "masks.py").write_text(
        "import torch\n\n\ndef softened(scores):\n    return torch.softmax(scores, dim=-2)\n"
    )
    (tmp_path / "net.py").write_text(
        "from masks import softened\n\n\ndef attention(q, k, v):\n"
        "    scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5\n    return softened(scores) @ v\n"
    )
    assert [(Path(one.filename).name, one.code) for one in lint_paths([str(tmp_path)])] == [("masks.py", "MSA211")]
