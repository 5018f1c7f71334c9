"""The fixture harness reads its comments exactly, and tells every difference between them and the findings."""

from __future__ import annotations

from pathlib import Path

import pytest

from msalint.diagnostic import Diagnostic, Level, Position, Span
from msalint.testing import (
    Expected,
    Fixture,
    FixtureError,
    KnownMiss,
    Revealing,
    collect,
    compare,
    mended_folder,
    read_notes,
    run_proof,
)


def finding(code: str, line: int, column: int = 1, message: str = "goes wrong") -> Diagnostic:
    start = Position(line, column)
    return Diagnostic(code, "a-rule", Level.ERROR, message, "x.py", Span(start, start))


def test_a_comment_at_the_end_speaks_of_its_own_line() -> None:
    assert read_notes("a = 1\nb = 2  # expect: MSA101\n").expected == (Expected(2, "MSA101"),)


def test_a_comment_alone_speaks_of_the_next_line_of_code() -> None:
    text = "def f(x):\n    # expect: MSA101\n    # a remark\n\n    return x\n"
    assert read_notes(text).expected == (Expected(5, "MSA101"),)


def test_a_comment_inside_brackets_speaks_of_the_line_below_it() -> None:
    text = "f(\n    1,\n    # expect: MSA101\n    2,\n)\n"
    assert read_notes(text).expected == (Expected(4, "MSA101"),)


def test_column_and_words_are_read() -> None:
    wanted = Expected(1, "MSA101", 5, "can't merge")
    assert read_notes('x = y  # expect: 5 MSA101 "can\'t merge"\n').expected == (wanted,)


def test_one_comment_may_expect_two_diagnostics() -> None:
    notes = read_notes('x = y  # expect: MSA101 # expect: 3 MSA103 "heads"\n')
    assert notes.expected == (Expected(1, "MSA101"), Expected(1, "MSA103", 3, "heads"))


def test_known_misses_and_reveals_are_read() -> None:
    notes = read_notes("x = y  # expect-not: MSA311 -- no shapes of masks yet\nr(x)  # reveal: (B, H, T, d)\n")
    assert notes.misses == (KnownMiss(1, "MSA311", "no shapes of masks yet"),)
    assert notes.reveals == (Revealing(2, "(B, H, T, d)"),)


def test_a_string_that_looks_like_a_comment_is_none() -> None:
    assert read_notes('x = """\n# expect: MSA101\n"""\ny = "# expect: MSA102"\n').expected == ()


def test_the_comments_of_text_that_is_no_python_are_read_all_the_same() -> None:
    text = 'ok = 1\ndef f(:\n    x = (  # expect: MSA901\n"""\n'
    assert Expected(3, "MSA901") in read_notes(text).expected


@pytest.mark.parametrize(
    "comment",
    [
        "expect: ",
        "expect MSA101",
        "expect: msa101",
        "expect: MSA101 words",
        "expect-not: MSA101",
        "expect-not: MSA101 --",
    ],
)
def test_a_comment_that_cannot_be_read_is_an_error_with_its_place(comment: str) -> None:
    with pytest.raises(FixtureError, match=r"bad\.py:2: "):
        read_notes(f"a = 1\nb = 2  # {comment}\n", "bad.py")


def test_findings_as_expected_raise_no_complaint() -> None:
    notes = read_notes('a = 1  # expect: MSA101\nb = 2  # expect: 5 MSA103 "wrong"\n')
    assert compare(notes, [finding("MSA103", 2, 5), finding("MSA101", 1)], "x.py") == []


@pytest.mark.parametrize(
    ("comment", "found"),
    [
        ("expect: MSA101", finding("MSA102", 1)),
        ("expect: MSA101", finding("MSA101", 2)),
        ("expect: 4 MSA101", finding("MSA101", 1, 5)),
        ('expect: MSA101 "right"', finding("MSA101", 1)),
    ],
)
def test_a_finding_of_another_code_line_column_or_message_does_not_do(comment: str, found: Diagnostic) -> None:
    complaints = compare(read_notes(f"a = 1  # {comment}\n"), [found], "x.py")
    assert len(complaints) == 2
    assert any("is expected and not reported" in one for one in complaints)
    assert any("is reported and not expected" in one for one in complaints)


def test_one_expectation_stands_for_one_finding() -> None:
    notes = read_notes("a = 1  # expect: MSA101\n")
    assert compare(notes, [finding("MSA101", 1, 1), finding("MSA101", 1, 9)], "x.py") == [
        "x.py:1:9: MSA101 is reported and not expected: goes wrong"
    ]


def test_a_bare_expectation_leaves_the_worded_finding_to_the_worded_one() -> None:
    notes = read_notes('a = 1  # expect: MSA101 # expect: MSA101 "special"\n')
    assert compare(notes, [finding("MSA101", 1, 1, "special"), finding("MSA101", 1, 9)], "x.py") == []


def test_a_known_miss_is_quiet_until_it_is_found() -> None:
    notes = read_notes("a = 1  # expect-not: MSA311 -- no shapes of masks yet\n")
    assert compare(notes, [], "x.py") == []
    (complaint,) = compare(notes, [finding("MSA311", 1)], "x.py")
    assert "no longer missed" in complaint and "no shapes of masks yet" in complaint


def test_collect_keeps_the_proof_apart_from_the_modules(tmp_path: Path) -> None:
    for name in ("case/bad_one.py", "case/good_one.py", "case/prove.py", "proofkit.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("")
    (fixture,) = collect(tmp_path)
    assert [path.name for path in fixture.sources] == ["bad_one.py", "good_one.py"]
    assert [path.name for path in fixture.faulty] == ["bad_one.py"]
    assert fixture.proof == tmp_path / "case" / "prove.py"


PROOF = """
import sys
from pathlib import Path
sys.path.insert(0, str(Path(__file__).resolve().parent))
import bad, good
assert bad.value != good.value == 2, "not proven"
"""


def proof_fixture(folder: Path, good: int) -> Fixture:
    folder.mkdir(parents=True)
    (folder / "bad.py").write_text("value = 1\n")
    (folder / "good.py").write_text(f"value = {good}\n")
    (folder / "prove.py").write_text(PROOF)
    return collect(folder)[0]


def test_a_proof_runs_with_its_own_modules_each_time(tmp_path: Path) -> None:
    sound, unsound = proof_fixture(tmp_path / "a", good=2), proof_fixture(tmp_path / "b", good=1)
    for fixture, proven in ((sound, True), (unsound, False), (sound, True)):
        assert fixture.proof is not None
        if proven:
            run_proof(fixture.proof)
        else:
            with pytest.raises(AssertionError, match="not proven"):
                run_proof(fixture.proof)


def test_a_proof_that_leaves_with_an_error_code_proves_nothing(tmp_path: Path) -> None:
    proof = tmp_path / "prove.py"
    proof.write_text("raise SystemExit(1)\n")
    with pytest.raises(AssertionError):
        run_proof(proof)


def test_the_mended_text_takes_the_place_of_the_good_twin(tmp_path: Path) -> None:
    fixture = proof_fixture(tmp_path / "fixtures" / "rules" / "case", good=1)
    mended = mended_folder(fixture, {fixture.folder / "bad.py": "value = 2\n"}, tmp_path / "copy")
    assert mended.proof is not None
    run_proof(mended.proof)
    assert (fixture.folder / "good.py").read_text() == "value = 1\n"
