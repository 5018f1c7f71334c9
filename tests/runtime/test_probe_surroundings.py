"""`probe` on what stands around attention: masks of every coding, padding ids, kernels, devices, layers, settings."""

# A call of a module is Any to the type checker.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("jaxtyping")

import attention_modules as modules  # type: ignore[import-not-found]  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch import Tensor, nn  # noqa: E402

from msalint.runtime import probe  # noqa: E402
from msalint.runtime.probing import Report  # noqa: E402


def failed(report: Report) -> dict[str, str]:
    return {finding.name: finding.rule for finding in report.failures}


def status(report: Report, name: str) -> str:
    return next(finding.status for finding in report.findings if finding.name == name)


class Variant(nn.Module):
    """Multi-head self-attention with one thing about it chosen."""

    def __init__(self, d_model: int, num_heads: int, kind: str = "plain") -> None:
        super().__init__()
        assert d_model % num_heads == 0
        self.heads, self.kind, self.rate, self.last = num_heads, kind, 0.1, None
        self.q, self.k, self.v = (nn.Linear(d_model, d_model) for _ in range(3))
        self.stack = nn.ModuleList([nn.Linear(d_model, d_model)] * 2 if kind == "shared" else [])
        self.row = (
            nn.Sequential(*[nn.Linear(d_model, d_model), nn.PReLU()] * 2) if kind == "in_a_row" else nn.Identity()
        )
        self.places = torch.randn(64, d_model)
        self.dropout = nn.Dropout(0.3 if kind.startswith("dropped") else 0.0)

    def forward(self, x: Tensor) -> Tensor:
        b, n, d = x.shape
        split = (b, n, self.heads, d // self.heads)
        if self.kind == "left_behind":
            x = x + self.places[:n].to(x.dtype)
        elif self.kind == "along_batch":
            x = x + self.places[:b, None].to(x)
        q, k, v = (layer(self.row(x)).view(split).transpose(1, 2) for layer in (self.q, self.k, self.v))
        if self.kind == "tiled":
            k, v = (t[:, :2].repeat(1, self.heads // 2, 1, 1) for t in (k, v))
        elif self.kind == "grouped":
            k, v = (t[:, :2].repeat_interleave(self.heads // 2, dim=1) for t in (k, v))
        scores = q @ k.mT * q.shape[-1] ** -0.5
        hidden = torch.ones(n, n, dtype=torch.bool, device="cpu" if self.kind == "on_cpu" else x.device)
        if self.kind in ("no_diagonal", "on_cpu", "causal"):
            scores = scores.masked_fill(hidden.triu(0 if self.kind == "no_diagonal" else 1), -1e4)
        elif self.kind == "upside_down":
            scores = scores.masked_fill(hidden.tril(-1), -1e4)
        if self.kind in ("dropped", "dropped_and_hidden", "dropped_bias"):
            noisy = self.dropout(scores.transpose(1, 2)).transpose(1, 2)  # msalint: ignore[MSA603]
            if self.kind == "dropped_and_hidden":
                noisy = noisy.masked_fill(noisy == 0, -1e9)
            scores = scores + noisy if self.kind == "dropped_bias" else noisy
        weights = scores.softmax(-1)
        if self.kind == "keeps_graph":
            self.last = weights
        if self.kind == "overwrites":
            self.rate = 0.0
        # The residual makes each token depend on itself, whatever the mask hides.
        return x + (weights @ v).transpose(1, 2).flatten(2)


@pytest.mark.parametrize(
    ("kind", "name", "rule"),
    [
        ("no_diagonal", "causality", "MSA309"),
        ("upside_down", "causality", "MSA310"),
        ("tiled", "key heads in order", "MSA705"),
        ("on_cpu", "device", "MSA315"),
        ("keeps_graph", "graph let go", "MSA803"),
        ("overwrites", "settings stay", "MSA413"),
        ("shared", "layers apart", "MSA409"),
        ("in_a_row", "layers apart", "MSA409"),
        ("left_behind", "device", "MSA708"),
        ("along_batch", "batch order", "MSA707"),
        ("dropped", "dropped scores", "MSA603"),
    ],
)
def test_each_fault_fails_its_property(kind: str, name: str, rule: str) -> None:
    assert failed(probe(Variant(24, 4, kind))).get(name) == rule


def test_the_same_module_without_the_fault_has_none_of_them() -> None:
    for kind in ("plain", "causal", "grouped"):
        assert failed(probe(Variant(24, 4, kind))) == {}
    assert status(probe(Variant(24, 4, "grouped")), "key heads in order") == "pass"
    assert status(probe(Variant(24, 4)), "batch order") == "pass"


def test_a_dropped_score_that_is_hidden_or_one_of_two_parts_is_no_fault() -> None:
    hidden = probe(Variant(24, 4, "dropped_and_hidden"))
    assert status(hidden, "dropped scores") == "pass"
    assert failed(probe(Variant(24, 4, "dropped_bias"))).get("dropped scores") is None


class OfLengths(nn.Module):
    """Hides what lies behind the length of each sample, or of each place in the batch."""

    def __init__(self, width: int, own: bool = False) -> None:
        super().__init__()
        self.qkv, self.own = nn.Linear(width, 3 * width), own

    def forward(self, x: Tensor, lengths: Any) -> Tensor:
        q, k, v = self.qkv(x).chunk(3, -1)
        ends = torch.arange(1, x.shape[0] + 1) if self.own else torch.as_tensor(lengths)
        keep = torch.arange(x.shape[1], device=x.device) < ends.to(x.device)[:, None]
        return F.scaled_dot_product_attention(q, k, v, attn_mask=keep[:, None])


def test_samples_change_places_together_with_what_is_told_of_them() -> None:
    x = torch.randn(3, 5, 12)
    told = probe(OfLengths(12), values={"x": x, "lengths": torch.tensor([3, 5, 2])})
    assert status(told, "batch order") == "pass"
    assert status(probe(OfLengths(12), values={"x": x, "lengths": [3, 5, 2]}), "batch order") == "not applicable"
    values = {"x": x, "lengths": torch.tensor([3, 5, 2])}
    assert failed(probe(OfLengths(12, own=True), values=values))["batch order"] == "MSA707"


class ToldTheDevice(nn.Module):
    def __init__(self, width: int, device: str = "cpu") -> None:
        super().__init__()
        self.places = torch.randn(64, width, device=device)
        self.qkv = nn.Linear(width, 3 * width)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x + self.places[: x.shape[1]].to(x.dtype)).chunk(3, -1)
        return F.scaled_dot_product_attention(q, k, v)


def test_a_constructor_that_is_told_the_device_leaves_nothing_behind() -> None:
    assert failed(probe(ToldTheDevice)) == {}


class Modalities(nn.Module):
    """Takes a dict of tensors by name."""

    def __init__(self, width: int, listed: bool) -> None:
        super().__init__()
        keys = {name: nn.Linear(width, width) for name in ("sound", "image")}  # msalint: ignore[MSA404]
        self.keys: Any = nn.ModuleDict(keys) if listed else keys
        self.query = nn.Parameter(torch.randn(width))

    def forward(self, inputs: dict[str, Tensor]) -> Tensor:
        keys = torch.stack([self.keys[name](inputs[name]) for name in sorted(inputs)], dim=1)
        return ((keys @ self.query).softmax(1)[..., None] * keys).sum(1)


@pytest.mark.parametrize("listed", [True, False])
def test_a_dict_of_tensors_is_taken_apart(listed: bool) -> None:
    inputs = {"sound": torch.randn(2, 12), "image": torch.randn(2, 12)}
    found = failed(probe(Modalities(12, listed), values={"inputs": inputs}))
    assert found.get("gradient flow") == (None if listed else "MSA404")
    assert bool(found) is not listed


def test_tokens_that_do_not_meet_are_told() -> None:
    report = probe(modules.Choice, settings={"fault": "heads_not_moved"})
    assert failed(report)["tokens meet"] == "MSA105"
    assert failed(report)["axes in order"] == "MSA105"


class HeadByHead(nn.Module):
    def __init__(self, width: int, heads: int, chained: bool) -> None:
        super().__init__()
        self.maps = nn.ModuleList(nn.ModuleList(nn.Linear(width, width) for _ in range(3)) for _ in range(heads))
        self.chained = chained

    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        total = torch.zeros_like(query)
        for layers in self.maps:
            q, k, v = layers[0](query), layers[1](key), layers[2](value)  # type: ignore[index]
            total = total + F.scaled_dot_product_attention(q, k, v)
            if self.chained:
                query, key, value = q, k, v
        return total


@pytest.mark.parametrize("chained", [False, True])
def test_heads_in_series_are_told_from_heads_side_by_side(chained: bool) -> None:
    found = failed(probe(HeadByHead(12, 3, chained), values={name: torch.randn(2, 5, 12) for name in MHA_NAMES}))
    assert found.get("heads side by side") == ("MSA410" if chained else None)


MHA_NAMES = ("query", "key", "value")


class OfIds(nn.Module):
    """Attention over words that hides an id of padding, or all else."""

    def __init__(self, vocab: int, width: int, pad_token_id: int = 0, inverted: bool = False) -> None:
        super().__init__()
        self.embed, self.qkv = nn.Embedding(vocab, width), nn.Linear(width, 3 * width)
        self.pad_token_id, self.inverted = pad_token_id, inverted

    def forward(self, input_ids: Tensor) -> Tensor:
        q, k, v = self.qkv(self.embed(input_ids)).chunk(3, -1)
        pad = (input_ids == self.pad_token_id)[:, None]
        scores = (q @ k.mT * q.shape[-1] ** -0.5).masked_fill(
            ~pad if self.inverted else pad, -1e4
        )  # msalint: ignore[MSA308]
        return scores.softmax(-1) @ v


def test_padding_ids_are_hidden_or_not() -> None:
    assert status(probe(OfIds), "padding ids") == "pass"
    assert failed(probe(OfIds, settings={"inverted": True}))["padding ids"] == "MSA308"


class Masked(nn.Module):
    """Takes a mask that says in its docstring, or by example, what it means."""

    def __init__(self, width: int, kind: str = "ones") -> None:
        super().__init__()
        self.qkv, self.kind = nn.Linear(width, 3 * width), kind

    def forward(self, x: Tensor, mask: Tensor | None = None, lengths: Tensor | None = None) -> Tensor:
        """mask: (batch, key), True = padding, ignored."""
        q, k, v = self.qkv(x).chunk(3, -1)
        scores = q @ k.mT * q.shape[-1] ** -0.5
        if lengths is not None:  # a second way in, which must not hide what is wrong with the first
            scores = scores.masked_fill((torch.arange(x.shape[1]) >= lengths[:, None])[:, None], -1e4)
        if mask is not None and self.kind == "ones":
            scores = scores + (mask[:, None].to(x.dtype)) * -1e4
        elif mask is not None:
            scores = scores.masked_fill(
                mask[:, None] if self.kind == "said" else ~mask[:, None], -1e4
            )  # msalint: ignore[MSA308]
        return scores.softmax(-1) @ v


def test_a_docstring_says_what_true_means() -> None:
    assert status(probe(Masked, settings={"kind": "said"}), "left padding") == "pass"
    assert failed(probe(Masked, settings={"kind": "against"}))["right padding"] == "MSA308"


def test_a_mask_given_by_example_is_passed_as_it_was() -> None:
    x, mask = torch.randn(2, 5, 6), torch.tensor([[0, 0, 0, 0, 1], [0, 0, 0, 1, 1]])
    report = probe(Masked(6), values={"x": x, "mask": mask})
    assert "1 where a key is hidden" in next(f.reason for f in report.findings if f.name == "right padding")
    assert failed(report) == {}


class TwiceMasked(nn.Module):
    def __init__(self, d_model: int, num_heads: int) -> None:
        super().__init__()
        self.qkv, self.heads = nn.Linear(d_model, 3 * d_model), num_heads

    def forward(self, x: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        keep = None if padding_mask is None else ~padding_mask[:, None, None]
        return (
            F.scaled_dot_product_attention(q, k, v, attn_mask=keep, is_causal=True).transpose(1, 2).flatten(2)
        )  # msalint: ignore[MSA504]


def test_a_mask_beside_is_causal_is_told_where_the_backend_takes_it_too() -> None:
    assert failed(probe(TwiceMasked))["kernel arguments"] == "MSA504"


def test_a_module_that_keeps_its_weights_can_be_probed_again() -> None:
    module = Variant(24, 4, "keeps_graph").train()
    module(torch.randn(2, 5, 24))
    assert failed(probe(module))["graph let go"] == "MSA803"
