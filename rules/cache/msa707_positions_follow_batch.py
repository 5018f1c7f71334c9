"""MSA707 positions-follow-batch: tokens get positions of another axis, or one position for all."""

from __future__ import annotations

from msalint.facts import PositionRow
from msalint.rule import Diagnostic, Edit, Fix, Iterator, Level, Meta, Rule, Safety, Span, on


class PositionsFollowBatch(Rule):
    """
    ## What it does
    Reports a table of positions that is indexed by the length of the input (`pe[:, x.size(1)]`) where it was to be cut
    to that length (`pe[:, : x.size(1)]`), and added to the input.

    ## Why is this bad?
    The index picks one row, that of the place after the last, and broadcasting adds it to every token: there is no
    order left. At the full length of the table it is out of range.

    ## Example
    ```python
    import torch
    from torch import nn


    class PositionalEncoding(nn.Module):
        def __init__(self, max_len, d_model):
            super().__init__()
            self.pe = nn.Parameter(torch.zeros(1, max_len, d_model))

        def forward(self, x):
            return x + self.pe[:, x.size(1)]
    ```

    ## Use instead
    ```python
    import torch
    from torch import nn


    class PositionalEncoding(nn.Module):
        def __init__(self, max_len, d_model):
            super().__init__()
            self.pe = nn.Parameter(torch.zeros(1, max_len, d_model))

        def forward(self, x):
            return x + self.pe[:, : x.size(1)]
    ```

    ## Fix safety
    Unsafe: every output changes, and so does what a trained model expects.

    ## Known limits
    A row picked by anything else (a step, the length of a cache, a number) is left alone, and so is a table that
    nothing tells to be positions.

    ## References
    - [Attention Is All You Need, 3.5](https://arxiv.org/abs/1706.03762)
    """

    meta = Meta(code="MSA707", name="positions-follow-batch", level=Level.ERROR, since="0.1.0")

    @on(PositionRow)
    def one_row(self, fact: PositionRow) -> Iterator[Diagnostic]:
        start = fact.place.span.start
        cut = Edit(Span(start, start), ":", fact.place.filename)
        yield self.report(
            fact.at,
            f"this is one row of `{fact.table}`, the one after the last token, and it is added to every token: they all"
            " get the same position",
            fix=Fix("cut the table to that length", (cut,), Safety.UNSAFE),
        )
