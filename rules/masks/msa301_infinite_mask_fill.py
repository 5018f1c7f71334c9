"""MSA301 infinite-mask-fill: scores are filled with -inf where a whole row may be hidden."""

from __future__ import annotations

import math

from msalint.facts import MaskAdded, MaskFilled
from msalint.rule import Diagnostic, Fix, Iterator, Level, Meta, Rule, Safety, on, replace, step

NAN = "a row whose keys are all hidden holds nothing but -inf, and its softmax is NaN"
FINITE = "fill with the least number of the dtype, torch.finfo(scores.dtype).min, or mend the empty rows"


class InfiniteMaskFill(Rule):
    """
    ## What it does
    Reports scores that are filled with -inf (by masked_fill, torch.where, an index, or an additive mask) under a mask
    that may hide every key of a row: padding, segments, a causal mask joined with either, a mask handed in.

    ## Why is this bad?
    The softmax of a row of -inf is 0 / 0, NaN. An empty sample, a query that is padding itself, or a prompt padded on
    the left is enough; the NaN then spreads through the residual stream and the loss to every weight.

    ## Example
    ```python
    import torch
    from torch import nn


    class Attention(nn.Module):
        def __init__(self, width, heads, d_k):
            super().__init__()
            self.heads, self.d_k = heads, d_k
            self.qkv = nn.Linear(width, 3 * heads * d_k)

        def forward(self, x, mask):
            B, L, _ = x.shape
            q, k, v = self.qkv(x).view(B, L, 3, self.heads, self.d_k).permute(2, 0, 3, 1, 4).unbind(0)
            scores = q @ k.transpose(-2, -1) * self.d_k ** -0.5
            scores = scores.masked_fill(mask == 0, float("-inf"))
            return torch.softmax(scores, dim=-1) @ v
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

        def forward(self, x, mask):
            B, L, _ = x.shape
            q, k, v = self.qkv(x).view(B, L, 3, self.heads, self.d_k).permute(2, 0, 3, 1, 4).unbind(0)
            scores = q @ k.transpose(-2, -1) * self.d_k ** -0.5
            scores = scores.masked_fill(mask == 0, torch.finfo(scores.dtype).min)
            return torch.softmax(scores, dim=-1) @ v
    ```

    ## Fix safety
    Unsafe: an empty row becomes the mean of all its values instead of NaN. Other rows do not change.

    ## Known limits
    A causal mask that keeps its diagonal, a mask that always keeps some key (the token itself, a summary token, a
    sink), and rows that are mended afterwards (nan_to_num, a fill of isnan or of the empty rows) are left alone. So is
    F.scaled_dot_product_attention, which gives zeros for such rows. A mask from outside may be known never to empty a
    row; nothing in the file says so.

    ## References
    - [torch.finfo](https://docs.pytorch.org/docs/stable/type_info.html)
    - [NaN from fully masked rows, pytorch#41508](https://github.com/pytorch/pytorch/issues/41508)
    """

    meta = Meta(code="MSA301", name="infinite-mask-fill", level=Level.WARNING, since="0.1.0", yields_to=("MSA302",))

    @on(MaskFilled)
    def filled(self, fact: MaskFilled) -> Iterator[Diagnostic]:
        if fact.fill != -math.inf or fact.empty_rows is not True or fact.guarded or not fact.attention:
            return
        yield self.report(
            fact.at,
            NAN,
            trail=step(fact.made_at, "the mask is made here") + step(fact.softmaxed_at, "softmax taken here"),
            help=FINITE,
            fix=_finite(fact),
        )

    @on(MaskAdded)
    def added(self, fact: MaskAdded) -> Iterator[Diagnostic]:
        values = (fact.cells.inside, fact.cells.outside) if fact.cells is not None else ()
        if fact.fill != -math.inf or fact.empty_rows is not True or fact.guarded or any(map(_is_nan, values)):
            return
        trail = step(fact.at, "added to the scores here") if fact.made_at is not None else ()
        yield self.report(
            fact.made_at or fact.at, NAN, trail=trail + step(fact.softmaxed_at, "softmax taken here"), help=FINITE
        )


def _is_nan(value: float | None) -> bool:
    return value is None or math.isnan(value)


def _finite(fact: MaskFilled) -> Fix | None:
    if fact.fill_site is None or fact.scores_site is None or not fact.scores_site.text.isidentifier():
        return None
    least = f"torch.finfo({fact.scores_site.text}.dtype).min"
    return Fix(f"fill with {least}", (replace(fact.fill_site, least),), Safety.UNSAFE, imports=("import torch",))
