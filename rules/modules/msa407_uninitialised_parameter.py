"""MSA407 uninitialised-parameter: a parameter of memory that nobody wrote to."""

from __future__ import annotations

from msalint.facts import ParameterLeftRaw
from msalint.rule import Diagnostic, Fix, Iterator, Level, Meta, Rule, Safety, on, replace


class UninitialisedParameter(Rule):
    """
    ## What it does
    Reports an nn.Parameter made of `torch.empty(...)` or `torch.Tensor(sizes)` that nothing in its class, its bases or
    its file gives a value.

    ## Why is this bad?
    Both hand out memory as it is found: often zeros in a fresh process, sometimes 1e30 or NaN. A model begins with
    values that differ from run to run, and one NaN in a bias or a position table makes every output NaN.

    ## Example
    ```python
    import torch
    from torch import nn


    class PositionalEmbedding(nn.Module):
        def __init__(self, length, width):
            super().__init__()
            self.table = nn.Parameter(torch.empty(length, width))

        def forward(self, x):
            return x + self.table[: x.size(1)]
    ```

    ## Use instead
    ```python
    import torch
    from torch import nn


    class PositionalEmbedding(nn.Module):
        def __init__(self, length, width):
            super().__init__()
            self.table = nn.Parameter(torch.empty(length, width))
            nn.init.normal_(self.table, std=0.02)

        def forward(self, x):
            return x + self.table[: x.size(1)]
    ```

    ## Fix safety
    Unsafe: zeros are a choice, and not the right one where two parameters are multiplied.

    ## Known limits
    Anything in the file that may fill parameters without naming them (a loop over `parameters()`, `apply`, a method
    called `_init_weights` or `reset_parameters`, a state dict) silences the rule, and so does a base class that is not
    in sight. A model in another file that fills or loads every parameter is not seen: hence a warning.

    ## References
    - [torch.empty](https://docs.pytorch.org/docs/stable/generated/torch.empty.html)
    - [torch.nn.init](https://docs.pytorch.org/docs/stable/nn.init.html)
    """

    meta = Meta(code="MSA407", name="uninitialised-parameter", level=Level.WARNING, since="0.1.0", needs=("Parameter",))

    @on(ParameterLeftRaw)
    def never_written(self, fact: ParameterLeftRaw) -> Iterator[Diagnostic]:
        sizes = fact.data.text.partition("(")[2]
        yield self.report(
            fact.at,
            f"`{fact.attribute}` is memory that nobody wrote to: it begins with whatever was there, NaN included",
            help="initialise it with torch.nn.init, or make it of torch.zeros or torch.randn",
            fix=Fix("begin with zeros", (replace(fact.data, f"torch.zeros({sizes}"),), Safety.UNSAFE),
        )
