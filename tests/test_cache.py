"""The cache gives what a check would give, and is never believed when something that it rests on has changed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path

import pytest

import msalint.check
from msalint import cache, cli
from msalint.cache import Cache, Known, clean
from msalint.diagnostic import Diagnostic, Edit, Fix, Level, Position, Safety, Span, Step
from msalint.encoded import decoded, encoded
from msalint.files import File, find
from msalint.project import Project
from msalint.report import Report
from msalint.rewrite import RewriteError
from msalint.runner import Request, run
from msalint.settings import Selection, SettingsFinder

ROOT = Path(__file__).resolve().parent.parent

ATTENTION = """\
import torch
from torch import nn
from masks import softmax_of


class Attention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        assert d_model % num_heads == 0
        self.num_heads, self.d_k = num_heads, d_model // num_heads
        self.to_q = nn.Linear(d_model, d_model)
        self.to_k = nn.Linear(d_model, d_model)
        self.to_v = nn.Linear(d_model, d_model)

    def split(self, x):
        batch, seq, _ = x.shape
        return x.view(batch, seq, self.num_heads, self.d_k).transpose(1, 2)

    def forward(self, x):
        q, k, v = self.split(self.to_q(x)), self.split(self.to_k(x)), self.split(self.to_v(x))
        scores = q @ k.transpose(-2, -1) * self.d_k**-0.5
        return softmax_of(scores) @ v
"""
GOOD_HELPER = "import torch\n\n\ndef softmax_of(scores):\n    return torch.softmax(scores, dim=-1)\n"
BAD_HELPER = GOOD_HELPER.replace("dim=-1", "dim=-2")
IDLE = "x = 1  # noqa: MSA901\n"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("MSALINT_NO_CACHE", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text(ATTENTION)
    (tmp_path / "masks.py").write_text(GOOD_HELPER)
    return tmp_path


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The files that are checked anew, as they are."""
    names: list[str] = []
    real = msalint.check.lint_bytes

    def spy(data: bytes, filename: str, *rest: object) -> list[Diagnostic]:
        names.append(filename)
        return real(data, filename, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(msalint.check, "lint_bytes", spy)
    yield names


def report(*paths: str, **request: object) -> Report:
    return run(Request(paths or (".",), jobs=1, **{"cached": True, **request}))  # type: ignore[arg-type]


def places(given: Report) -> list[tuple[str, int, str]]:
    return [(one.filename, one.span.start.line, one.code) for one in given.diagnostics]


def test_a_second_run_checks_nothing_and_says_the_same(here: Path, checked: list[str]) -> None:
    (here / "masks.py").write_text(BAD_HELPER)
    (here / "idle.py").write_text(IDLE)
    first = report()
    assert {code for _, _, code in places(first)} >= {"MSA902"}
    assert any(file == "masks.py" for file, _, _ in places(first))
    assert sorted(checked) == ["idle.py", "masks.py", "net.py"]
    checked.clear()
    assert report().diagnostics == first.diagnostics
    assert checked == []


def test_what_comments_in_helpers_hide_is_known_too(here: Path, checked: list[str]) -> None:
    """Such a comment is not idle, whether the file that it serves is checked anew or known."""
    (here / "masks.py").write_text(BAD_HELPER.replace("dim=-2)", "dim=-2)  # msalint: ignore[MSA211]"))
    assert [places(report()) for _ in range(2)] == [[], []]
    assert sorted(checked) == ["masks.py", "net.py"]
    assert places(report("masks.py")) == [("masks.py", 5, "MSA902")]


def test_names_follow_the_folder_that_a_run_starts_from(
    here: Path, checked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "msalint.toml").write_text("")
    (here / "sub").mkdir()
    (here / "idle.py").write_text(IDLE)
    report("idle.py")
    monkeypatch.chdir(here / "sub")
    assert places(report("../idle.py")) == [("../idle.py", 1, "MSA902")]
    assert checked == ["idle.py"]


def test_a_changed_file_is_checked_again(here: Path, checked: list[str]) -> None:
    (here / "idle.py").write_text(IDLE)
    report()
    checked.clear()
    (here / "idle.py").write_text("\n" + IDLE)
    assert places(report()) == [("idle.py", 2, "MSA902")]
    assert checked == ["idle.py"]


def test_a_changed_helper_makes_the_results_of_its_users_old(here: Path, checked: list[str]) -> None:
    assert places(report("net.py", "masks.py")) == []
    checked.clear()
    (here / "masks.py").write_text(BAD_HELPER)
    changed = report("net.py", "masks.py")
    assert checked == ["net.py", "masks.py"]
    assert places(changed) == places(report("net.py", "masks.py", cached=False)) != []


def test_a_helper_of_another_folder_counts_too(here: Path, checked: list[str]) -> None:
    (here / "lib").mkdir()
    (here / "lib" / "__init__.py").write_text("")
    (here / "masks.py").rename(here / "lib" / "masks.py")
    (here / "net.py").write_text(ATTENTION.replace("from masks", "from lib.masks"))
    report("net.py")
    checked.clear()
    report("net.py")
    assert checked == []
    (here / "lib" / "masks.py").write_text(BAD_HELPER)
    report("net.py")
    assert checked == ["net.py"]


def test_a_helper_that_was_missing_and_now_is_there(here: Path, checked: list[str]) -> None:
    (here / "masks.py").unlink()
    report("net.py")
    checked.clear()
    report("net.py")
    assert checked == []
    (here / "masks.py").write_text(BAD_HELPER)
    report("net.py")
    assert checked == ["net.py"]


def test_a_package_that_hides_a_module_of_the_same_name(here: Path, checked: list[str]) -> None:
    report("net.py")
    checked.clear()
    (here / "masks").mkdir()
    (here / "masks" / "__init__.py").write_text(BAD_HELPER)
    report("net.py")
    assert checked == ["net.py"]


def test_a_helper_that_is_gone(here: Path, checked: list[str]) -> None:
    report("net.py")
    checked.clear()
    (here / "masks.py").unlink()
    report("net.py")
    assert checked == ["net.py"]


def test_other_roots_that_lead_an_import_elsewhere(here: Path, checked: list[str]) -> None:
    """`net.py` alone can't see src/; with the whole folder checked, it can."""
    (here / "src").mkdir()
    (here / "masks.py").rename(here / "src" / "masks.py")
    (here / "sub").mkdir()
    (here / "net.py").rename(here / "sub" / "net.py")
    report("sub/net.py")
    report(".")
    assert checked.count("sub/net.py") == 2


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '[per-file-ignores]\n"idle.py" = ["MSA902"]\n'),
        ("", 'ignore = ["MSA902"]\n'),
        ("", 'target-torch = "2.4"\n'),
    ],
)
def test_changed_settings_make_results_old(here: Path, checked: list[str], before: str, after: str) -> None:
    (here / "idle.py").write_text(IDLE)
    (here / "msalint.toml").write_text(before)
    report("idle.py")
    (here / "msalint.toml").write_text(after)
    changed = report("idle.py")
    assert checked == ["idle.py", "idle.py"]
    assert places(changed) == places(report("idle.py", cached=False))


def test_the_command_line_counts_as_settings(here: Path, checked: list[str]) -> None:
    (here / "idle.py").write_text(IDLE)
    assert places(report("idle.py", selection=Selection(ignore=("MSA902",)))) == []
    assert places(report("idle.py")) == [("idle.py", 1, "MSA902")]
    checked.clear()
    assert places(report("idle.py", selection=Selection(ignore=("MSA902",)))) == []
    assert checked == []


def test_what_is_wrong_with_the_settings_is_told_every_time(here: Path) -> None:
    (here / "msalint.toml").write_text('ignore = ["MSA999"]\n')
    told = [("msalint.toml", 1, "MSA903")]
    assert places(report()) == places(report()) == told
    (here / "msalint.toml").write_text('\nignore = ["MSA999"]\n')
    assert places(report()) == [("msalint.toml", 2, "MSA903")]


def test_another_version_or_rule_makes_results_old(
    here: Path, checked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    report("net.py")
    with monkeypatch.context() as patched:
        patched.setattr(cache, "__version__", "9.9.9")
        report("net.py")
    with monkeypatch.context() as patched:
        patched.setattr(cache, "rule_set", lambda: "others")
        report("net.py")
    assert len(checked) == 3


def test_a_rule_file_that_is_new_or_changed_is_another_rule_set(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import msalint.rules

    family = here / "rules" / "masks"
    family.mkdir(parents=True)
    rule = family / "msa399_a_rule.py"
    rule.write_text("x = 1\n")
    monkeypatch.setattr(msalint.rules, "__path__", [str(here / "rules")])
    before = cache.rule_set()
    os.utime(rule, ns=(1, 1))
    changed = cache.rule_set()
    (family / "msa398_another.py").write_text("")
    assert len({before, changed, cache.rule_set()}) == 3


@pytest.mark.parametrize(
    "harm",
    [
        b"",
        b"{",
        b"[]",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"rules": 3, "files": 4}',
        "files",
        "row",
        "digest",
        "modules",
        "asked",
        "diagnostics",
        "field",
    ],
)
def test_a_corrupt_pack_is_made_again_without_a_word(here: Path, checked: list[str], harm: bytes | str) -> None:
    (here / "idle.py").write_text(IDLE)
    first = places(report())
    (pack,) = here.glob(".msalint_cache/*/*.json")
    pack.write_bytes(harm if isinstance(harm, bytes) else _harmed(pack.read_bytes(), harm))
    checked.clear()
    assert places(report()) == first
    assert checked
    checked.clear()
    assert places(report()) == first
    assert checked == []


def _harmed(pack: bytes, what: str) -> bytes:
    stored = json.loads(pack)
    for rows in stored["files"].values():
        number = {"digest": 1, "modules": 2, "asked": 3, "diagnostics": 4}.get(what)
        if number is not None:
            rows[0][number] = {"wrong": [{}]} if number == 3 else 7
        elif what == "row":
            rows[0] = rows[0][:3]
        elif what == "field":
            rows[0][4] = [["MSA902"]]
    if what == "files":
        stored["files"] = {name: {"a": 1} for name in stored["files"]}
    return json.dumps(stored).encode()


def test_packs_hold_no_code(here: Path) -> None:
    """A folder that came with a repository is read as data: JSON, nothing that could run."""
    report()
    for pack in here.glob(".msalint_cache/*/*.json"):
        assert set(json.loads(pack.read_text())) == {"rules", "files"}


def test_two_runs_at_once_harm_nothing(here: Path) -> None:
    for number in range(30):
        (here / f"{number}.py").write_text(IDLE + f"# {number}\n")
    command = [sys.executable, "-m", "msalint", "--output-format", "concise", "-q", "."]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    runs = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) for _ in range(3)
    ]
    outputs = [process.communicate(timeout=120) for process in runs]
    assert [process.returncode for process in runs] == [1, 1, 1]
    assert len(set(outputs)) == 1
    (pack,) = here.glob(".msalint_cache/*/*.json")
    assert len(json.loads(pack.read_text())["files"]) == 32
    assert not list(here.glob(".msalint_cache/**/*.tmp"))


def test_what_another_run_added_meanwhile_is_kept(here: Path) -> None:
    folder = str(here / "cache")
    ours, theirs = Cache(folder), Cache(folder)
    files = {one.path: one for one in _files(here)}
    for store, name in ((ours, "net.py"), (theirs, "masks.py")):
        assert store.known(files[name], "d", Project()) is None
        store.keep(files[name], "d", (), Known(()))
    ours.save()
    theirs.save()
    again = Cache(folder)
    assert [again.known(files[name], "d", Project()) for name in ("net.py", "masks.py")] == [Known(()), Known(())]


def _files(here: Path) -> list[File]:
    return [item for item in find(["."], SettingsFinder()) if isinstance(item, File)]


def test_files_that_are_gone_leave_the_cache(here: Path) -> None:
    (here / "idle.py").write_text(IDLE)
    report()
    (here / "idle.py").unlink()
    (here / "net.py").write_text(ATTENTION + "\n")
    report()
    (pack,) = here.glob(".msalint_cache/*/*.json")
    assert set(json.loads(pack.read_text())["files"]) == {"net.py", "masks.py"}


@pytest.mark.parametrize("where", ["file/cache", "file"])
def test_where_nothing_can_be_written_the_check_goes_on_without(here: Path, where: str) -> None:
    (here / "file").write_text("in the way")
    (here / "idle.py").write_text(IDLE)
    for _ in range(2):
        assert places(report(cache_dir=where)) == [("idle.py", 1, "MSA902")]


def test_a_full_disk_costs_nothing_but_the_cache(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object, **kwargs: object) -> None:
        raise RewriteError("No space left on device")

    monkeypatch.setattr(cache, "replace_file", full)
    (here / "idle.py").write_text(IDLE)
    assert places(report()) == [("idle.py", 1, "MSA902")]


def test_failures_and_unreadable_files_are_not_kept(here: Path, checked: list[str]) -> None:
    (here / "broken.py").write_text("import torch\ndef softmax(:\n")
    assert [code for _, _, code in places(report("broken.py"))] == ["MSA901"]
    report("broken.py")
    assert checked == ["broken.py", "broken.py"]


def test_the_folder_is_marked_for_backups_and_git(here: Path) -> None:
    report()
    folder = here / ".msalint_cache"
    assert (folder / "CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172789f06886806bc55\n")
    assert "*" in (folder / ".gitignore").read_text().splitlines()


def test_a_folder_with_other_things_in_it_is_not_marked_nor_removed(here: Path) -> None:
    report(cache_dir=".")
    assert not (here / ".gitignore").exists()
    assert clean(".")
    assert sorted(path.name for path in here.iterdir()) == ["masks.py", "net.py"]


def test_a_named_pipe_is_read_once(here: Path) -> None:
    os.mkfifo(here / "pipe")
    process = subprocess.Popen(
        [sys.executable, "-m", "msalint", "--output-format", "concise", "pipe"],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    (here / "pipe").write_text(IDLE)
    assert b"pipe:1:8: MSA902" in process.communicate(timeout=60)[0]


# The command line


def lint(*arguments: str) -> int:
    return cli.run([*arguments, "-q"])


def test_the_folder_is_where_the_settings_are(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "msalint.toml").write_text("")
    (here / "deep").mkdir()
    monkeypatch.chdir(here / "deep")
    lint("../net.py")
    assert (here / ".msalint_cache").is_dir()


def test_the_settings_name_the_folder(here: Path) -> None:
    (here / "msalint.toml").write_text('cache-dir = "build/lint"\n')
    lint()
    assert (here / "build" / "lint" / "CACHEDIR.TAG").is_file()


def test_option_beats_environment_beats_settings(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "msalint.toml").write_text('cache-dir = "one"\n')
    monkeypatch.setenv("MSALINT_CACHE_DIR", "two")
    lint()
    assert not (here / "one").exists()
    assert (here / "two").is_dir()
    lint("--cache-dir", "three")
    assert (here / "three").is_dir()


def test_no_cache_reads_and_writes_none(here: Path, checked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    lint("--no-cache")
    assert not (here / ".msalint_cache").exists()
    lint()
    lint("--no-cache")
    assert checked.count("net.py") == 3
    monkeypatch.setenv("MSALINT_NO_CACHE", "1")
    lint()
    assert checked.count("net.py") == 4


def test_clean_removes_the_cache_and_nothing_else(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lint()
    (here / ".msalint_cache" / "mine.txt").write_text("kept")
    assert cli.run(["clean"]) == 0
    assert [path.name for path in (here / ".msalint_cache").iterdir()] == ["mine.txt"]
    (here / ".msalint_cache" / "mine.txt").unlink()
    (here / ".msalint_cache").rmdir()
    lint()
    assert cli.run(["clean"]) == 0
    assert not (here / ".msalint_cache").exists()
    assert cli.run(["clean"]) == 0
    assert "There is no cache" in capsys.readouterr().err


def test_a_cached_run_imports_neither_the_analysis_nor_the_rules(here: Path) -> None:
    code = (
        "import sys, io; sys.path.insert(0, sys.argv.pop(1)); out = sys.stdout; sys.stdout = io.StringIO();"
        "from msalint.cli import run; code = run(sys.argv[1:]); out.write(' '.join(sys.modules)); sys.exit(code)"
    )

    def loaded() -> set[str]:
        command = [sys.executable, "-c", code, str(ROOT), "."]
        return set(subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout.split())

    assert {"msalint.flow", "msalint.registry"} <= loaded()
    names = loaded()
    assert not {name for name in names if name.startswith(("libcst", "msalint.flow", "msalint.ops", "msalint.syntax"))}
    assert not names & {"msalint.registry", "msalint.rule", "msalint.check", "multiprocessing"}


# Findings as data


def finding() -> Diagnostic:
    span = Span(Position(1, 2), Position(3, 4))
    fix = Fix("mend", (Edit(span, "x"),), Safety.SAFE, ("import torch",))
    return Diagnostic("MSA101", "n", Level.ERROR, "ünïcode", "a.py", span, (Step("b.py", span, "here"),), "help", fix)


@pytest.mark.parametrize("one", [finding(), replace(finding(), fix=None, help=None, trail=())])
def test_a_finding_comes_back_as_it_was(one: Diagnostic) -> None:
    assert decoded(Diagnostic, json.loads(json.dumps(encoded(one)))) == one


def test_every_field_of_a_finding_is_filled_in_the_example() -> None:
    """A new field would be tested above only if the example gives it a value."""
    for part in (finding(), finding().fix, finding().trail[0]):
        assert part is not None
        assert all(getattr(part, item.name) not in (None, (), "") for item in fields(part))


@pytest.mark.parametrize("wrong", [None, [], ["MSA101"], {"code": "MSA101"}, 3])
def test_what_is_no_finding_is_refused(wrong: object) -> None:
    with pytest.raises(ValueError):
        decoded(Diagnostic, wrong)


@pytest.mark.parametrize("number", range(len(fields(Diagnostic))))
def test_a_field_of_another_kind_is_refused(number: int) -> None:
    row = encoded(finding())
    row[number] = {"wrong": 1}
    with pytest.raises(ValueError):
        decoded(Diagnostic, row)


# Fixes


def test_what_is_to_be_mended_is_checked_though_it_is_known(here: Path, checked: list[str]) -> None:
    (here / "idle.py").write_text(IDLE)
    lint()
    checked.clear()
    assert lint("--fix") == 0
    assert (here / "idle.py").read_text() == "x = 1\n"
    assert set(checked) == {"idle.py"}
    checked.clear()
    assert lint() == 0
    assert checked == []


def test_what_a_diff_showed_is_known_as_it_was(here: Path, checked: list[str]) -> None:
    (here / "idle.py").write_text(IDLE)
    assert lint("--diff") == 1
    checked.clear()
    assert places(report("idle.py")) == [("idle.py", 1, "MSA902")]
    assert checked == []
