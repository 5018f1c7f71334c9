"""MSA203 scale-without-root: scores over d_k itself, not over its square root."""

from __future__ import annotations

import re
from collections.abc import Iterable

from msalint.facts import Scaling, SdpaCalled, Softmaxed
from msalint.rule import Diagnostic, Iterator, Level, Meta, Rule, Site, on, step

ON_PURPOSE = re.compile(r"(?i:(?<![a-z])mup|\bmuTransfer|µP|μP|maximal update)|\bmu(?=[A-Z_])|\bMu(?=[A-Z])")


class ScaleWithoutRoot(Rule):
    """
    ## What it does
    Reports scores that are divided by d_k where its square root belongs: `/ d_k`, `1 / d_k`, `d_k ** -1`, on the
    scores, the queries, or as the `scale=` of F.scaled_dot_product_attention.

    ## Why is this bad?
    The scores of wide heads shrink as 1 / sqrt(d_k): softmax evens out, and attention turns into an average of all
    keys.

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
            scores = q @ k.transpose(-2, -1) / self.d_k
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
    The root is shown, never written: a trained model depends on the scale that it was trained with.

    ## Known limits
    muP scales by 1 / d_k on purpose; it is known by the names and docstrings around. Normalised queries and keys, and
    scores with a further factor, are left alone.

    ## References
    - [Attention Is All You Need](https://arxiv.org/abs/1706.03762), section 3.2.1
    - [Tensor Programs V](https://arxiv.org/abs/2203.03466), for the scale of muP
    """

    meta = Meta(
        code="MSA203", name="scale-without-root", level=Level.WARNING, since="0.1.0", yields_to=("MSA205", "MSA207")
    )

    @on(Softmaxed)
    def scores_over_width(self, fact: Softmaxed) -> Iterator[Diagnostic]:
        if not fact.unit:
            formed = fact.product.at if fact.product is not None else None
            yield from self._over_width(fact.at, fact.scaling, formed, fact.context)

    @on(SdpaCalled)
    def kernel_over_width(self, fact: SdpaCalled) -> Iterator[Diagnostic]:
        if fact.scaling is not None and fact.scale_given:
            yield from self._over_width(fact.at, fact.scaling, fact.at, fact.purpose)

    def _over_width(
        self, at: Site, scaling: Scaling, formed: Site | None, context: Iterable[str]
    ) -> Iterator[Diagnostic]:
        if scaling.unknown or scaling.constant != 1.0 or scaling.head_power != -1 or scaling.width_power != 0:
            return
        powers = [factor for factor in scaling.factors if factor.value is not None and factor.value.powers]
        if len(powers) != 1 or any(map(ON_PURPOSE.search, context)):
            return
        yield self.report(
            powers[0].made_at or powers[0].at or at,
            f"the scores are divided by {scaling.head_dim}, not by its square root: they shrink as the heads get wider,"
            " and softmax spreads its weight evenly over all keys",
            trail=step(formed, "scores formed here"),
            help=f"divide by sqrt({scaling.head_dim})",
        )
