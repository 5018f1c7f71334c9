"""MSA321 fill-on-expanded: one sample's mask is written into memory that all samples share."""

from __future__ import annotations

from msalint.facts import SharedWritten
from msalint.rule import Diagnostic, Iterator, Level, Meta, Rule, on, step


class FillOnExpanded(Rule):
    """
    ## What it does
    Reports a write in place into a tensor that was expanded: `mask[i, length:] = False` after
    `mask = torch.ones(n).expand(batch, n)`, or `masked_fill_` with another mask for each sample.

    ## Why is this bad?
    `expand` copies nothing: along the axis that it adds, all entries are one place in memory. What is written for one
    sample is written for all, so that each gets the union of all fills: the padding of the shortest sample.

    ## Example
    ```python
    import torch


    def keep_mask(lengths, longest, device):
        mask = torch.ones(longest, dtype=torch.bool, device=device).expand(len(lengths), longest)
        for i, length in enumerate(lengths):
            mask[i, length:] = False
        return mask


    def attend(q, k, v, lengths):
        mask = keep_mask(lengths, k.size(-2), k.device)[:, None, None]
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    ```

    ## Use instead
    ```python
    import torch


    def keep_mask(lengths, longest, device):
        mask = torch.ones(longest, dtype=torch.bool, device=device).repeat(len(lengths), 1)
        for i, length in enumerate(lengths):
            mask[i, length:] = False
        return mask


    def attend(q, k, v, lengths):
        mask = keep_mask(lengths, k.size(-2), k.device)[:, None, None]
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    ```

    ## Fix safety
    None is offered: the copies belong where the tensor is expanded (`.clone()`, `repeat`), or the fill out of place.

    ## Known limits
    The expansion must be seen. A write that is the same for all samples is left alone: torch refuses some of those and
    does others.

    ## References
    - [torch.Tensor.expand](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.expand.html)
    """

    meta = Meta(code="MSA321", name="fill-on-expanded", level=Level.ERROR, since="0.1.0", needs=("expand", "broadcast"))

    @on(SharedWritten)
    def written_for_all(self, fact: SharedWritten) -> Iterator[Diagnostic]:
        mends = fact.part and fact.expanded_at is not None
        what = f"along {fact.axis} these are one place in memory" if mends else f"along {fact.axis} memory is shared"
        yield self.report(
            (fact.expanded_at or fact.at) if mends else fact.at,
            f"{what}: what is written for one is written for all",
            trail=step(fact.at, "written to here") if mends else step(fact.expanded_at, "expanded here"),
            help="make copies: `.clone()` behind the expand, or `repeat`" if mends else "fill out of place, or clone",
        )
