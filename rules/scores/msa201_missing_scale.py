"""MSA201 missing-scale: softmax over products of queries and keys that nothing scales."""

from __future__ import annotations

import re

from msalint.facts import Softmaxed
from msalint.rule import Diagnostic, Fix, Iterator, Level, Meta, Rule, Safety, insert_after, on, step
from msalint.values import Product

ON_PURPOSE = re.compile(
    r"unscaled|without (a |any )?scal|\bt5|T5|temperature|\bmup\b|luong|bahdanau|pointer|retriev|non.?local",
    re.IGNORECASE,
)
LEFT = re.compile(r"(?:[\w.]*(?:matmul|bmm)\(\s*|[\w.]*einsum\(\s*(['\"])[^'\"]*\1\s*,\s*)?([A-Za-z_]\w*)\s*[@,]")


class MissingScale(Rule):
    """
    ## What it does
    Reports softmax over products of queries and keys where neither the queries, nor the keys, nor the scores were
    scaled, in attention with heads and in self-attention with projections of its own.

    ## Why is this bad?
    The product of two vectors of d_k independent entries spreads as sqrt(d_k). Unscaled, the scores of wide heads are
    so far apart that softmax puts nearly all weight on one key, where its gradient is nearly zero.

    ## Example
    ```python
    import torch
    from torch import nn


    class Attention(nn.Module):
        def __init__(self, width, heads, d_k):
            super().__init__()
            self.heads, self.d_k = heads, d_k
            self.qkv = nn.Linear(width, 3 * heads * d_k)

        def forward(self, x):
            B, L, _ = x.shape
            q, k, v = self.qkv(x).view(B, L, 3, self.heads, self.d_k).permute(2, 0, 3, 1, 4).unbind(0)
            scores = q @ k.transpose(-2, -1)
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

        def forward(self, x):
            B, L, _ = x.shape
            q, k, v = self.qkv(x).view(B, L, 3, self.heads, self.d_k).permute(2, 0, 3, 1, 4).unbind(0)
            scores = q @ k.transpose(-2, -1) * self.d_k ** -0.5
            return torch.softmax(scores, dim=-1) @ v
    ```

    ## Fix safety
    Unsafe: a model that was trained without the scale has learned to live without it.

    ## Known limits
    Any factor counts as a scale, a learned or configured one too. Attention that has none by design is left alone:
    additive scores, normalised queries and keys, a bias by position on the scores (T5), pointers, retrieval, one head
    over the pixels of an image (SAGAN), products with no projection, and code whose names or docstrings say so. A
    function that is handed its queries is read with its callers' arguments; on its own it is reported only where it
    is handed the mask too, and so is all there is of the attention.

    ## References
    - [Attention Is All You Need](https://arxiv.org/abs/1706.03762), section 3.2.1
    - [Exploring the Limits of Transfer Learning](https://arxiv.org/abs/1910.10683), where T5 leaves the scale out
    """

    meta = Meta(
        code="MSA201",
        name="missing-scale",
        level=Level.WARNING,
        since="0.1.0",
        needs=("softmax", "Softmax"),
        every_path=True,
    )

    @on(Softmaxed)
    def nothing_scales(self, fact: Softmaxed) -> Iterator[Diagnostic]:
        product, scaling = fact.product, fact.scaling
        if product is None or not fact.attention:
            return
        if not (fact.multi_head or fact.same_source or _whole_function(fact, product)):
            return
        if not scaling.none_at_all or fact.scaled_late or fact.unit or fact.bounded or not _settled(fact, product):
            return
        if fact.biased or (fact.pixels and not fact.multi_head) or any(map(ON_PURPOSE.search, fact.context)):
            return
        yield self.report(
            product.at,
            f"these scores go into softmax unscaled: they spread as sqrt({scaling.head_dim or 'd_k'}), so with wide"
            " heads nearly all weight falls on one key and the gradients vanish",
            trail=step(fact.at, "normalised here"),
            help="multiply the scores by `d_k ** -0.5`, d_k being the width of one head",
            fix=_scaled(product),
        )


def _settled(fact: Softmaxed, product: Product) -> bool:
    """Whether it is known where queries and keys come from, so that no caller can have scaled them."""
    projected = product.left.traits.projection is not None and product.right.traits.projection is not None
    return projected or fact.reached or _whole_function(fact, product)


def _whole_function(fact: Softmaxed, product: Product) -> bool:
    """A function of its own that is handed queries, keys and a mask, and makes weights of them: nobody else scales."""
    handed = not product.left.traits.projection and not product.right.traits.projection
    return handed and not fact.reached and bool(fact.scores.traits.masks)


def _scaled(product: Product) -> Fix | None:
    """`q @ kT` -> `q @ kT * q.size(-1) ** -0.5`, where the left operand has a name and ends in d_k."""
    left = LEFT.match(product.at.text)
    if left is None or not product.left.axes or product.left.axes[-1] != product.contracted[0]:
        return None
    factor = f" * {left.group(2)}.size(-1) ** -0.5"
    return Fix("scale the scores by `d_k ** -0.5`", (insert_after(product.at, factor),), Safety.UNSAFE)
