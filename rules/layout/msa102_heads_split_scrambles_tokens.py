"""MSA102 heads-split-scrambles-tokens: heads are split off before the sequence by a view alone."""

from __future__ import annotations

from msalint.facts import Viewed
from msalint.rule import Diagnostic, Fix, Iterator, Level, Meta, Rule, Safety, insert_after, on, replace, step


class HeadsSplitScramblesTokens(Rule):
    """
    ## What it does
    Reports a `view` or `reshape` that takes (batch, seq, heads * d_k) apart so that heads come before seq, with no
    transpose: `x.view(B, H, L, d)`, `x.view(B * H, L, d)`, or (seq, batch, heads * d_k) folded the same way.

    ## Why is this bad?
    A view renames what lies in memory; it moves nothing. Memory holds all heads of the first token, then all heads of
    the second, so "head 0" gets the first tokens whole instead of its own columns of every token. All sizes are right
    and the module trains, but attention runs between pieces of tokens.

    ## Example
    ```python
    import torch
    from torch import nn


    class Attention(nn.Module):
        def __init__(self, width, heads, d_k):
            super().__init__()
            self.heads, self.d_k = heads, d_k
            self.q = nn.Linear(width, heads * d_k)
            self.kv = nn.Linear(width, 2 * heads * d_k)

        def forward(self, x):
            B, L, _ = x.shape
            q = self.q(x).view(B, self.heads, L, self.d_k)
            k, v = self.kv(x).view(B, L, 2, self.heads, self.d_k).permute(2, 0, 3, 1, 4)
            return torch.softmax(q @ k.transpose(-2, -1) * self.d_k ** -0.5, dim=-1) @ v
    ```

    ## Use instead
    ```python
    import torch
    from torch import nn


    class Attention(nn.Module):
        def __init__(self, width, heads, d_k):
            super().__init__()
            self.heads, self.d_k = heads, d_k
            self.q = nn.Linear(width, heads * d_k)
            self.kv = nn.Linear(width, 2 * heads * d_k)

        def forward(self, x):
            B, L, _ = x.shape
            q = self.q(x).view(B, L, self.heads, self.d_k).transpose(1, 2)
            k, v = self.kv(x).view(B, L, 2, self.heads, self.d_k).permute(2, 0, 3, 1, 4)
            return torch.softmax(q @ k.transpose(-2, -1) * self.d_k ** -0.5, dim=-1) @ v
    ```

    ## Fix safety
    Unsafe: the numbers change, and weights trained with the scrambled split belong to it. The merge behind the
    product may need its own transpose.

    ## Known limits
    Silent where the source is not known to be (batch, seq, heads * d_k): (batch, heads * d_k, pixels) of a convolution
    and folded (batch * heads, seq, d_k) are rightly opened by a view. With one head or one token nothing is scrambled.

    ## References
    - [torch.Tensor.view](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.view.html)
    - [Attention Is All You Need, 3.2.2](https://arxiv.org/abs/1706.03762)
    """

    meta = Meta(
        code="MSA102",
        name="heads-split-scrambles-tokens",
        level=Level.ERROR,
        since="0.1.0",
        needs=("view", "reshape", "unflatten", "rearrange"),
    )

    @on(Viewed)
    def splits_heads_before_tokens(self, fact: Viewed) -> Iterator[Diagnostic]:
        if fact.scramble is None or fact.kind != "split":
            return
        yield self.report(
            fact.at,
            f"this {fact.op} of {fact.source} to {fact.target} moves nothing in memory, so each head holds a run along"
            f" {fact.seq} instead of its own columns of every token",
            trail=step(fact.moved_at, f"axes were last moved by this {fact.moved_by or 'operation'}"),
            help=f"split in memory order, {fact.seq} before {fact.heads}, then `.transpose(1, 2)`",
            fix=_split_in_order(fact),
        )


def _split_in_order(fact: Viewed) -> Fix | None:
    """`x.view(B, H, L, d)` -> `x.view(B, L, H, d).transpose(1, 2)`, where the sizes stand in the call."""
    inside = [a for a in fact.arguments if fact.at.span.start < a.span.start and a.span.end < fact.at.span.end]
    if len(inside) != 4 or inside[1].text.rsplit(".", 1)[-1] != fact.heads.rsplit(".", 1)[-1]:
        return None
    _, heads, seq, _ = inside
    edits = (replace(heads, seq.text), replace(seq, heads.text), insert_after(fact.at, ".transpose(1, 2)"))
    return Fix("split as (batch, seq, heads, d_k), then `.transpose(1, 2)`", edits, Safety.UNSAFE)
