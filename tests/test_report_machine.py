"""The reports for programs keep to the formats that their readers publish."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from msalint import registry
from msalint.diagnostic import Diagnostic, Edit, Fix, Level, Position, Safety, Span, Step
from msalint.report import Failure, Report, render

SCHEMA = json.loads((Path(__file__).parent / "data" / "sarif-2.1.0.schema.json").read_text(encoding="utf-8"))


def span(line: int, first: int, last: int) -> Span:
    return Span(Position(line, first), Position(line, last))


VIEW = Diagnostic(
    code="MSA902",
    name="unused-suppression",
    level=Level.ERROR,
    message="merges 100% of H, d:\nraises",
    filename="src/a b.py",
    span=span(10, 21, 42),
    trail=(
        Step("src/a b.py", span(5, 15, 38), "made non-contiguous here"),
        Step("/elsewhere/helper.py", span(1, 1, 2), "called here"),
    ),
    help="insert it",
    fix=Fix("insert it", (Edit(span(10, 28, 28), ".contiguous()"),), Safety.SAFE, ("import torch",)),
)
PLAIN = Diagnostic("MSA999", "no-such", Level.NOTE, "words", "<stdin>", Span(Position(1, 1), Position(3, 1)))


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def report(*diagnostics: Diagnostic, failures: tuple[Failure, ...] = ()) -> Report:
    return Report(diagnostics, failures, pages=registry.load().pages, version="0.1.0")


def test_json_has_the_keys_of_ruff_and_ours(here: Path) -> None:
    first, second = json.loads(render(report(VIEW, PLAIN), "json"))
    assert first == {
        "code": "MSA902",
        "name": "unused-suppression",
        "level": "error",
        "message": "merges 100% of H, d:\nraises",
        "filename": str(here / "src/a b.py"),
        "cell": None,
        "location": {"row": 10, "column": 21},
        "end_location": {"row": 10, "column": 42},
        "trail": [
            {
                "filename": str(here / "src/a b.py"),
                "cell": None,
                "location": {"row": 5, "column": 15},
                "end_location": {"row": 5, "column": 38},
                "message": "made non-contiguous here",
            },
            {
                "filename": "/elsewhere/helper.py",
                "cell": None,
                "location": {"row": 1, "column": 1},
                "end_location": {"row": 1, "column": 2},
                "message": "called here",
            },
        ],
        "help": "insert it",
        "fix": {
            "applicability": "safe",
            "message": "insert it",
            "edits": [
                {
                    "content": ".contiguous()",
                    "cell": None,
                    "location": {"row": 10, "column": 28},
                    "end_location": {"row": 10, "column": 28},
                }
            ],
            "imports": ["import torch"],
        },
        "url": VIEW.url,
    }
    assert second["filename"] == "<stdin>" and second["fix"] is None and second["trail"] == []


def test_an_empty_report_is_an_empty_array() -> None:
    assert render(report(), "json") == "[]\n"


def sarif(*diagnostics: Diagnostic, failures: tuple[Failure, ...] = ()) -> dict:  # type: ignore[type-arg]
    log = json.loads(render(report(*diagnostics, failures=failures), "sarif"))
    jsonschema.Draft4Validator(SCHEMA).validate(log)
    assert log["version"] == "2.1.0"
    run: dict = log["runs"][0]  # type: ignore[type-arg]
    return run


def test_the_schema_refuses_what_is_no_sarif() -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft4Validator(SCHEMA).validate({"version": "2.1.0", "runs": [{"tool": {}}]})


def test_sarif_describes_every_rule() -> None:
    rules = sarif()["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == [page.code for page in registry.load().pages]
    assert all(rule["shortDescription"]["text"] and rule["help"]["markdown"] for rule in rules)


def test_sarif_places_a_finding_and_its_trail() -> None:
    run = sarif(VIEW, PLAIN)
    first, second = run["results"]
    rule = run["tool"]["driver"]["rules"][first["ruleIndex"]]
    assert rule["id"] == first["ruleId"] == "MSA902"
    place = first["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "src/a%20b.py", "uriBaseId": "SRCROOT"}
    assert place["region"] == {"startLine": 10, "startColumn": 21, "endLine": 10, "endColumn": 42}
    assert [step["message"]["text"] for step in first["relatedLocations"]] == [
        "made non-contiguous here",
        "called here",
    ]
    assert first["relatedLocations"][1]["physicalLocation"]["artifactLocation"] == {
        "uri": "file:///elsewhere/helper.py"
    }
    flow = first["codeFlows"][0]["threadFlows"][0]["locations"]
    assert [step["location"]["physicalLocation"]["region"]["startLine"] for step in flow] == [5, 1, 10]
    assert first["fixes"][0]["artifactChanges"][0]["replacements"][0]["insertedContent"]["text"] == ".contiguous()"
    assert "ruleIndex" not in second and "codeFlows" not in second


def test_sarif_tells_of_failures() -> None:
    invocation = sarif(failures=(Failure("a.py", "internal error"),))["invocations"][0]
    assert invocation["executionSuccessful"] is False
    assert invocation["toolExecutionNotifications"][0]["message"]["text"] == "internal error"


def test_github_annotations_are_escaped() -> None:
    line, other = render(report(VIEW, PLAIN), "github").splitlines()
    assert line == (
        "::error title=msalint (MSA902),file=src/a b.py,line=10,endLine=10,col=21,endColumn=42::"
        "MSA902 unused-suppression: merges 100%25 of H, d:%0Araises"
        "%0Asrc/a b.py:5: made non-contiguous here%0A/elsewhere/helper.py:1: called here%0Ahelp: insert it"
    )
    assert other.startswith("::notice ") and "col=" not in other


def test_github_properties_hide_their_own_signs() -> None:
    from dataclasses import replace

    line = render(report(replace(VIEW, filename="a,b:c.py")), "github")
    assert "file=a%2Cb%3Ac.py," in line
