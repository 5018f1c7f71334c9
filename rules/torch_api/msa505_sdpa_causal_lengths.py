"""MSA505 sdpa-causal-lengths: is_causal=True where the keys are longer than the queries, as with a cache."""

from __future__ import annotations

import re

from msalint.facts import SdpaCalled
from msalint.rule import Diagnostic, Iterator, Level, Meta, Rule, on, step

CONFIGURED = re.compile(r"flash|sdpa|scaled_dot_product|fused|\bcausal\b|is_causal|hasattr", re.IGNORECASE)
LENGTHS = re.compile(
    r"train|eval|infer|cache|past|len|size|shape|step|decod|fill|generat|increment|start|offset|pos|first|seq|mask|[<>]",
    re.IGNORECASE,
)
FIXED = re.compile(r"True|self\.\w+")


class SdpaCausalLengths(Rule):
    """
    ## What it does
    Reports F.scaled_dot_product_attention with `is_causal=True` where older keys (a cache) were joined in front of the
    keys while the queries are of the new tokens only.

    ## Why is this bad?
    The causal mask of is_causal is aligned to the upper left: query i sees keys 0 to i, counted from the oldest. A new
    token, which is query 0, sees the oldest key and nothing else, not even itself. Nothing raises; generation with a
    cache repeats itself while the same model without one is fine.

    ## Example
    ```python
    import torch
    import torch.nn as nn
    import torch.nn.functional as F


    class CachedAttention(nn.Module):
        def __init__(self, width, heads, d_k):
            super().__init__()
            self.heads, self.d_k = heads, d_k
            self.to_qkv = nn.Linear(width, 3 * heads * d_k)

        def forward(self, x, past_keys, past_values):
            batch, new, _ = x.shape
            q, k, v = self.to_qkv(x).view(batch, new, 3, self.heads, self.d_k).permute(2, 0, 3, 1, 4)
            k = torch.cat([past_keys, k], dim=2)
            v = torch.cat([past_values, v], dim=2)
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    ```

    ## Use instead
    ```python
    import torch
    import torch.nn as nn
    import torch.nn.functional as F


    class CachedAttention(nn.Module):
        def __init__(self, width, heads, d_k):
            super().__init__()
            self.heads, self.d_k = heads, d_k
            self.to_qkv = nn.Linear(width, 3 * heads * d_k)

        def forward(self, x, past_keys, past_values):
            batch, new, _ = x.shape
            q, k, v = self.to_qkv(x).view(batch, new, 3, self.heads, self.d_k).permute(2, 0, 3, 1, 4)
            k = torch.cat([past_keys, k], dim=2)
            v = torch.cat([past_values, v], dim=2)
            past = k.size(2) - new
            keep = torch.ones(new, past + new, dtype=torch.bool, device=x.device).tril(past)
            return F.scaled_dot_product_attention(q, k, v, attn_mask=keep)
    ```

    ## Fix safety
    There is no fix: a mask of (new, past + new) with the diagonal at `past` is right for any number of new tokens,
    `is_causal=past == 0` for one at a time; torch.nn.attention.bias.causal_lower_right is the same mask.

    ## Known limits
    Seen where `torch.cat` joins the keys and the queries' tokens come last. Caches that an object keeps
    (`cache.update(k, v)`), keys cut out of a buffer, and calls under a test of lengths, of the mode or of the cache
    are left alone; so are flash_attn's kernels, which align to the lower right.

    ## References
    - [F.scaled_dot_product_attention](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html)
    - [pytorch/pytorch#144858](https://github.com/pytorch/pytorch/issues/144858)
    """

    meta = Meta(
        code="MSA505",
        name="sdpa-causal-lengths",
        level=Level.ERROR,
        since="0.1.0",
        needs=("scaled_dot_product_attention",),
    )

    @on(SdpaCalled)
    def longer_keys(self, fact: SdpaCalled) -> Iterator[Diagnostic]:
        site = fact.causal_site
        if fact.api != "sdpa" or fact.causal is not True or fact.mask_given is not False or site is None:
            return
        if fact.joined_at is None or not FIXED.fullmatch(site.text) or any(map(_may_tell_lengths, fact.guards)):
            return
        yield self.report(
            site,
            "is_causal aligns its mask to the upper left: with older keys in front, a new token sees the oldest key"
            " only, and not itself",
            trail=step(fact.joined_at, "older keys are joined in front here"),
            help="pass a mask of (new, past + new) with `.tril(past)`, or is_causal only where there is no past",
        )


def _may_tell_lengths(test: str) -> bool:
    """A test that may hold only where there is no past; one that only picks a kernel does not."""
    rest = CONFIGURED.sub("", test)
    return CONFIGURED.search(test) is None or LENGTHS.search(rest) is not None
