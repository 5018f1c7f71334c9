"""MSA211 softmax-wrong-axis: softmax normalises one axis, the values are summed over another."""

from __future__ import annotations

import re

from msalint.facts import Weighted, axis_name
from msalint.rule import Diagnostic, Fix, Iterator, Level, Meta, Rule, Safety, on, replace, step

ON_PURPOSE = re.compile(r"slot|compet|capsule|routing|router|sinkhorn|dual.?softmax", re.IGNORECASE)
DIM = re.compile(r"(?<=dim=)-?\d+|(?<=\()-?\d+(?=\))|(?<=, )-?\d+(?=\))")


class SoftmaxWrongAxis(Rule):
    """
    ## What it does
    Reports a softmax whose axis is not the one that the product with the values sums over: the queries, the heads or
    the batch are normalised, and the keys are summed.

    ## Why is this bad?
    The weights of one query no longer sum to 1 over the keys. Queries (or heads, or samples) compete for each key
    instead: a token's output grows and shrinks with the other tokens, and over the batch axis samples leak into each
    other. Every shape fits, so nothing raises.

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
            scores = q @ k.transpose(-2, -1) * self.d_k ** -0.5
            return torch.softmax(scores, dim=1) @ v
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
    Unsafe: every output changes.

    ## Known limits
    Competition over queries that is meant (slot attention, capsule routing) is known by the division by the weights'
    sum afterwards, or by the names around. Where softmax ran over the keys and the product then sums over the queries,
    the product is at fault: that is key-transposed-wrongly (MSA106).

    ## References
    - [torch.softmax](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.softmax.html)
    - [Object-Centric Learning with Slot Attention](https://arxiv.org/abs/2006.15055)
    """

    meta = Meta(
        code="MSA211",
        name="softmax-wrong-axis",
        level=Level.ERROR,
        since="0.1.0",
        needs=("softmax", "Softmax"),
        yields_to=("MSA106", "MSA212"),
    )

    @on(Weighted)
    def sums_over_another_axis(self, fact: Weighted) -> Iterator[Diagnostic]:
        product = fact.softmax.scores.traits.product
        if fact.contracted_normalised is not False or fact.renormalised or fact.swapped:
            return
        if product is None and fact.normalised != "1":
            return  # classes of queries mixed into a map: nothing shows that these are weights of attention
        around = (*fact.purpose, fact.softmax.at.text, fact.weights_site.text, fact.values_site.text)
        if any(map(ON_PURPOSE.search, around)):
            return
        yield self.report(
            fact.softmax.built_at or fact.softmax.at,
            f"this softmax normalises {fact.normalised}, but the values are summed over {fact.contracted}: the weights"
            " of a query do not sum to 1 over its keys",
            trail=step(product.at if product else None, "scores formed here")
            + step(fact.at, f"values summed over {fact.contracted} here"),
            help=f"normalise the axis of {fact.contracted}",
            fix=_over_contracted(fact),
        )


def _over_contracted(fact: Weighted) -> Fix | None:
    """The number of the contracted axis, counted from the end, in the place of the one that is written."""
    axes = [axis_name(axis) for axis in fact.softmax.scores.axes]
    site = fact.softmax.built_at or fact.softmax.at
    text = site.text
    if axes.count(fact.contracted) != 1 or len(DIM.findall(text)) != 1:
        return None
    dim = str(axes.index(fact.contracted) - len(axes))
    return Fix(f"normalise axis {dim}", (replace(site, DIM.sub(dim, text)),), Safety.UNSAFE)
