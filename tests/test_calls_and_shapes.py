"""What calls and broadcasting make of shapes, as `msalint shapes` draws it."""

from __future__ import annotations

from msalint.flow.drawing import draw

HEAD = """\
import torch
import torch.nn.functional as F


"""


def _axes(text: str, target: str, name: str) -> str:
    """What is drawn for the last value of this name in a function."""
    lines = [line.split(maxsplit=2) for line in draw(HEAD + text, "net.py", target).text.splitlines()]
    return next(words[2] for words in reversed(lines) if len(words) > 2 and words[1] == name)


def test_a_spread_shape_is_so_many_arguments() -> None:
    text = """\
def turned(rows, columns):
    return torch.zeros(columns, rows)


def scores(x):
    b, n, d = x.shape
    out = turned(*x.shape[1:])
    return F.softmax(x @ x.transpose(1, 2), dim=-1), out
"""
    assert _axes(text, "scores", "out").startswith("(d, n)")


def test_sizes_of_unknown_number_are_no_single_argument() -> None:
    text = """\
def stacked(*sizes):
    return torch.stack([torch.arange(9) for n in sizes])


def scores(x, y):
    out = stacked(*y.shape)
    return F.softmax(x @ x.transpose(1, 2), dim=-1), out
"""
    assert not draw(HEAD + text, "net.py", "scores").text.count("(1, 9)")


def test_a_mask_of_unknown_shape_stays_so_where_it_is_multiplied() -> None:
    text = """\
def scores(emb, lengths):
    b, c, t = emb.shape
    mask = torch.unsqueeze(torch.arange(9).unsqueeze(0) < lengths.unsqueeze(1), 1)
    x = emb * mask
    b, c, t = x.shape
    seen = mask
    return F.softmax(x @ x.transpose(1, 2), dim=-1)
"""
    assert _axes(text, "scores", "seen").startswith("(...,)")


def test_axis_is_dim() -> None:
    text = """\
def scores(x):
    b, n, d = x.shape
    both = torch.cat([x, x], axis=1)
    total = both.sum(axis=2, keepdims=True)
    return F.softmax(x @ x.transpose(1, 2), dim=-1), total
"""
    assert _axes(text, "scores", "both").startswith("(b, 2*n, d)")
    assert _axes(text, "scores", "total").startswith("(b, 2*n, 1)")


def test_a_list_that_a_loop_fills_holds_more_than_its_round_put_in() -> None:
    text = """\
class Stack(torch.nn.Module):
    def __init__(self, depth):
        super().__init__()
        width = 64
        self.layers = torch.nn.ModuleList()
        for _ in range(depth):
            self.layers.append(torch.nn.Linear(width, 2 * width))
            width = 2 * width

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return F.softmax(x @ x.transpose(1, 2), dim=-1)
"""
    assert "128" not in draw(HEAD + text, "net.py", "Stack").text


def test_an_ellipsis_of_unknown_axes_is_the_same_in_all_operands() -> None:
    text = """\
def attend(q, k, v):
    scores = torch.einsum("...id,...jd->...ij", q, k) * q.shape[-1] ** -0.5
    mixed = torch.einsum("...ij,...jd->...id", scores.softmax(-1), v)
    return mixed
"""
    assert _axes(text, "attend", "scores").startswith("(..., q.shape[-2], v.shape[-2])")
    assert _axes(text, "attend", "mixed").startswith("(..., q.shape[-2], v.shape[-1])")


def test_a_field_that_a_dataclass_works_out_is_not_its_default() -> None:
    text = """\
from dataclasses import dataclass


@dataclass
class Settings:
    width: int = 4
    inner: int = -1

    def __post_init__(self):
        self.inner = 2 * self.width


class Gates(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.settings = Settings(width=8)

    def forward(self, x):
        gates = torch.zeros(3, self.settings.inner)
        return F.softmax(x @ x.transpose(1, 2), dim=-1), gates
"""
    assert _axes(text, "Gates", "gates").startswith("(3, inner)")
