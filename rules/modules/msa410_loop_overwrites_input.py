"""MSA410 loop-overwrites-input: each head is fed what the head before it made of the input."""

from __future__ import annotations

from msalint.facts import LoopCarries
from msalint.rule import Diagnostic, Iterator, Level, Meta, Rule, on, step


class LoopOverwritesInput(Rule):
    """
    ## What it does
    Reports a loop over heads that projects the input into its own name (`query = to_q(query)`), so that the next head
    projects the projection of the one before.

    ## Why is this bad?
    The heads are no longer parallel views of one input: the second sees the first one's queries, keys and values, the
    last a chain of projections. Their order matters, shapes are right where heads have the full width, and training
    works, only worse.

    ## Example
    ```python
    import torch.nn.functional as F
    from torch import nn


    class Heads(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.to_q = nn.ModuleList(nn.Linear(width, width) for _ in range(heads))
            self.to_k = nn.ModuleList(nn.Linear(width, width) for _ in range(heads))
            self.to_v = nn.ModuleList(nn.Linear(width, width) for _ in range(heads))

        def forward(self, query, key, value):
            total = 0
            for to_q, to_k, to_v in zip(self.to_q, self.to_k, self.to_v):
                query, key, value = to_q(query), to_k(key), to_v(value)
                total = total + F.scaled_dot_product_attention(query, key, value)
            return total
    ```

    ## Use instead
    ```python
    import torch.nn.functional as F
    from torch import nn


    class Heads(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.to_q = nn.ModuleList(nn.Linear(width, width) for _ in range(heads))
            self.to_k = nn.ModuleList(nn.Linear(width, width) for _ in range(heads))
            self.to_v = nn.ModuleList(nn.Linear(width, width) for _ in range(heads))

        def forward(self, query, key, value):
            total = 0
            for to_q, to_k, to_v in zip(self.to_q, self.to_k, self.to_v):
                q, k, v = to_q(query), to_k(key), to_v(value)
                total = total + F.scaled_dot_product_attention(q, k, v)
            return total
    ```

    ## Fix safety
    None is offered: the projections need names of their own, and every use of them has to follow.

    ## Known limits
    Only loops in which queries, keys and values are all overwritten by the layers of the round are reported. A stack,
    which hands its context on, is left alone.

    ## References
    - [Attention Is All You Need, 3.2.2](https://arxiv.org/abs/1706.03762)
    """

    meta = Meta(code="MSA410", name="loop-overwrites-input", level=Level.ERROR, since="0.1.0")

    @on(LoopCarries)
    def projected_into_itself(self, fact: LoopCarries) -> Iterator[Diagnostic]:
        yield self.report(
            fact.at,
            f"the next round projects this projection: only the first head sees `{fact.name}` as it came in",
            trail=step(fact.used_at, "attention is formed anew in each round"),
            help="give the projections names of their own",
        )
