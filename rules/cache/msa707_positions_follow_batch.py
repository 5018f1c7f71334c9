"""MSA707 positions-follow-batch: tokens get positions of another axis, or one position for all."""

from __future__ import annotations

from msalint.facts import MhaCalled, PositionRow
from msalint.rule import Diagnostic, Edit, Fix, Iterator, Level, Meta, Rule, Safety, Span, on, step


class PositionsFollowBatch(Rule):
    """
    ## What it does
    Reports a table of positions that is indexed by the length of the input (`pe[:, x.size(1)]`) where it was to be cut
    to that length (`pe[:, : x.size(1)]`), and added to the input. Reports too, as a warning, a table that is laid along
    the axis that a layer with `batch_first=True` then takes for the batch: `pe[: x.size(0)]`.

    ## Why is this bad?
    The index picks one row, that of the place after the last, and broadcasting adds it to every token: there is no
    order left. At the full length of the table it is out of range. Positions along the batch number the samples: the
    tokens of one sample all get the same.

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
    nothing tells to be positions. Which axis is the batch is told by the layer alone.

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

    @on(MhaCalled)
    def along_the_batch(self, fact: MhaCalled) -> Iterator[Diagnostic]:
        if fact.placed_at is None or not fact.placed_first or fact.batch_first is not True or fact.unbatched:
            return
        if fact.input_layout == "seq":
            return  # the layer is what takes it the wrong way round (MSA501)
        yield self.report(
            fact.placed_at,
            "these positions lie along the batch: they number the samples, and the tokens of a sample all get the same",
            trail=step(fact.built_at, "the layer takes the batch first") + step(fact.at, "called here"),
            help="cut the table to the length of axis 1, and lay it along that: (1, length, width)",
            level=Level.WARNING,
        )
