"""Colour for a terminal: names of roles in a report, or nothing where colour is off."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from msalint.diagnostic import Level

_CODES = {
    "place": "1",
    "code": "1;31",
    "error": "1;31",
    "warning": "1;33",
    "note": "1;34",
    "gutter": "1;34",
    "step": "1;36",
    "help": "1;32",
    "removed": "31",
    "added": "32",
}


@dataclass(frozen=True)
class Paint:
    """`paint("error", text)` is the text, in the colour of that role if colour is on."""

    on: bool

    def __call__(self, role: str, text: str) -> str:
        return f"\x1b[{_CODES[role]}m{text}\x1b[0m" if self.on and text else text

    def level(self, level: Level) -> Callable[[str], str]:
        return lambda text: self(level.value, text)
