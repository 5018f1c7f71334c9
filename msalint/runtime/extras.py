"""Says which of the packages that running needs is not there."""

from __future__ import annotations

from importlib import import_module


def missing_package() -> str | None:
    """Why torch, jaxtyping or beartype can't be imported; None if all can."""
    for name in ("torch", "jaxtyping", "beartype"):
        try:
            import_module(name)
        except ImportError as error:
            return f"{name}: {error}"
    return None
