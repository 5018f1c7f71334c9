"""pytest `--msalint-shapes=mypkg`: a test run with the shape checks on. Without the option torch is not imported."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("msalint")
    group.addoption(
        "--msalint-shapes",
        metavar="PACKAGE",
        action="append",
        default=[],
        help="check the shape annotations of a package during the run (may be given more than once, or a,b)",
    )


def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Before any conftest, since those import the package under test."""
    asked = [name for option in early_config.known_args_namespace.msalint_shapes for name in option.split(",") if name]
    if not asked:
        return
    import pytest

    try:
        from msalint.runtime.import_hook import AlreadyImported, check_package
    except ImportError as error:
        raise pytest.UsageError(f"--msalint-shapes needs `pip install msalint[runtime]` ({error})") from error
    try:
        installed = check_package(*asked)
    except (AlreadyImported, ValueError) as error:
        raise pytest.UsageError(f"--msalint-shapes: {error}") from error
    early_config.add_cleanup(installed.remove)
