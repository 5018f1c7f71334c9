"""msalint finds mistakes in PyTorch attention code. This is the public API, imported only when it is used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from msalint.check import lint_source
    from msalint.diagnostic import Diagnostic, Edit, Fix, Level, Position, Safety, Span, Step
    from msalint.runner import lint_paths
    from msalint.settings import Settings

__all__ = [
    "Diagnostic",
    "Edit",
    "Fix",
    "Level",
    "Position",
    "Safety",
    "Settings",
    "Span",
    "Step",
    "__version__",
    "lint_paths",
    "lint_source",
]

_HOMES = {"lint_source": "msalint.check", "lint_paths": "msalint.runner", "Settings": "msalint.settings"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'msalint' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES.get(name, "msalint.diagnostic")), name)


def __dir__() -> list[str]:
    return sorted(__all__)
