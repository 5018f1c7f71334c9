"""How healthy recorded attention is, head by head: entropy, diagonality, collapse, and mass where it means nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from msalint.runtime.recorder import Attention

NEAR_UNIFORM = 0.98
"""A head whose entropy is this share of the highest possible spreads its weight evenly."""

COLLAPSED = 0.99
"""Two heads whose maps have this cosine similarity are one head."""


@dataclass(frozen=True)
class HeadHealth:
    """One head of one attention call, averaged over samples and queries.

    `entropy` is in nats; `evenness` is entropy over the log of the keys that the query may see (1: uniform).
    `diagonality`: mass within one position of the query's own. `first`: mass on the first key. `padding`: mass on keys
    that are padding, None if no padding was given. `special`: mass on given keys. `twin`: the most similar other head.
    """

    attention: int
    head: int
    entropy: float
    evenness: float
    diagonality: float
    first: float
    padding: float | None
    special: Mapping[str, float]
    twin: int | None
    similarity: float

    @property
    def remarks(self) -> list[str]:
        """What is worth a look about this head, in words."""
        found = []
        if self.evenness > NEAR_UNIFORM:
            found.append("near uniform")
        if self.twin is not None and self.similarity > COLLAPSED:
            found.append(f"same map as head {self.twin}")
        if self.padding is not None and self.padding > 1e-6:
            found.append(f"{self.padding:.1%} on padding")
        if self.first > 0.9:
            found.append("all on the first token")
        return found


def head_health(
    attentions: Sequence[Attention], keep: Tensor | None = None, special: Mapping[str, Sequence[int]] | None = None
) -> list[HeadHealth]:
    """The health of every head of every call. `keep` (batch, key) is True for real keys, `special` names positions."""
    return [
        health
        for index, attention in enumerate(attentions)
        for health in _of_one(index, attention.by_head.double(), keep, special or {})
    ]


def _of_one(index: int, weights: Tensor, keep: Tensor | None, special: Mapping[str, Sequence[int]]) -> list[HeadHealth]:
    batch, heads, queries, keys = weights.shape
    rows = torch.ones(batch, queries, dtype=torch.bool)
    padding: Tensor | None = None
    if keep is not None and tuple(keep.shape) == (batch, keys):
        padding = ~keep.cpu()
        if queries == keys:
            # A padded query's weights are of no use to anyone.
            rows = keep.cpu()
    entropy = -(weights * weights.clamp_min(1e-300).log()).sum(-1)
    seen = (weights > 0).sum(-1).clamp_min(2).double().log()
    distance = torch.arange(keys)[None, :] - torch.arange(queries)[:, None] - (keys - queries)
    near = (weights * (distance.abs() <= 1)).sum(-1)
    twins = _twins(weights, rows)
    return [
        HeadHealth(
            attention=index,
            head=head,
            entropy=_mean(entropy[:, head], rows),
            evenness=_mean(entropy[:, head] / seen[:, head], rows),
            diagonality=_mean(near[:, head], rows),
            first=_mean(weights[:, head, :, 0], rows),
            padding=None if padding is None else _mean((weights[:, head] * padding[:, None]).sum(-1), rows),
            special={name: _mean(weights[:, head][..., list(at)].sum(-1), rows) for name, at in special.items()},
            twin=twins[head][0],
            similarity=twins[head][1],
        )
        for head in range(heads)
    ]


def _mean(values: Tensor, rows: Tensor) -> float:
    return float(values[rows].mean()) if bool(rows.any()) else float("nan")


def _twins(weights: Tensor, rows: Tensor) -> list[tuple[int | None, float]]:
    """For each head the other one whose map, less the mean map of all heads' uniform part, points the same way."""
    heads = weights.shape[1]
    if heads < 2:
        return [(None, 0.0)] * heads
    maps = weights.transpose(0, 1).masked_select(rows[None, :, :, None]).view(heads, -1)
    maps = maps / maps.norm(dim=1, keepdim=True).clamp_min(1e-12)
    similarity = (maps @ maps.T).fill_diagonal_(-1.0)
    best = similarity.max(dim=1)
    return [(int(index), float(value)) for index, value in zip(best.indices, best.values, strict=True)]


def health_table(heads: Sequence[HeadHealth], names: Sequence[str]) -> str:
    """A line a head. `names` are the names of the attention calls."""
    special = list(heads[0].special) if heads else []
    header = ["attention", "head", "entropy", "evenness", "diagonal", "first", "padding", *special, "twin", "remarks"]
    rows = [header, *(_cells(health, names[health.attention], special) for health in heads)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(header))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def _cells(health: HeadHealth, name: str, special: Sequence[str]) -> list[str]:
    return [
        name,
        str(health.head),
        f"{health.entropy:.3f}",
        f"{health.evenness:.2f}",
        f"{health.diagonality:.2f}",
        f"{health.first:.2f}",
        "-" if health.padding is None else f"{health.padding:.3f}",
        *(f"{health.special[place]:.2f}" for place in special),
        "-" if health.twin is None else f"{health.twin} ({health.similarity:.2f})",
        ", ".join(health.remarks),
    ]
