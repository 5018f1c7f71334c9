"""MSA105 attention-over-head-axis: scores are formed between the heads of one token."""

from __future__ import annotations

import re

from msalint.facts import Multiplied, SdpaCalled
from msalint.rule import Diagnostic, Fix, Iterator, Level, Meta, Rule, Safety, insert_after, on

ON_PURPOSE = re.compile(r"talking.?heads?|(cross|inter|mix\w*|between).?(the.)?heads?\b|heads?.?mix", re.I)


class AttentionOverHeadAxis(Rule):
    """
    ## What it does
    Reports scores that are formed between the heads of one token, because heads were split off as
    (batch, seq, heads, d_k) and never brought in front of the sequence: (B, L, H, d) @ (B, L, d, H), and the same
    tensors given to `F.scaled_dot_product_attention`.

    ## Why is this bad?
    Nothing is raised, since a product only looks at the last two axes. The weights are (batch, seq, heads, heads): no
    token ever sees another, and the layer is a costly way to mix features.

    ## Example
    ```python
    import torch
    from torch import nn


    class Attention(nn.Module):
        def __init__(self, width, heads, d_k):
            super().__init__()
            self.heads, self.d_k = heads, d_k
            self.q = nn.Linear(width, heads * d_k)
            self.k = nn.Linear(width, heads * d_k)
            self.v = nn.Linear(width, heads * d_k)

        def forward(self, x):
            B, L, _ = x.shape
            q = self.q(x).view(B, L, self.heads, self.d_k)
            k = self.k(x).view(B, L, self.heads, self.d_k)
            v = self.v(x).view(B, L, self.heads, self.d_k)
            weights = torch.softmax(q @ k.transpose(-2, -1) * self.d_k ** -0.5, dim=-1)
            return (weights @ v).flatten(2)
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
            self.k = nn.Linear(width, heads * d_k)
            self.v = nn.Linear(width, heads * d_k)

        def forward(self, x):
            B, L, _ = x.shape
            q = self.q(x).view(B, L, self.heads, self.d_k).transpose(1, 2)
            k = self.k(x).view(B, L, self.heads, self.d_k).transpose(1, 2)
            v = self.v(x).view(B, L, self.heads, self.d_k).transpose(1, 2)
            weights = torch.softmax(q @ k.transpose(-2, -1) * self.d_k ** -0.5, dim=-1)
            return (weights @ v).transpose(1, 2).flatten(2)
    ```

    ## Fix safety
    Unsafe, for a kernel: query, key, value and the result are transposed, and the numbers change. A product by hand is
    left to the author, who has to turn the context back where it is merged.

    ## Known limits
    Code that mixes heads on purpose and says so (talking heads, head mixing) is left alone. Kernels that take
    (batch, seq, heads, d_k), such as `flash_attn_func`, are known.

    ## References
    - [F.scaled_dot_product_attention](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html)
    - [Talking-Heads Attention](https://arxiv.org/abs/2003.02436)
    """

    meta = Meta(
        code="MSA105",
        name="attention-over-head-axis",
        level=Level.ERROR,
        since="0.1.0",
        needs=("softmax", "Softmax", "scaled_dot_product_attention", "exp("),
        yields_to=("MSA506",),
    )

    @on(Multiplied)
    def scores_between_heads(self, fact: Multiplied) -> Iterator[Diagnostic]:
        if fact.head_axis is None or ON_PURPOSE.search(" ".join(fact.purpose)):
            return
        yield self.report(
            fact.at,
            f"these scores are formed between the {fact.head_axis} of one token, so no token attends to another",
            help="bring the heads of query, key and value in front of the sequence with `.transpose(1, 2)`",
        )

    @on(SdpaCalled)
    def kernel_between_heads(self, fact: SdpaCalled) -> Iterator[Diagnostic]:
        if fact.head_axis is None or ON_PURPOSE.search(" ".join(fact.purpose)):
            return
        yield self.report(
            fact.at,
            f"{fact.head_axis} stands where the kernel expects the sequence, so the heads of one token attend to"
            " each other and no token attends to another",
            help="bring the heads of query, key and value in front of the sequence with `.transpose(1, 2)`",
            fix=_heads_in_front(fact),
        )


def _heads_in_front(fact: SdpaCalled) -> Fix | None:
    """`sdpa(q, k, v)` -> `sdpa(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)).transpose(1, 2)`."""
    sites = [site for site in (fact.query_site, fact.key_site, fact.value_site) if site is not None]
    if len(sites) != 3 or not all(re.fullmatch(r"[\w.\[\]]+", site.text) for site in sites):
        return None
    if any(tensor is None or tensor.rank != 4 for tensor in (fact.query, fact.key, fact.value)):
        return None
    edits = tuple(insert_after(site, ".transpose(1, 2)") for site in (*sites, fact.at))
    return Fix("turn query, key and value, and the result back, with `.transpose(1, 2)`", edits, Safety.UNSAFE)
