"""MSA603 dropout-before-softmax: dropout on the scores, where it hides nothing, in place of the weights."""

from __future__ import annotations

from msalint.facts import Softmaxed
from msalint.rule import Diagnostic, Iterator, Level, Meta, Rule, on, step


class DropoutBeforeSoftmax(Rule):
    """
    ## What it does
    Reports dropout between the product of queries and keys and its softmax.

    ## Why is this bad?
    A score that is dropped becomes 0, and 0 is no small score: the key goes on being attended, often more than before,
    and the scores that are kept are scaled up, which sharpens the softmax. On scores that were masked already it makes
    hidden keys visible: -1e9 becomes 0.

    ## Example
    ```python
    import torch
    from torch import nn


    class Attention(nn.Module):
        def __init__(self, rate):
            super().__init__()
            self.dropout = nn.Dropout(rate)

        def forward(self, query, key, value):
            scores = query @ key.transpose(-2, -1) / query.size(-1) ** 0.5
            return torch.softmax(self.dropout(scores), dim=-1) @ value
    ```

    ## Use instead
    ```python
    import torch
    from torch import nn


    class Attention(nn.Module):
        def __init__(self, rate):
            super().__init__()
            self.dropout = nn.Dropout(rate)

        def forward(self, query, key, value):
            scores = query @ key.transpose(-2, -1) / query.size(-1) ** 0.5
            return self.dropout(torch.softmax(scores, dim=-1)) @ value
    ```

    ## Fix safety
    None is offered: the call has to move behind the softmax.

    ## Known limits
    Scores must be known to be queries times keys. Keys that are dropped by a random mask of -inf (DropKey), and dropout
    on queries or keys, are left alone.

    ## References
    - [Attention Is All You Need, 5.4](https://arxiv.org/abs/1706.03762)
    - [DropKey](https://arxiv.org/abs/2208.02646), which drops keys before softmax, with -inf
    """

    meta = Meta(code="MSA603", name="dropout-before-softmax", level=Level.WARNING, since="0.1.0", needs=("ropout",))

    @on(Softmaxed)
    def scores_dropped(self, fact: Softmaxed) -> Iterator[Diagnostic]:
        dropped = fact.scores.traits.dropped
        if dropped is None or not fact.attention or fact.product is None:
            return
        masked = any(use.fill is None or use.fill < -1 for use in fact.scores.traits.masks)
        yield self.report(
            dropped.at,
            "a score that is dropped here becomes 0, which hides no key: dropout belongs on the weights, after softmax"
            if not masked
            else "a score that is dropped here becomes 0, which hides no key, and shows keys that a mask has hidden:"
            " dropout belongs on the weights, after softmax",
            trail=step(fact.product.at, "scores formed here") + step(fact.at, "softmax taken here"),
        )
