"""MSA306 mask-after-softmax: weights are masked after their softmax and not made to sum to 1 again."""

from __future__ import annotations

from msalint.facts import MaskedAfterSoftmax
from msalint.rule import Diagnostic, Iterator, Level, Meta, Rule, on, step


class MaskAfterSoftmax(Rule):
    """
    ## What it does
    Reports weights that are multiplied by a mask of keys, or filled with 0 under one, after the softmax, where the
    scores were not masked before it and nothing divides the weights by their new sum.

    ## Why is this bad?
    The hidden keys have had their share already: they stand in the denominator of the softmax. The weights that are
    left sum to less than 1, by an amount that depends on the hidden keys, so that padding (or the future) still shows
    in the size of the output.

    ## Example
    ```python
    import torch


    def causal_attention(q, k, v):
        n = q.size(-2)
        weights = torch.softmax(q @ k.transpose(-2, -1) / q.size(-1) ** 0.5, dim=-1)
        weights = weights * torch.tril(torch.ones(n, n, device=q.device))
        return weights @ v
    ```

    ## Use instead
    ```python
    import torch


    def causal_attention(q, k, v):
        n = q.size(-2)
        future = torch.ones(n, n, dtype=torch.bool, device=q.device).triu(1)
        scores = q @ k.transpose(-2, -1) / q.size(-1) ** 0.5
        return torch.softmax(scores.masked_fill(future, float("-inf")), dim=-1) @ v
    ```

    ## Fix safety
    There is no fix: the mask has to move in front of the softmax.

    ## Known limits
    Dropout by hand, gates, masks of heads or of whole queries, and weights that are never given to values are left
    alone.

    ## References
    - [torch.softmax](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.softmax.html)
    """

    meta = Meta(code="MSA306", name="mask-after-softmax", level=Level.WARNING, since="0.1.0")

    @on(MaskedAfterSoftmax)
    def weights_masked(self, fact: MaskedAfterSoftmax) -> Iterator[Diagnostic]:
        if fact.masked_before:
            return
        yield self.report(
            fact.at,
            "the weights are masked after softmax and not divided by what is left: they sum to less than 1, and the"
            " hidden keys still show in how much less",
            trail=step(fact.softmax.at, "softmax over all keys, the hidden ones too")
            + step(fact.weighted_at, "the weights meet the values here"),
            help="mask the scores before softmax",
        )
