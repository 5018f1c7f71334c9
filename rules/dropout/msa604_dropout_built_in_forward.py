"""MSA604 dropout-built-in-forward: a dropout layer built anew in each forward, which never hears of eval mode."""

from __future__ import annotations

from msalint.facts import Dropout
from msalint.rule import Diagnostic, Iterator, Level, Meta, Rule, on, step


class DropoutBuiltInForward(Rule):
    """
    ## What it does
    Reports `nn.Dropout(...)` that is built and called inside a module's forward.

    ## Why is this bad?
    A new layer is always in training mode, and `eval()` reaches only the layers that a module holds. Attention weights
    are dropped in eval mode too, so that two passes over one input differ and every prediction is worse.

    ## Example
    ```python
    import torch
    from torch import nn


    class Attention(nn.Module):
        def __init__(self, d_k, dropout=0.1):
            super().__init__()
            self.d_k, self.dropout = d_k, dropout

        def forward(self, query, key, value):
            weights = torch.softmax(query @ key.transpose(-2, -1) * self.d_k**-0.5, dim=-1)
            return nn.Dropout(self.dropout)(weights) @ value
    ```

    ## Use instead
    ```python
    import torch
    from torch import nn


    class Attention(nn.Module):
        def __init__(self, d_k, dropout=0.1):
            super().__init__()
            self.d_k, self.dropout = d_k, nn.Dropout(dropout)

        def forward(self, query, key, value):
            weights = torch.softmax(query @ key.transpose(-2, -1) * self.d_k**-0.5, dim=-1)
            return self.dropout(weights) @ value
    ```

    ## Fix safety
    There is no automatic fix: the layer has to be built in `__init__`.

    ## Known limits
    A layer that is built only in training mode, with a rate of 0 in eval mode, told the mode with `.train(...)`, kept
    under an attribute, or said to stay on (Monte Carlo dropout) is left alone.

    ## References
    - [torch.nn.Dropout](https://docs.pytorch.org/docs/stable/generated/torch.nn.Dropout.html)
    - [torch.nn.Module.train](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.train)
    """

    meta = Meta(code="MSA604", name="dropout-built-in-forward", level=Level.ERROR, since="0.1.0", needs=("Dropout",))

    @on(Dropout)
    def always_new(self, fact: Dropout) -> Iterator[Diagnostic]:
        if fact.functional or not fact.always_on or fact.said_so:
            return
        yield self.report(
            fact.at,
            "this dropout layer is built anew in each forward, so it is always in training mode: it drops in eval mode"
            " too",
            trail=step(fact.built_at, "built here"),
            help="build it once, in `__init__`, or call `F.dropout(..., training=self.training)`",
        )
