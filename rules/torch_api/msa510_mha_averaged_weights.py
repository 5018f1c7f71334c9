"""MSA510 mha-averaged-weights: weights that nn.MultiheadAttention averaged over the heads are indexed by head."""

from __future__ import annotations

from msalint.facts import AveragedWeightsIndexed
from msalint.rule import Diagnostic, Fix, Iterator, Level, Meta, Rule, Safety, append_argument, on, step


class MhaAveragedWeights(Rule):
    """
    ## What it does
    Reports weights that nn.MultiheadAttention returns as they are by default, (batch, query, key), and that are then
    indexed by a head: `weights[:, head]`, or with four parts.

    ## Why is this bad?
    Unless `average_attn_weights=False` is passed the weights are averaged over the heads. The axis that is taken for
    the heads is that of the queries: "head 3" is what the fourth query attends to, on average. With four parts the
    index raises.

    ## Example
    ```python
    from torch import nn


    class Inspected(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.attn = nn.MultiheadAttention(width, heads, batch_first=True)

        def forward(self, x, head):
            out, weights = self.attn(x, x, x)
            return out, weights[:, head]
    ```

    ## Use instead
    ```python
    from torch import nn


    class Inspected(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.attn = nn.MultiheadAttention(width, heads, batch_first=True)

        def forward(self, x, head):
            out, weights = self.attn(x, x, x, average_attn_weights=False)
            return out, weights[:, head]
    ```

    ## Fix safety
    Unsafe: the weights get an axis more, which whoever else reads them must expect.

    ## Known limits
    The index must be called a head, count `range(num_heads)`, or have a part more than the weights have axes. Weights
    that went through a list or a file first are not followed.

    ## References
    - [nn.MultiheadAttention](https://docs.pytorch.org/docs/stable/generated/torch.nn.MultiheadAttention.html)
    - [pytorch/pytorch#34537](https://github.com/pytorch/pytorch/issues/34537)
    """

    meta = Meta(
        code="MSA510", name="mha-averaged-weights", level=Level.WARNING, since="0.1.0", needs=("MultiheadAttention",)
    )

    @on(AveragedWeightsIndexed)
    def indexed(self, fact: AveragedWeightsIndexed) -> Iterator[Diagnostic]:
        if fact.by:
            said = f"these weights are averaged over the heads: `{fact.by}` picks a query's row, not a head's map"
        else:
            said = "these weights are averaged over the heads, (batch, query, key): an index of four parts raises"
        edit = append_argument(fact.at, "average_attn_weights=False")
        yield self.report(
            fact.at,
            said,
            trail=step(fact.used_at, "indexed by head here"),
            fix=Fix("keep the heads with `average_attn_weights=False`", (edit,), Safety.UNSAFE),
        )
