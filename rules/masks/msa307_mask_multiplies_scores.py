"""MSA307 mask-multiplies-scores: scores are multiplied by a 0/1 mask before softmax."""

from __future__ import annotations

from msalint.facts import MaskMultiplied
from msalint.rule import Diagnostic, Iterator, Level, Meta, Rule, on, step


class MaskMultipliesScores(Rule):
    """
    ## What it does
    Reports scores that are multiplied by a mask of zeros and ones (tril of the scores is the same) before softmax.

    ## Why is this bad?
    The hidden scores become 0, and exp(0) is 1: softmax gives the hidden keys about the average weight, and more than
    that where the other scores are negative. Nothing is masked.

    ## Example
    ```python
    import torch


    def causal_attention(q, k, v):
        n = q.size(-2)
        scores = q @ k.transpose(-2, -1) / q.size(-1) ** 0.5
        scores = scores * torch.tril(torch.ones(n, n, device=q.device))
        return torch.softmax(scores, dim=-1) @ v
    ```

    ## Use instead
    ```python
    import torch


    def causal_attention(q, k, v):
        n = q.size(-2)
        scores = q @ k.transpose(-2, -1) / q.size(-1) ** 0.5
        past = torch.tril(torch.ones(n, n, device=q.device))
        scores = scores.masked_fill(past == 0, float("-inf"))
        return torch.softmax(scores, dim=-1) @ v
    ```

    ## Fix safety
    There is no fix: which fill is right depends on the rows that the mask may leave empty.

    ## Known limits
    Gates and learned factors, masks of whole heads or queries, and products that another mask makes good
    (`scores * mask + (1 - mask) * -1e9`, a fill afterwards) are left alone.

    ## References
    - [torch.Tensor.masked_fill](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.masked_fill.html)
    """

    meta = Meta(code="MSA307", name="mask-multiplies-scores", level=Level.ERROR, since="0.1.0")

    @on(MaskMultiplied)
    def multiplied(self, fact: MaskMultiplied) -> Iterator[Diagnostic]:
        if fact.lowered:
            return
        yield self.report(
            fact.at,
            "multiplying by the mask makes hidden scores 0, not their weights: softmax turns a score of 0 into a weight"
            " like any other",
            trail=step(fact.softmaxed_at, "softmax taken here"),
            help="fill the hidden scores: scores.masked_fill(mask == 0, torch.finfo(scores.dtype).min)",
        )
