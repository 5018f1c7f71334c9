"""`make rule` writes a rule that the registry takes but for its TODOs, with fixtures beside it."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from msalint import __version__

ROOT = Path(__file__).resolve().parent.parent


def scaffolder() -> ModuleType:
    spec = importlib.util.spec_from_file_location("new_rule", ROOT / "scripts" / "new_rule.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path


def test_the_files_of_a_new_rule(root: Path) -> None:
    written = scaffolder().scaffold("MSA399", "mask-upside-down", root)
    assert [path.relative_to(root).as_posix() for path in written] == [
        "rules/masks/msa399_mask_upside_down.py",
        "fixtures/rules/MSA399-mask-upside-down/bad_todo.py",
        "fixtures/rules/MSA399-mask-upside-down/good_todo.py",
        "fixtures/rules/MSA399-mask-upside-down/prove.py",
    ]
    for path in written:
        ast.parse(path.read_text())
    assert "# expect: MSA399" in written[1].read_text()
    assert f'since="{__version__}"' in written[0].read_text()


def test_the_new_rule_is_one_the_registry_takes(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from msalint import registry

    scaffolder().scaffold("MSA399", "mask-upside-down", root)
    package = root / "scaffolded_rules"
    (root / "rules").rename(package)
    (package / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(root))
    (rule,) = registry.load("scaffolded_rules").rules
    assert (rule.meta.code, rule.meta.name) == ("MSA399", "mask-upside-down")


@pytest.mark.parametrize(("code", "name"), [("MSA3999", "x"), ("RUF100", "x"), ("MSA399", "Not Kebab"), ("MSA399", "")])
def test_a_bad_code_or_name_is_refused(root: Path, code: str, name: str) -> None:
    with pytest.raises(ValueError, match="must be"):
        scaffolder().scaffold(code, name, root)


def test_a_code_that_is_taken_is_refused(root: Path) -> None:
    scaffolder().scaffold("MSA399", "mask-upside-down", root)
    with pytest.raises(ValueError, match=r"taken by rules/masks/msa399_mask_upside_down\.py"):
        scaffolder().scaffold("MSA399", "another", root)
