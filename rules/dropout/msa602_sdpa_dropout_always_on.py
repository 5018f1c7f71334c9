"""MSA602 sdpa-dropout-always-on: a fused kernel that is given the module's dropout rate in eval mode too."""

from __future__ import annotations

from msalint.facts import SdpaCalled
from msalint.rule import Diagnostic, Fix, Iterator, Level, Meta, Rule, Safety, on, step, wrap


class SdpaDropoutAlwaysOn(Rule):
    """
    ## What it does
    Reports `F.scaled_dot_product_attention` (and flash_attn, xformers) given a module's dropout rate, or a number above
    0, with no test of `self.training`: directly, through a name, or through `functools.partial`.

    ## Why is this bad?
    The kernel is a function and does not know the module's mode. After `eval()` it goes on dropping attention weights,
    so that two passes over one input differ and every prediction is worse.

    ## Example
    ```python
    import torch.nn.functional as F
    from torch import nn


    class Attention(nn.Module):
        def __init__(self, dropout=0.1):
            super().__init__()
            self.dropout = dropout

        def forward(self, query, key, value):
            return F.scaled_dot_product_attention(query, key, value, dropout_p=self.dropout)
    ```

    ## Use instead
    ```python
    import torch.nn.functional as F
    from torch import nn


    class Attention(nn.Module):
        def __init__(self, dropout=0.1):
            super().__init__()
            self.dropout = dropout

        def forward(self, query, key, value):
            return F.scaled_dot_product_attention(
                query, key, value, dropout_p=self.dropout if self.training else 0.0
            )
    ```

    ## Fix safety
    Safe: training is as before, and eval mode stops dropping, as `eval()` promises.

    ## Known limits
    The rate must come from `__init__`, from a config object handed to it, or be a number. A rate that a function
    takes as a parameter is left to its callers, and code that says that it drops on purpose (Monte Carlo dropout) is
    left alone.

    ## References
    - [F.scaled_dot_product_attention](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html)
    """

    meta = Meta(
        code="MSA602",
        name="sdpa-dropout-always-on",
        level=Level.ERROR,
        since="0.1.0",
        needs=("scaled_dot_product_attention", "flash_attn", "memory_efficient_attention"),
    )

    @on(SdpaCalled)
    def drops_in_eval(self, fact: SdpaCalled) -> Iterator[Diagnostic]:
        if not fact.dropout_always_on or fact.dropout_said_so:
            return
        yield self.report(
            fact.dropout_site or fact.at,
            "the kernel does not know the module's mode, and its dropout rate is not 0 in eval mode: attention weights"
            " are dropped there too",
            trail=step(fact.at if fact.dropout_site else None, "the kernel is called here"),
            help="pass the rate only in training: `... if self.training else 0.0`",
            fix=_only_in_training(fact),
        )


def _only_in_training(fact: SdpaCalled) -> Fix | None:
    site, module = fact.dropout_site, fact.module_name
    if site is None or not module or site.span == fact.at.span:
        return None
    before, after = ("(", ")") if " if " in site.text else ("", "")
    edits = wrap(site, before, f"{after} if {module}.training else 0.0")
    return Fix(f"pass it only if `{module}.training`", edits, Safety.SAFE)
