"""What can't be run ends in one clear message and exit code 2, never in a traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("jaxtyping")

import attention_modules as modules  # type: ignore[import-not-found]  # noqa: E402

from msalint.cli import run  # noqa: E402

FILE = Path(modules.__file__)


def message(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run(arguments) == 2
    err = capsys.readouterr().err
    assert "Traceback" not in err
    assert err.startswith(("Error: ", "Usage: "))
    return err


@pytest.mark.parametrize("command", ["trace", "probe"])
@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("NoAttention", "no attention was seen in it"),
        (
            "CantBeBuilt",
            "can't be built: nothing tells what its parameter 'flavour' wants; give it with --set flavour=",
        ),
        ("Raises", "Raises raises when run on x (2, 5, 21): RuntimeError: view size is not compatible"),
        ("Missing", "has no 'Missing'; it defines Choice, Fused"),
        ("math", "neither a class, a function nor a module"),
    ],
)
def test_a_target_that_does_not_run(command: str, target: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert words in message(capsys, command, f"{FILE}:{target}")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU to be on")
def test_a_module_for_the_gpu_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert "OnlyOnGpu can't be built" in message(capsys, "probe", f"{FILE}:OnlyOnGpu")


def test_a_setting_that_the_constructor_lacks(capsys: pytest.CaptureFixture[str]) -> None:
    text = message(capsys, "trace", f"{FILE}:Fused", "--set", "heads=3")
    assert "it has no parameter 'heads'; it has dim, num_heads, dropout" in text


def test_an_input_that_forward_lacks(capsys: pytest.CaptureFixture[str]) -> None:
    assert "no parameter 'y'" in message(capsys, "trace", f"{FILE}:Fused", "--input", "y=2,5,21")


@pytest.mark.parametrize("option", [("--set", "heads"), ("--input", "x=two"), ("--mask", "round"), ("--batch", "0")])
def test_an_option_that_does_not_read(option: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    message(capsys, "trace", f"{FILE}:Fused", *option)


def test_a_file_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert "there is no file" in message(capsys, "trace", "nowhere/net.py:Net")


def test_a_package_that_does_not_import(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "broken.py").write_text("import a_module_nobody_has\n")
    text = message(capsys, "probe", f"{tmp_path / 'broken.py'}:Net")
    assert "fails: ModuleNotFoundError: No module named 'a_module_nobody_has'" in text
    assert "importing no_such_package.x fails" in message(capsys, "probe", "no_such_package.x:Net")


def test_a_file_of_a_package_whose_init_does_not_import(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    package = tmp_path / "halfpkg"
    package.mkdir()
    (package / "__init__.py").write_text("import a_module_nobody_has\n")
    (package / "sizes.py").write_text("HEADS = 3\n")
    source = FILE.read_text().replace("import math\n", "import math\n\nfrom .sizes import HEADS\n")
    (package / "net.py").write_text(source)
    assert run(["trace", f"{package / 'net.py'}:Fused"]) == 0
    capsys.readouterr()


def test_a_call_that_is_no_python(capsys: pytest.CaptureFixture[str]) -> None:
    assert "is no Python expression" in message(capsys, "probe", f"{FILE}:Fused", "--call", "m(x")


def test_debug_shows_the_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["trace", f"{FILE}:Raises", "--debug"]) == 2
    err = capsys.readouterr().err
    assert "Traceback" in err
    assert "return y.transpose(1, 2).view(-1)" in err


def test_the_flow_up_to_an_error_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["trace", f"{FILE}:Raises"]) == 2
    assert "y.transpose(1, 2)" in capsys.readouterr().out


def test_help_says_that_the_code_is_run(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("trace", "probe"):
        assert run([command, "--help"]) == 0
        assert "RUNS the target's code" in capsys.readouterr().out


def test_without_the_extra_the_command_names_it(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('no torch here')\n")
    code = "import sys; from msalint.cli import run; sys.exit(run(['trace', 'x.py:Y']))"
    run_ = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": f"{tmp_path}:{FILE.parents[2]}"},
        capture_output=True,
        text=True,
    )
    assert run_.returncode == 2
    assert "pip install msalint[runtime]" in run_.stderr
