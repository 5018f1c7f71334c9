"""Imports lead to files of the same project, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from msalint.project import Project


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A package with a subpackage below src/, a script beside a module, and a file outside the project."""
    for name, text in {
        "project/src/net/__init__.py": "# net",
        "project/src/net/rope.py": "# rope",
        "project/src/net/layers/__init__.py": "# layers",
        "project/src/net/layers/mha.py": "# mha",
        "project/src/net/layers/masks.py": "# masks",
        "project/scripts/train.py": "# train",
        "project/scripts/helper.py": "# helper",
        "secret.py": "# secret",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "project"


def found(tree: Path, dotted: str, importer: str, *roots: str) -> tuple[str, str] | None:
    module = Project(tree / root for root in roots).find(dotted, str(tree / importer))
    return (module.text, module.rest) if module else None


MHA = "src/net/layers/mha.py"


@pytest.mark.parametrize(
    ("dotted", "expected"),
    [
        (".masks.causal", ("# masks", "causal")),
        (".masks", ("# masks", "")),
        (".causal", ("# layers", "causal")),
        ("..rope.rotate.inner", ("# rope", "rotate.inner")),
        ("net.rope", ("# rope", "")),
        ("net.layers.masks.causal", ("# masks", "causal")),
        ("net", ("# net", "")),
        ("torch.nn", None),
        (".missing.deeper", ("# layers", "missing.deeper")),
        ("...secret.key", None),
        ("....secret.key", None),
        ("", None),
    ],
)
def test_from_inside_a_package(tree: Path, dotted: str, expected: tuple[str, str] | None) -> None:
    assert found(tree, dotted, MHA) == expected


def test_a_script_imports_what_lies_beside_it(tree: Path) -> None:
    assert found(tree, "helper.work", "scripts/train.py") == ("# helper", "work")


def test_a_script_imports_the_package_below_a_checked_root(tree: Path) -> None:
    assert found(tree, "net.rope", "scripts/train.py") is None
    assert found(tree, "net.rope", "scripts/train.py", ".") == ("# rope", "")
    assert found(tree, "net.rope", "scripts/train.py", "src") == ("# rope", "")


def test_packages_without_init_files_are_followed_below_a_checked_root(tree: Path) -> None:
    (tree / "plain" / "deep").mkdir(parents=True)
    (tree / "plain" / "masks.py").write_text("# plain masks")
    (tree / "plain" / "deep" / "mha.py").write_text("# plain mha")
    assert found(tree, "..masks.causal", "plain/deep/mha.py", ".") == ("# plain masks", "causal")
    assert found(tree, "..masks.causal", "plain/deep/mha.py") is None


def test_a_link_out_of_the_project_is_not_followed(tree: Path) -> None:
    (tree / "src/net/layers/leak.py").symlink_to(tree.parent / "secret.py")
    assert found(tree, "net.layers.leak.key", MHA) == ("# layers", "leak.key")


def test_a_module_that_cannot_be_decoded_is_passed_over(tree: Path) -> None:
    (tree / "src/net/broken.py").write_bytes(b"x = '\xff'\n")
    assert found(tree, "net.broken.x", MHA) == ("# net", "broken.x")
