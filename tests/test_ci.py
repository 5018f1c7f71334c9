"""What CIs are given: the action and every recipe of the manual fit their schemas, and the action's own steps run."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tests.test_fix_cli import VIEW, VIEWED

ROOT = Path(__file__).resolve().parent.parent

SHELL = pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")


def schema(name: str) -> Any:
    return json.loads((ROOT / "tests" / "data" / name).read_text(encoding="utf-8"))


def blocks(page: str) -> list[str]:
    """The YAML blocks of a page."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)


def action() -> Any:
    return yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))


def recipes() -> Iterator[tuple[str, Any]]:
    for page in ("README.md", "docs/ci.md", "docs/pre-commit.md"):
        for block in blocks(page):
            yield page, yaml.safe_load(block)


def test_the_action_fits_the_schema() -> None:
    jsonschema.validate(action(), schema("github-action.schema.json"))


def test_the_schema_refuses_what_it_should() -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**action(), "runs": {"using": "composite"}}, schema("github-action.schema.json"))


def test_every_recipe_fits_its_schema() -> None:
    kinds = []
    for page, recipe in recipes():
        if "jobs" in recipe:
            kinds.append("workflow")
            # YAML 1.1 takes a bare `on` for true.
            jsonschema.validate({("on" if key is True else key): recipe[key] for key in recipe}, WORKFLOW)
        elif "repos" in recipe:
            kinds.append("hooks")
        else:
            kinds.append("gitlab")
            assert page == "docs/ci.md"
            jsonschema.validate(recipe, schema("gitlab-ci.schema.json"))
    assert {kind: kinds.count(kind) for kind in kinds} == {"workflow": 4, "hooks": 4, "gitlab": 1}


WORKFLOW = schema("github-workflow.schema.json")


def test_every_use_of_the_action_gives_inputs_that_it_has() -> None:
    steps = [step for _, recipe in recipes() for job in recipe.get("jobs", {}).values() for step in job["steps"]]
    used = [step for step in steps if step.get("uses", "").startswith("msalint/msalint@")]
    assert len(used) >= 2
    for step in used:
        assert set(step.get("with", {})) <= set(action()["inputs"])


def test_pre_commit_takes_the_hooks_and_the_recipes(tmp_path: Path) -> None:
    import pre_commit.clientlib

    manifest = pre_commit.clientlib.load_manifest(ROOT / ".pre-commit-hooks.yaml")
    named = {hook["id"] for hook in manifest}
    assert named == {"msalint", "msalint-fix"}
    for number, (_, recipe) in enumerate(item for item in recipes() if "repos" in item[1]):
        config = tmp_path / f"{number}.yaml"
        config.write_text(yaml.safe_dump(recipe))
        pre_commit.clientlib.load_config(config)
        assert {hook["id"] for repo in recipe["repos"] for hook in repo["hooks"]} <= named


def command_lines() -> list[str]:
    found = []
    for _, recipe in recipes():
        for job in recipe.get("jobs", {}).values():
            found += [step["run"] for step in job["steps"] if "run" in step]
        if "msalint" in recipe:
            found += recipe["msalint"]["script"]
    return [line for line in found if line.startswith("msalint ")]


@pytest.mark.parametrize("line", command_lines())
def test_the_command_lines_of_the_recipes_run(line: str, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "net.py").write_text(VIEW)
    done = subprocess.run(
        [sys.executable, "-m", "msalint", *line.split()[1:]],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 1, done.stderr
    written = tmp_path / "gl-code-quality-report.json"
    assert "MSA101" in (written.read_text() if written.exists() else done.stdout)


def run_step(number: int, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """One step of the action, as a runner does it."""
    step = action()["runs"]["steps"][number]
    defaults = {"src": ".", "args": "", "version": "", "sarif-file": ""}
    inputs = {
        name: defaults[match[1]]
        for name, value in step["env"].items()
        if (match := re.fullmatch(r"\$\{\{ inputs\.([\w-]+) \}\}", value))
    }
    assert inputs.keys() == step["env"].keys() and environment.keys() <= inputs.keys() | {"PATH"}
    outer = {
        "RUNNER_TEMP": str(folder / "temp"),
        "GITHUB_PATH": str(folder / "path"),
        "GITHUB_ACTION_PATH": str(ROOT),
    }
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, **outer, **inputs, **environment},
    )


def test_the_defaults_are_those_that_the_steps_are_tried_with() -> None:
    assert {name: given["default"] for name, given in action()["inputs"].items()} == {
        "version": "",
        "src": ".",
        "args": "",
        "sarif-file": "",
    }


@SHELL
def test_the_action_installs_itself_in_an_environment_without_torch(tmp_path: Path) -> None:
    (tmp_path / "temp").mkdir()
    done = run_step(0, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    programs = Path((tmp_path / "path").read_text().strip())
    assert subprocess.run([programs / "msalint", "--version"], capture_output=True).stdout.startswith(b"msalint ")
    assert not list((tmp_path / "temp").glob("**/site-packages/torch"))


@pytest.fixture
def with_msalint(tmp_path: Path) -> str:
    """A PATH on which `msalint` is this checkout."""
    program = tmp_path / "programs" / "msalint"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m msalint "$@"\n')
    program.chmod(0o755)
    return f"{program.parent}{os.pathsep}{os.environ['PATH']}"


@SHELL
def test_the_action_annotates_and_fails_on_findings(tmp_path: Path, with_msalint: str) -> None:
    (tmp_path / "net.py").write_text(VIEW)
    done = run_step(1, tmp_path, PATH=with_msalint)
    assert done.returncode == 1
    assert done.stdout.startswith("::error title=msalint (MSA101),file=net.py,line=16,")


@SHELL
def test_the_action_passes_where_nothing_is_found(tmp_path: Path, with_msalint: str) -> None:
    (tmp_path / "net.py").write_text(VIEWED)
    done = run_step(1, tmp_path, PATH=with_msalint)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


@SHELL
def test_the_action_takes_paths_line_by_line_and_options(tmp_path: Path, with_msalint: str) -> None:
    for name in ("left out.py", "a b.py", "c.py"):
        (tmp_path / name).write_text(VIEW)
    done = run_step(1, tmp_path, PATH=with_msalint, MSALINT_SRC="a b.py\nc.py\n", MSALINT_ARGS="--select\nMSA101 -j 1")
    assert done.returncode == 1, done.stderr
    assert [line.split(",")[1] for line in done.stdout.splitlines()] == ["file=a b.py", "file=c.py"]
    assert run_step(1, tmp_path, PATH=with_msalint, MSALINT_ARGS="--ignore MSA101").returncode == 0


@SHELL
def test_the_action_runs_nothing_that_stands_in_its_inputs(tmp_path: Path, with_msalint: str) -> None:
    (tmp_path / "net.py").write_text(VIEWED)
    run_step(1, tmp_path, PATH=with_msalint, MSALINT_SRC="$(touch ran)\n`touch ran`", MSALINT_ARGS="; touch ran")
    assert not (tmp_path / "ran").exists()


@SHELL
def test_the_action_writes_sarif_beside_the_annotations(tmp_path: Path, with_msalint: str) -> None:
    (tmp_path / "net.py").write_text(VIEW)
    done = run_step(1, tmp_path, PATH=with_msalint, MSALINT_SARIF="out/msalint.sarif")
    assert done.returncode == 1 and "MSA101" in done.stdout
    results = json.loads((tmp_path / "out" / "msalint.sarif").read_text())["runs"][0]["results"]
    assert [one["ruleId"] for one in results] == ["MSA101"]


@pytest.mark.parametrize("told", [False, True])
def test_ruff_leaves_our_suppressions_alone_once_it_is_told(tmp_path: Path, told: bool) -> None:
    page = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    settings = re.search(r"```toml\n(.*?)```", page, re.DOTALL)
    assert settings
    (tmp_path / "pyproject.toml").write_text(settings[1] if told else "[tool.ruff.lint]\n")
    (tmp_path / "net.py").write_text(VIEW.replace("# merged", "# noqa: MSA101"))
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "ruff",
            "check",
            "--no-cache",
            "--select",
            "RUF100,RUF102",
            "--output-format",
            "concise",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == (0 if told else 1), done.stdout + done.stderr
