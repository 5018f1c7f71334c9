"""MSA103 heads-merge-scrambles-tokens: heads are merged by a view or reshape with no transpose back."""

from __future__ import annotations

import re

from msalint.facts import Viewed
from msalint.rule import Diagnostic, Fix, Iterator, Level, Meta, Rule, Safety, insert_after, on, replace, step

JUST_MOVED = re.compile(r"\.transpose\((?:1, 2|2, 1)\)(?:\.contiguous\(\))?$")
"""The end of `context.transpose(1, 2).contiguous()`."""


class HeadsMergeScramblesTokens(Rule):
    """
    ## What it does
    Reports a `view`, `reshape` or `flatten` of (batch, heads, seq, d_k) to (batch, seq, heads * d_k) with no transpose
    back: heads are not next to d_k, so the merge takes what lies next to it, the tokens. Also of
    (batch * heads, seq, d_k), and of heads that were stacked in front of the sequence.

    ## Why is this bad?
    The sizes are right and nothing is raised, but row t of the result is made of pieces of other tokens: with a
    causal mask the past sees the future, and tokens that were masked come back.

    ## Example
    ```python
    import torch
    from torch import nn


    class Attention(nn.Module):
        def __init__(self, width, heads, d_k):
            super().__init__()
            self.heads, self.d_k = heads, d_k
            self.qkv = nn.Linear(width, 3 * heads * d_k)
            self.out = nn.Linear(heads * d_k, width)

        def forward(self, x):
            B, L, _ = x.shape
            q, k, v = self.qkv(x).view(B, L, 3, self.heads, self.d_k).permute(2, 0, 3, 1, 4).unbind(0)
            context = torch.softmax(q @ k.transpose(-2, -1) * self.d_k ** -0.5, dim=-1) @ v
            return self.out(context.reshape(B, L, self.heads * self.d_k))
    ```

    ## Use instead
    ```python
    import torch
    from torch import nn


    class Attention(nn.Module):
        def __init__(self, width, heads, d_k):
            super().__init__()
            self.heads, self.d_k = heads, d_k
            self.qkv = nn.Linear(width, 3 * heads * d_k)
            self.out = nn.Linear(heads * d_k, width)

        def forward(self, x):
            B, L, _ = x.shape
            q, k, v = self.qkv(x).view(B, L, 3, self.heads, self.d_k).permute(2, 0, 3, 1, 4).unbind(0)
            context = torch.softmax(q @ k.transpose(-2, -1) * self.d_k ** -0.5, dim=-1) @ v
            return self.out(context.transpose(1, 2).reshape(B, L, self.heads * self.d_k))
    ```

    ## Fix safety
    Unsafe: the numbers change, and an output projection trained behind the scrambled merge belongs to it.

    ## Known limits
    Silent where the order of the axes is not known, with one head, and for one token.

    ## References
    - [torch.Tensor.view](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.view.html)
    - [Attention Is All You Need, 3.2.2](https://arxiv.org/abs/1706.03762)
    """

    meta = Meta(
        code="MSA103",
        name="heads-merge-scrambles-tokens",
        level=Level.ERROR,
        since="0.1.0",
        needs=("view", "reshape", "flatten", "rearrange"),
    )

    @on(Viewed)
    def merges_tokens_into_heads(self, fact: Viewed) -> Iterator[Diagnostic]:
        if fact.scramble is None or fact.kind != "merge":
            return
        yield self.report(
            fact.at,
            f"this {fact.op} of {fact.source} to {fact.target} moves nothing in memory, so each row of the result is"
            f" cut from one head's run along {fact.seq} instead of holding all heads of one token",
            trail=step(fact.moved_at, f"axes were last moved by this {fact.moved_by or 'operation'}"),
            help=f"bring {fact.heads} next to d_k before the {fact.op}",
            fix=_moved_back(fact),
        )


def _moved_back(fact: Viewed) -> Fix | None:
    """`x.reshape(B, L, -1)` -> `x.transpose(1, 2).reshape(B, L, -1)`, where x is (batch, heads, seq, d_k).

    A transposition that has just moved them apart is taken out instead.
    """
    axes = fact.source.strip("()").split(", ")
    if len(axes) != 4 or axes[1:3] != [fact.heads, fact.seq]:
        return None
    copied = ".contiguous()" if fact.op.startswith("view") else ""
    undone = JUST_MOVED.sub("", fact.receiver.text)
    if undone != fact.receiver.text:
        mended = replace(fact.receiver, undone + copied)
        return Fix("leave out the transposition before it", (mended,), Safety.UNSAFE)
    moved = f".transpose(1, 2){copied}"
    return Fix(f"insert `{moved}` before the {fact.op}", (insert_after(fact.receiver, moved),), Safety.UNSAFE)
