"""A baseline knows findings by what they are about: lines may shift, but each entry stands for one finding only."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from msalint import cli
from msalint.baseline import Baseline, BaselineError, Checked, Entry, read_baseline, write_baseline
from msalint.diagnostic import Diagnostic, Level, Position, Span

NET = """\
import torch


class Attention:
    def split(self, x):
        return x.view(1)

    def forward(self, x):
        def inner(y):
            return y.view(1)
        return inner(x).view(1)
"""
IDLE = "x = 1  # noqa: MSA901\n"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def at(line: int, code: str = "MSA101", file: str = "net.py") -> Diagnostic:
    return Diagnostic(code, "a-rule", Level.ERROR, "words", file, Span(Position(line, 1), Position(line, 2)))


def run(*findings: Diagnostic, text: str = NET, files: tuple[str, ...] = ("net.py",), off: str = "") -> Checked:
    return Checked(findings, files, lambda name: text, lambda name, code: code != off)


def empty(path: str = "baseline.json") -> Baseline:
    return Baseline(path, Counter())


def test_findings_are_known_by_definition_and_line() -> None:
    entries = empty().updated(run(at(6), at(10), at(11), at(1))).entries
    assert entries == Counter(
        [
            Entry("net.py", "MSA101", "Attention.split", "return x.view(1)"),
            Entry("net.py", "MSA101", "Attention.forward.inner", "return y.view(1)"),
            Entry("net.py", "MSA101", "Attention.forward", "return inner(x).view(1)"),
            Entry("net.py", "MSA101", "", "import torch"),
        ]
    )


def test_shifted_and_indented_lines_are_still_known() -> None:
    baseline = empty().updated(run(at(6), at(10)))
    shifted = "# one\n# two\n" + NET.replace("return x.view(1)", "return   x.view(1)")
    compared = baseline.compared(run(at(8), at(12), text=shifted))
    assert (compared.new, compared.stale) == ((), Counter())
    assert len(compared.known) == 2


@pytest.mark.parametrize(
    ("other", "text"),
    [
        (at(6, "MSA102"), NET),
        (at(6), NET.replace("return x.view(1)", "return x.view(2)")),
        (at(6), NET.replace("def split", "def divide")),
        (at(6, file="other.py"), NET),
    ],
)
def test_another_code_line_definition_or_file_is_new(other: Diagnostic, text: str) -> None:
    compared = empty().updated(run(at(6))).compared(run(other, text=text))
    assert compared.new == (other,)
    assert compared.stale.total() == 1


def test_each_entry_counts() -> None:
    twice = NET.replace("return x.view(1)", "y = x.view(1)\n        y = x.view(1)\n        return y")
    baseline = empty().updated(run(at(6), text=twice))
    compared = baseline.compared(run(at(6), at(7), text=twice))
    assert (compared.known, compared.new) == ((at(6),), (at(7),))
    assert empty().updated(run(at(6), at(7), text=twice)).compared(run(at(6), text=twice)).stale.total() == 1


def test_what_was_not_looked_at_is_never_stale(here: Path) -> None:
    (here / "other.py").write_text("")
    baseline = empty().updated(run(at(6), at(6, file="other.py"), at(6, "MSA201")))
    compared = baseline.compared(run(off="MSA201"))
    assert set(compared.stale) == {Entry("net.py", "MSA101", "Attention.split", "return x.view(1)")}
    kept = baseline.updated(run(off="MSA201")).entries
    assert {(entry.file, entry.code) for entry in kept} == {("other.py", "MSA101"), ("net.py", "MSA201")}


def test_entries_of_files_that_are_gone_are_stale() -> None:
    baseline = empty().updated(run(at(6, file="gone.py")))
    assert baseline.compared(run()).stale.total() == 1


def test_files_are_named_from_the_folder_of_the_baseline(here: Path) -> None:
    baseline = empty("ci/baseline.json").updated(run(at(6, file="src/net.py")))
    assert {entry.file for entry in baseline.entries} == {"../src/net.py"}


def test_a_text_that_is_no_python_has_lines_all_the_same() -> None:
    entries = empty().updated(run(at(1), text="def broken(:\n")).entries
    assert set(entries) == {Entry("net.py", "MSA101", "", "def broken(:")}


def test_what_is_written_is_read_again_and_sorted(here: Path) -> None:
    baseline = empty().updated(run(at(10), at(6), at(6, file='ü"\\.py')))
    write_baseline(baseline)
    assert read_baseline("baseline.json") == baseline
    text = (here / "baseline.json").read_text(encoding="utf-8")
    assert list(json.loads(text)["files"]) == ["net.py", 'ü"\\.py']
    assert text.count("\n") > 8
    write_baseline(read_baseline("baseline.json"))
    assert (here / "baseline.json").read_text(encoding="utf-8") == text


def test_an_empty_one() -> None:
    write_baseline(empty())
    assert read_baseline("baseline.json").entries == Counter()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "there is no such baseline: make it with --update-baseline"),
        ("", "not a baseline: Expecting value"),
        ("<<<<<<< HEAD\n", "not a baseline"),
        ("[]", "it has no table of `files`"),
        ('{"version": 1}', "it has no table of `files`"),
        ('{"version": 2, "files": {}}', "a baseline of version 2, this msalint reads 1"),
        ('{"version": 1, "files": {"a.py": 3}}', "entry 1 of 'a.py' is none"),
        ('{"version": 1, "files": {"a.py": [{"code": "MSA101"}]}}', "entry 1 of 'a.py' is none"),
        ('{"version": 1, "files": {"a.py": [{"code": "MSA101", "in": "", "line": "", "count": 0}]}}', "is none"),
        ('{"version": 1, "files": {"a.py": [{"code": "MSA101", "in": "", "line": "", "count": true}]}}', "is none"),
        ("\udcff", "not a baseline: 'utf-8' codec can't decode"),
    ],
)
def test_what_is_no_baseline_is_told(here: Path, text: str | None, said: str) -> None:
    if text is not None:
        (here / "b.json").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(BaselineError, match=r"^b\.json: ") as caught:
        read_baseline("b.json")
    assert said in str(caught.value)


# The command line


def lint(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[str], str]:
    """Exit code, the places of findings, and what was said beside them."""
    code = cli.run(["--output-format", "concise", *arguments])
    captured = capsys.readouterr()
    lines = [line for line in captured.out.splitlines() if ".py:" in line]
    return code, [line.split(" ")[0] for line in lines], captured.err


def test_known_findings_are_not_told_and_new_ones_are(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "a.py").write_text(IDLE)
    code, _, err = lint(capsys, "--baseline", "b.json", "--update-baseline")
    assert (code, err) == (0, "b.json: 1 entry, 1 of them new; 0 went out.\n")
    (here / "a.py").write_text("\n\n" + IDLE + "y = 2  # noqa: MSA901\n")
    code, found, err = lint(capsys, "--baseline", "b.json")
    assert (code, found) == (1, ["a.py:4:8:"])
    assert "Left out 1 finding in the baseline b.json." in err
    assert (
        lint(capsys, "--baseline", "b.json", "--update-baseline")[2]
        == "b.json: 2 entries, 1 of them new; 0 went out.\n"
    )
    assert lint(capsys, "--baseline", "b.json")[:2] == (0, [])


def test_stale_entries_are_told_and_pruned(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "a.py").write_text(IDLE + "y = 2  # noqa: MSA901\n")
    lint(capsys, "--baseline", "b.json", "--update-baseline")
    (here / "a.py").write_text(IDLE + "z = 3  # noqa: MSA901\n")
    before = (here / "b.json").read_text()
    code, found, err = lint(capsys, "--baseline", "b.json")
    assert (code, found) == (1, ["a.py:2:8:"])
    assert "1 entry of b.json fit nothing any more" in err
    assert "  a.py: MSA902: y = 2 # noqa: MSA901" in err
    assert (here / "b.json").read_text() == before
    code, found, err = lint(capsys, "--baseline", "b.json", "--prune-baseline")
    assert (code, found) == (1, ["a.py:2:8:"])
    assert "1 entry of b.json fitted nothing any more, and went out of it." in err
    assert read_baseline("b.json").entries.total() == 1
    assert "any more" not in lint(capsys, "--baseline", "b.json")[2]


def test_a_run_over_a_part_leaves_the_rest_of_the_baseline(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a.py", "b.py"):
        (here / name).write_text(IDLE)
    lint(capsys, "--baseline", "b.json", "--update-baseline")
    (here / "a.py").write_text("")
    (here / "b.py").write_text("")
    assert "any more" not in lint(capsys, "--baseline", "b.json", "--ignore", "MSA902", ".")[2]
    lint(capsys, "--baseline", "b.json", "--update-baseline", "--ignore", "MSA902", ".")
    assert read_baseline("b.json").entries.total() == 2
    lint(capsys, "--baseline", "b.json", "--update-baseline", "a.py")
    assert {entry.file for entry in read_baseline("b.json").entries} == {"b.py"}


def test_a_file_that_could_not_be_checked_keeps_its_entries(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import msalint.check

    (here / "a.py").write_text(IDLE)
    lint(capsys, "--baseline", "b.json", "--update-baseline")

    def fail(data: bytes, filename: str, *rest: object) -> None:
        raise msalint.check.InternalError(filename, RuntimeError("no"))

    monkeypatch.setattr(msalint.check, "lint_bytes", fail)
    assert lint(capsys, "--baseline", "b.json", "--update-baseline")[0] == 2
    assert read_baseline("b.json").entries.total() == 1


def test_the_settings_name_it(here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "msalint.toml").write_text('baseline = "ci/known.json"\n')
    (here / "ci").mkdir()
    (here / "sub").mkdir()
    (here / "sub" / "a.py").write_text(IDLE)
    assert lint(capsys, "--update-baseline")[0] == 0
    monkeypatch.chdir(here / "sub")
    code, found, err = lint(capsys)
    assert (code, found) == (0, [])
    assert "in the baseline ../ci/known.json" in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--baseline", "none.json"], "Error: none.json: there is no such baseline"),
        (["--update-baseline"], "which baseline?"),
        (["--prune-baseline"], "which baseline?"),
        (["--baseline", "b.json", "--update-baseline", "--since", "HEAD"], "--update-baseline takes in all findings"),
        (["--baseline", "none/b.json", "--update-baseline"], "Error: none/b.json: can't write this file"),
    ],
)
def test_wrong_use_is_told(here: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str) -> None:
    (here / "a.py").write_text(IDLE)
    code, found, err = lint(capsys, *arguments)
    assert (code, found) == (2, [])
    assert said in err


def test_a_baseline_that_an_editor_saved_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    entry = b'{"code": "MSA101", "in": "f", "line": "x", "count": 2}'
    path.write_bytes(b'\xef\xbb\xbf{"version": 1,\r\n "files": {"a.py": [' + entry + b"]}}\r\n")
    assert list(read_baseline(str(path)).entries.values()) == [2]
