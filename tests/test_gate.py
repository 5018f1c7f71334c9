"""Which files pass the gate, and which of their definitions are worth a look."""

from __future__ import annotations

import subprocess
import sys

import pytest

from msalint import gate
from msalint.gate import candidates
from msalint.source import SourceError

TORCH = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"

PASSING = {
    "softmax": "def f(q, k, v):\n    return torch.softmax(q @ k.mT, -1) @ v\n",
    "softmax module": "class A(nn.Module):\n    def __init__(self):\n        self.s = nn.Softmax(dim=-1)\n",
    "sdpa": "def f(q, k, v):\n    return F.scaled_dot_product_attention(q, k, v)\n",
    "module API": "layer = nn.MultiheadAttention(8, 2)\n",
    "encoder": "layer = nn.TransformerEncoderLayer(8, 2)\n",
    "flash": "from flash_attn import flash_attn_func\ndef f(q, k, v):\n    return flash_attn_func(q, k, v)\n",
    "by hand": "def f(s, v):\n    w = s.exp()\n    return w / w.sum(-1, keepdim=True) @ v\n",
    "mask": "def causal(n):\n    return torch.ones(n, n).tril()\n",
    "fill": "def hide(scores, mask):\n    return scores.masked_fill(mask, -1e9)\n",
    "head split": "def split(x, num_heads):\n    return x.view(1, 2, num_heads, -1).transpose(1, 2)\n",
    "rotary": "class RotaryEmbedding(nn.Module):\n    pass\n",
    "sinusoids": "def table(n):\n    return torch.cat([torch.sin(n), torch.cos(n)])\n",
    "learned positions": "class E(nn.Module):\n    def __init__(self):\n        self.pos = nn.Embedding(9, 8)\n",
    "a name": "class WindowAttention(Base):\n    pass\n",
    "a use": "class Block(nn.Module):\n    def __init__(self):\n        self.mix = layers.SelfAttention(8)\n",
}

STOPPED = {
    "convolutions": "class Net(nn.Module):\n    def forward(self, x):\n        return self.conv(x).view(1, -1)\n",
    "training": "def train(model, batch):\n    out = model(batch['ids'], attention_mask=batch['attention_mask'])\n",
    "a comment": "# attention: this file needs care\ndef f():\n    return torch.zeros(1)\n",
    "nothing": "",
}


@pytest.mark.parametrize("kind", PASSING)
def test_attention_passes(kind: str) -> None:
    found = candidates(TORCH + PASSING[kind])
    assert found is not None and (found.wanted or found.scripted)


@pytest.mark.parametrize("kind", STOPPED)
def test_other_code_stops(kind: str) -> None:
    assert candidates(TORCH + STOPPED[kind]) is None


ATTENTION = "def attend(q, k, v):\n    return ops.softmax(q @ k.T, -1) @ v\nclass Attention:\n    pass\n"


@pytest.mark.parametrize(
    "imports",
    [
        "import torch",
        "import torch as th",
        "from torch import nn",
        "import numpy as np, torch.nn as nn",
        "if True:\n    from torch.nn import functional as ops",
        "from einops import rearrange",
        "import flash_attn",
        "from . import ops",
        "from ..common.layers import ops",
        "from mypackage.layers import ops",
        "import jax\nimport torch",
        "import tensorflow as tf\nfrom torch import nn",
    ],
)
def test_torch_is_known_by_its_imports(imports: str) -> None:
    assert candidates(f"{imports}\n{ATTENTION}") is not None


@pytest.mark.parametrize(
    "imports",
    [
        "import jax\nimport jax.numpy as jnp",
        "from flax import linen as nn",
        "import mlx.core as mx\nimport mlx.nn as nn",
        "from keras import ops, layers",
        "import tensorflow as tf\nfrom . import layers",
        "import paddle\nfrom paddle import nn",
        "import numpy as np",
        "import math",
        "import os, sys",
    ],
)
def test_other_frameworks_of_the_same_words_stop(imports: str) -> None:
    assert candidates(f"{imports}\n{ATTENTION}") is None


def test_a_cell_without_imports_counts_when_it_speaks_of_torch() -> None:
    assert candidates("w = torch.softmax(s, -1)\n") is not None
    assert candidates("class A(nn.Module):\n    s = nn.Softmax(-1)\n") is not None
    assert candidates("w = softmax(s)\n") is None


MODULE = (
    TORCH
    + """
class Config:
    num_layers = 2

class Heads(nn.Module):
    def forward(self, q, k, v):
        return attend(q, k, v)

def attend(q, k, v):
    return torch.softmax(q @ k.mT, -1) @ v

class Wider(Heads):
    width = 2

class Widest(Wider):
    pass

def load(path):
    return torch.load(path)

if torch.cuda.is_available():
    def fused(q, k, v):
        return F.scaled_dot_product_attention(q, k, v)
"""
)


def test_definitions_that_hold_call_or_inherit_attention_are_wanted() -> None:
    found = candidates(MODULE)
    assert found is not None
    assert found.wanted == ("Heads", "attend", "Wider", "Widest", "fused")


def test_statements_outside_of_definitions_may_be_worth_a_look() -> None:
    script, library = candidates(TORCH + "w = torch.softmax(x @ y, -1)\n"), candidates(TORCH + PASSING["softmax"])
    assert script is not None and script.scripted and script.wanted == ()
    assert library is not None and not library.scripted


def test_bytes_are_decoded_by_their_own_rules() -> None:
    text = "# -*- coding: latin-1 -*-\n# é\n" + TORCH + PASSING["softmax"]
    found = candidates(text.encode("latin-1"))
    assert found is not None and found.text == text
    assert candidates(b"\xef\xbb\xbf" + (TORCH + PASSING["sdpa"]).encode()) is not None
    with pytest.raises(SourceError):
        candidates((TORCH + "# é softmax\n").encode("latin-1"))


def test_only_files_about_attention_are_parsed() -> None:
    broken = "def f(:\n"
    assert candidates(TORCH + broken) is None
    with pytest.raises(SourceError) as caught:
        candidates(TORCH + PASSING["softmax"] + broken)
    assert caught.value.position.line == 6


def test_python_2_is_a_syntax_error() -> None:
    with pytest.raises(SourceError):
        candidates(TORCH + PASSING["softmax"] + "print 'weights'\n")


def test_the_gate_leaves_libcst_and_torch_unimported() -> None:
    code = (
        "import sys; from msalint.gate import candidates\n"
        f"assert candidates({MODULE!r}).wanted\n"
        "assert not {'libcst', 'torch'} & set(sys.modules), sorted(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_words_are_searched_before_anything_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("parsed")

    monkeypatch.setattr(gate, "outline", refuse)
    for text in STOPPED.values():
        if "attention" not in text:
            candidates(TORCH + text)
