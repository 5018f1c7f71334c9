"""The command line: its commands, options, output streams and exit codes."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

import msalint.flow
from msalint import __version__, cli
from msalint.processes import FEW_FILES

ROOT = Path(__file__).resolve().parent.parent

IDLE = "x = 1  # noqa: MSA901\n"
"""A file with one warning, MSA902, that needs no analysis to be found."""


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str


Run = Callable[..., Done]


@pytest.fixture
def msalint_(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs the command line in an empty folder."""
    monkeypatch.chdir(tmp_path)
    for name in ("NO_COLOR", "FORCE_COLOR", "MSALINT_DEBUG"):
        monkeypatch.delenv(name, raising=False)

    def run(*arguments: str) -> Done:
        code = cli.run(arguments)
        captured = capsys.readouterr()
        return Done(code, captured.out, captured.err)

    return run


def write(name: str, text: str = IDLE) -> None:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def piped(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


def test_nothing_found_is_zero(msalint_: Run) -> None:
    write("a.py", "x = 1\n")
    assert msalint_(".") == Done(0, "Nothing found in 1 file.\n", "")


def test_something_found_is_one(msalint_: Run) -> None:
    write("src/a.py")
    done = msalint_("src")
    assert done.code == 1
    assert done.out.startswith("src/a.py:1:8: MSA902 [warning] [*] this suppression of `MSA901` hides nothing\n")
    assert done.out.endswith("Found 1 warning in 1 file.\n[*] 1 fixable with `--fix`.\n")


def test_check_is_the_default_command_and_the_current_folder_the_default_path(msalint_: Run) -> None:
    write("a.py")
    expected = msalint_("check", ".")
    assert msalint_() == msalint_("check") == msalint_(".") == expected
    assert msalint_("--output-format", "concise").out == msalint_("check", "--output-format=concise").out


def test_an_empty_folder_is_told(msalint_: Run) -> None:
    assert msalint_() == Done(0, "No Python files to check.\n", "")


def test_a_path_that_is_not_there_is_an_error_and_the_others_are_checked(msalint_: Run) -> None:
    write("a.py")
    done = msalint_("none.py", "a.py")
    assert done.code == 2
    assert "error: none.py: No such file or directory" in done.err
    assert "MSA902" in done.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--select", "MSA777"), "`MSA777` names no rule"),
        (("--ignore", "unused-supression"), "did you mean `unused-suppression`?"),
        (("--output-format", "xml"), "'xml' is not one of"),
        (("--no-such-option",), "No such option"),
        (("--target-torch", "new"), "must be a version"),
        (("--config", "none.toml"), "none.toml: can't read the settings"),
        (("-j", "-1"), "-1 is not in the range"),
        (("-", "a.py"), "can't be mixed"),
        (("rule",), "name one rule"),
        (("rule", "MSA777"), "`MSA777` is no rule"),
        (("rule", "MSA901", "--all"), "name one rule"),
    ],
)
def test_wrong_usage_is_two_and_says_why(msalint_: Run, arguments: tuple[str, ...], words: str) -> None:
    done = msalint_(*arguments)
    assert done.code == 2
    assert words in done.err and "Traceback" not in done.err
    assert done.out == ""


def test_wrong_settings_are_two(msalint_: Run) -> None:
    write("a.py")
    write("pyproject.toml", '[tool.msalint]\nselct = ["MSA1"]\n')
    done = msalint_()
    assert (done.code, done.out) == (2, "")
    assert done.err.endswith("pyproject.toml: unknown key `selct`, did you mean `select`?\n")


def test_settings_that_name_no_rule_are_a_finding_in_the_settings_file(msalint_: Run) -> None:
    write("a.py", "x = 1\n")
    write("sub/b.py", "x = 1\n")
    write("msalint.toml", 'ignore = [\n  "MSA999",\n]\n')
    done = msalint_("--output-format", "concise", "-q")
    assert done.code == 1
    assert done.out == "msalint.toml:2:3: MSA903 [warning] `MSA999` names no rule, so it selects nothing\n"


def test_select_ignore_and_extend_select(msalint_: Run) -> None:
    write("a.py")
    assert msalint_("--select", "MSA901,MSA902").code == 1
    assert msalint_("--select", "unused-suppression", "--select", "syntax-error").code == 1
    assert msalint_("--select", "MSA9").code == 1
    assert msalint_("--select", "warning,error").code == 1
    assert msalint_("--select", "MSA903,MSA904").code == 0
    assert msalint_("--ignore", "MSA9").code == 0
    assert msalint_("--select", "MSA903", "--extend-select", "MSA902,MSA901").code == 1


def test_the_command_line_is_stronger_than_the_settings(msalint_: Run) -> None:
    write("a.py")
    write("msalint.toml", 'ignore = ["MSA902"]\n')
    assert msalint_().code == 0
    assert msalint_("--select", "MSA901,MSA902").code == 1


def test_each_file_falls_under_its_closest_settings(msalint_: Run) -> None:
    write("a.py")
    write("sub/b.py")
    write("sub/msalint.toml", 'ignore = ["MSA902"]\n')
    done = msalint_("--output-format", "concise", "-q")
    assert [line.split(":")[0] for line in done.out.splitlines()] == ["a.py"]


def test_one_settings_file_for_all(msalint_: Run) -> None:
    write("a.py")
    write("sub/msalint.toml", 'ignore = ["MSA902"]\n')
    assert msalint_("--config", "sub/msalint.toml").code == 0
    write("pyproject.toml", "[tool.ruff]\n")
    done = msalint_("--config", "pyproject.toml")
    assert done.code == 2 and "has no [tool.msalint] table" in done.err


def test_stdin_is_checked_under_the_name_it_is_given(msalint_: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    write("sub/msalint.toml", 'per-file-ignores = { "quiet.py" = ["MSA902"] }\n')
    piped(monkeypatch, IDLE.encode())
    assert msalint_("-").out.startswith("<stdin>:1:8: MSA902")
    piped(monkeypatch, IDLE.encode())
    done = msalint_("--stdin-filename", "sub/loud.py", "-")
    assert done.code == 1 and done.out.startswith("sub/loud.py:1:8: MSA902") and "| x = 1" in done.out
    piped(monkeypatch, IDLE.encode())
    assert msalint_("--stdin-filename", "sub/quiet.py", "-").code == 0


def test_statistics_count(msalint_: Run) -> None:
    write("a.py", IDLE + IDLE)
    done = msalint_("--statistics", "-q")
    assert (done.code, done.out) == (1, "2  MSA902  [*] unused-suppression\n")


def test_quiet_prints_findings_and_nothing_else(msalint_: Run) -> None:
    write("a.py", "x = 1\n")
    assert msalint_("--quiet") == Done(0, "", "")


def test_exit_zero(msalint_: Run) -> None:
    write("a.py")
    assert msalint_("--exit-zero").code == 0


def test_no_cache_is_accepted(msalint_: Run) -> None:
    write("a.py")
    assert msalint_("--no-cache").code == 1


@pytest.mark.parametrize("style", ["json", "sarif"])
def test_formats_for_programs_print_nothing_else(msalint_: Run, style: str) -> None:
    write("a.py")
    done = msalint_("--output-format", style)
    assert done.code == 1 and done.err == ""
    json.loads(done.out)


def test_github_format(msalint_: Run) -> None:
    write("a.py")
    assert msalint_("--output-format", "github").out.startswith("::warning title=msalint (MSA902),file=a.py,line=1,")


def test_colour(msalint_: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    write("a.py")
    assert "\x1b[" not in msalint_().out
    assert "\x1b[" in msalint_("--color", "always").out
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[" in msalint_().out
    assert "\x1b[" not in msalint_("--color", "never").out
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in msalint_().out


def test_processes_give_the_same_output_in_the_same_order(msalint_: Run) -> None:
    for number in range(2 * FEW_FILES):
        write(f"p{number % 7}/m{number:03}.py", IDLE if number % 3 else "x = 1\n")
    one = msalint_("-j", "1", "--output-format", "concise")
    assert one.out.count("MSA902") == sum(1 for number in range(2 * FEW_FILES) if number % 3)
    assert msalint_("-j", "2", "--output-format", "concise") == one


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> None:
    """An analysis that fails on files whose text says so."""

    def analyse(text: str, *args: object, **kwargs: object) -> Iterator[object]:
        if "fail" in text:
            raise KeyError("axis")
        yield from ()

    monkeypatch.setattr(msalint.flow, "analyse", analyse, raising=False)


def test_an_internal_error_is_two_and_the_other_files_are_checked(
    msalint_: Run, failing: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("a.py", "import torch\nfail = torch.softmax(x, -1)\n")
    write("b.py")
    done = msalint_()
    assert done.code == 2
    assert "error: internal error: a.py: KeyError: 'axis'" in done.err
    assert "please report it" in done.err and "Traceback" not in done.err
    assert "b.py:1:8: MSA902" in done.out
    monkeypatch.setenv("MSALINT_DEBUG", "1")
    assert "Traceback" in msalint_().err


def test_a_fault_outside_of_any_file_is_two_with_no_traceback(msalint_: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from msalint import registry

    def broken(package: str = "") -> None:
        raise registry.RegistryError("rules/masks/msa399_x.py:12: no section")

    monkeypatch.setattr(registry, "load", broken)
    done = msalint_("rule", "--all")
    assert done.code == 2 and "Traceback" not in done.err
    assert "rules/masks/msa399_x.py:12: no section" in done.err


@pytest.fixture
def drawing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stands in for the drawing, to see what the command hands it."""
    drawing, tallying = ModuleType("msalint.flow.drawing"), ModuleType("msalint.flow.tallying")

    def draw(text: str, filename: str, target: str | None) -> SimpleNamespace:
        if target == "missing":
            raise LookupError("no `missing` in it")
        return SimpleNamespace(text=f"{filename} {target} {len(text)}\n", left_out=())

    drawing.draw = draw  # type: ignore[attr-defined]
    tallying.summarise = lambda paths: f"{paths}\n"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "msalint.flow.drawing", drawing)
    monkeypatch.setitem(sys.modules, "msalint.flow.tallying", tallying)


def test_shapes_draws_a_file_or_a_definition_in_it(msalint_: Run, drawing: None) -> None:
    write("a.py", "x = 1\n")
    assert msalint_("shapes", "a.py") == Done(0, "a.py None 6\n", "")
    assert msalint_("shapes", "a.py::Net.forward").out == "a.py Net.forward 6\n"
    assert msalint_("shapes", "--summary", "a.py", "src").out == "('a.py', 'src')\n"


@pytest.mark.parametrize(
    ("target", "words"),
    [("none.py", "none.py: can't read this file"), ("a.py::missing", "no `missing` in it"), ("", "can't read")],
)
def test_shapes_of_what_is_not_there_is_wrong_usage(msalint_: Run, drawing: None, target: str, words: str) -> None:
    write("a.py", "x = 1\n")
    done = msalint_("shapes", target)
    assert done.code == 2 and words in done.err


def test_rule_prints_a_page(msalint_: Run) -> None:
    done = msalint_("rule", "MSA902")
    assert done.code == 0 and done.out.startswith("# unused-suppression (MSA902)\n")
    assert msalint_("rule", "unused-suppression") == msalint_("rule", "msa902") == done


def test_rule_as_json(msalint_: Run) -> None:
    page = json.loads(msalint_("rule", "MSA904", "--output-format", "json").out)
    assert (page["code"], page["name"], page["level"], page["default"]) == ("MSA904", "gave-up", "note", False)


def test_all_rules(msalint_: Run) -> None:
    lines = msalint_("rule", "--all").out.splitlines()
    pages = json.loads(msalint_("rule", "--all", "--output-format", "json").out)
    assert [line.split()[0] for line in lines] == [page["code"] for page in pages]
    assert len(lines) == len(list((ROOT / "rules").glob("*/msa*.py")))


def test_help_and_version(msalint_: Run) -> None:
    assert "Commands:" in msalint_("--help").out
    assert "--extend-select" in msalint_("check", "--help").out
    assert msalint_("--version").out == f"msalint {__version__}\n"


def test_every_command_that_is_listed_can_be_loaded() -> None:
    for name in cli.COMMANDS:
        done = subprocess.run(
            [sys.executable, "-m", "msalint", name, "--help"], cwd=ROOT, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        assert f"msalint {name}" in done.stdout


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    for number in range(300):
        (tmp_path / f"m{number}.py").write_text(IDLE * 20)
    line = f"{sys.executable} -m msalint -j 1 {tmp_path} | head -n 1"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(line, shell=True, capture_output=True, text=True, timeout=120, env=environment)
    assert "MSA902" in done.stdout and done.stderr == ""


def test_a_terminal_that_cannot_show_a_sign_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("é = '漢'  # noqa: MSA901\n", encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = subprocess.run(
        [sys.executable, "-m", "msalint", "a.py"], cwd=tmp_path, capture_output=True, text=True, env=environment
    )
    assert done.returncode == 1 and "MSA902" in done.stdout and done.stderr == ""
