"""MSA803 weights-kept-with-graph: attention weights stay on the module together with the graph that made them."""

from __future__ import annotations

from msalint.facts import WeightsKept
from msalint.rule import Diagnostic, Fix, Iterator, Level, Meta, Rule, Safety, insert_after, on, step


class WeightsKeptWithGraph(Rule):
    """
    ## What it does
    Reports a forward that puts attention weights, or the largest of their scores, under an attribute of its module or
    in a list there, without detaching them.

    ## Why is this bad?
    The weights hold on to the graph of the batch that made them: its memory is not given back before the next forward,
    and in a list never. A used layer can't be deep-copied either (averaged weights, early stopping, checkpoint hooks).

    ## Example
    ```python
    import torch
    from torch import nn


    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.last_map = None

        def forward(self, q, k, v):
            weights = torch.softmax(q @ k.transpose(-2, -1) / q.size(-1) ** 0.5, dim=-1)
            self.last_map = weights
            return weights @ v
    ```

    ## Use instead
    ```python
    import torch
    from torch import nn


    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.last_map = None

        def forward(self, q, k, v):
            weights = torch.softmax(q @ k.transpose(-2, -1) / q.size(-1) ** 0.5, dim=-1)
            self.last_map = weights.detach()
            return weights @ v
    ```

    ## Fix safety
    Safe: what is kept has the same values, and forward goes on with the original. None is offered where forward itself
    reads the attribute again, or where the weights are one of several results.

    ## Known limits
    A class that speaks of gradients, losses, penalties or hooks may need the graph and is left alone; so is what is
    kept in eval mode only or under `torch.no_grad()`. What else is made of the weights (a mean, an entropy) is not
    followed.

    ## References
    - [torch.Tensor.detach](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.detach.html)
    """

    meta = Meta(code="MSA803", name="weights-kept-with-graph", level=Level.WARNING, since="0.1.0")

    @on(WeightsKept)
    def not_detached(self, fact: WeightsKept) -> Iterator[Diagnostic]:
        if not fact.weighed:
            return
        fix = None
        if fact.stored is not None and fact.stored.text.replace(".", "").replace("_", "").isalnum():
            fix = Fix("detach what is kept", (insert_after(fact.stored, ".detach()"),), Safety.SAFE)
        what = "the largest of the scores" if fact.peak else "the weights"
        yield self.report(
            fact.at,
            f"`{fact.attribute}` keeps {what} with the graph that made them: its memory stays in use, and the module"
            " can't be deep-copied",
            trail=step(fact.made_at, f"the {'scores' if fact.peak else 'weights'} are made here"),
            help="detach what is kept",
            fix=fix,
        )
