"""`--add-noqa` and `--add-ignore`: every finding is hidden afterwards, and nothing else in the files has changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from msalint import cli

ATTENTION = """\
import math

import torch
from torch import nn


class Attention(nn.Module):
    def forward(self, q, k, v):
        scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(q.size(-1))
        weights = torch.softmax(scores, dim=-2)
        return torch.matmul(weights, v)
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text(ATTENTION)
    return tmp_path


def lint(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = cli.run([*arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.parametrize(
    ("option", "comment", "said"),
    [
        ("--add-noqa", "# noqa: MSA211", "Added 1 noqa directive.\n"),
        ("--add-ignore", "# msalint: ignore[MSA211]", "Added 1 ignore comment.\n"),
        ("--add-ignore=old, see Jira", "# msalint: ignore[MSA211] -- old, see Jira", "Added 1 ignore comment.\n"),
    ],
)
def test_findings_are_hidden(
    here: Path, capsys: pytest.CaptureFixture[str], option: str, comment: str, said: str
) -> None:
    assert lint(capsys)[0] == 1
    assert lint(capsys, option, "net.py") == (0, "", said)
    assert (here / "net.py").read_text() == ATTENTION.replace("dim=-2)", f"dim=-2)  {comment}")
    assert lint(capsys)[0] == 0
    assert lint(capsys, option) == (0, "", said.replace("Added 1", "Added 0").replace(".", "s."))


def test_encoding_and_line_ends_are_kept(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "# -*- coding: latin-1 -*-\n# Grüße\n" + ATTENTION
    (here / "net.py").write_bytes(text.replace("\n", "\r\n").encode("latin-1"))
    assert lint(capsys, "--add-ignore=geprüft")[0] == 0
    expected = text.replace("dim=-2)", "dim=-2)  # msalint: ignore[MSA211] -- geprüft")
    assert (here / "net.py").read_bytes() == expected.replace("\n", "\r\n").encode("latin-1")


def test_a_reason_that_the_encoding_cannot_hold(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = ("# -*- coding: latin-1 -*-\n" + ATTENTION).encode("latin-1")
    (here / "net.py").write_bytes(text)
    code, _, err = lint(capsys, "--add-ignore=見た")
    assert code == 2
    assert "error: net.py: " in err and "latin-1" in err
    assert (here / "net.py").read_bytes() == text


def test_findings_in_helpers_are_hidden_in_their_files(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "helper.py").write_text("import torch\n\n\ndef softmax_of(x):\n    return torch.softmax(x, dim=-2)\n")
    (here / "net.py").write_text(
        "from helper import softmax_of\n" + ATTENTION.replace("torch.softmax(scores, dim=-2)", "softmax_of(scores)")
    )
    assert "helper.py:5" in lint(capsys, "--output-format", "concise")[1]
    assert lint(capsys, "--add-ignore")[0] == 0
    assert "dim=-2)  # msalint: ignore[MSA211]" in (here / "helper.py").read_text()
    assert lint(capsys)[0] == 0


def test_what_no_comment_can_hide_is_told_and_left(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "msalint.toml").write_text('ignore = ["MSA999"]\n')
    (here / "broken.py").write_text("import torch\ndef softmax(:\n")
    (here / "idle.py").write_text("x = 1  # noqa: MSA901\n")
    code, out, err = lint(capsys, "--add-noqa")
    assert (code, out) == (0, "")
    assert "Added 1 noqa directive.\nNo comment can hide these:\n" in err
    assert all(place in err for place in ("broken.py:2:", "idle.py:1:", "msalint.toml:1:"))
    assert (here / "broken.py").read_text() == "import torch\ndef softmax(:\n"


def test_only_what_is_new_gets_a_comment(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lint(capsys, "--baseline", "b.json", "--update-baseline")
    assert lint(capsys, "--baseline", "b.json", "--add-noqa", "-q") == (0, "", "Added 0 noqa directives.\n")
    assert (here / "net.py").read_text() == ATTENTION


def test_the_path_behind_the_option_is_no_reason(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "other.py").write_text(ATTENTION)
    lint(capsys, "--add-ignore", "net.py")
    assert "ignore[MSA211]\n" in (here / "net.py").read_text()
    assert (here / "other.py").read_text() == ATTENTION


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--add-noqa", "--add-ignore"], "choose one"),
        (["--add-noqa", "-"], "stdin has no file on disk"),
        (["--add-ignore=see #7"], "a reason is one line without `#`"),
        (["--add-ignore=one\ntwo"], "a reason is one line without `#`"),
    ],
)
def test_wrong_use_is_told(here: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str) -> None:
    code, _, err = lint(capsys, *arguments)
    assert code == 2
    assert said in err
    assert (here / "net.py").read_text() == ATTENTION


@pytest.mark.parametrize("other", [["--since", "HEAD"], ["--add-noqa"], ["--add-ignore"]])
def test_no_fixes_are_made_beside(here: Path, capsys: pytest.CaptureFixture[str], other: list[str]) -> None:
    for option in ("--fix", "--fix-only", "--diff"):
        code, _, err = lint(capsys, option, *other)
        assert code == 2
        assert "fixes can't be made together" in err


def test_settings_that_ask_for_fixes_hold_back(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "msalint.toml").write_text("fix = true\n")
    (here / "idle.py").write_text("x = 1  # noqa: MSA901\n")
    lint(capsys, "--add-noqa")
    assert (here / "idle.py").read_text() == "x = 1  # noqa: MSA901\n"
    lint(capsys)
    assert (here / "idle.py").read_text() == "x = 1\n"
