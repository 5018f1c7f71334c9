"""`--output-file` holds the whole report or is left as it was; the format may come from the environment."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from msalint import cli

IDLE = "x = 1  # noqa: MSA901\n"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("NO_COLOR", "FORCE_COLOR", "MSALINT_OUTPUT_FORMAT", "MSALINT_OUTPUT_FILE"):
        monkeypatch.delenv(name, raising=False)
    Path("a.py").write_text(IDLE)
    return tmp_path


def test_the_file_holds_report_and_summary_and_stdout_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["a.py"]) == 1
    shown = capsys.readouterr().out
    assert cli.run(["a.py", "--output-file", "new/folder/report.txt", "--color", "always"]) == 1
    assert capsys.readouterr() == ("", "")
    assert Path("new/folder/report.txt").read_text() == shown


def test_a_report_for_programs_has_no_summary_in_it() -> None:
    assert cli.run(["a.py", "--output-format", "json", "-o", "r.json", "--exit-zero"]) == 0
    assert len(json.loads(Path("r.json").read_text())) == 1
    assert cli.run(["a.py", "--statistics", "-q", "-o", "r.txt"]) == 1
    assert Path("r.txt").read_text() == "1  MSA902  [*] unused-suppression\n"


def test_a_report_that_cant_be_written_leaves_the_old_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("r.txt").write_text("old")

    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert cli.run(["a.py", "-o", "r.txt"]) == 2
    captured = capsys.readouterr()
    assert "r.txt: can't write this file: No space left on device" in captured.err and "Traceback" not in captured.err
    assert Path("r.txt").read_text() == "old"
    assert sorted(os.listdir()) == ["a.py", "r.txt"]


def test_a_folder_is_no_place_for_a_report(capsys: pytest.CaptureFixture[str]) -> None:
    Path("reports").mkdir()
    assert cli.run(["a.py", "-o", "reports"]) == 2
    assert "reports: can't write" in capsys.readouterr().err
    assert cli.run(["a.py", "-o", "a.py/report"]) == 2
    assert "a.py/report: can't write" in capsys.readouterr().err


def test_a_device_takes_the_report_as_it_comes() -> None:
    assert cli.run(["a.py", "-o", os.devnull]) == 1
    assert not os.path.isfile(os.devnull)


def test_format_and_file_may_come_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MSALINT_OUTPUT_FORMAT", "pylint")
    assert cli.run(["a.py"]) == 1
    assert capsys.readouterr().out == "a.py:1: [MSA902] this suppression of `MSA901` hides nothing\n"
    assert cli.run(["a.py", "--output-format", "concise", "-q"]) == 1
    assert capsys.readouterr().out.startswith("a.py:1:8: MSA902 [warning]")
    monkeypatch.setenv("MSALINT_OUTPUT_FILE", "r.txt")
    assert cli.run(["a.py"]) == 1
    assert Path("r.txt").read_text().startswith("a.py:1: [MSA902]")
    monkeypatch.setenv("MSALINT_OUTPUT_FORMAT", "xml")
    assert cli.run(["a.py"]) == 2
    assert "MSALINT_OUTPUT_FORMAT" in capsys.readouterr().err
