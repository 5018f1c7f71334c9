"""MSA401 missing-divisibility-check: a head split that works only where the heads divide the width, unchecked."""

from __future__ import annotations

from msalint.facts import ReliesOnDivision
from msalint.rule import Diagnostic, Iterator, Level, Meta, Rule, on, step


class MissingDivisibilityCheck(Rule):
    """
    ## What it does
    Reports `d_model // num_heads` (or `d_model // head_dim`) where a head split relies on the division having no
    remainder, and no assert, raise or other proof on the way says so.

    ## Why is this bad?
    The module accepts a width that its heads don't divide. The first batch then fails with a message about a view
    that is far from the sizes that caused it; where a `-1` stands in for the sequence it may even pass, with the
    columns of different tokens mixed.

    ## Example
    ```python
    import torch.nn.functional as F
    from torch import nn


    class Attention(nn.Module):
        def __init__(self, d_model, num_heads):
            super().__init__()
            self.num_heads = num_heads
            self.d_k = d_model // num_heads
            self.qkv = nn.Linear(d_model, 3 * d_model)

        def forward(self, x):
            B, L, _ = x.shape
            q, k, v = self.qkv(x).view(B, L, 3, self.num_heads, self.d_k).permute(2, 0, 3, 1, 4).unbind(0)
            return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
    ```

    ## Use instead
    ```python
    import torch.nn.functional as F
    from torch import nn


    class Attention(nn.Module):
        def __init__(self, d_model, num_heads):
            super().__init__()
            if d_model % num_heads:
                raise ValueError(f"num_heads={num_heads} does not divide d_model={d_model}")
            self.num_heads = num_heads
            self.d_k = d_model // num_heads
            self.qkv = nn.Linear(d_model, 3 * d_model)

        def forward(self, x):
            B, L, _ = x.shape
            q, k, v = self.qkv(x).view(B, L, 3, self.num_heads, self.d_k).permute(2, 0, 3, 1, 4).unbind(0)
            return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
    ```

    ## Fix safety
    The check is shown, never written: where it belongs, and whether an error or another width is the answer, is for
    the author to say.

    ## Known limits
    A check that the file does not show (in a caller of another package, in a configuration file) is not seen.
    Projections that are as wide as `heads * head_dim` need none; einops and nn.MultiheadAttention check by themselves.
    A view that leaves the width of a head to `-1` divides nothing, and is left alone.

    ## References
    - [torch.nn.MultiheadAttention](https://docs.pytorch.org/docs/stable/generated/torch.nn.MultiheadAttention.html)
    """

    meta = Meta(
        code="MSA401",
        name="missing-divisibility-check",
        level=Level.WARNING,
        since="0.1.0",
        every_path=True,
        yields_to=("MSA402",),
    )

    @on(ReliesOnDivision)
    def nothing_checks(self, fact: ReliesOnDivision) -> Iterator[Diagnostic]:
        if fact.proved:
            return
        width, heads = fact.numerator, fact.denominator
        yield self.report(
            fact.at,
            f"nothing checks that {heads} divides {width}: where it does not, splitting the heads raises (or mixes"
            " tokens) at the first batch, far from the sizes that caused it",
            trail=step(fact.used_at, f"this split relies on {width} having no remainder"),
            help=f"`if {width} % {heads}: raise ValueError(...)` where the sizes come in",
        )
