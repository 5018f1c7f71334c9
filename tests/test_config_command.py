"""`msalint config`, docs/settings.md and the settings themselves know the same keys."""

from __future__ import annotations

import importlib.util
import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from msalint import cli
from msalint.cache import folder_of
from msalint.keys import KEYS, Key
from msalint.registry import load as load_rules
from msalint.settings import Fixing, load

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def test_the_page_of_the_settings_is_up_to_date(root: Path) -> None:
    spec = importlib.util.spec_from_file_location("settings_page", root / "scripts" / "settings_page.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (root / "docs" / "settings.md").read_text() == module.text(), "run python scripts/settings_page.py"


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.name)
def test_each_example_is_a_settings_file_that_is_read(key: Key, tmp_path: Path) -> None:
    home = tmp_path / "project"
    home.mkdir()
    (tmp_path / "pyproject.toml").write_text("[tool.msalint]\n")
    (home / "pyproject.toml").write_text(key.toml)
    assert load(home / "pyproject.toml") is not None


@pytest.mark.parametrize("key", [key for key in KEYS if key.default != "null"], ids=lambda key: key.name)
def test_each_default_is_what_holds_without_a_file(key: Key, tmp_path: Path) -> None:
    """Stating the default changes nothing."""
    stated, silent = tmp_path / "stated", tmp_path / "silent"
    for folder, body in ((stated, f"{key.name} = {key.default}\n"), (silent, "")):
        folder.mkdir()
        tomllib.loads(body)
        (folder / "msalint.toml").write_text(body)
    one, other = load(stated / "msalint.toml"), load(silent / "msalint.toml")
    assert one is not None and other is not None
    registry = load_rules()
    assert registry.enabled(one) == registry.enabled(other)
    assert folder_of(None, one) == str(stated / ".msalint_cache")
    assert (one.fixing.on, bool(one.fixing.show_fixes)) == (False, False)
    same = {"root": "", "file": None, "selections": (), "cache_dir": None, "words": (), "fixing": Fixing()}
    assert replace(one, **same) == replace(other, **same)  # type: ignore[arg-type]


def test_all_keys_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["config"]) == 0
    assert capsys.readouterr().out.split() == [key.name for key in KEYS]


def test_a_key_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["config", "target-torch"]) == 0
    out = capsys.readouterr().out
    assert "The torch version" in out and 'target-torch = "2.4"' in out


def test_keys_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["config", "--output-format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["select"]["kind"] == "list[str]"
    assert cli.run(["config", "ignore", "--output-format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["name"] == "ignore"


def test_a_key_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["config", "ignor"]) == 2
    assert "did you mean `ignore`?" in capsys.readouterr().err
