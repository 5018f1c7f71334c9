"""MSA502 mha-returns-tuple: the pair that nn.MultiheadAttention returns is used as if it were the output."""

from __future__ import annotations

from msalint.facts import TupleUsed
from msalint.rule import Diagnostic, Fix, Iterator, Level, Meta, Rule, Safety, insert_after, on, step


class MhaReturnsTuple(Rule):
    """
    ## What it does
    Reports a call of nn.MultiheadAttention whose result is used as a tensor: added to a residual, given to a layer or
    a torch function, asked for a tensor's method.

    ## Why is this bad?
    The layer returns the pair (output, weights), also with `need_weights=False`, where the weights are None. Adding it
    or handing it to a layer raises TypeError or AttributeError.

    ## Example
    ```python
    from torch import nn


    class Block(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.attn = nn.MultiheadAttention(width, heads, batch_first=True)

        def forward(self, x):
            return x + self.attn(x, x, x, need_weights=False)
    ```

    ## Use instead
    ```python
    from torch import nn


    class Block(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.attn = nn.MultiheadAttention(width, heads, batch_first=True)

        def forward(self, x):
            return x + self.attn(x, x, x, need_weights=False)[0]
    ```

    ## Fix safety
    Safe: where the pair is used as a tensor the code raises, so nothing that works can change. Where the same pair is
    also taken apart elsewhere, the fix is only shown.

    ## Known limits
    A pair that is unpacked, indexed, returned or kept in a list is left alone.

    ## References
    - [torch.nn.MultiheadAttention](https://docs.pytorch.org/docs/stable/generated/torch.nn.MultiheadAttention.html)
    """

    meta = Meta(
        code="MSA502", name="mha-returns-tuple", level=Level.ERROR, since="0.1.0", needs=("MultiheadAttention",)
    )

    @on(TupleUsed)
    def pair_as_tensor(self, fact: TupleUsed) -> Iterator[Diagnostic]:
        safety = Safety.DISPLAY if fact.taken_apart else Safety.SAFE
        yield self.report(
            fact.call,
            "nn.MultiheadAttention returns (output, weights), and the pair is used as a tensor: this raises",
            trail=step(fact.at, "used as a tensor here"),
            fix=Fix("take the output with `[0]`", (insert_after(fact.call, "[0]"),), safety),
        )
