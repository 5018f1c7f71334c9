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
    "axis in numpy's word": """\
class Stripes(nn.Module):
    def __init__(self, d_model, heads, window=8):
        super().__init__()
        self.window, self.heads = window, heads
        self.query = nn.Linear(d_model, d_model)
        self.key = nn.Linear(d_model, d_model)

    def forward(self, x):
        batch, length, width = x.shape
        q = self.query(x).reshape(batch, length, self.heads, -1).permute(0, 2, 3, 1)
        k = self.key(x).reshape(batch, length, self.heads, -1).permute(0, 2, 3, 1)
        return torch.einsum("bhdws,bhds->bhdws", self.skewed(q), k).softmax(3)

    def skewed(self, q):
        q = q.unsqueeze(4).repeat(1, 1, 1, 1, self.window).transpose(3, 4)
        shape = list(q.shape)[:-2] + [-1]
        q = q.reshape(shape)
        rest = torch.zeros_like(q[:, :, :, :1]).repeat(1, 1, 1, self.window)
        shape = shape[:-1] + [self.window, -1]
        return torch.cat((q, rest), axis=-1).reshape(shape)[:, :, :, :, :-1]


def run():
    return Stripes(d_model=100, heads=2)(torch.randn(10, 13, 100))
""",
    "truths multiplied by numbers of unknown kind": """\
class Among(nn.Module):
    def forward(self, q, k, v, ids: torch.Tensor, keep: torch.Tensor):
        same = ids[:, None] == ids[None, :]
        both = torch.einsum("qb,bt->qbt", same, keep)
        scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
        scores = scores + (1.0 - both) * torch.finfo(scores.dtype).min
        return scores.softmax(dim=-1) @ v
""",
    "truths counted": """\
from einops import reduce


class Scaled(nn.Module):
    def __init__(self, correction=1):
        super().__init__()
        self.correction: int = correction

    def forward(self, q, k, v, seen: torch.BoolTensor, ids: torch.Tensor):
        same = ids[..., None] == ids[..., None, :]
        count = reduce(same * reduce(seen, "... seq dim -> ... 1 seq", "sum"), "... one two -> ... one 1", "sum")
        scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
        return scores.softmax(dim=-1) @ (v / (count - self.correction))
""",
    "samples that attend to one another": """\
from einops import rearrange


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        assert width % heads == 0
        self.heads, self.head_dim = heads, width // heads
        self.q, self.k, self.v = (nn.Linear(width, width) for _ in range(3))

    def forward(self, states, mask):
        length = states.shape[1]

        def split(x):
            return rearrange(x, "b s (h d) -> b h s d", h=self.heads, s=length, d=self.head_dim)

        q, k, v = split(self.q(states)), split(self.k(states)), split(self.v(states))
        scores = torch.matmul(q, k.transpose(3, 2)) * self.head_dim**-0.5
        scores += mask
        return rearrange(nn.functional.softmax(scores, dim=-1) @ v, "b h s d -> b s (h d)")


class Between(nn.Module):
    \"\"\"Attention between the samples of a batch, within their groups.\"\"\"

    def __init__(self, width, heads, blocks):
        super().__init__()
        self.blocks = blocks
        self.attention = Attention(width, heads)

    def forward(self, states: torch.Tensor, batch_ids: torch.Tensor):
        batch = batch_ids.shape[0]
        mask = torch.zeros(batch, batch).masked_fill(batch_ids[:, None] != batch_ids[None, :], -1e4)
        mask = rearrange(mask, "q b -> 1 1 q b")
        for block in self.blocks:
            states = block(states)[0]
        turned = rearrange(states, "batch time d -> time batch d")
        return rearrange(self.attention(turned, mask), "time batch d -> batch time d")
""",
    "a view of a decoder's steps, the first of one token": """\
class Steps(nn.Module):
    def __init__(self, width, heads, out, likelihoods, decoder):
        super().__init__()
        self.transformer = nn.Transformer(width, heads, custom_decoder=decoder)
        self.head = nn.Linear(width, out * likelihoods)
        self.out, self.likelihoods = out, likelihoods

    def forward(self, past):
        src = past.permute(1, 0, 2)
        return self.decoded(self.transformer.encoder(src), src[-1:, :, :])[:, -1]

    def decoded(self, memory, tgt):
        steps = tgt.shape[0]
        out = self.head(self.transformer.decoder(tgt=tgt, memory=memory)).permute(1, 0, 2)
        return out.view(-1, steps, self.out, self.likelihoods)
""",
    "weights cleared by the mask that multiplied their scores": """\
def masked_softmax(scores: torch.Tensor, mask: torch.BoolTensor, values):
    weights = torch.softmax(scores * mask, dim=-1) * mask
    return (weights / (weights.sum(dim=-1, keepdim=True) + 1e-13)) @ values


def attend(q, k, v, mask: torch.BoolTensor):
    return masked_softmax(q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5, mask, v)
""",
    "layers handed over in a dictionary": """\
from package import install


class Bridge(nn.Module):
    def __init__(self, parts):
        super().__init__()
        self.parts = parts


class Model(nn.Module):
    def __init__(self, width, original):
        super().__init__()
        self.bridge = Bridge({"q": nn.Linear(width, width)})
        install(self, original)
        self.attention = nn.MultiheadAttention(width, 4, batch_first=True)

    def forward(self, x):
        return self.attention(x, x, x)[0]
""",
    "a list of layers without weights": """\
class Average(nn.Module):
    def __init__(self, kernel_size):
        super().__init__()
        self.kernel_size = kernel_size
        self.pool = nn.AvgPool1d(kernel_size, stride=1)

    def forward(self, x):
        return self.pool(x.permute(0, 2, 1)).permute(0, 2, 1)


class Trends(nn.Module):
    def __init__(self, kernels, width):
        super().__init__()
        self.averages = [Average(kernel) for kernel in kernels]
        self.attention = nn.MultiheadAttention(width, 4, batch_first=True)

    def forward(self, x):
        return self.attention(x, x, x)[0] + sum(average(x) for average in self.averages)
""",
    "many layers that are not alike": """\
class Attended(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.qkv = nn.Conv2d(channels, 3 * channels, 1)

    def forward(self, x):
        b, c, h, w = x.shape
        q, k, v = self.qkv(x).view(b, 3, c, h * w).unbind(1)
        weights = (q.transpose(1, 2) @ k * c**-0.5).softmax(dim=-1)
        return (weights @ v.transpose(1, 2)).transpose(1, 2).reshape(b, c, h, w)


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(16, 512, 1)
        self.blocks = nn.ModuleList(
            [Attended(512), *[nn.Conv2d(512, 512, 3, padding=1)] * 3, nn.Conv2d(512, 512, 1), nn.Conv2d(512, 512, 1)]
            + [nn.Conv2d(512, 256, 1), nn.Conv2d(256, 256, 1), nn.Conv2d(256, 128, 1), nn.Conv2d(128, 128, 1)]
        )
        self.last = nn.Conv2d(128, 3, 3, padding=1)

    def forward(self, x):
        x = self.first(x)
        for i, block in enumerate(self.blocks):
            x = block(x)
        return self.last(x)
""",
    "positions picked by a list": """\
class Boxes(nn.Module):
    def __init__(self, bins):
        super().__init__()
        self.bins = bins

    def forward(self, q, k, v, found):
        boxes, _ = found.split((4 * self.bins, 1), dim=-1)
        b, n, c = boxes.shape
        boxes = boxes.view(b, n, 4, -1)[:, :, [1, 0, 3, 2]].contiguous()
        bias = boxes.view(b, n, c).mean(-1)
        return ((q @ k.transpose(-2, -1)) * q.shape[-1] ** -0.5 + bias[:, None, None]).softmax(dim=-1) @ v
""",
    "lengths of vectors": """\
def environment(coordinates, nlist, q, k, v):
    b, n, m = nlist.shape
    difference = coordinates.view(b, n, m, 3)
    length = torch.linalg.norm(difference, dim=-1, keepdim=True)
    both = torch.cat([1 / length, difference / length], dim=-1)
    both = both * (1 / length) + both.view(b, n, m, 4)
    weights = (q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5).softmax(dim=-1)
    return weights @ v, both
""",
    "features and labels side by side": """\
class Inference(nn.Module):
    def __init__(self, x_dim, y_dim, z_dim):
        super().__init__()
        self.y_dim = y_dim
        self.labels = nn.Linear(x_dim, y_dim)
        self.encoder_layer = nn.Linear(x_dim + y_dim, z_dim)

    def forward(self, x):
        y = torch.softmax(self.labels(x).view(-1, self.y_dim), dim=-1)
        attended = (x @ x.transpose(0, 1)).softmax(dim=-1) @ x
        return self.encoder_layer(torch.cat((x, y), dim=1)), attended
""",
    "memory of no size yet": """\
class Memory(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.register_buffer("seen", torch.zeros(0, width))
        self.register_buffer("values", torch.zeros(0, width))

    def learn(self, seen, values):
        self.seen, self.values = seen, values

    def forward(self, x, labels):
        scores = x @ self.seen.transpose(0, 1) * x.shape[-1] ** -0.5
        return scores.softmax(dim=-1) @ labels
""",
    "samples looked up by their distance": """\
class Retrieval(nn.Module):
    def __init__(self, into, width):
        super().__init__()
        self.encoder = nn.Linear(into, width)

    def forward(self, x, others, targets):
        batch_size, into = others.shape
        distances = torch.cdist(self.encoder(x), self.encoder(others))
        return torch.mm(F.softmax(-distances, dim=-1), targets)
""",
    "rows of a table that attend to each other": """\
from einops import rearrange


class Rows(nn.Module):
    def __init__(self, columns, width, heads):
        super().__init__()
        assert columns * width % heads == 0
        self.columns, self.heads, self.d_k = columns, heads, columns * width // heads
        self.q, self.k, self.v = (nn.Linear(columns * width, columns * width) for _ in range(3))

    def forward(self, table):
        x = rearrange(table, "b n d -> 1 b (n d)")
        q, k, v = (rearrange(layer(x), "o m (h d) -> o h m d", h=self.heads) for layer in (self.q, self.k, self.v))
        weights = torch.softmax(torch.einsum("ohsd,ohld->ohsl", q, k) / self.d_k**0.5, dim=-1)
        out = rearrange(torch.einsum("ohsl,ohld->ohsd", weights, v), "o h s d -> o s (h d)")
        return rearrange(out, "1 b (n d) -> b n d", n=self.columns)
""",
    "a docstring that names the axes in another order than a layer takes them": """\
class Glimpses(nn.Module):
    def __init__(self, embed_dim, hidden_dim):
        super().__init__()
        self.lstm = nn.LSTM(embed_dim, hidden_dim)
        self.score = nn.Linear(hidden_dim, 1)

    def forward(self, inputs):
        '''inputs: [embed_dim x batch_size x length]'''
        states = self.lstm(inputs.transpose(0, 1).contiguous())[0].permute(1, 2, 0)
        weights = torch.softmax(self.score(states.transpose(1, 2)).squeeze(-1), dim=1)
        return torch.bmm(states, weights.unsqueeze(2)).squeeze(2)
""",
    "a docstring that leaves out the axis of the mask that stands for the heads": """\
def attend(q, k, v, attention_mask, heads: int):
    '''
    q, k, v: [batch_size, seq_len, width]
    attention_mask: [batch_size, seq_len, seq_len]
    '''
    b, s, width = q.shape
    q, k, v = (t.reshape(b, s, heads, width // heads).transpose(1, 2) for t in (q, k, v))
    scores = q @ k.transpose(-2, -1) / (width // heads) ** 0.5
    scores = scores * attention_mask - 10000.0 * (1.0 - attention_mask)
    return torch.softmax(scores, dim=-1) @ v
""",
    "a rate of dropout that is the caller's": """\
class Mixer(nn.Module):
    def forward(self, q, k, v, bias, dropout_p=0.0):
        weights = torch.softmax(q @ k.transpose(-2, -1) / q.size(-1) ** 0.5 + bias, dim=-1)
        if dropout_p > 0.0:
            weights = F.dropout(weights, p=dropout_p)
        return weights @ v
""",
    "frames of one film, without a batch": """\
class SelfAttention(nn.Module):
    def __init__(self, width, d_k):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(width, d_k), nn.Linear(width, d_k), nn.Linear(width, d_k)

    def forward(self, x):
        scores = torch.matmul(self.q(x), self.k(x).transpose(1, 0))
        return torch.softmax(scores * self.q.out_features**-0.5, dim=-1) @ self.v(x)
""",
    "members shared out among clusters, and divided by their number": """\
def clustered(centres, members, centre_mask, member_mask):
    rows = members.view(members.shape[0], members.shape[1] * members.shape[2])
    agreement = centres.view(centres.shape[0], centres.shape[1] * centres.shape[2]) @ rows.T
    share = F.softmax(1e3 * agreement, dim=0)
    share *= torch.einsum("mr,nr->mn", centre_mask, member_mask)
    number = torch.sum(share, dim=-1) + 1.0
    total = torch.einsum("nm,mrc->nrc", share, members) + centres
    return total / number[:, None, None]
""",
    "samples picked once for each of their own positions": """\
def bins(features, q, k, v):
    b, anchors, _ = features.shape
    features = features.view(b, anchors, 4, 16).contiguous().view(b, anchors, 64)
    sample = torch.zeros_like(features[..., 0], dtype=torch.long)
    weights = torch.softmax(q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5, dim=-1)
    return weights @ v, features[sample].view(-1, 16)
""",
    "an encoder that is kept from the module": """\
class Frozen(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.encoder = [nn.Linear(width, width)]
        self.attention = nn.MultiheadAttention(width, 4, batch_first=True)

    def forward(self, x):
        x = self.encoder[0](x)
        return self.attention(x, x, x)[0]
""",
    "rows that are hidden whole get a number again": """\
def permutation(scores: torch.Tensor, mask: torch.BoolTensor, values):
    scores = scores @ scores.transpose(1, 2) * scores.shape[-1] ** -0.5
    scores = scores.masked_fill(mask[:, :, None] | mask[:, None, :], -np.inf)
    scores = scores.masked_fill(mask[:, :, None] & mask[:, None, :], 1.0)
    return torch.softmax(scores, dim=-1) @ values
""",
    "a grid in the order of its arguments": """\
def grid_of(B, H, W):
    grid = torch.meshgrid(*[torch.linspace(-1 + 1 / n, 1 - 1 / n, n) for n in (B, H, W)])
    return torch.stack((grid[2], grid[1]), dim=-1).reshape(B, H * W, 2)


def attend(q, k, v, B, H, W):
    return (q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5).softmax(dim=-1) @ v, grid_of(B, H, W)
""",
    "corners less their middle": """\
class Corners(nn.Module):
    def forward(self, q, k, v, dims):
        corners = torch.from_numpy(np.stack(np.unravel_index(np.arange(8), [2] * 3), axis=1))
        corners = corners[[0, 1, 3, 2, 4, 5, 7, 6]] - dims.new_tensor([0.5, 0.5, 0])
        boxes = dims.view([-1, 1, 3]) * corners.reshape([1, 8, 3])
        return (q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5).softmax(dim=-1) @ v, boxes
""",
    "blocks of a triangle further out": """\
def reordered(scores: torch.Tensor, topk, values):
    scores = scores @ scores.transpose(1, 2) * scores.shape[-1] ** -0.5
    buckets = scores.shape[1]
    mask = torch.zeros(scores.shape).bool()
    i, j = torch.triu_indices(buckets, buckets)
    mask[:, i, j + topk] = True
    scores.masked_fill_(mask, -1e9)
    return scores.softmax(dim=-1) @ values
""",
}


@pytest.mark.parametrize("name", SOUND)
def test_it_is_left_alone(name: str) -> None:
    found = [one for one in lint_source(HEAD + SOUND[name], "net.py") if one.level is Level.ERROR]
    assert found == []
