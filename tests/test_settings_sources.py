"""Where settings come from: files that extend others, the command line before them, none at all."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from msalint import cli
from msalint.settings import DEFAULT_EXCLUDE, Settings, SettingsError, load
from msalint.tables import moved_pattern

ROOT = Path(__file__).resolve().parent.parent
IDLE = "x = 1  # noqa: MSA901\n"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def put(name: str, text: str) -> None:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_text(text)


def settings_of(name: str) -> Settings:
    settings = load(name)
    assert settings is not None
    return settings


def complaint(name: str) -> str:
    with pytest.raises(SettingsError) as caught:
        load(name)
    return str(caught.value)


def checked(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = cli.run(["--output-format", "concise", "-q", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


# extend


def test_a_file_starts_from_the_one_it_extends(here: Path) -> None:
    put("pyproject.toml", '[tool.msalint]\nignore = ["MSA4"]\ntarget-torch = "2.4"\nexclude = ["old"]\n')
    put("sub/msalint.toml", 'extend = "../pyproject.toml"\nextend-select = ["MSA401"]\ntarget-torch = "2.6"\n')
    settings = settings_of("sub/msalint.toml")
    assert [layer.ignore for layer in settings.selections] == [("MSA4",), ()]
    assert [layer.extend_select for layer in settings.selections] == [(), ("MSA401",)]
    assert settings.target_torch == "2.6"
    assert settings.exclude == ("old",)
    assert settings.root == str(here / "sub")


def test_lists_that_extend_are_joined_and_others_replaced() -> None:
    put("a.toml", 'extend-exclude = ["one"]\n[per-file-ignores]\n"x.py" = ["MSA1"]\n')
    put("b.toml", 'extend = "a.toml"\nextend-exclude = ["two"]\n[per-file-ignores]\n"y.py" = ["MSA2"]\n')
    put("c.toml", 'extend = "a.toml"\n[extend-per-file-ignores]\n"y.py" = ["MSA2"]\n')
    assert settings_of("b.toml").exclude == (*DEFAULT_EXCLUDE, "one", "two")
    assert settings_of("b.toml").per_file_ignores == (("y.py", ("MSA2",)),)
    assert settings_of("c.toml").per_file_ignores == (("x.py", ("MSA1",)), ("y.py", ("MSA2",)))


def test_a_select_on_top_starts_from_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    put("base.toml", 'extend-select = ["MSA902"]\n')
    put("msalint.toml", 'extend = "base.toml"\nselect = ["MSA1"]\n')
    put("a.py", IDLE)
    assert checked(capsys, "a.py")[0] == 0
    put("msalint.toml", 'extend = "base.toml"\n')
    assert checked(capsys, "a.py")[0] == 1


def test_extending_goes_on_and_knows_home_and_environment(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(here / "home"))
    monkeypatch.setenv("TEAM", "team")
    put("home/a.toml", 'target-torch = "2.4"\n')
    put("team/b.toml", 'extend = "~/a.toml"\n')
    put("c.toml", 'extend = "$TEAM/b.toml"\n')
    assert settings_of("c.toml").target_torch == "2.4"


def test_a_circle_is_an_error() -> None:
    put("a.toml", 'extend = "sub/b.toml"\n')
    put("sub/b.toml", 'extend = "../a.toml"\n')
    assert complaint("a.toml") == "sub/b.toml: `extend` goes in a circle: a.toml -> sub/b.toml -> a.toml"
    put("own.toml", 'extend = "own.toml"\n')
    assert complaint("own.toml") == "own.toml: `extend` goes in a circle: own.toml -> own.toml"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('extend = "none.toml"', "`extend` leads to none.toml, which is no file"),
        ('extend = "."', "which is no file"),
        ('extend = "pyproject.toml"', "`extend` leads to pyproject.toml, which has no [tool.msalint] table"),
        ("extend = 3", "`extend` must be a string"),
        ('extend = "bad.toml"', "bad.toml: unknown key `selct`, did you mean `select`?"),
    ],
)
def test_what_cannot_be_extended_is_an_error(body: str, said: str) -> None:
    put("pyproject.toml", "[tool.ruff]\n")
    put("bad.toml", 'selct = ["MSA1"]\n')
    put("msalint.toml", body + "\n")
    assert said in complaint("msalint.toml")


@pytest.mark.parametrize(
    ("pattern", "moved"),
    [
        ("build", "build"),
        ("*.py", "*.py"),
        ("**/old/*.py", "**/old/*.py"),
        ("sub/old/*.py", "/old/*.py"),
        ("/sub/old", "/old"),
        ("*/old/", "/old/"),
        ("sub/", "sub/"),
        ("/sub", "*"),
        ("/sub/**", "/**"),
        ("sub/**/x.py", "/**/x.py"),
        ("other/old", ""),
        ("!sub/keep.py", "!/keep.py"),
        ("!other/keep.py", ""),
    ],
)
def test_patterns_of_a_file_above_are_told_from_below(pattern: str, moved: str) -> None:
    assert moved_pattern(pattern, "/p", "/p/sub") == moved


def test_anchored_patterns_of_a_file_beside_fit_nothing() -> None:
    assert moved_pattern("old/*.py", "/p/shared", "/p/sub") == ""
    assert moved_pattern("old", "/p/shared", "/p/sub") == "old"


def test_patterns_mean_files_below_the_folder_they_stand_in(capsys: pytest.CaptureFixture[str]) -> None:
    put("base.toml", 'extend-exclude = ["sub/old"]\n[per-file-ignores]\n"sub/tests/*" = ["MSA902"]\n')
    put("sub/msalint.toml", 'extend = "../base.toml"\n')
    for name in ("sub/old/a.py", "sub/tests/b.py", "sub/c.py"):
        put(name, IDLE)
    assert [line.split(":")[0] for line in checked(capsys, "sub")[1].splitlines()] == ["sub/c.py"]


def test_an_unknown_rule_in_an_extended_file_is_told_there_and_once(capsys: pytest.CaptureFixture[str]) -> None:
    put("base.toml", '\nignore = ["MSA999"]\n')
    for folder in ("one", "two"):
        put(f"{folder}/msalint.toml", 'extend = "../base.toml"\n')
        put(f"{folder}/a.py", "x = 1\n")
    code, out, _ = checked(capsys, ".")
    assert code == 1
    assert [line.split(" ")[0] for line in out.splitlines()] == ["base.toml:2:11:"]


# The command line


def test_a_setting_on_the_command_line_counts_before_files(capsys: pytest.CaptureFixture[str]) -> None:
    put("msalint.toml", 'extend-select = ["MSA902"]\n')
    put("tests/a.py", IDLE)
    assert checked(capsys, ".")[0] == 1
    assert checked(capsys, "--config", 'ignore = ["MSA902"]', ".")[0] == 0
    assert checked(capsys, "--config", 'per-file-ignores."tests/*" = ["MSA902"]', ".")[0] == 0
    assert checked(capsys, "--config", 'exclude=["tests"]', ".")[1] == ""
    assert checked(capsys, "--config", 'ignore = ["MSA902"]', "--extend-select", "MSA902", ".")[0] == 1


def test_settings_can_be_given_without_any_file(capsys: pytest.CaptureFixture[str]) -> None:
    put("tests/a.py", IDLE)
    assert checked(capsys, "--isolated", "--config", 'per-file-ignores."tests/*" = ["MSA902"]', ".")[0] == 0


def test_a_file_and_settings_together(capsys: pytest.CaptureFixture[str]) -> None:
    put("a.py", IDLE)
    put("ci.toml", 'ignore = ["MSA902"]\n')
    assert checked(capsys, "--config", "ci.toml", "a.py")[0] == 0
    assert checked(capsys, "--config", "ci.toml", "--config", 'extend-select = ["MSA902"]', "a.py")[0] == 1


def test_isolated_leaves_all_files_out(capsys: pytest.CaptureFixture[str]) -> None:
    put("msalint.toml", 'ignore = ["MSA902"]\n')
    put("a.py", IDLE)
    assert checked(capsys, "a.py")[0] == 0
    assert checked(capsys, "--isolated", "a.py")[0] == 1
    put("msalint.toml", "broken = [")
    assert checked(capsys, "a.py")[0] == 2
    assert checked(capsys, "--isolated", "a.py")[0] == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--config", "none.toml"], "none.toml: can't read the settings: No such file"),
        (["--config", "ignore = MSA1"], "is neither a file nor a TOML pair such as"),
        (["--config", 'ignor = ["MSA1"]'], "--config: unknown key `ignor`, did you mean `ignore`?"),
        (["--config", "ignore = 3"], "--config: `ignore` must be a list of strings"),
        (["--config", 'ignore = ["MSA999"]'], "`MSA999` names no rule"),
        (["--config", 'extend = "a.toml"'], "`extend` works in settings files only"),
        (["--config", "a.toml", "--config", "b.toml"], "--config can name one settings file, not 2"),
        (["--config", "a.toml", "--isolated"], "--isolated leaves out all settings files"),
    ],
)
def test_wrong_sources_are_told(capsys: pytest.CaptureFixture[str], arguments: list[str], said: str) -> None:
    code, out, err = checked(capsys, *arguments)
    assert (code, out) == (2, "")
    assert said in err


# Shown


def test_the_files_that_would_be_checked(capsys: pytest.CaptureFixture[str]) -> None:
    put("msalint.toml", 'extend-exclude = ["old"]\n')
    for name in ("a.py", "old/b.py", "sub/c.py", "d.txt"):
        put(name, "broken(")
    assert checked(capsys, "--show-files") == (0, "a.py\nsub/c.py\n", "")
    assert checked(capsys, "--show-files", "none") == (2, "", "error: none: No such file or directory\n")


def test_the_settings_of_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    put("base.toml", 'target-torch = "2.4"\n')
    put("msalint.toml", 'extend = "base.toml"\nselect = ["MSA1"]\nextend-exclude = ["old"]\n')
    put("msalint.toml", Path("msalint.toml").read_text() + '[per-file-ignores]\n"a.py" = ["MSA101"]\n')
    put("a.py", "")
    code, out, _ = checked(capsys, "--show-settings", "a.py")
    assert code == 0
    assert out.startswith("# a.py: msalint.toml, which extends base.toml\n")
    assert 'target-torch = "2.4"\n' in out
    assert 'per-file-ignores = { "a.py" = ["MSA101"] }\n' in out
    assert "unfixable = []\n" in out and "# fix is not set\n" in out and "extend-safe-fixes = []\n" in out
    assert "#   MSA102  " in out and "#   MSA101  " not in out and "#   MSA201  " not in out
    put("again.toml", out)
    assert settings_of("again.toml").target_torch == "2.4"
    assert "old" in settings_of("again.toml").exclude


def test_no_file_has_no_settings(capsys: pytest.CaptureFixture[str]) -> None:
    assert checked(capsys, "--show-settings") == (0, "", "No files to check, so no settings to show.\n")


# Completion


def completed(words: str, number: int) -> list[str]:
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "_MSALINT_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(number),
    }
    done = subprocess.run(
        [sys.executable, "-m", "msalint"], env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    return [line.partition(",")[2] for line in done.stdout.splitlines()]


def test_completion_knows_commands_options_and_values() -> None:
    assert {"check", "rule", "shapes"} <= set(completed("msalint ", 1))
    assert completed("msalint ru", 1)[0] == "rule"
    assert completed("msalint --show-se", 1) == ["--show-settings"]
    assert completed("msalint check --show-se", 2) == ["--show-settings"]
    assert "sarif" in completed("msalint --output-format ", 2)


def test_completion_knows_rules_keys_and_files() -> None:
    assert completed("msalint rule MSA10", 2)[0] == "MSA101"
    assert completed("msalint rule view-needs", 2) == ["view-needs-contiguous"]
    assert completed("msalint check --select MSA902,MSA101", 3) == ["MSA902,MSA101"]
    assert completed("msalint config per-file", 2) == ["per-file-ignores"]
    assert completed("msalint shapes ne", 2) == ["ne"]


def script(shell: str) -> str:
    stream = io.StringIO()
    with contextlib.redirect_stdout(stream):
        assert cli.run(["generate-shell-completion", shell]) == 0
    return stream.getvalue()


@pytest.fixture
def beside(tmp_path: Path) -> Path:
    """A folder with files that are named like commands begin, and an `msalint` to be found by a shell."""
    (tmp_path / "with space.py").touch()
    (tmp_path / "chapter.py").touch()
    command = tmp_path / "bin" / "msalint"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m msalint "$@"\n')
    command.chmod(0o755)
    return tmp_path


def in_shell(folder: Path, *arguments: str) -> str:
    environment = {**os.environ, "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}", "HOME": str(folder)}
    done = subprocess.run(arguments, cwd=folder, capture_output=True, text=True, env=environment, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_bash_takes_its_script_and_completes_commands_beside_files(beside: Path) -> None:
    def offered(*words: str) -> list[str]:
        given = " ".join(f"'{word}'" for word in words)
        ask = f'COMP_WORDS=({given}); COMP_CWORD={len(words) - 1}; compopt() {{ echo "option $2"; }}'
        show = "_msalint_completion msalint; printf '%s\\n' \"${COMPREPLY[@]}\""
        return in_shell(beside, "bash", "-c", f"{script('bash')}\n{ask}\n{show}").split("\n")[:-1]

    in_shell(beside, "bash", "-c", script("bash") + "\ncomplete -p msalint")
    assert offered("msalint", "ru") == ["option filenames", "rule"]
    assert offered("msalint", "ch") == ["option filenames", "check", "chapter.py"]
    assert offered("msalint", "wi") == ["option default", ""]
    assert offered("msalint", "check", "--watc") == ["--watch"]


def test_zsh_takes_its_script(beside: Path) -> None:
    if shutil.which("zsh") is None:
        pytest.skip("zsh is not installed: its script was not tried")
    loaded = f"autoload -U compinit; compinit -u -D; {script('zsh')}\nprint $_comps[msalint]"
    assert in_shell(beside, "zsh", "-f", "-c", loaded) == "_msalint_completion\n"


def test_fish_takes_its_script_and_completes(beside: Path) -> None:
    if shutil.which("fish") is None:
        pytest.skip("fish is not installed: its script was not tried")

    def offered(line: str) -> list[str]:
        return in_shell(beside, "fish", "--no-config", "-c", f"{script('fish')}\ncomplete -C '{line}'").splitlines()

    assert offered("msalint ru") == ["rule\tShow what a rule reports, why, and how to..."]
    assert "chapter.py" in offered("msalint shapes ch")
    assert offered("msalint check --watc")[0].startswith("--watch\t")
