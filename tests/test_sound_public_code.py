"""Code of released packages that looks like a fault and is none, rewritten: no error-level finding."""

from __future__ import annotations

import pytest

from msalint import lint_source
from msalint.diagnostic import Level

HEAD = """\
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl


"""

SOUND = {
    "a kernel of another compiler": """\
@triton.autotune(configs=[], key=[])
@triton.jit
def by_columns(q, k, v):
    # Whatever a compiler of its own makes of these words, it is not torch that reads them.
    return torch.softmax(q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5, dim=-2) @ v
""",
    "nodes pooled by soft assignments": """\
def pooled(x: torch.Tensor, adjacency: torch.Tensor, s: torch.Tensor, mask=None):
    x = x.unsqueeze(0) if x.dim() == 2 else x
    s = s.unsqueeze(0) if s.dim() == 2 else s
    batch_size, num_nodes, _ = x.size()
    s = torch.softmax(s, dim=-1)
    if mask is not None:
        mask = mask.view(batch_size, num_nodes, 1).to(x.dtype)
        x, s = x * mask, s * mask
    out = torch.matmul(s.transpose(1, 2), x)
    return out, torch.matmul(torch.matmul(s.transpose(1, 2), adjacency), s)
""",
    "weights times the inverse of weights": """\
def inverse(x, rounds=6):
    z = x.transpose(-1, -2) / (x.abs().sum(-1).max() * x.abs().sum(-2).max())
    one = torch.eye(x.shape[-1])
    for _ in range(rounds):
        xz = x @ z
        z = 0.25 * z @ (13 * one - xz @ (15 * one - xz @ (7 * one - xz)))
    return z


class Landmarks(nn.Module):
    def forward(self, q, k, v, q_marks, k_marks):
        near, mid, far = (
            (a @ b.transpose(-1, -2) * a.shape[-1] ** -0.5).softmax(dim=-1)
            for a, b in ((q, k_marks), (q_marks, k_marks), (q_marks, k))
        )
        return near @ inverse(mid) @ (far @ v), near @ inverse(mid) @ far
""",
    "a list that grows by as many as there are layers": """\
class Stages(nn.Module):
    def __init__(self, c1, c2, n=1, ratio=0.5):
        super().__init__()
        self.c = int(c2 * ratio)
        self.first = nn.Conv2d(c1, 2 * self.c, 1)
        self.last = nn.Conv2d((2 + n) * self.c, c2, 1)
        self.m = nn.ModuleList(nn.Conv2d(self.c, self.c, 1) for _ in range(n))

    def forward(self, x):
        y = list(self.first(x).chunk(2, 1))
        y.extend(m(y[-1]) for m in self.m)
        return torch.softmax(self.last(torch.cat(y, 1)), dim=1)
""",
    "what is left behind whole blocks of 64": """\
def by_lanes(w, scores):
    torch.softmax(scores, dim=-1)
    *lead, width = w.shape
    full = width // 64 * 64
    parts = [w[..., :full].reshape(*lead, width // 64, 4, 4, 4).transpose(-3, -2).reshape(*lead, full)]
    if width > full:
        assert width - full == 32
        parts.append(w[..., full:].reshape(*lead, 2, 4, 4).transpose(-3, -2).reshape(*lead, 32))
    return torch.cat(parts, dim=-1)
""",
    "memory that a kernel writes": """\
def convolved(launch, x: torch.Tensor, w: torch.Tensor, scores, heads: int, head_dim: int):
    torch.softmax(scores, dim=-1)
    num_frames, tokens_per_frame, channels = x.shape
    if channels != heads * head_dim:
        raise ValueError
    x = x.contiguous()
    out = torch.empty_like(x)
    launch(x, w, out, num_frames, tokens_per_frame, channels)
    return out.view(num_frames, heads, tokens_per_frame, head_dim)
""",
    "groups of one step": """\
class Mixer(nn.Module):
    def __init__(self, n_groups, state):
        super().__init__()
        self.n_groups, self.state = n_groups, state
        self.proj = nn.Linear(64, n_groups * state)

    def forward(self, hidden, attention_mask):
        batch_size, seq_len, _ = hidden.shape
        b = self.proj(hidden.masked_fill(attention_mask[..., None], 0.0))
        b = b.reshape(batch_size, self.n_groups, -1)[..., None, :]
        return torch.softmax(b, dim=-1)
""",
    "a weight that is a vector": """\
class Concepts(nn.Module):
    def __init__(self, items, width):
        super().__init__()
        self.w1, self.w2 = self.made((width, width)), self.made(width)
        self.item_embedding = nn.Embedding(items, width)

    def made(self, shape):
        mat = torch.FloatTensor(np.random.normal(0, 0.02, shape))
        return nn.Parameter(mat, requires_grad=True)

    def forward(self, item_seq):
        x_u = self.item_embedding(item_seq)  # [B, N, D]
        x = torch.matmul(torch.tanh(torch.matmul(x_u, self.w1)), self.w2)
        a = F.softmax(x, dim=1)
        return torch.matmul(a.unsqueeze(2).transpose(1, 2), x_u).transpose(1, 2)
""",
    "gates cut from rows of features": """\
class Gated(nn.Module):
    def __init__(self, width, stages, feature_mask):
        super().__init__()
        self.width, self.stages, self.feature_mask = width, stages, feature_mask
        self.w_in = nn.ModuleList([nn.Linear(2 * width, 2 * width) for _ in range(stages)])
        self.w_out = nn.ModuleList([nn.Linear(2 * width, width) for _ in range(stages)])
        self.masks = nn.Parameter(torch.softmax(torch.rand(stages, width), dim=-1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = x
        for d in range(self.stages):
            feature = self.feature_mask(self.masks[d]) * x
            h_in = self.w_in[d](torch.cat([feature, h], dim=-1))
            z = torch.sigmoid(h_in[:, : self.width])
            r = torch.sigmoid(h_in[:, self.width :])
            h_out = torch.tanh(self.w_out[d](torch.cat([r * h, x], dim=-1)))
            h = (1 - z) * h + z * h_out
        return h
""",
    "a cache read in the order its writer laid it out": """\
def state_view(layer, scores):
    torch.softmax(scores, dim=-1)
    kv_cache = layer.kv_cache
    slots, heads, v_dim, k_dim = kv_cache.size()
    return kv_cache.view(slots, heads, k_dim, v_dim)
""",
}


@pytest.mark.parametrize("name", SOUND)
def test_it_is_left_alone(name: str) -> None:
    found = [one for one in lint_source(HEAD + SOUND[name], "net.py") if one.level is Level.ERROR]
    assert found == []
