"""Each format for another program is what that program's schema, or the grammar of its lines, accepts."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest
import xmlschema

from msalint.diagnostic import Diagnostic, Edit, Fix, Level, Position, Safety, Span, Step
from msalint.documents.cells import Cells
from msalint.report import FORMATS, Failure, Report, render

DATA = Path(__file__).parent / "data"


def span(line: int, first: int, last: int) -> Span:
    return Span(Position(line, first), Position(line, last))


TEXT = "import torch\n\ndef f(x):\n    é = x; return é.view(B, L, D)\n"
VIEW = Diagnostic(
    code="MSA101",
    name="view-needs-contiguous",
    level=Level.ERROR,
    message="merges 100% of <H> & d:\nraises",
    filename="src/a b.py",
    span=span(4, 19, 33),
    trail=(Step("src/a b.py", span(3, 7, 8), "from here"),),
    help="insert it",
    fix=Fix("insert it", (Edit(span(4, 20, 20), ".contiguous()"),), Safety.SAFE),
)
NOTE = replace(VIEW, code="MSA401", level=Level.NOTE, message="odd \x1b]; words", trail=(), fix=None)
IN_CELL = Diagnostic(
    "MSA302",
    "x",
    Level.WARNING,
    "no weights",
    "nb.ipynb",
    span(9, 8, 10),
    (Step("nb.ipynb", span(3, 1, 2), "made here"),),
)
CELLS = Cells((2, 5), (2, 6))
"""A notebook whose cell 5 begins at line 6 of its joined code, so that line 9 is line 4 of cell 5."""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CI_PROJECT_DIR", raising=False)
    return tmp_path


def report(*diagnostics: Diagnostic, failures: tuple[Failure, ...] = (), text: str = TEXT) -> Report:
    return Report(
        diagnostics,
        failures,
        text=lambda filename: text,
        cells=lambda filename: CELLS if filename.endswith(".ipynb") else None,
    )


def schema(name: str) -> Any:
    return json.loads((DATA / name).read_text(encoding="utf-8"))


# GitLab


def gitlab(*diagnostics: Diagnostic, text: str = TEXT) -> list[dict[str, Any]]:
    issues: list[dict[str, Any]] = json.loads(render(report(*diagnostics, text=text), "gitlab"))
    jsonschema.Draft7Validator(schema("gitlab-code-quality.schema.json")).validate(issues)
    return issues


def test_the_gitlab_schema_refuses_what_gitlab_does() -> None:
    (issue,) = gitlab(VIEW)
    for broken in ({**issue, "severity": "error"}, {**issue, "location": {"path": "a.py"}}, {"description": "x"}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.Draft7Validator(schema("gitlab-code-quality.schema.json")).validate([broken])


def test_gitlab_places_by_path_from_the_root(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert gitlab() == []
    first, second = gitlab(VIEW, NOTE)
    assert (first["check_name"], first["severity"], second["severity"]) == ("MSA101", "major", "info")
    assert first["location"] == {
        "path": "src/a b.py",
        "positions": {"begin": {"line": 4, "column": 19}, "end": {"line": 4, "column": 33}},
    }
    monkeypatch.setenv("CI_PROJECT_DIR", str(here.parent))
    assert gitlab(VIEW)[0]["location"]["path"] == f"{here.name}/src/a b.py"


def test_gitlab_fingerprints_survive_shifted_lines_and_tell_findings_apart() -> None:
    moved = replace(VIEW, span=span(6, 19, 33))
    again = replace(VIEW, span=span(5, 19, 33))
    line = TEXT.splitlines(keepends=True)[3]
    before = gitlab(VIEW)[0]["fingerprint"]
    assert gitlab(moved, text="# new\n\n" + TEXT)[0]["fingerprint"] == before
    assert gitlab(VIEW, text=TEXT.replace("    é", "        é"))[0]["fingerprint"] == before
    assert gitlab(VIEW, text=TEXT.replace("return", "yield"))[0]["fingerprint"] != before
    both = gitlab(VIEW, again, text=TEXT + line)
    assert both[0]["fingerprint"] == before != both[1]["fingerprint"]
    assert len({issue["fingerprint"] for issue in gitlab(VIEW, NOTE, replace(VIEW, filename="b.py"))}) == 3


# JUnit


def junit(*diagnostics: Diagnostic, failures: tuple[Failure, ...] = ()) -> ElementTree.Element:
    text = render(report(*diagnostics, failures=failures), "junit")
    xmlschema.XMLSchema(str(DATA / "junit-10.xsd")).validate(text)
    return ElementTree.fromstring(text)


def test_the_junit_schema_refuses_what_jenkins_does() -> None:
    with pytest.raises(xmlschema.XMLSchemaValidationError):
        xmlschema.XMLSchema(str(DATA / "junit-10.xsd")).validate('<testsuites><testcase line="1"/></testsuites>')


def test_junit_has_a_suite_a_file_and_a_failure_a_finding(here: Path) -> None:
    root = junit(VIEW, NOTE, IN_CELL, failures=(Failure("gone.py", "No such file", "trace\n"),))
    assert root.attrib == {"name": "msalint", "tests": "4", "failures": "3", "errors": "1"}
    first, second, third = root
    assert first.attrib["name"] == str(here / "src/a b.py")
    assert (first.attrib["tests"], first.attrib["failures"]) == ("2", "2")
    assert [case.attrib["name"] for case in first] == ["org.msalint.MSA101", "org.msalint.MSA401"]
    failure = first[0][0]
    assert failure.text == "line 4, col 19, merges 100% of <H> & d:\nraises"
    assert first[1][0].attrib["message"] == "odd \ufffd]; words"
    assert second[0][0].text == "cell 5, line 4, col 8, no weights"
    assert (third[0][0].tag, third[0][0].attrib["message"]) == ("error", "No such file")


def test_junit_of_a_clean_run_is_one_passed_test() -> None:
    root = junit()
    assert (root.attrib["tests"], root.attrib["failures"]) == ("1", "0")
    assert [child.tag for child in root[0][0]] == []


# Reviewdog


def rdjson(*diagnostics: Diagnostic) -> list[dict[str, Any]]:
    result = json.loads(render(report(*diagnostics), "rdjson"))
    jsonschema.Draft7Validator(schema("rdformat.schema.json")).validate(result)
    assert result["source"]["name"] == "msalint"
    found: list[dict[str, Any]] = result["diagnostics"]
    return found


def test_the_rdjson_schema_refuses_what_is_none() -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft7Validator(schema("rdformat.schema.json")).validate({"diagnostics": [{"message": "x"}]})


def test_rdjson_counts_columns_in_bytes(here: Path) -> None:
    (found,) = rdjson(VIEW)
    assert found["severity"] == "ERROR"
    assert found["code"] == {"value": "MSA101", "url": VIEW.url}
    assert found["location"] == {
        "path": str(here / "src/a b.py"),
        "range": {"start": {"line": 4, "column": 20}, "end": {"line": 4, "column": 35}},
    }
    insertion = {"line": 4, "column": 22}
    assert found["suggestions"] == [{"range": {"start": insertion, "end": insertion}, "text": ".contiguous()"}]
    assert found["related_locations"][0]["message"] == "from here"


def test_rdjson_offers_no_fix_that_is_only_shown() -> None:
    assert VIEW.fix is not None
    (found,) = rdjson(replace(VIEW, fix=replace(VIEW.fix, safety=Safety.DISPLAY)))
    assert "suggestions" not in found


# Lines


def test_azure_logs_an_issue_a_line(here: Path) -> None:
    grammar = re.compile(
        r"##vso\[task\.logissue type=(?P<type>error|warning);sourcepath=(?P<path>[^;\]]+);linenumber=(?P<line>\d+);"
        r"columnnumber=(?P<column>\d+);code=(?P<code>\w+);\](?P<message>.+)"
    )
    first, second = render(report(replace(VIEW, filename="a;b].py"), NOTE), "azure").splitlines()
    match = grammar.fullmatch(first)
    assert match is not None
    assert match.groupdict() == {
        "type": "error",
        "path": str(here / "a%3Bb%5D.py"),
        "line": "4",
        "column": "19",
        "code": "MSA101",
        "message": "merges 100% of <H> & d:%0Araises",
    }
    other = grammar.fullmatch(second)
    assert other is not None and other["type"] == "warning"


def test_azure_hides_percent_signs_that_an_agent_would_decode() -> None:
    line = render(report(replace(VIEW, message="50% of 100%0A")), "azure")
    assert line.endswith("]50% of 100%AZP250A\n")


def test_pylint_lines_are_what_its_readers_match() -> None:
    lines = render(report(VIEW, IN_CELL), "pylint").splitlines()
    assert lines == [
        "src/a b.py:4: [MSA101] merges 100% of <H> & d: raises",
        "nb.ipynb:1: [MSA302] cell 5:4:8: no weights",
    ]
    assert all(
        re.fullmatch(r"(?P<path>[^:]+):(?P<line>\d+): \[(?P<code>\w+)(?:[^\]]*)\] (?P<message>.+)", x) for x in lines
    )


def test_json_lines_are_the_objects_of_json() -> None:
    both = report(VIEW, IN_CELL)
    lines = render(both, "json-lines").splitlines()
    assert [json.loads(line) for line in lines] == json.loads(render(both, "json"))
    assert render(report(), "json-lines") == ""


def test_grouped_has_a_block_a_file() -> None:
    plain = replace(VIEW, message="merges")
    assert render(report(plain, replace(plain, span=span(14, 1, 2)), IN_CELL), "grouped") == (
        "src/a b.py:\n"
        "  4:19 MSA101 [error] [*] merges\n"
        "  14:1 MSA101 [error] [*] merges\n"
        "\n"
        "nb.ipynb:\n"
        "  cell 5:4:8 MSA302 [warning] no weights\n"
        "\n"
    )


# Notebooks


def test_json_of_a_notebook_counts_by_cell() -> None:
    (found,) = json.loads(render(report(IN_CELL), "json"))
    assert (found["cell"], found["location"], found["end_location"]) == (
        5,
        {"row": 4, "column": 8},
        {"row": 4, "column": 10},
    )
    assert (found["trail"][0]["cell"], found["trail"][0]["location"]["row"]) == (2, 2)


@pytest.mark.parametrize("style", ["gitlab", "azure", "github", "rdjson", "sarif"])
def test_a_reader_that_knows_no_cells_is_told_the_cell_in_words(style: str) -> None:
    assert "cell 5:4:8: no weights" in render(report(IN_CELL), style)


def test_sarif_names_the_cell_and_no_line(here: Path) -> None:
    validator = jsonschema.Draft4Validator(schema("sarif-2.1.0.schema.json"))
    log = json.loads(render(report(IN_CELL, VIEW), "sarif"))
    validator.validate(log)
    first, second = (result["locations"][0] for result in log["runs"][0]["results"])
    assert first["logicalLocations"][0] == {"name": "cell 5", "fullyQualifiedName": "cell 5:4:8"}
    assert "region" not in first["physicalLocation"]
    assert "logicalLocations" not in second and second["physicalLocation"]["region"]["startLine"] == 4


def test_full_shows_lines_of_cells_and_which_cells_they_are_of() -> None:
    text = "\n".join(["# 1", "a = 1", "b = 2", "c = 3", "# 5", "d = 4", "e = 5", "f = 6", "g = softmax(h)"])
    assert render(report(IN_CELL, text=text), "full") == (
        "nb.ipynb:cell 5:4:8: MSA302 [warning] no weights\n"
        "  |\n"
        "  ::: cell 2\n"
        "2 | b = 2\n"
        "  | - made here\n"
        "  ::: cell 5\n"
        "4 | g = softmax(h)\n"
        "  |        ^^ x\n"
        "  |\n\n"
    )


@pytest.mark.parametrize("style", FORMATS)
def test_every_format_takes_whatever_comes(style: str) -> None:
    odd = replace(VIEW, filename="<stdin>", message="\udcff \x00 \u2028 ]]> %3B", span=span(99, 1, 1))
    failures = (Failure("x.py", "internal error", "Traceback\n"),)
    assert render(report(odd, VIEW, NOTE, IN_CELL, failures=failures), style)
    render(report(odd, text=""), style)
