"""The frames of one path: local variables, the module they belong to, and how a body is left."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from msalint.syntax.module import Module
from msalint.values import ClassValue, Value


class Left(Enum):
    """How a statement list was left before its end."""

    RETURN = "return"
    BREAK = "break"
    CONTINUE = "continue"
    RAISE = "raise"


class GivenUp(Exception):
    """The path outgrew the limits of the analysis."""


@dataclass
class Frame:
    """One call: its variables, and what it returned. `outer` is the frame a nested function closes over.

    A frame that is `closed_over` by one lives on in it, so that a copy of the frame would not do in its place.
    """

    module: Module
    node: Any = None
    variables: dict[str, Value] = field(default_factory=dict)
    outer: Frame | None = None
    owner: ClassValue | None = None
    receiver: Value | None = None
    returned: Value | None = None
    closed_over: bool = False

    def find(self, name: str) -> Value | None:
        """A variable of this frame or of those it closes over."""
        here: Frame | None = self
        while here is not None:
            if name in here.variables:
                return here.variables[name]
            here = here.outer
        return None
