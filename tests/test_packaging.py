"""A wheel holds every rule, and works where neither the checkout nor torch is at hand."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout, built with what is installed here."""
    out = tmp_path_factory.mktemp("dist")
    code = (
        "import sys; from hatchling.build import build_wheel;"
        "open(sys.argv[1] + '/name', 'w').write(build_wheel(sys.argv[1]))"
    )
    subprocess.run([sys.executable, "-c", code, str(out)], cwd=ROOT, check=True, capture_output=True, timeout=120)
    return out / (out / "name").read_text()


@pytest.fixture(scope="module")
def unpacked(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def run(site: Path, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(site)}
    return subprocess.run(
        [sys.executable, "-m", "msalint", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=120,
        env=environment,
    )


def rule_files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.glob("*/msa*.py")}


def test_the_wheel_holds_every_rule(unpacked: Path) -> None:
    assert rule_files(unpacked / "msalint" / "rules") == rule_files(ROOT / "rules") != set()


def test_the_wheel_puts_nothing_else_at_the_top(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        tops = {name.split("/")[0] for name in archive.namelist()}
    assert tops == {"msalint", next(top for top in tops if top.endswith(".dist-info"))}


def test_the_wheel_is_typed_and_needs_no_torch(unpacked: Path) -> None:
    assert (unpacked / "msalint" / "py.typed").exists()
    (metadata,) = unpacked.glob("*.dist-info/METADATA")
    needed = [line for line in metadata.read_text(encoding="utf-8").splitlines() if line.startswith("Requires-Dist:")]
    plain = " ".join(line for line in needed if "extra ==" not in line)
    assert "libcst" in plain and "torch" not in plain and "jaxtyping" not in plain


def test_the_wheel_lists_its_rules_far_from_the_checkout(unpacked: Path, tmp_path: Path) -> None:
    done = run(unpacked, "rule", "--all", "--output-format", "json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)) == len(rule_files(ROOT / "rules"))


def test_the_wheel_checks_in_processes_of_its_own(unpacked: Path, tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"m{number}.py").write_text("x = 1  # noqa: MSA901\n")
    done = run(unpacked, "-j", "2", "--output-format", "concise", "-q", ".", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert done.stdout.count("MSA902") == 3


def test_a_checkout_works_with_no_install_at_all(tmp_path: Path) -> None:
    done = run(ROOT, "rule", "--all", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == len(rule_files(ROOT / "rules"))


def test_the_sdist_holds_the_rules_too(tmp_path: Path) -> None:
    import tarfile

    code = "import sys; from hatchling.build import build_sdist; build_sdist(sys.argv[1])"
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, check=True, capture_output=True, timeout=120)
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        names = {name.split("/", 1)[-1] for name in opened.getnames()}
    assert {f"rules/{name}" for name in rule_files(ROOT / "rules")} <= names
    assert "README.md" in names and not any(name.startswith(("fixtures/", "tests/")) for name in names)
