"""MSA709 positions-discarded: the sum of inputs and positions is thrown away."""

from __future__ import annotations

from msalint.facts import Discarded
from msalint.rule import Diagnostic, Fix, Iterator, Level, Meta, Rule, Safety, on, replace


class PositionsDiscarded(Rule):
    """
    ## What it does
    Reports a statement that adds position encodings to a tensor and does nothing with the sum, while the tensor itself
    is used afterwards.

    ## Why is this bad?
    `x + pe` makes a new tensor and leaves x as it is. The model runs without any positions: attention sees a set of
    tokens. Shapes are right and the loss goes down, only less far.

    ## Example
    ```python
    import torch
    from torch import nn


    class PositionalEncoding(nn.Module):
        def __init__(self, max_len, d_model):
            super().__init__()
            self.pe = nn.Parameter(torch.zeros(1, max_len, d_model))

        def forward(self, x):
            x + self.pe[:, : x.size(1)]
            return x
    ```

    ## Use instead
    ```python
    import torch
    from torch import nn


    class PositionalEncoding(nn.Module):
        def __init__(self, max_len, d_model):
            super().__init__()
            self.pe = nn.Parameter(torch.zeros(1, max_len, d_model))

        def forward(self, x):
            x = x + self.pe[:, : x.size(1)]
            return x
    ```

    ## Fix safety
    Safe: the sum is assigned back to the name, which is what the statement was written for. A checkpoint that was
    trained without its positions sees them for the first time.

    ## Known limits
    Sums that nothing reads the tensor after, an error that is awaited, and summands that nothing tells to be positions
    are left alone. A mask that is added and lost is masked-fill-discarded (MSA305).

    ## References
    - [Attention Is All You Need, 3.5](https://arxiv.org/abs/1706.03762)
    """

    meta = Meta(code="MSA709", name="positions-discarded", level=Level.ERROR, since="0.1.0")

    @on(Discarded)
    def thrown_away(self, fact: Discarded) -> Iterator[Diagnostic]:
        if fact.operation != "+" or not fact.positions or fact.masks or not fact.used_after:
            return
        yield self.report(
            fact.at,
            f"the sum with the positions is a new tensor, which is thrown away here: `{fact.target}` goes on without"
            " positions",
            fix=Fix(
                f"assign it to `{fact.target}`", (replace(fact.at, f"{fact.target} = {fact.at.text}"),), Safety.SAFE
            ),
        )
