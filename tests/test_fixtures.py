"""What is found in the fixtures is what their comments say, and what safe fixes make of them is clean and proven."""

from __future__ import annotations

import ast
import sys
from collections import Counter
from pathlib import Path

import pytest

from msalint.check import lint_source
from msalint.registry import load
from msalint.testing import (
    Fixture,
    collect,
    disagreements,
    findings,
    mend,
    mended_folder,
    read_notes,
    reveal_disagreements,
    run_proof,
)

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
LINTED = [one for family in ("rules", "field", "articles", "clean") for one in collect(FIXTURES / family)]
FAULTY = [fixture for fixture in LINTED if fixture.faulty]
RULED = [fixture for fixture in FAULTY if fixture.folder.is_relative_to(FIXTURES / "rules")]
REVEALING = sorted((FIXTURES / "flow").rglob("*.py"))
CASES = tomllib.loads((FIXTURES / "field" / "manifest.toml").read_text(encoding="utf-8"))["case"]


def named(fixture: Fixture) -> str:
    return str(fixture.folder.relative_to(FIXTURES))


@pytest.mark.parametrize("fixture", LINTED, ids=named)
def test_findings_are_those_expected(fixture: Fixture) -> None:
    complaints = disagreements(fixture)
    assert not complaints, "\n".join(["", *complaints])


@pytest.mark.parametrize("path", REVEALING, ids=lambda path: str(path.relative_to(FIXTURES)))
def test_the_engine_knows_what_is_revealed(path: Path) -> None:
    complaints = reveal_disagreements(path)
    assert not complaints, "\n".join(["", *complaints])


@pytest.mark.parametrize("fixture", RULED, ids=named)
def test_unsafe_fixes_do_what_the_rule_asks_for(fixture: Fixture, tmp_path: Path) -> None:
    """Where nothing is left to report, the proof holds of the mended module as it does of the one written by hand."""
    clean: dict[Path, str] = {}
    for path in fixture.faulty:
        text = path.read_text(encoding="utf-8")
        mended = mend(text, str(path), unsafe=True)
        if mended == mend(text, str(path)):
            continue
        assert mend(mended, str(path), unsafe=True) == mended, f"{path.name}: fixing twice is not fixing once"
        if not lint_source(mended, filename=str(path)) and path.with_name(path.name.replace("bad", "good", 1)).exists():
            clean[path] = mended
    if clean and fixture.proof is not None:
        pytest.importorskip("torch")
        copy = mended_folder(fixture, clean, tmp_path)
        assert copy.proof is not None
        run_proof(copy.proof)


@pytest.mark.parametrize("fixture", FAULTY, ids=named)
def test_safe_fixes_leave_clean_proven_code(fixture: Fixture, tmp_path: Path) -> None:
    clean: dict[Path, str] = {}
    for path in fixture.faulty:
        text = path.read_text(encoding="utf-8")
        mended = mend(text, str(path))
        if mended == text:
            continue
        ast.parse(mended)
        assert mend(mended, str(path)) == mended, f"{path.name}: fixing twice is not fixing once"
        left = Counter(one.code for one in lint_source(mended, filename=str(path)))
        before = Counter(one.code for one in read_notes(text).expected)
        assert left < before, f"{path.name}: the fixes left {left} of {before}"
        if not left and path.with_name(path.name.replace("bad", "good", 1)).exists():
            clean[path] = mended
    if clean and fixture.proof is not None:
        pytest.importorskip("torch")
        copy = mended_folder(fixture, clean, tmp_path)
        assert copy.proof is not None
        run_proof(copy.proof)


def test_the_manifest_names_every_field_case_once() -> None:
    folders = [fixture.folder.name for fixture in collect(FIXTURES / "field")]
    assert sorted(case["id"] for case in CASES) == folders


def test_every_code_of_the_comments_is_in_the_manifest() -> None:
    codes = {case["id"]: case["code"] for case in CASES}
    for fixture in collect(FIXTURES / "field"):
        notes = read_notes((fixture.folder / "bad.py").read_text(encoding="utf-8"))
        stated = {one.code for one in notes.expected} | {one.code for one in notes.misses}
        assert codes[fixture.folder.name] == "none" or codes[fixture.folder.name] in stated, fixture.folder.name


def caught_cases() -> dict[str, bool]:
    """Whether the rule that covers it finds each field case."""
    by_folder = {fixture.folder.name: fixture for fixture in collect(FIXTURES / "field")}
    caught = {}
    for case in CASES:
        fixture = by_folder[case["id"]]
        found = findings(Fixture(fixture.folder, fixture.faulty))
        caught[case["id"]] = any(one.code == case["code"] for of_path in found.values() for one in of_path)
    return caught


def test_every_field_case_that_a_rule_covers_is_caught(capsys: pytest.CaptureFixture[str]) -> None:
    """`pytest -s -k field_case` shows the table."""
    shipped = {rule.meta.code for rule in load().rules}
    caught = caught_cases()
    covered = [case["id"] for case in CASES if case["code"] in shipped]
    for case in CASES:
        verdict = "caught" if caught[case["id"]] else "MISSED" if case["id"] in covered else "no rule yet"
        print(f"{case['id']:50} {case['code']:7} {verdict}")
    number = sum(caught.values())
    print(f"{number} of {len(CASES)} cases caught; {number} of {len(covered)} that a rule covers")
    assert [case for case in covered if not caught[case]] == []
