"""The names that an example in prose uses without importing them, because every reader knows what they are."""

from __future__ import annotations

import re

_USUAL = {
    "torch": "import torch",
    "nn": "from torch import nn",
    "F": "import torch.nn.functional as F",
    "math": "import math",
    "einops": "import einops",
    "rearrange": "from einops import rearrange",
}


def with_usual_imports(text: str) -> str:
    """An example with the imports that it lacks behind its last line, where they move nothing."""
    lacking = [statement for name, statement in _USUAL.items() if _uses(text, name) and not _binds(text, name)]
    return text + "".join(statement + "\n" for statement in lacking)


def _uses(text: str, name: str) -> bool:
    return re.search(rf"(?<![\w.]){name}(?:\.|\()", text) is not None


def _binds(text: str, name: str) -> bool:
    """Whether a text may give the name a meaning of its own: it imports, assigns or defines it somewhere."""
    introduced = rf"(?:\bimport|\bas|\bdef|\bclass|\bfor)\b[^\n]*?\b{name}\b"
    assigned = rf"(?<![\w.]){name}[ \t]*(?:=(?!=)|:|,)"
    return re.search(f"{introduced}|{assigned}", text) is not None
