"""MSA705 kv-heads-tiled: grouped-query heads are copied as a whole instead of one by one."""

from __future__ import annotations

import re

from msalint.facts import HeadsTiled
from msalint.rule import Diagnostic, Iterator, Level, Meta, Rule, on, step

_ONE_KV_HEAD = re.compile(r"multi.?query|mqa", re.IGNORECASE)


class KvHeadsTiled(Rule):
    """
    ## What it does
    Reports keys or values of grouped-query attention whose heads are copied with the copies outermost (`repeat`,
    `torch.cat([k] * groups)`, a new axis in front of the heads) and then paired one by one with the query heads.

    ## Why is this bad?
    `k.repeat(1, groups, 1, 1)` gives the heads as 0 1 0 1, so query head h meets kv head `h % kv_heads`. Grouped-query
    attention, the checkpoints trained with it and `enable_gqa=True` mean kv head `h // groups`: 0 0 1 1. Every shape
    is right; loaded weights give garbage, and the two ways can't be exchanged later.

    ## Example
    ```python
    import torch.nn.functional as F
    from torch import nn


    class GroupedQueryAttention(nn.Module):
        def __init__(self, dim, num_heads, num_kv_heads, head_dim):
            super().__init__()
            self.num_heads, self.num_kv_heads, self.head_dim = num_heads, num_kv_heads, head_dim
            self.groups = num_heads // num_kv_heads
            self.q_proj = nn.Linear(dim, num_heads * head_dim)
            self.k_proj = nn.Linear(dim, num_kv_heads * head_dim)
            self.v_proj = nn.Linear(dim, num_kv_heads * head_dim)

        def forward(self, x):
            b, t, _ = x.shape
            q = self.q_proj(x).view(b, t, self.num_heads, self.head_dim).transpose(1, 2)
            k = self.k_proj(x).view(b, t, self.num_kv_heads, self.head_dim).transpose(1, 2)
            v = self.v_proj(x).view(b, t, self.num_kv_heads, self.head_dim).transpose(1, 2)
            k, v = k.repeat(1, self.groups, 1, 1), v.repeat(1, self.groups, 1, 1)
            return F.scaled_dot_product_attention(q, k, v)
    ```

    ## Use instead
    ```python
    import torch.nn.functional as F
    from torch import nn


    class GroupedQueryAttention(nn.Module):
        def __init__(self, dim, num_heads, num_kv_heads, head_dim):
            super().__init__()
            self.num_heads, self.num_kv_heads, self.head_dim = num_heads, num_kv_heads, head_dim
            self.groups = num_heads // num_kv_heads
            self.q_proj = nn.Linear(dim, num_heads * head_dim)
            self.k_proj = nn.Linear(dim, num_kv_heads * head_dim)
            self.v_proj = nn.Linear(dim, num_kv_heads * head_dim)

        def forward(self, x):
            b, t, _ = x.shape
            q = self.q_proj(x).view(b, t, self.num_heads, self.head_dim).transpose(1, 2)
            k = self.k_proj(x).view(b, t, self.num_kv_heads, self.head_dim).transpose(1, 2)
            v = self.v_proj(x).view(b, t, self.num_kv_heads, self.head_dim).transpose(1, 2)
            k, v = k.repeat_interleave(self.groups, dim=1), v.repeat_interleave(self.groups, dim=1)
            return F.scaled_dot_product_attention(q, k, v)
    ```

    ## Fix safety
    None is offered: a model that was trained this way needs its query heads put in another order as well.

    ## Known limits
    A single kv head, query heads that are themselves split as (groups, kv_heads), and copied samples are left alone. A
    model trained from nothing with tiled heads works: it is grouped in an order of its own, which is why this is a
    warning.

    ## References
    - [torch.repeat_interleave](https://docs.pytorch.org/docs/stable/generated/torch.repeat_interleave.html)
    - [GQA: Training Generalized Multi-Query Transformer Models](https://arxiv.org/abs/2305.13245)
    """

    meta = Meta(code="MSA705", name="kv-heads-tiled", level=Level.WARNING, since="0.1.0")

    @on(HeadsTiled)
    def copied_as_a_whole(self, fact: HeadsTiled) -> Iterator[Diagnostic]:
        if any(map(_ONE_KV_HEAD.search, fact.purpose)):
            return
        yield self.report(
            fact.at,
            f"the {fact.heads} heads of the {fact.what} are copied as a whole ({fact.copies} times): query head h meets"
            f" head h % {fact.heads} of the {fact.what}, where grouped-query weights mean h // {fact.copies}",
            trail=step(fact.used_at, "paired with the query heads here"),
            help="copy each head in place: `repeat_interleave` along the heads, or expand a new axis behind them",
        )
