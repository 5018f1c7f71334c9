"""MSA413 setting-overwritten-in-forward: a call changes how the module works in all later calls."""

from __future__ import annotations

from msalint.facts import SettingOverwritten
from msalint.rule import Diagnostic, Iterator, Level, Meta, Rule, on, step


class SettingOverwrittenInForward(Rule):
    """
    ## What it does
    Reports a forward that assigns a number or a flag to one of the module's own settings (a dropout rate, a scale, a
    causal flag) under a condition, such as the module's mode or whether a memory was given.

    ## Why is this bad?
    The setting stays changed after the call. With `if not self.training: self.dropout_p = 0.0`, the first evaluation
    ends dropout for the rest of the training; with `self.causal = False` for a memory, the next call without one sees
    the future.

    ## Example
    ```python
    import torch.nn.functional as F
    from torch import nn


    class Attention(nn.Module):
        def __init__(self, dropout):
            super().__init__()
            self.dropout = dropout

        def forward(self, q, k, v):
            if not self.training:
                self.dropout = 0.0
            return F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout)
    ```

    ## Use instead
    ```python
    import torch.nn.functional as F
    from torch import nn


    class Attention(nn.Module):
        def __init__(self, dropout):
            super().__init__()
            self.dropout = dropout

        def forward(self, q, k, v):
            rate = self.dropout if self.training else 0.0
            return F.scaled_dot_product_attention(q, k, v, dropout_p=rate)
    ```

    ## Fix safety
    None is offered: the value belongs in a local variable, and every later use of it in forward has to follow.

    ## Known limits
    Only attributes that are called like a hyper-parameter and have a value from `__init__` are looked at. One that the
    same body assigns in another place too (each branch, or back again), or that the condition itself asks about, is
    left alone; so are caches and counters.

    ## References
    - [torch.nn.Module.train](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.train)
    """

    meta = Meta(code="MSA413", name="setting-overwritten-in-forward", level=Level.WARNING, since="0.1.0")

    @on(SettingOverwritten)
    def stays_changed(self, fact: SettingOverwritten) -> Iterator[Diagnostic]:
        since = "one pass in that mode" if fact.mode else "one such call"
        yield self.report(
            fact.at,
            f"`{fact.attribute}` stays {fact.value} after {since}: what the module was built with is gone for all later"
            " calls",
            trail=step(fact.test, "it is assigned only where this says so"),
            help="keep the value of this call in a local variable",
        )
