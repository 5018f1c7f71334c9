"""MSA107 view-reorders-axes: a view or reshape names the axes it is given in another order."""

from __future__ import annotations

import re

from msalint.facts import Viewed
from msalint.rule import Diagnostic, Fix, Iterator, Level, Meta, Rule, Safety, insert_after, on, replace, step

ON_PURPOSE = re.compile(r"shift|skew|scrambl|shuffl|interleav", re.I)


class ViewReordersAxes(Rule):
    """
    ## What it does
    Reports a `view` or `reshape` whose sizes are those of the tensor's own axes in another order, by the names that the
    code itself gave them: `(batch, seq, width)` viewed as `(seq, batch, width)`, `(b, c, t, h, w)` reshaped to
    `(b * t, c, h * w)`. Splitting and merging heads has rules of its own (MSA102, MSA103).

    ## Why is this bad?
    A view renames what lies in memory; it moves nothing. The sizes are right and nothing is raised, but what the code
    takes for one axis is a run along another: frames are cut across channels, samples are laced into one sequence.

    ## Example
    ```python
    import torch
    from torch import nn


    class Encoder(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.attention = nn.MultiheadAttention(width, heads)

        def forward(self, x):
            batch, seq, width = x.shape
            x = x.reshape(seq, batch, width)
            return self.attention(x, x, x, need_weights=False)[0]
    ```

    ## Use instead
    ```python
    import torch
    from torch import nn


    class Encoder(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.attention = nn.MultiheadAttention(width, heads)

        def forward(self, x):
            batch, seq, width = x.shape
            x = x.transpose(0, 1)
            return self.attention(x, x, x, need_weights=False)[0]
    ```

    ## Fix safety
    Unsafe: the numbers change, and weights trained behind the reordered view belong to it.

    ## Known limits
    Sizes that the code gives no name (`x.size(1)`, a number, a sum) prove no order. The relative shift of
    Transformer-XL, which reads a padded tensor with two axes exchanged on purpose, is left alone, and so is code that
    calls itself a shift, a skew or a shuffle.

    ## References
    - [torch.Tensor.view](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.view.html)
    - [torch.permute](https://docs.pytorch.org/docs/stable/generated/torch.permute.html)
    """

    meta = Meta(
        code="MSA107",
        name="view-reorders-axes",
        level=Level.ERROR,
        since="0.1.0",
        needs=("view", "reshape"),
    )

    @on(Viewed)
    def renames_without_moving(self, fact: Viewed) -> Iterator[Diagnostic]:
        if fact.scramble is None or fact.kind != "other" or not fact.named or ON_PURPOSE.search(" ".join(fact.purpose)):
            return
        before = ", ".join(atom.name for atom in fact.scramble.before)
        after = ", ".join(atom.name for axis in fact.scramble.after for atom in axis)
        yield self.report(
            fact.at,
            f"this {fact.op} of {fact.source} to {fact.target} names {after} where memory holds {before}, and moves"
            " nothing, so elements of different axes are mixed up",
            trail=step(fact.moved_at, f"axes were last moved by this {fact.moved_by or 'operation'}"),
            help=f"move the axes with `permute` or `transpose`, and use {fact.op} only to split and merge them",
            fix=_moved_first(fact),
        )


def _moved_first(fact: Viewed) -> Fix | None:
    """`x.view(seq, batch, d)` -> `x.transpose(0, 1)`; `x.reshape(b * t, c)` -> `x.transpose(1, 2).reshape(...)`."""
    swapped = [i for i, place in enumerate(fact.order) if place != i]
    if not swapped:
        return None
    names = swapped if len(swapped) == 2 else fact.order
    move = f".{'transpose' if len(swapped) == 2 else 'permute'}({', '.join(map(str, names))})"
    if fact.target.count(",") == fact.source.count(",") and "*" not in fact.target:
        return Fix(f"`{move}` in its place", (replace(fact.at, fact.receiver.text + move),), Safety.UNSAFE)
    move += ".contiguous()" if fact.op.startswith("view") else ""
    return Fix(f"insert `{move}` before the {fact.op}", (insert_after(fact.receiver, move),), Safety.UNSAFE)
