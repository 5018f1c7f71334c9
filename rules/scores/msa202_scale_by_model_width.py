"""MSA202 scale-by-model-width: scores over the root of the model width, though each head is narrower."""

from __future__ import annotations

from fractions import Fraction

from msalint.facts import Scaling, SdpaCalled, Softmaxed
from msalint.rule import Diagnostic, Iterator, Level, Meta, Rule, Site, on, step


class ScaleByModelWidth(Rule):
    """
    ## What it does
    Reports scores that are scaled by the square root of the model width though heads are split, so that the product
    of query and key runs over the narrower width of one head; the `scale=` of F.scaled_dot_product_attention too.

    ## Why is this bad?
    The spread of the scores is that of one head's d_k products. Divided by the root of the whole width they come out
    sqrt(heads) times too small: softmax is flat to begin with, and flatter the more heads there are.

    ## Example
    ```python
    import torch
    from torch import nn


    class Attention(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            assert width % heads == 0
            self.heads, self.d_k = heads, width // heads
            self.scale = width ** -0.5
            self.qkv = nn.Linear(width, 3 * width)

        def forward(self, x):
            B, L, _ = x.shape
            q, k, v = self.qkv(x).view(B, L, 3, self.heads, self.d_k).permute(2, 0, 3, 1, 4).unbind(0)
            scores = q @ k.transpose(-2, -1) * self.scale
            return torch.softmax(scores, dim=-1) @ v
    ```

    ## Use instead
    ```python
    import torch
    from torch import nn


    class Attention(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            assert width % heads == 0
            self.heads, self.d_k = heads, width // heads
            self.scale = self.d_k ** -0.5
            self.qkv = nn.Linear(width, 3 * width)

        def forward(self, x):
            B, L, _ = x.shape
            q, k, v = self.qkv(x).view(B, L, 3, self.heads, self.d_k).permute(2, 0, 3, 1, 4).unbind(0)
            scores = q @ k.transpose(-2, -1) * self.scale
            return torch.softmax(scores, dim=-1) @ v
    ```

    ## Fix safety
    The width to use is shown, never written: a trained model depends on the scale that it was trained with.

    ## Known limits
    With one head the model width is d_k, and nothing is reported; nor is one head over the pixels of an image, whose
    queries and keys have channels of their own. Neither is anything with a further factor, known or
    not. Where the width of a head is a parameter of its own, the two are taken to differ.

    ## References
    - [Attention Is All You Need](https://arxiv.org/abs/1706.03762), section 3.2.1
    """

    meta = Meta(
        code="MSA202", name="scale-by-model-width", level=Level.WARNING, since="0.1.0", yields_to=("MSA205", "MSA207")
    )

    @on(Softmaxed)
    def scores_by_width(self, fact: Softmaxed) -> Iterator[Diagnostic]:
        if fact.pixels and not fact.multi_head:
            return
        formed = fact.product.at if fact.product is not None else None
        yield from self._by_width(fact.at, fact.scaling, formed)

    @on(SdpaCalled)
    def kernel_by_width(self, fact: SdpaCalled) -> Iterator[Diagnostic]:
        if fact.scaling is not None and fact.scale_given:
            yield from self._by_width(fact.at, fact.scaling, fact.at)

    def _by_width(self, at: Site, scaling: Scaling, formed: Site | None) -> Iterator[Diagnostic]:
        width, head_dim = scaling.width, scaling.head_dim
        if width is None or head_dim is None or scaling.unknown or scaling.constant != 1.0:
            return
        if scaling.width_power != Fraction(-1, 2) or scaling.head_power != 0:
            return
        powers = [factor for factor in scaling.factors if factor.value is not None and factor.value.powers]
        last = powers[-1] if powers else None
        place = (last.made_at or last.at if last else None) or at
        yield self.report(
            place,
            f"the scores are divided by sqrt({width}), the model width, though each sums over the {head_dim} columns of"
            " one head: they come out too small by the root of the number of heads",
            trail=step(formed, f"scores formed here, over {head_dim}"),
            help=f"divide by the root of the head width, {head_dim}",
        )
