"""Who may import whom: downward only. Reads the imports of every file, lazy ones too."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

LAYERS: tuple[tuple[str, ...], ...] = (
    ("bytes_of", "diagnostic", "shapes", "encoded", "keys"),
    ("source", "rewrite", "tables", "changed", "watching"),
    ("settings", "baseline"),
    ("syntax",),
    ("fix_imports", "gate", "project", "values"),
    ("documents",),
    ("files",),
    ("facts",),
    ("registered",),
    ("state",),
    ("ops",),
    ("flow",),
    ("rule",),
    ("rules",),
    ("docs",),
    ("registry", "suppress", "fix", "report"),
    ("about", "suppressing"),
    ("check",),
    ("fix_document", "flake8_plugin"),
    ("mending",),
    ("cache", "processes", "testing"),
    ("resolved", "runner"),
    ("adoption",),
    ("cli",),
)
"""From the bottom up. A room may import itself and every room below it; rooms of one row don't know each other."""

RANK = {room: rank for rank, row in enumerate(LAYERS) for room in row}

NARROWER = {
    "shapes": {"shapes"},
    "ops": {"ops", "state", "facts", "values", "shapes", "diagnostic"},
    "registered": {"facts", "values", "diagnostic"},
    "rules": {"rule", "facts", "shapes", "values"},
    "facts": {"facts", "values", "shapes", "diagnostic"},
    "syntax": {"syntax", "source", "diagnostic"},
    "runtime": {"runtime", "shapes"},
}
"""Rooms that may see less than the rows say: an op no tree, a rule neither the interpreter nor another rule."""

EXTRA = {
    ("cli", "runtime"),
    ("report", "fix"),
    ("report", "docs"),
}
TYPES_ONLY = {("facts", "rule"), ("values", "rule"), ("state", "rule"), ("ops", "rule"), ("shapes", "rule")}
"""Names that are imported for annotations alone."""

ALLOWED_LIBRARIES = {
    "libcst": {"syntax"},
    "click": {"cli"},
    "pathspec": {"files"},
    "watchfiles": {"watching"},
    "torch": {"runtime"},
    "jaxtyping": {"runtime"},
    "beartype": {"runtime"},
    "matplotlib": {"runtime"},
}


def files() -> list[Path]:
    return sorted([*(ROOT / "msalint").rglob("*.py"), *(ROOT / "rules").rglob("*.py")])


def room(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return "rules" if parts[0] == "rules" else parts[1]


def imports(path: Path) -> Iterator[tuple[str, int, bool]]:
    """Every module that a file imports, the line, and whether only type checkers see it."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    guarded = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno, id(node) in guarded
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports are absolute here"
            if node.module == "msalint":
                for alias in node.names:
                    yield f"msalint.{alias.name}", node.lineno, id(node) in guarded
            else:
                yield node.module or "", node.lineno, id(node) in guarded


def may_import(here: str, there: str, types_only: bool) -> bool:
    if here == there and here != "rules":
        return True
    if types_only and (here, there) in TYPES_ONLY:
        return True
    if here in NARROWER:
        return there in NARROWER[here]
    if (here, there) in EXTRA:
        return True
    return here in RANK and there in RANK and RANK[there] < RANK[here]


@pytest.mark.parametrize("path", files(), ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_downward(path: Path) -> None:
    here = room(path)
    if here in ("__init__", "__main__"):
        return
    rooms = {item.stem for item in (ROOT / "msalint").iterdir() if item.suffix == ".py" or item.is_dir()}
    for name, line, types_only in imports(path):
        top, _, rest = name.partition(".")
        if top == "msalint":
            there = rest.split(".")[0]
            if there in rooms:  # `from msalint import __version__` names no room
                assert may_import(here, there, types_only), f"{path}:{line}: {here} may not import {there}"
        elif top in ALLOWED_LIBRARIES and not types_only:
            assert here in ALLOWED_LIBRARIES[top], f"{path}:{line}: {here} may not import {top}"


def test_every_room_has_its_place() -> None:
    rooms = {room(path) for path in files()} - {"__init__", "__main__", "runtime"}
    assert rooms <= set(RANK), f"say in LAYERS where these belong: {sorted(rooms - set(RANK))}"


def test_the_table_refuses_what_it_should() -> None:
    assert not may_import("shapes", "flow", False)
    assert not may_import("rules", "flow", False)
    assert not may_import("rules", "rules", False)
    assert not may_import("ops", "syntax", False)
    assert not may_import("runtime", "flow", False)
    assert not may_import("check", "runner", False)
    assert not may_import("suppress", "registry", False)
    assert may_import("cli", "runner", False)


def test_a_rule_file_stands_alone() -> None:
    for path in (ROOT / "rules").rglob("*.py"):
        assert path.parent.parent == ROOT / "rules", f"{path}: a rule's file lies in a family, no deeper"
        assert path.name != "__init__.py"
