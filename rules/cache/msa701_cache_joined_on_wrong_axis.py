"""MSA701 cache-joined-on-wrong-axis: past and new keys are joined along the heads or the batch."""

from __future__ import annotations

from msalint.facts import CacheJoined
from msalint.rule import Diagnostic, Iterator, Level, Meta, Rule, on


class CacheJoinedOnWrongAxis(Rule):
    """
    ## What it does
    Reports `torch.cat` of the keys or values of a cache and those of new tokens along the heads or the batch.

    ## Why is this bad?
    The cache holds earlier tokens of the same heads and samples. Joined along the heads there are more heads of keys
    than of queries: the product raises, or pairs heads that don't belong together, and no query sees the past.

    ## Example
    ```python
    import torch
    import torch.nn.functional as F
    from torch import nn


    class Attention(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            assert width % heads == 0
            self.heads = heads
            self.qkv = nn.Linear(width, 3 * width)

        def forward(self, x, past_key, past_value):
            b, n, width = x.shape
            q, k, v = self.qkv(x).view(b, n, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
            k = torch.cat([past_key, k], dim=1)
            v = torch.cat([past_value, v], dim=1)
            return F.scaled_dot_product_attention(q, k, v)
    ```

    ## Use instead
    ```python
    import torch
    import torch.nn.functional as F
    from torch import nn


    class Attention(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            assert width % heads == 0
            self.heads = heads
            self.qkv = nn.Linear(width, 3 * width)

        def forward(self, x, past_key, past_value):
            b, n, width = x.shape
            q, k, v = self.qkv(x).view(b, n, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
            k = torch.cat([past_key, k], dim=-2)
            v = torch.cat([past_value, v], dim=-2)
            return F.scaled_dot_product_attention(q, k, v)
    ```

    ## Fix safety
    None is offered: a cache that was filled along the wrong axis has to be filled anew.

    ## Known limits
    A cache is known by its name (past, cache) or as a buffer, and the heads as what a projection was split into. A
    cache that holds other heads on purpose is not told from a mistake, so this is a warning.

    ## References
    - [Caching in transformers](https://huggingface.co/docs/transformers/cache_explanation)
    """

    meta = Meta(code="MSA701", name="cache-joined-on-wrong-axis", level=Level.WARNING, since="0.1.0", needs=("cat",))

    @on(CacheJoined)
    def not_along_the_sequence(self, fact: CacheJoined) -> Iterator[Diagnostic]:
        outcome = (
            "there are more heads of keys than of queries, and no query sees an earlier token"
            if fact.along == "heads"
            else "the past tokens become samples of their own, and no query sees them"
        )
        yield self.report(
            fact.at,
            f"this joins the cache along the {fact.along}{_called(fact)}, not along the sequence: {outcome}",
            help="join along the axis of the tokens: dim=-2 of (batch, heads, seq, d_k), dim=1 of (batch, seq, heads,"
            " d_k)",
        )


def _called(fact: CacheJoined) -> str:
    return f" ({fact.axis})" if fact.axis != fact.along else ""
