"""MSA311 mask-shape: a mask lies on other axes than its own."""

from __future__ import annotations

from msalint.facts import MaskMisplaced
from msalint.rule import Diagnostic, Iterator, Level, Meta, Rule, on, step


class MaskShape(Rule):
    """
    ## What it does
    Reports masks that, lined up from the right with (batch, head, query, key), lie on other axes than their own: a
    (batch, seq) mask on (batch, head, query, key), a (batch, query, key) mask without the axis for heads, and padding
    that was laid on the queries instead of the keys.

    ## Why is this bad?
    Masks broadcast. Where the sizes differ torch raises; where they happen to agree (one sample, as many samples as
    heads or tokens) or the axis is 1, it hides the wrong keys without a word. Padding on the queries hides nothing that
    matters: real tokens go on attending to padded ones.

    ## Example
    ```python
    import torch
    from torch import nn


    class Attention(nn.Module):
        def __init__(self, width, heads, d_k):
            super().__init__()
            self.heads, self.d_k = heads, d_k
            self.qkv = nn.Linear(width, 3 * heads * d_k)

        def forward(self, x, padding):
            B, L, _ = x.shape
            batch, keys = padding.shape
            q, k, v = self.qkv(x).view(B, L, 3, self.heads, self.d_k).permute(2, 0, 3, 1, 4)
            scores = q @ k.transpose(-2, -1) * self.d_k**-0.5
            scores = scores.masked_fill(padding, -1e4)
            return (torch.softmax(scores, dim=-1) @ v).transpose(1, 2).flatten(2)
    ```

    ## Use instead
    ```python
    import torch
    from torch import nn


    class Attention(nn.Module):
        def __init__(self, width, heads, d_k):
            super().__init__()
            self.heads, self.d_k = heads, d_k
            self.qkv = nn.Linear(width, 3 * heads * d_k)

        def forward(self, x, padding):
            B, L, _ = x.shape
            batch, keys = padding.shape
            q, k, v = self.qkv(x).view(B, L, 3, self.heads, self.d_k).permute(2, 0, 3, 1, 4)
            scores = q @ k.transpose(-2, -1) * self.d_k**-0.5
            scores = scores.masked_fill(padding[:, None, None, :], -1e4)
            return (torch.softmax(scores, dim=-1) @ v).transpose(1, 2).flatten(2)
    ```

    ## Fix safety
    There is no automatic fix: where the axes of size 1 belong depends on what the mask says.

    ## Known limits
    The axes of mask and scores must be known, the mask's batch by name or as the scores' own; a docstring alone
    does not tell how many axes a mask has. A (batch, seq) mask given to `F.scaled_dot_product_attention` is
    sdpa-padding-mask (MSA507). Padding on the queries beside a mask on the keys
    is harmless; together with a causal mask it is a warning, since padding at the end is hidden by that.

    ## References
    - [Broadcasting semantics](https://docs.pytorch.org/docs/stable/notes/broadcasting.html)
    """

    meta = Meta(code="MSA311", name="mask-shape", level=Level.ERROR, since="0.1.0")

    @on(MaskMisplaced)
    def on_other_axes(self, fact: MaskMisplaced) -> Iterator[Diagnostic]:
        if fact.what == "query":
            yield self.report(
                fact.made_at or fact.mask_site,
                f"this padding comes to lie on the queries ({fact.mask} on {fact.onto}): padded keys are not hidden,"
                " and real tokens attend to them",
                trail=step(fact.at, "put on the scores here"),
                help="let the padding run along the last axis: `mask[:, None, None, :]`",
                level=Level.WARNING if fact.causal else None,
            )
        elif not (fact.api == "sdpa" and fact.two_axes):
            yield self.report(
                fact.mask_site,
                f"the mask's {fact.axis} lies on {fact.under} ({fact.mask} on {fact.onto}): this raises, or hides the"
                " wrong keys where the sizes happen to agree",
                help="give the mask an axis of size 1 for each axis that it lacks: `mask[:, None, None, :]` for"
                " (batch, key), `mask[:, None]` for (batch, query, key)",
            )
