"""Fixes on the command line: what is written, what is shown, what is left alone, and the exit codes."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from msalint import fix
from msalint.processes import FEW_FILES
from msalint.rewrite import replace_file
from tests.test_cli import Done, Run, msalint_, piped, write

__all__ = ["msalint_"]

VIEW = """import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, width, heads, d_k):
        super().__init__()
        self.heads, self.d_k = heads, d_k
        self.qkv = nn.Linear(width, 3 * heads * d_k)

    def forward(self, x):
        B, L, _ = x.shape
        q, k, v = self.qkv(x).view(B, L, 3, self.heads, self.d_k).permute(2, 0, 3, 1, 4).unbind(0)
        weights = torch.softmax(q @ k.transpose(-2, -1) * self.d_k**-0.5, dim=-1)
        context = (weights @ v).transpose(1, 2)
        return context.view(B, L, -1)  # merged
"""
"""One error, MSA101, with a safe fix."""

VIEWED = VIEW.replace("context.view", "context.contiguous().view")

UNSCALED = VIEW.replace(" * self.d_k**-0.5", "").replace("context.view", "context.reshape")
"""One warning, MSA201, with an unsafe fix."""

BOTH = VIEW.replace(" * self.d_k**-0.5", "")


def read(name: str) -> bytes:
    return Path(name).read_bytes()


def test_fixes_are_written_and_the_rest_is_reported(msalint_: Run) -> None:
    write("a.py", BOTH)
    done = msalint_("--fix")
    assert done.code == 1
    assert read("a.py").decode() == VIEWED.replace(" * self.d_k**-0.5", "")
    assert "MSA201 [warning] these scores" in done.out and "MSA101" not in done.out and "[*]" not in done.out
    assert done.out.endswith(
        "Found 1 error, 1 warning in 1 file (1 fixed, 1 remaining).\n"
        "No fixes available (1 hidden fix can be enabled with `--unsafe-fixes`).\n"
    )
    assert msalint_("--fix").out.endswith(
        "Found 1 warning in 1 file.\nNo fixes available (1 hidden fix can be enabled with `--unsafe-fixes`).\n"
    )


def test_a_second_run_fixes_nothing(msalint_: Run) -> None:
    write("a.py", VIEW)
    assert msalint_("--fix") == Done(0, "Found 1 error in 1 file (1 fixed, 0 remaining).\n", "")
    before = os.stat("a.py")
    assert msalint_("--fix") == Done(0, "Nothing found in 1 file.\n", "")
    assert os.stat("a.py") == before


def test_unsafe_fixes_are_made_when_asked_for(msalint_: Run) -> None:
    write("a.py", BOTH)
    assert msalint_("--fix", "--unsafe-fixes").code == 0
    assert b"* q.size(-1) ** -0.5" in read("a.py") and b".contiguous()" in read("a.py")


@pytest.mark.parametrize(
    ("text", "arguments", "hint"),
    [
        (VIEW, (), "[*] 1 fixable with `--fix`."),
        (BOTH, (), "[*] 1 fixable with `--fix` (1 hidden fix can be enabled with `--unsafe-fixes`)."),
        (BOTH, ("--unsafe-fixes",), "[*] 2 fixable with `--fix`."),
        (BOTH, ("--no-unsafe-fixes",), "[*] 1 fixable with `--fix`."),
        (UNSCALED, (), "No fixes available (1 hidden fix can be enabled with `--unsafe-fixes`)."),
    ],
)
@pytest.mark.parametrize("style", ["full", "concise"])
def test_the_hint_counts_what_could_be_mended(
    msalint_: Run, text: str, arguments: tuple[str, ...], hint: str, style: str
) -> None:
    write("a.py", text)
    done = msalint_("--output-format", style, *arguments)
    assert (done.out + done.err).splitlines()[-1] == hint
    starred = sum("[*] " in line for line in done.out.splitlines() if line.startswith("a.py:"))
    assert starred == (int(hint.split()[1]) if hint.startswith("[*]") else 0)
    assert read("a.py").decode() == text


def test_no_hint_where_nothing_can_be_mended(msalint_: Run) -> None:
    write("a.py", UNSCALED)
    assert msalint_("--no-unsafe-fixes").out.endswith("Found 1 warning in 1 file.\n")


def test_diff_shows_and_writes_nothing(msalint_: Run) -> None:
    write("b/a.py", BOTH)
    write("ok.py", "x = 1\n")
    done = msalint_("--diff")
    assert done.code == 1 and read("b/a.py").decode() == BOTH
    assert done.out == (
        "--- b/a.py\n+++ b/a.py\n@@ -13,4 +13,4 @@\n"
        "         q, k, v = self.qkv(x).view(B, L, 3, self.heads, self.d_k).permute(2, 0, 3, 1, 4).unbind(0)\n"
        "         weights = torch.softmax(q @ k.transpose(-2, -1), dim=-1)\n"
        "         context = (weights @ v).transpose(1, 2)\n"
        "-        return context.view(B, L, -1)  # merged\n"
        "+        return context.contiguous().view(B, L, -1)  # merged\n\n"
    )
    assert done.err == "Would fix 1 finding (1 additional fix available with `--unsafe-fixes`).\n"
    assert msalint_("--diff", "-q") == Done(1, done.out, "")
    assert msalint_("--diff", "--exit-zero").code == 0


def test_diff_of_nothing_is_zero(msalint_: Run) -> None:
    write("a.py", UNSCALED)
    told = "No findings would be fixed (1 fix available with `--unsafe-fixes`).\n"
    assert msalint_("--diff") == Done(0, "", told)
    write("a.py", "x = 1\n")
    assert msalint_("--diff") == Done(0, "", "")


@pytest.mark.parametrize(
    "text", [BOTH, BOTH.rstrip("\n"), BOTH.replace("\n", "\r\n"), BOTH.replace("# merged", "# \f")]
)
def test_a_diff_is_a_patch_that_makes_the_fixes(msalint_: Run, text: str) -> None:
    for name in ("a.py", "b.py"):
        Path(name).write_bytes(text.encode())
    data = subprocess.run(
        [sys.executable, "-m", "msalint", "--diff", "--unsafe-fixes", "a.py", "b.py"],
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parent.parent)},
    ).stdout
    subprocess.run(["git", "apply", "-p0", "-"], input=data, check=True)
    patched = read("a.py")
    assert patched == read("b.py") != text.encode()
    Path("a.py").write_bytes(text.encode())
    msalint_("--fix", "--unsafe-fixes", "a.py")
    assert patched == read("a.py")


def test_fix_only_mends_and_reports_nothing(msalint_: Run) -> None:
    write("a.py", BOTH)
    told = "Fixed 1 finding (1 additional fix available with `--unsafe-fixes`).\n"
    assert msalint_("--fix-only") == Done(0, told, "")
    assert b"contiguous" in read("a.py")
    assert msalint_("--fix-only").out == "No findings fixed (1 fix available with `--unsafe-fixes`).\n"
    assert msalint_("--fix-only", "--output-format", "json") == Done(0, "", "")


def test_show_fixes_lists_them(msalint_: Run) -> None:
    write("sub/a.py", VIEW + "x = 1  # noqa: MSA901\n")
    write("b.py", VIEW)
    assert msalint_("--fix", "--show-fixes") == Done(
        0,
        "\nFixed 3 findings:\n- b.py:\n    1 × MSA101 (view-needs-contiguous)\n- sub/a.py:\n"
        "    1 × MSA101 (view-needs-contiguous)\n    1 × MSA902 (unused-suppression)\n\n"
        "Found 2 errors, 1 warning in 2 files (3 fixed, 0 remaining).\n",
        "",
    )


def test_show_fixes_can_not_go_with_diff(msalint_: Run) -> None:
    done = msalint_("--diff", "--show-fixes")
    assert done.code == 2 and "--diff can't be used with --show-fixes" in done.err


@pytest.mark.parametrize(
    ("text", "arguments", "code"),
    [
        (VIEW, ("--fix",), 0),
        (VIEW, ("--fix", "--exit-non-zero-on-fix"), 1),
        (VIEW, ("--fix-only", "--exit-non-zero-on-fix"), 1),
        (UNSCALED, ("--fix",), 1),
        (UNSCALED, ("--fix-only", "--exit-non-zero-on-fix"), 0),
        (BOTH, ("--fix", "--exit-zero"), 0),
        (VIEW, ("--fix", "--no-fix"), 1),
        ("x = 1\n", ("--fix", "--exit-non-zero-on-fix"), 0),
    ],
)
def test_exit_codes(msalint_: Run, text: str, arguments: tuple[str, ...], code: int) -> None:
    write("a.py", text)
    assert msalint_(*arguments).code == code


def test_a_list_for_programs_holds_what_is_left(msalint_: Run) -> None:
    import json

    write("a.py", BOTH)
    done = msalint_("--fix", "--output-format", "json")
    assert [one["code"] for one in json.loads(done.out)] == ["MSA201"] and done.err == ""


def test_stdin_goes_on_with_its_fixes_made_and_the_report_to_stderr(
    msalint_: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    piped(monkeypatch, BOTH.encode())
    done = msalint_("--fix", "-")
    assert (done.code, done.out) == (1, VIEWED.replace(" * self.d_k**-0.5", ""))
    assert "MSA201" in done.err and "(1 fixed, 1 remaining)" in done.err
    piped(monkeypatch, BOTH.encode())
    done = msalint_("--diff", "-")
    assert done.code == 1 and done.out.startswith("@@ -13,4 +13,4 @@\n") and done.err.startswith("Would fix 1")
    piped(monkeypatch, BOTH.encode())
    assert msalint_("--diff", "-", "--stdin-filename", "src/a.py").out.startswith("--- src/a.py\n+++ src/a.py\n@@")


@pytest.mark.parametrize("data", [b"x = 1\n", b"def f(:\n", b"\xff\xfe\x00", b""])
def test_stdin_that_needs_no_fix_or_can_not_be_read_goes_on_as_it_is(
    capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch, data: bytes
) -> None:
    from msalint import cli

    piped(monkeypatch, data)
    cli.run(("--fix", "-"))
    assert capfdbinary.readouterr().out == data


@pytest.mark.parametrize(
    "data",
    [
        VIEW.replace("\n", "\r\n").encode(),
        VIEW.replace("\n", "\r").encode(),
        b"\xef\xbb\xbf" + VIEW.encode(),
        ("# -*- coding: latin-1 -*-\n# é\n" + VIEW).encode("latin-1"),
        ("#!/usr/bin/env python\n# coding: cp1252\n" + VIEW + "s = '€'\n").encode("cp1252"),
        VIEW.rstrip("\n").encode(),
        (VIEW + "\f\nx = '\u2028'\n").encode(),
    ],
    ids=["crlf", "cr", "bom", "latin-1", "cp1252", "no-newline", "form-feed"],
)
def test_all_but_the_fix_stays_as_it_was_byte_for_byte(msalint_: Run, data: bytes) -> None:
    Path("a.py").write_bytes(data)
    assert msalint_("--fix").code == 0
    assert read("a.py") == data.replace(b"context.view", b"context.contiguous().view")


IN_A_LIST = VIEW.replace("from torch import nn\n", "import torch.nn as layers\n").replace("nn.", "layers.") + (
    "\n\nclass Stack(layers.Module):\n    def __init__(self, width):\n        super().__init__()\n"
    "        self.blocks = [Attention(width, 2, 8) for _ in range(3)]\n\n"
    "    def forward(self, x):\n        for block in self.blocks:\n            x = x + block(x)\n        return x\n"
)
"""Two errors, MSA101 and MSA404; the fix of the second needs the name `nn`."""


def test_an_import_that_a_fix_needs_is_added_with_the_newlines_of_the_file(msalint_: Run) -> None:
    Path("a.py").write_bytes(IN_A_LIST.replace("\n", "\r\n").encode())
    assert msalint_("--fix").code == 0
    fixed = read("a.py")
    assert fixed.startswith(b"import torch\r\nimport torch.nn as layers\r\nfrom torch import nn\r\n\r\n")
    assert b"self.blocks = nn.ModuleList([Attention(width, 2, 8) for _ in range(3)])\r\n" in fixed
    assert fixed.count(b"\n") == fixed.count(b"\r\n")


def test_a_fix_is_not_made_where_its_name_means_something_else(msalint_: Run) -> None:
    write("a.py", IN_A_LIST.replace("import torch\n", "import torch\nfrom mine import nn\n", 1))
    done = msalint_("--fix")
    assert done.code == 1 and "MSA404" in done.out
    assert b"ModuleList" not in read("a.py") and b".contiguous()" in read("a.py")


def test_permissions_and_links_stay(msalint_: Run) -> None:
    write("real/a.py", VIEW)
    os.chmod("real/a.py", 0o755)
    os.symlink("real/a.py", "link.py")
    assert msalint_("--fix", "link.py").code == 0
    assert os.readlink("link.py") == "real/a.py"
    assert b".contiguous()" in read("real/a.py")
    assert stat.S_IMODE(os.stat("real/a.py").st_mode) == 0o755
    assert sorted(os.listdir("real")) == ["a.py"]


def test_a_file_under_two_names_is_mended_once(msalint_: Run) -> None:
    write("a.py", VIEW)
    os.symlink("a.py", "b.py")
    done = msalint_("--fix")
    assert done == Done(0, "Found 1 error in 2 files (1 fixed, 0 remaining).\n", "")
    assert read("a.py").decode() == VIEWED


def test_a_full_disk_is_two_leaves_the_file_whole_and_the_others_mended(
    msalint_: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("a.py", VIEW)
    write("b.py", VIEW)
    really = os.replace

    def full(source: str, target: str) -> None:
        if target.endswith("a.py"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        really(source, target)

    monkeypatch.setattr(os, "replace", full)
    done = msalint_("--fix")
    assert done.code == 2 and "error: a.py: can't write this file: No space left on device" in done.err
    assert read("a.py").decode() == VIEW and read("b.py").decode() == VIEWED
    assert sorted(os.listdir()) == ["a.py", "b.py"]
    assert "a.py:16:16: MSA101" in done.out and "(1 fixed, 1 remaining)" in done.out


def test_an_interrupt_leaves_the_file_whole(msalint_: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    write("a.py", VIEW)
    monkeypatch.setattr(os, "fsync", interrupted)
    assert msalint_("--fix").code == 130
    assert read("a.py").decode() == VIEW and os.listdir() == ["a.py"]


def test_a_file_that_changes_while_it_is_checked_is_left_alone(msalint_: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    really = fix.fix_source

    def meanwhile(*arguments: object, **named: object) -> object:
        write("a.py", VIEW + "# saved by an editor\n")
        return really(*arguments, **named)  # type: ignore[arg-type]

    write("a.py", VIEW)
    monkeypatch.setattr("msalint.fix_document.fix_source", meanwhile)
    done = msalint_("--fix")
    assert done.code == 2 and "a.py: this file was changed by someone else" in done.err
    assert read("a.py").decode() == VIEW + "# saved by an editor\n"


def test_a_suppressed_finding_is_not_mended(msalint_: Run) -> None:
    write("a.py", VIEW.replace("# merged", "# noqa: MSA101"))
    assert msalint_("--fix").out == "Nothing found in 1 file.\n"
    assert b"contiguous" not in read("a.py")


def test_rules_that_are_off_mend_nothing(msalint_: Run) -> None:
    write("a.py", VIEW)
    assert msalint_("--fix", "--ignore", "MSA101").code == 0
    assert read("a.py").decode() == VIEW


HELPER = """import torch


def merge(x, B, L):
    return x.view(B, L, -1)
"""
CALLER = VIEW.replace("import torch\n", "import torch\nfrom helper import merge\n", 1).replace(
    "context.view(B, L, -1)", "merge(context, B, L)"
)


def test_only_the_findings_of_a_file_itself_are_mended_in_it(msalint_: Run) -> None:
    write("helper.py", HELPER)
    write("net.py", CALLER)
    done = msalint_("--fix", "--output-format", "concise", "-q")
    assert "helper.py:5:12: MSA101" in done.out
    assert read("net.py").decode() == CALLER and read("helper.py").decode() == HELPER


def test_fixes_in_processes_are_those_of_one(msalint_: Run) -> None:
    outcomes = []
    for jobs in ("1", "2"):
        for number in range(FEW_FILES + 8):
            write(f"p{number % 5}/m{number:03}.py", VIEW if number % 4 == 0 else "x = 1\n")
        outcomes.append(msalint_("--fix", "--show-fixes", "-j", jobs))
        assert read("p0/m000.py").decode() == read("p4/m004.py").decode() == VIEWED
    assert outcomes[0] == outcomes[1]
    assert outcomes[0].out.endswith("Found 12 errors in 48 files (12 fixed, 0 remaining).\n")


def test_settings_turn_fixes_on_and_the_command_line_off_again(msalint_: Run) -> None:
    write("pyproject.toml", "[tool.msalint]\nfix = true\nunsafe-fixes = true\n")
    write("a.py", BOTH)
    assert msalint_("--no-fix").code == 1
    assert read("a.py").decode() == BOTH
    assert msalint_().code == 0
    assert b".contiguous()" in read("a.py") and b"** -0.5" in read("a.py")
    write("pyproject.toml", "[tool.msalint]\nfix-only = true\nshow-fixes = true\n")
    write("a.py", VIEW)
    assert msalint_().out.endswith("Fixed 1 finding.\n")


@pytest.mark.parametrize(
    ("settings", "mended"),
    [
        ('unfixable = ["MSA101"]', []),
        ('unfixable = ["ALL"]', []),
        ('fixable = ["MSA2"]', []),
        ('fixable = ["MSA1"]', ["MSA101"]),
        ('extend-unsafe-fixes = ["view-needs-contiguous"]', []),
        ('extend-safe-fixes = ["MSA2"]', ["MSA101", "MSA201"]),
        ('extend-safe-fixes = ["MSA2"]\nextend-unsafe-fixes = ["MSA201"]', ["MSA101"]),
    ],
)
def test_settings_say_which_fixes_are_made_and_which_are_safe(msalint_: Run, settings: str, mended: list[str]) -> None:
    write("pyproject.toml", f"[tool.msalint]\n{settings}\n")
    write("a.py", BOTH)
    done = msalint_("--fix", "--show-fixes")
    assert sorted(line.split()[2] for line in done.out.splitlines() if "×" in line) == mended


def test_wrong_settings_of_fixes(msalint_: Run) -> None:
    write("pyproject.toml", '[tool.msalint]\nfix = "yes"\n')
    done = msalint_()
    assert done.code == 2 and "pyproject.toml: `fix` must be true or false, not 'yes'" in done.err
    write("a.py", "x = 1\n")
    write("pyproject.toml", '[tool.msalint]\nunfixable = ["MSA777"]\n')
    assert "pyproject.toml:2:14: MSA903" in msalint_("--output-format", "concise").out


def test_a_pipe_is_checked_and_not_written(msalint_: Run, tmp_path: Path) -> None:
    os.mkfifo("pipe")
    writer = subprocess.Popen([sys.executable, "-c", "open('pipe', 'w').write(open('a.py').read())"])
    write("a.py", VIEW)
    done = msalint_("--fix", "--output-format", "concise", "pipe")
    writer.wait(30)
    assert done.code == 1 and "pipe:16:16: MSA101" in done.out
    assert stat.S_ISFIFO(os.stat("pipe").st_mode)


def test_what_is_reported_of_a_file_that_someone_else_mended_is_what_it_holds_now(
    msalint_: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def beaten_to_it(path: str, data: bytes, expected: bytes | None = None) -> None:
        Path(path).write_bytes(data)
        replace_file(path, data, expected)

    monkeypatch.setattr("msalint.mending.replace_file", beaten_to_it)
    write("a.py", VIEW)
    done = msalint_("--fix")
    assert done.code == 2 and "a.py: this file was changed by someone else in the meantime" in done.err
    assert "MSA101" not in done.out and read("a.py").decode() == VIEWED
