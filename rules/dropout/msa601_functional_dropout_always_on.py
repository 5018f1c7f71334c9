"""MSA601 functional-dropout-always-on: F.dropout that never learns of eval mode."""

from __future__ import annotations

from msalint.facts import Dropout
from msalint.rule import Diagnostic, Fix, Iterator, Level, Meta, Rule, Safety, append_argument, on


class FunctionalDropoutAlwaysOn(Rule):
    """
    ## What it does
    Reports `F.dropout` in a module, or in a function that a module calls, without `training=`.

    ## Why is this bad?
    The function does not know the module's mode: its `training` defaults to True. After `eval()` it goes on dropping
    attention weights, so that two passes over one input differ and every prediction is worse.

    ## Example
    ```python
    import torch
    import torch.nn.functional as F
    from torch import nn


    class Attention(nn.Module):
        def __init__(self, d_k, dropout=0.1):
            super().__init__()
            self.d_k, self.dropout = d_k, dropout

        def forward(self, query, key, value):
            weights = torch.softmax(query @ key.transpose(-2, -1) * self.d_k**-0.5, dim=-1)
            return F.dropout(weights, p=self.dropout) @ value
    ```

    ## Use instead
    ```python
    import torch
    import torch.nn.functional as F
    from torch import nn


    class Attention(nn.Module):
        def __init__(self, d_k, dropout=0.1):
            super().__init__()
            self.d_k, self.dropout = d_k, dropout

        def forward(self, query, key, value):
            weights = torch.softmax(query @ key.transpose(-2, -1) * self.d_k**-0.5, dim=-1)
            return F.dropout(weights, p=self.dropout, training=self.training) @ value
    ```

    ## Fix safety
    Safe: training is as before, and eval mode stops dropping, as `eval()` promises.

    ## Known limits
    Dropout that is only reached in training mode, whose rate is 0 in eval mode, or that is said to stay on (Monte
    Carlo dropout, prenets, in a name or docstring) is left alone. Dropout of anything but attention weights is a
    warning, and so is `training=True` on the weights. A function that no module of the file calls is left to its
    callers, and so is a rate that a method is called with, as `dropout_p` of F.scaled_dot_product_attention.

    ## References
    - [torch.nn.functional.dropout](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.dropout.html)
    """

    meta = Meta(
        code="MSA601", name="functional-dropout-always-on", level=Level.ERROR, since="0.1.0", needs=("dropout",)
    )

    @on(Dropout)
    def drops_in_eval(self, fact: Dropout) -> Iterator[Diagnostic]:
        if not fact.functional or not fact.always_on or not fact.in_module or fact.said_so:
            return
        if fact.switched_on and not fact.on_weights:
            return
        what = "attention weights" if fact.on_weights else "activations"
        yield self.report(
            fact.at,
            f"this dropout is not told the module's mode, so {what} are dropped in eval mode too",
            help="pass `training=self.training`",
            fix=_told_the_mode(fact),
            level=None if fact.on_weights and not fact.switched_on else Level.WARNING,
        )


def _told_the_mode(fact: Dropout) -> Fix | None:
    if not fact.module_name or fact.switched_on:
        return None
    argument = f"training={fact.module_name}.training"
    return Fix(f"pass `{argument}`", (append_argument(fact.at, argument),), Safety.SAFE)
