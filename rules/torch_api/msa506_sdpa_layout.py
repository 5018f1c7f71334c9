"""MSA506 sdpa-layout: heads and sequence stand the other way round than a fused kernel takes them."""

from __future__ import annotations

from msalint.facts import SdpaCalled
from msalint.rule import Diagnostic, Fix, Iterator, Level, Meta, Rule, Safety, insert_after, on

HEADS_THIRD = {"flash": "flash_attn_func", "xformers": "memory_efficient_attention"}


class SdpaLayout(Rule):
    """
    ## What it does
    Reports `flash_attn_func` and xformers' `memory_efficient_attention` called with (batch, heads, seq, d_k).

    ## Why is this bad?
    These kernels take (batch, seq, heads, d_k). Given the layout of `F.scaled_dot_product_attention` they raise
    nothing: the heads of one token attend to each other, and no token attends to another.

    ## Example
    ```python
    from flash_attn import flash_attn_func
    from torch import nn


    class Attention(nn.Module):
        def __init__(self, width, heads, d_k):
            super().__init__()
            self.heads, self.d_k = heads, d_k
            self.qkv = nn.Linear(width, 3 * heads * d_k)

        def forward(self, x):
            B, L, _ = x.shape
            q, k, v = self.qkv(x).view(B, L, 3, self.heads, self.d_k).permute(2, 0, 3, 1, 4).unbind(0)
            return flash_attn_func(q, k, v).transpose(1, 2).flatten(2)
    ```

    ## Use instead
    ```python
    from flash_attn import flash_attn_func
    from torch import nn


    class Attention(nn.Module):
        def __init__(self, width, heads, d_k):
            super().__init__()
            self.heads, self.d_k = heads, d_k
            self.qkv = nn.Linear(width, 3 * heads * d_k)

        def forward(self, x):
            B, L, _ = x.shape
            q, k, v = self.qkv(x).view(B, L, 3, self.heads, self.d_k).unbind(2)
            return flash_attn_func(q, k, v).flatten(2)
    ```

    ## Fix safety
    Unsafe: every output changes. The result is turned back to (batch, heads, seq, d_k), as the code goes on with it.

    ## Known limits
    The reverse, (batch, seq, heads, d_k) given to `F.scaled_dot_product_attention`, is attention-over-head-axis
    (MSA105). Only layouts in which the heads are known are reported.

    ## References
    - [flash_attn_func](https://github.com/Dao-AILab/flash-attention#how-to-use-flashattention)
    - [xformers.ops.memory_efficient_attention](https://facebookresearch.github.io/xformers/components/ops.html)
    """

    meta = Meta(
        code="MSA506",
        name="sdpa-layout",
        level=Level.ERROR,
        since="0.1.0",
        needs=("flash_attn", "memory_efficient_attention"),
    )

    @on(SdpaCalled)
    def heads_in_place_of_sequence(self, fact: SdpaCalled) -> Iterator[Diagnostic]:
        kernel = HEADS_THIRD.get(fact.api)
        if kernel is None or not fact.layout_wrong:
            return
        yield self.report(
            fact.at,
            f"{kernel} takes (batch, seq, heads, d_k), but {fact.head_axis} stands where it expects the sequence: the"
            " heads of one token attend to each other, and no token attends to another",
            help="leave query, key and value as (batch, seq, heads, d_k)",
            fix=_exchanged(fact),
        )


def _exchanged(fact: SdpaCalled) -> Fix | None:
    sites = [site for site in (fact.query_site, fact.key_site, fact.value_site) if site is not None]
    if len(sites) < 3 or any(not site.text.isidentifier() for site in sites):
        return None
    edits = tuple(insert_after(site, ".transpose(1, 2)") for site in (*sites, fact.at))
    return Fix("exchange heads and sequence on the way in, and back on the way out", edits, Safety.UNSAFE)
