"""Makes notebooks for the tests, as Jupyter writes them."""

from __future__ import annotations

import json
from typing import Any

ATTENTION = """class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        assert dim % heads == 0
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)

    def split(self, x):
        return x.view(x.shape[0], x.shape[1], self.heads, -1).transpose(1, 2)
"""

FORWARD = """class Whole(Attention):
    def forward(self, x):
        batch, length, dim = x.shape
        q, k, v = (self.split(part) for part in self.qkv(x).chunk(3, dim=-1))
        weights = torch.softmax(q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5, dim=-1)
        context = (weights @ v).transpose(1, 2)
        return context.view(batch, length, dim)"""
"""Line 7 merges axes that are apart in memory: MSA101, with a safe fix. Only readers of ATTENTION can know."""

IMPORTS = "%matplotlib inline\nimport torch\nfrom torch import nn\nfiles = !ls"


def cell(source: str, kind: str = "code", as_lines: bool = True, **metadata: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"cell_type": kind, "id": "a1", "metadata": metadata}
    if kind == "code":
        found |= {"execution_count": 3, "outputs": [{"output_type": "stream", "name": "stdout", "text": ["é\n"]}]}
    return found | {"source": source.splitlines(keepends=True) if as_lines else source}


def notebook(*cells: dict[str, Any] | str, language: str | None = "python", indent: int | None = 1, **top: Any) -> str:
    metadata: dict[str, Any] = {}
    if language is not None:
        metadata = {"kernelspec": {"display_name": language, "language": language, "name": "k"}}
    data = {
        "cells": [cell(one) if isinstance(one, str) else one for one in cells],
        "metadata": metadata,
        "nbformat": 4,
        "nbformat_minor": 5,
    } | top
    return json.dumps(data, indent=indent, ensure_ascii=False) + "\n"
