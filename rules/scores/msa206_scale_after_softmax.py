"""MSA206 scale-after-softmax: the weights are divided by the root of d_k, not the scores."""

from __future__ import annotations

from fractions import Fraction

from msalint.facts import ScaledAfterSoftmax
from msalint.rule import Diagnostic, Iterator, Level, Meta, Rule, on, step


class ScaleAfterSoftmax(Rule):
    """
    ## What it does
    Reports attention weights that are divided by the square root of d_k, and a context that is, where its scores were
    not scaled.

    ## Why is this bad?
    After softmax the scale does nothing of what it is for: the scores went in unscaled, so nearly all weight is on one
    key and the gradients vanish. The weights then add up to 1 / sqrt(d_k) instead of 1, and so the output is too small.

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
            weights = torch.softmax(q @ k.transpose(-2, -1), dim=-1)
            return weights / self.d_k ** 0.5 @ v
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
            weights = torch.softmax(q @ k.transpose(-2, -1) / self.d_k ** 0.5, dim=-1)
            return weights @ v
    ```

    ## Fix safety
    There is no fix: the factor has to go to another line, and a trained model depends on where it is.

    ## Known limits
    A factor that is not a root of the head width or the model width (a gate, a mean over the keys) is left alone, and
    so is a context that is scaled down where the scores were scaled as well.

    ## References
    - [Attention Is All You Need](https://arxiv.org/abs/1706.03762), section 3.2.1
    """

    meta = Meta(code="MSA206", name="scale-after-softmax", level=Level.ERROR, since="0.1.0", yields_to=("MSA207",))

    @on(ScaledAfterSoftmax)
    def too_late(self, fact: ScaledAfterSoftmax) -> Iterator[Diagnostic]:
        scaling = fact.scaling
        if scaling.constant != 1.0 or {scaling.head_power, scaling.width_power} != {Fraction(-1, 2), 0}:
            return
        if fact.on == "context" and fact.scaled_before:
            return
        size = scaling.head_dim if scaling.head_power else scaling.width
        scores = "which has scaled scores already" if fact.scaled_before else "and the scores go in unscaled"
        yield self.report(
            fact.at,
            f"this divides the {fact.on} by sqrt({size}) after softmax, {scores}: the weights add up to less than 1,"
            f" and the output is sqrt({size}) times too small",
            trail=step(fact.softmax.at, "normalised here"),
            help="scale the scores, before softmax",
        )
