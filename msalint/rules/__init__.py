"""Puts the checkout's top-level `rules/` on this package's path; a wheel carries the rule files in here already."""

from __future__ import annotations

from pathlib import Path

_here = Path(__file__).resolve().parent

if not any(_here.glob("*/*.py")):
    _checkout = _here.parent.parent / "rules"
    if _checkout.is_dir():
        __path__.append(str(_checkout))
