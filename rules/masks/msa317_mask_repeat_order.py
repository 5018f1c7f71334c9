"""MSA317 mask-repeat-order: a mask of each sample is tiled for the heads, and samples and heads change places."""

from __future__ import annotations

import re

from msalint.facts import MaskTiled
from msalint.rule import Diagnostic, Fix, Iterator, Level, Meta, Rule, Safety, on, replace, step

SAID = {
    "heads": "{copies} copies one after another give the order (heads, batch), where (batch, heads) is taken: heads get"
    " the mask of another sample",
    "folded": "the mask has its own {samples} samples and is copied once more for each of them: it fits a batch of one"
    " only",
}
REPEATED = re.compile(r"(?P<mask>.+)\.repeat\((?P<heads>[^(),]+), *1, *1\)", re.DOTALL)


class MaskRepeatOrder(Rule):
    """
    ## What it does
    Reports a mask (batch, query, key) that is copied for the heads with `repeat(heads, 1, 1)` (or tile, cat, or a
    pattern that puts the heads first), and then meets scores whose first axis is batch * heads: nn.MultiheadAttention's
    attn_mask of three axes, or scores folded by hand. Also a mask copied batch * heads times though it has a batch.

    ## Why is this bad?
    `repeat` lays whole copies one after another: sample 0, sample 1, sample 0, sample 1. The scores come as sample 0
    with all its heads, then sample 1. Every shape fits, and most heads hide the keys of another sample; a batch of one
    shows nothing. Copied batch * heads times, a mask of several samples has too many of everything and raises.

    ## Example
    ```python
    from torch import nn


    class Block(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.heads = heads
            self.attn = nn.MultiheadAttention(width, heads, batch_first=True)

        def forward(self, x, mask):
            batch, length, _ = mask.shape
            return self.attn(x, x, x, attn_mask=mask.repeat(self.heads, 1, 1), need_weights=False)[0]
    ```

    ## Use instead
    ```python
    from torch import nn


    class Block(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.heads = heads
            self.attn = nn.MultiheadAttention(width, heads, batch_first=True)

        def forward(self, x, mask):
            batch, length, _ = mask.shape
            return self.attn(x, x, x, attn_mask=mask.repeat_interleave(self.heads, dim=0), need_weights=False)[0]
    ```

    ## Fix safety
    Unsafe: every output of a batch with several masks changes, as it must.

    ## Known limits
    The copies must be known to be as many as the heads. One mask for all samples is left alone, expanded or not, and so
    are heads folded in front of the batch (`torch.cat(q.split(d, dim=2), dim=0)`), for which tiling is right.

    ## References
    - [nn.MultiheadAttention](https://docs.pytorch.org/docs/stable/generated/torch.nn.MultiheadAttention.html)
    - [torch.repeat_interleave](https://docs.pytorch.org/docs/stable/generated/torch.repeat_interleave.html)
    """

    meta = Meta(code="MSA317", name="mask-repeat-order", level=Level.ERROR, since="0.1.0")

    @on(MaskTiled)
    def tiled(self, fact: MaskTiled) -> Iterator[Diagnostic]:
        yield self.report(
            fact.at,
            SAID[fact.order].format(copies=fact.copies, samples=fact.samples),
            trail=step(fact.used_at, f"taken as (batch * heads, query, key) by {fact.api} here"),
            help="repeat each sample's mask in place: mask.repeat_interleave(heads, dim=0)",
            fix=_interleaved(fact),
        )


def _interleaved(fact: MaskTiled) -> Fix | None:
    """`repeat_interleave` in the place of `repeat`, where the copies are as many as the heads."""
    found = REPEATED.fullmatch(fact.at.text) if fact.order == "heads" else None
    if found is None:
        return None
    mended = f"{found['mask']}.repeat_interleave({found['heads'].strip()}, dim=0)"
    return Fix("repeat each mask in place", (replace(fact.at, mended),), Safety.UNSAFE)
