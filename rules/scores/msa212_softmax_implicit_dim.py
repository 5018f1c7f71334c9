"""MSA212 softmax-implicit-dim: softmax of attention scores with no dim."""

from __future__ import annotations

import re

from msalint.facts import Softmaxed
from msalint.rule import Diagnostic, Fix, Iterator, Level, Meta, Rule, Safety, Site, append_argument, on, step

CALL = re.compile(r"(?!self\.)[\w.]*\b(softmax|Softmax)\((?!.*\bdim\s*=)[^()]*\)", re.DOTALL)


class SoftmaxImplicitDim(Rule):
    """
    ## What it does
    Reports `F.softmax(scores)` and `nn.Softmax()` on attention scores with no `dim`.

    ## Why is this bad?
    torch then picks an axis by the rank, with a deprecation warning: axis 0 for one and three axes, axis 1 for all
    others. On (batch, query, key) that is the batch, on (batch, head, query, key) the heads; the last axis is hit only
    with fewer than three.

    ## Example
    ```python
    import torch.nn.functional as F
    from torch import nn


    class Attention(nn.Module):
        def __init__(self, width, heads, d_k):
            super().__init__()
            self.heads, self.d_k = heads, d_k
            self.qkv = nn.Linear(width, 3 * heads * d_k)

        def forward(self, x):
            B, L, _ = x.shape
            q, k, v = self.qkv(x).view(B, L, 3, self.heads, self.d_k).permute(2, 0, 3, 1, 4).unbind(0)
            scores = q @ k.transpose(-2, -1) * self.d_k ** -0.5
            return F.softmax(scores) @ v
    ```

    ## Use instead
    ```python
    import torch.nn.functional as F
    from torch import nn


    class Attention(nn.Module):
        def __init__(self, width, heads, d_k):
            super().__init__()
            self.heads, self.d_k = heads, d_k
            self.qkv = nn.Linear(width, 3 * heads * d_k)

        def forward(self, x):
            B, L, _ = x.shape
            q, k, v = self.qkv(x).view(B, L, 3, self.heads, self.d_k).permute(2, 0, 3, 1, 4).unbind(0)
            scores = q @ k.transpose(-2, -1) * self.d_k ** -0.5
            return F.softmax(scores, dim=-1) @ v
    ```

    ## Fix safety
    Unsafe: with three axes or more another axis is normalised.

    ## Known limits
    Softmax of anything that is not known to be scores of queries and keys is left alone.

    ## References
    - [torch.nn.functional.softmax](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.softmax.html)
    - [torch.nn.Softmax](https://docs.pytorch.org/docs/stable/generated/torch.nn.Softmax.html)
    """

    meta = Meta(
        code="MSA212", name="softmax-implicit-dim", level=Level.WARNING, since="0.1.0", needs=("softmax", "Softmax")
    )

    @on(Softmaxed)
    def no_dim(self, fact: Softmaxed) -> Iterator[Diagnostic]:
        if fact.explicit or fact.by_hand or not fact.attention:
            return
        picked = "an axis by their rank"
        if fact.implicit_dim is not None:
            picked = f"axis {fact.implicit_dim}" + (f", {fact.axis}," if fact.axis else "")
        place = fact.built_at or fact.at
        yield self.report(
            place,
            f"softmax of these scores is given no dim, so torch picks {picked} with a warning that this will go away",
            trail=step(fact.product.at if fact.product else None, "scores formed here"),
            help="say over which axis: `dim=-1` for scores whose last axis is the keys",
            fix=_with_dim(place),
        )


def _with_dim(call: Site) -> Fix | None:
    if not CALL.fullmatch(call.text):
        return None
    return Fix("add `dim=-1`", (append_argument(call, "dim=-1"),), Safety.UNSAFE)
