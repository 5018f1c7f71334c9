"""MSA104 attention-over-batch-axis: the samples of a batch attend to each other."""

from __future__ import annotations

import re

from msalint.facts import SdpaCalled, Weighted
from msalint.rule import Diagnostic, Iterator, Level, Meta, Rule, on, step

ON_PURPOSE = re.compile(
    r"axial|inter.?sample|batch.?(former|attention)"
    r"|(across|over|between|along|among).?((the|all|whole)\W+)*(batch|samples?)(?! of)",
    re.IGNORECASE,
)


class AttentionOverBatchAxis(Rule):
    """
    ## What it does
    Reports attention whose softmax runs, and whose values are summed, over the batch axis, where a name, an annotation
    or the layout of an API tells which axis that is: (seq, batch, width) split into heads as if it were batch-first,
    the (seq, batch, features) of an LSTM given to `bmm`, batch-first input turned round before the product.

    ## Why is this bad?
    Nothing is raised. Every sample becomes a mixture of the other samples of its batch, so the result for a sentence
    depends on what it was batched with, while the tokens of one sentence never meet.

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
            seq_len, batch_size, _ = x.shape
            q = self.q(x).view(seq_len, batch_size, self.heads, self.d_k).transpose(1, 2)
            k = self.k(x).view(seq_len, batch_size, self.heads, self.d_k).transpose(1, 2)
            v = self.v(x).view(seq_len, batch_size, self.heads, self.d_k).transpose(1, 2)
            weights = torch.softmax(q @ k.transpose(-2, -1) * self.d_k ** -0.5, dim=-1)
            return weights @ v
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
            seq_len, batch_size, _ = x.shape
            q = self.q(x).view(seq_len, batch_size, self.heads, self.d_k).permute(1, 2, 0, 3)
            k = self.k(x).view(seq_len, batch_size, self.heads, self.d_k).permute(1, 2, 0, 3)
            v = self.v(x).view(seq_len, batch_size, self.heads, self.d_k).permute(1, 2, 0, 3)
            weights = torch.softmax(q @ k.transpose(-2, -1) * self.d_k ** -0.5, dim=-1)
            return weights @ v
    ```

    ## Fix safety
    There is no automatic fix: where the batch should be moved depends on the layout that the callers use.

    ## Known limits
    Axial, row and column, and inter-sample attention, which move the batch on purpose and name it so, are left alone.
    So is a batch of vectors, (samples, features): looking samples up by each other is what such code is for.
    Where only a name or a docstring tells the batch axis the finding is a warning.

    ## References
    - [nn.MultiheadAttention, batch_first](https://docs.pytorch.org/docs/stable/generated/torch.nn.MultiheadAttention.html)
    - [BatchFormer, attention over the batch on purpose](https://arxiv.org/abs/2203.01522)
    """

    meta = Meta(
        code="MSA104",
        name="attention-over-batch-axis",
        level=Level.ERROR,
        since="0.1.0",
        needs=("softmax", "Softmax", "scaled_dot_product_attention", "exp("),
    )

    @on(Weighted)
    def sums_over_samples(self, fact: Weighted) -> Iterator[Diagnostic]:
        if fact.over != "batch" or not fact.tokens or ON_PURPOSE.search(" ".join(fact.purpose)):
            return
        scores = fact.softmax.scores.traits.product
        yield self.report(
            fact.at,
            f"the values are summed over {fact.over_name}, the batch axis, so samples of a batch attend to each other"
            " and the tokens of one sample never meet",
            trail=step(scores.at if scores else None, f"scores formed between samples here, over {fact.over_name}")
            + step(fact.softmax.at, f"normalised over {fact.normalised} here"),
            help="move the batch axis in front of the heads before the scores are formed",
            level=None if fact.batch_strong else Level.WARNING,
        )

    @on(SdpaCalled)
    def kernel_sums_over_samples(self, fact: SdpaCalled) -> Iterator[Diagnostic]:
        if fact.over == "batch" and fact.tokens:
            yield self.report(
                fact.at,
                f"the second-last axis of these keys is {fact.over_name}, the batch axis, so samples of a batch attend"
                " to each other and the tokens of one sample never meet",
                help="move the batch axis in front of the heads before the call",
                level=None if fact.batch_strong else Level.WARNING,
            )
