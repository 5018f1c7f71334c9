"""MSA205 scaled-twice: queries or keys are scaled, and the scores are scaled again."""

from __future__ import annotations

from fractions import Fraction

from msalint.facts import Factor, Scaling, SdpaCalled, Softmaxed
from msalint.rule import Diagnostic, Fix, Iterator, Level, Meta, Rule, Safety, append_argument, on, step

ROOT = Fraction(-1, 2)


class ScaledTwice(Rule):
    """
    ## What it does
    Reports scores that got the scale two times: on the queries (or the keys) and again on the scores, on queries and
    keys in full, or on the queries before F.scaled_dot_product_attention and its kin, which scale by themselves.

    ## Why is this bad?
    The product of both is 1 / d_k. The scores of wide heads shrink as 1 / sqrt(d_k), softmax evens out, and attention
    turns into an average of all keys. Weights that were trained with one scale give other outputs.

    ## Example
    ```python
    import torch.nn.functional as F
    from torch import nn


    class Attention(nn.Module):
        def __init__(self, width, heads, d_k):
            super().__init__()
            self.heads, self.d_k = heads, d_k
            self.scale = d_k ** -0.5
            self.qkv = nn.Linear(width, 3 * heads * d_k)

        def forward(self, x):
            B, L, _ = x.shape
            q, k, v = self.qkv(x).view(B, L, 3, self.heads, self.d_k).permute(2, 0, 3, 1, 4).unbind(0)
            q = q * self.scale
            return F.scaled_dot_product_attention(q, k, v)
    ```

    ## Use instead
    ```python
    import torch.nn.functional as F
    from torch import nn


    class Attention(nn.Module):
        def __init__(self, width, heads, d_k):
            super().__init__()
            self.heads, self.d_k = heads, d_k
            self.scale = d_k ** -0.5
            self.qkv = nn.Linear(width, 3 * heads * d_k)

        def forward(self, x):
            B, L, _ = x.shape
            q, k, v = self.qkv(x).view(B, L, 3, self.heads, self.d_k).permute(2, 0, 3, 1, 4).unbind(0)
            q = q * self.scale
            return F.scaled_dot_product_attention(q, k, v, scale=1.0)
    ```

    ## Fix safety
    Unsafe: a model that was trained with both scales depends on them. The fix of a fused call passes `scale=1.0`.

    ## Known limits
    Two factors that make one scale (`d_k ** -0.25` on each side, a factor that cancels another) and factors that are
    not known (learned gains, layer indices, temperatures) are left alone.

    ## References
    - [F.scaled_dot_product_attention](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html)
    """

    meta = Meta(code="MSA205", name="scaled-twice", level=Level.WARNING, since="0.1.0", yields_to=("MSA207",))

    @on(Softmaxed)
    def scores_scaled_twice(self, fact: Softmaxed) -> Iterator[Diagnostic]:
        scales = _scales(fact.scaling)
        if len(scales) != 2:
            return
        first, second = scales
        yield self.report(
            second.at or fact.at,
            f"the scores are scaled by 1 / sqrt({fact.scaling.head_dim}) a second time here, which makes it"
            f" 1 / {fact.scaling.head_dim}: softmax spreads its weight evenly over all keys",
            trail=step(first.at, "scaled for the first time here"),
            help="scale the queries or the scores, not both",
        )

    @on(SdpaCalled)
    def scaled_before_the_kernel(self, fact: SdpaCalled) -> Iterator[Diagnostic]:
        scales = _scales(fact.scaling) if fact.scaling is not None else []
        if len(scales) != (2 if fact.scale_given else 1):
            return
        again = "by the scale that it is given" if fact.scale_given else "by 1 / sqrt(d_k) as it does by default"
        yield self.report(
            fact.at,
            f"the queries or keys are scaled already, and this call scales their products again, {again}: softmax"
            " spreads its weight evenly over all keys",
            trail=step(scales[0].at, "scaled for the first time here"),
            help="tell the call not to scale, or leave the queries as they are",
            fix=_told_not_to_scale(fact),
        )


def _scales(scaling: Scaling) -> list[Factor]:
    """The factors that are each a whole scale, 1 / sqrt of a width; none where others stand beside them."""
    if scaling.unknown or scaling.constant != 1.0:
        return []
    powers = [factor for factor in scaling.factors if factor.value is not None and factor.value.powers]
    whole = all({power for _, power in factor.value.powers} == {ROOT} for factor in powers if factor.value is not None)
    return powers if whole else []


def _told_not_to_scale(fact: SdpaCalled) -> Fix | None:
    name = {"sdpa": "scale", "flex": "scale", "xformers": "scale", "flash": "softmax_scale"}.get(fact.api)
    if name is None or fact.scale_given:
        return None
    return Fix(f"pass `{name}=1.0`", (append_argument(fact.at, f"{name}=1.0"),), Safety.UNSAFE)
