"""Draws recorded attention: a heat map a head, tokens on both axes, one colour scale for all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msalint.runtime.recorder import Attention

MAX_COLUMNS = 4
"""Heads beside each other; more would make a picture too wide to read."""


class PlotsMissing(ImportError):
    """matplotlib is not there; the message says which extra brings it."""


def draw_attention(
    attentions: Sequence[Attention],
    path: str | Path,
    *,
    tokens: Sequence[str] | None = None,
    sample: int = 0,
    names: Sequence[str] | None = None,
) -> Path:
    """Write a picture of one sample's weights: the heads of a call beside each other, call below
    call, queries down, keys across.

    Raises `PlotsMissing` without matplotlib and ValueError if there is nothing to draw.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise PlotsMissing("pictures need `pip install msalint[plots]`") from error
    if not attentions:
        raise ValueError("no attention was recorded, so there is nothing to draw")
    tiles = [(row, head) for row, one in enumerate(attentions) for head in range(one.by_head.shape[1])]
    columns = min(MAX_COLUMNS, max(attention.by_head.shape[1] for attention in attentions))
    lines = _lines(attentions, columns)
    longest = max(max(attention.by_head.shape[-2:]) for attention in attentions)
    side = min(max(1.8, 0.22 * longest + 1.2), 6.0)
    figure = Figure(figsize=(side * columns + 1.6, side * len(lines) + 0.8), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(len(lines), columns, squeeze=False)
    for axes in grid.flat:
        axes.set_axis_off()
    image: Any = None
    for row, head in tiles:
        attention = attentions[row]
        title = (names or [a.module or "model" for a in attentions])[row]
        axes = grid[lines.index((row, head // columns))][head % columns]
        axes.set_axis_on()
        weights = attention.by_head[sample, head].float().numpy()
        image = axes.imshow(weights, vmin=0.0, vmax=1.0, cmap="viridis", aspect="equal", interpolation="nearest")
        axes.set_title(f"{title}\nhead {head}" if head == 0 else f"\nhead {head}", fontsize=9, loc="left")
        _label(axes, weights.shape, tokens, first=head % columns == 0)
    figure.colorbar(image, ax=grid, label="weight", shrink=0.8)
    path = Path(path)
    figure.savefig(path, dpi=120)
    return path


def _lines(attentions: Sequence[Attention], columns: int) -> list[tuple[int, int]]:
    """The lines of the picture, each a call and a count from its first head: many heads take several lines."""
    return [
        (row, line)
        for row, attention in enumerate(attentions)
        for line in range(-(-attention.by_head.shape[1] // columns))
    ]


def _label(axes: Any, shape: tuple[int, int], tokens: Sequence[str] | None, first: bool) -> None:
    """Tokens on both axes where they fit and their number is right, else every so many positions."""
    for size, axis, vertical in ((shape[1], axes.xaxis, False), (shape[0], axes.yaxis, True)):
        step = max(1, -(-size // 24))
        places = list(range(0, size, step))
        known = tokens is not None and len(tokens) == size
        labels = [str(tokens[place]) if known and tokens is not None else str(place) for place in places]
        axis.set_ticks(places, [label if len(label) <= 14 else f"{label[:13]}…" for label in labels], fontsize=7)
        if not vertical and max(len(label) for label in labels) > 2:
            axes.tick_params(axis="x", rotation=90)
    axes.set_xlabel("key", fontsize=8)
    if first:
        axes.set_ylabel("query", fontsize=8)
