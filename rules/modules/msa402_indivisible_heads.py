"""MSA402 indivisible-heads: numbers of heads that never divide the width, or a width that is a float."""

from __future__ import annotations

from msalint.facts import IndivisibleHeads
from msalint.rule import Diagnostic, Iterator, Level, Meta, Rule, on, step


class HeadsThatDoNotDivide(Rule):
    """
    ## What it does
    Reports literal widths and numbers of heads that don't divide, in a module of one's own, in einops and in torch's
    attention modules, and a true division (`d_model / num_heads`) whose result is used as a size.

    ## Why is this bad?
    Such sizes work for no input: torch raises when the module is built or at its first batch. `/` gives a float, and
    torch takes no floats for sizes, not even whole ones.

    ## Example
    ```python
    import torch.nn.functional as F
    from torch import nn


    class Attention(nn.Module):
        def __init__(self, d_model, num_heads):
            super().__init__()
            assert d_model % num_heads == 0
            self.num_heads = num_heads
            self.d_k = d_model / num_heads
            self.qkv = nn.Linear(d_model, 3 * d_model)

        def forward(self, x):
            B, L, _ = x.shape
            q, k, v = self.qkv(x).view(B, L, 3, self.num_heads, self.d_k).permute(2, 0, 3, 1, 4).unbind(0)
            return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
    ```

    ## Use instead
    ```python
    import torch.nn.functional as F
    from torch import nn


    class Attention(nn.Module):
        def __init__(self, d_model, num_heads):
            super().__init__()
            assert d_model % num_heads == 0
            self.num_heads = num_heads
            self.d_k = d_model // num_heads
            self.qkv = nn.Linear(d_model, 3 * d_model)

        def forward(self, x):
            B, L, _ = x.shape
            q, k, v = self.qkv(x).view(B, L, 3, self.num_heads, self.d_k).permute(2, 0, 3, 1, 4).unbind(0)
            return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
    ```

    ## Fix safety
    There is no fix: which of the numbers is wrong is for the author to say.

    ## Known limits
    Sizes that are not written in the file are left to missing-divisibility-check (MSA401). A float that is no size,
    such as the d_k under a scale's root, is left alone.

    ## References
    - [torch.nn.MultiheadAttention](https://docs.pytorch.org/docs/stable/generated/torch.nn.MultiheadAttention.html)
    """

    meta = Meta(code="MSA402", name="indivisible-heads", level=Level.ERROR, since="0.1.0")

    @on(IndivisibleHeads)
    def sizes_that_never_work(self, fact: IndivisibleHeads) -> Iterator[Diagnostic]:
        if fact.kind == "float":
            message = (
                f"`/` makes {fact.width} / {fact.heads} a float, and it is used as a size, so torch raises TypeError;"
                " `//` gives an integer"
            )
        else:
            message = f"{fact.heads} heads do not divide a width of {fact.width}, so this raises whatever the input"
        yield self.report(fact.at, message, trail=step(fact.made_at, "used as a size here"))
