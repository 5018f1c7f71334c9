"""MSA112 sizes-disagree: an operation whose sizes can't fit, whatever the inputs."""

from __future__ import annotations

from msalint.facts import SizesDisagree, Viewed
from msalint.rule import Diagnostic, Iterator, Level, Meta, Rule, on, step


class SizesDisagreeRule(Rule):
    """
    ## What it does
    Reports an operation that no input can get through: a Linear or a norm fed another width than it was built for, a
    product over unequal axes, a view that asks for another element count than there is, heads merged to the width of
    one.

    ## Why is this bad?
    torch raises as soon as the line is reached. The sizes come from different places (an `__init__`, a default, a
    reshape far above), so the error names numbers, not the line that is wrong.

    ## Example
    ```python
    import torch
    from torch import nn


    class Attention(nn.Module):
        def __init__(self, dim, heads, d_k):
            super().__init__()
            self.heads, self.d_k = heads, d_k
            self.qkv = nn.Linear(dim, 2 * heads * d_k)

        def forward(self, x):
            B, L, _ = x.shape
            qkv = self.qkv(x).reshape(B, L, 3, self.heads, self.d_k)
            q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
            return torch.softmax(q @ k.transpose(-2, -1) * self.d_k ** -0.5, dim=-1) @ v
    ```

    ## Use instead
    ```python
    import torch
    from torch import nn


    class Attention(nn.Module):
        def __init__(self, dim, heads, d_k):
            super().__init__()
            self.heads, self.d_k = heads, d_k
            self.qkv = nn.Linear(dim, 3 * heads * d_k)

        def forward(self, x):
            B, L, _ = x.shape
            qkv = self.qkv(x).reshape(B, L, 3, self.heads, self.d_k)
            q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
            return torch.softmax(q @ k.transpose(-2, -1) * self.d_k ** -0.5, dim=-1) @ v
    ```

    ## Fix safety
    There is no automatic fix: which of the two sizes is wrong can't be told from the code.

    ## Known limits
    Two sizes that are only called differently may be equal, and are never reported. Sizes under conditions are compared
    only where one path through the code has both.

    ## References
    - [torch.nn.Linear](https://docs.pytorch.org/docs/stable/generated/torch.nn.Linear.html)
    - [torch.matmul](https://docs.pytorch.org/docs/stable/generated/torch.matmul.html)
    """

    meta = Meta(code="MSA112", name="sizes-disagree", level=Level.ERROR, since="0.1.0", yields_to=("MSA106",))

    @on(SizesDisagree)
    def can_never_fit(self, fact: SizesDisagree) -> Iterator[Diagnostic]:
        yield self.report(
            fact.at,
            f"torch raises here whatever the input: {fact.message}",
            trail=step(fact.trail_at, "this size comes from here"),
        )

    @on(Viewed)
    def counts_can_never_agree(self, fact: Viewed) -> Iterator[Diagnostic]:
        if fact.left_over:
            yield self.report(
                fact.at,
                f"torch raises here unless {fact.left_over} is 1: {fact.target} has no room for the heads of"
                f" {fact.source}",
                trail=step(fact.moved_at, f"axes were last moved by this {fact.moved_by or 'operation'}"),
                help=f"merge the heads too: {fact.left_over} * d_k, or -1",
            )
        elif fact.mismatch:
            yield self.report(
                fact.at,
                f"torch raises here whatever the input: {fact.target} never holds as many elements as {fact.source}",
                trail=step(fact.moved_at, f"axes were last moved by this {fact.moved_by or 'operation'}"),
            )
