"""MSA204 scale-inverted: scores times the root of d_k where they belong over it."""

from __future__ import annotations

import re
from fractions import Fraction

from msalint.facts import Factor, Scaling, SdpaCalled, Softmaxed
from msalint.rule import Diagnostic, Fix, Iterator, Level, Meta, Rule, Safety, Site, on, replace, step

ROOT = Fraction(1, 2)
LAST = re.compile(r"(.*[\w)\]]) ?([*/]) ?((?:math\.)?[\w.]+(?:\([\w.,() -]*\))?(?: ?\*\* ?-?[\d.]+)?)", re.DOTALL)


class ScaleInverted(Rule):
    """
    ## What it does
    Reports scores of queries and keys that are multiplied by sqrt(d_k), or divided by d_k ** -0.5, and a  of
    F.scaled_dot_product_attention that is the root itself.

    ## Why is this bad?
    The scale is there to take the spread of the products, sqrt(d_k), back to 1. Turned round it makes it d_k: softmax
    puts all weight on one key, and no gradient comes back through it.

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
            scores = q @ k.transpose(-2, -1) * self.d_k ** 0.5
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
            scores = q @ k.transpose(-2, -1) / self.d_k ** 0.5
            return torch.softmax(scores, dim=-1) @ v
    ```

    ## Fix safety
    Unsafe: a model that was trained with the faulty scale depends on it.

    ## Known limits
    Normalised queries and keys, whose products shrink as they get wider, may well be multiplied by the root, and
    queries that undo the scale of a fused kernel too: both are left alone. So is anything with a further factor.

    ## References
    - [Attention Is All You Need](https://arxiv.org/abs/1706.03762), section 3.2.1
    """

    meta = Meta(code="MSA204", name="scale-inverted", level=Level.ERROR, since="0.1.0", yields_to=("MSA207",))

    @on(Softmaxed)
    def scores_times_root(self, fact: Softmaxed) -> Iterator[Diagnostic]:
        if fact.attention and not fact.unit and not fact.bounded:
            yield from self._times_root(fact.at, fact.scaling, fact.product.at if fact.product else None)

    @on(SdpaCalled)
    def kernel_times_root(self, fact: SdpaCalled) -> Iterator[Diagnostic]:
        sides = (fact.query, fact.key)
        unit = any(side is None or side.traits.unit for side in sides)
        if fact.scaling is not None and fact.scale_given and not unit:
            yield from self._times_root(fact.at, fact.scaling, fact.at)

    def _times_root(self, at: Site, scaling: Scaling, formed: Site | None) -> Iterator[Diagnostic]:
        if scaling.unknown or scaling.constant != 1.0 or {scaling.head_power, scaling.width_power} != {ROOT, 0}:
            return
        size = scaling.head_dim if scaling.head_power else scaling.width
        factors = [factor for factor in scaling.factors if factor.value is not None and factor.value.powers]
        place = (factors[-1].at if factors else None) or at
        yield self.report(
            place,
            f"this makes the scores sqrt({size}) times larger, where the scale should make them smaller: softmax puts"
            " all weight on one key and its gradient vanishes",
            trail=step(formed, "scores formed here"),
            help=f"divide by sqrt({size})",
            fix=_turned(factors),
        )


def _turned(factors: list[Factor]) -> Fix | None:
    """`scores * root` -> `scores / root`, and the other way round."""
    site = factors[0].at if len(factors) == 1 else None
    parts = LAST.fullmatch(site.text) if site is not None else None
    if site is None or parts is None:
        return None
    left, sign, right = parts.groups()
    turned = "*" if sign == "/" else "/"
    return Fix(f"`{turned}` in place of `{sign}`", (replace(site, f"{left} {turned} {right}"),), Safety.UNSAFE)
