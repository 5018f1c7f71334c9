"""MSA501 mha-layout: batch and sequence stand the other way round than torch's attention layer takes them."""

from __future__ import annotations

import re

from msalint.facts import MhaCalled
from msalint.rule import Diagnostic, Fix, Iterator, Level, Meta, Rule, Safety, Site, append_argument, on, step

ON_PURPOSE = re.compile(
    r"inter.?sample|(across|over|between|cross).?(batch|sample)|batch.?(former|mix|attention)", re.IGNORECASE
)


class MhaLayout(Rule):
    """
    ## What it does
    Reports nn.MultiheadAttention and nn.Transformer* layers that were built without `batch_first=True` and are called
    with (batch, seq, width), and layers built with it that are called with (seq, batch, width).

    ## Why is this bad?
    Nothing is raised, since both layouts have three axes. Attention then runs over the batch: the samples of a batch
    change each other's outputs, and the tokens of one sample never meet.

    ## Example
    ```python
    from torch import nn


    class Block(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.norm = nn.LayerNorm(width)
            self.attn = nn.MultiheadAttention(width, heads)

        def forward(self, x):
            batch, seq, width = x.shape
            h = self.norm(x)
            return x + self.attn(h, h, h)[0]
    ```

    ## Use instead
    ```python
    from torch import nn


    class Block(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.norm = nn.LayerNorm(width)
            self.attn = nn.MultiheadAttention(width, heads, batch_first=True)

        def forward(self, x):
            batch, seq, width = x.shape
            h = self.norm(x)
            return x + self.attn(h, h, h)[0]
    ```

    ## Fix safety
    Unsafe: every output changes, and where the input turns out to be sequence first after all, the layer is broken.

    ## Known limits
    The layout of the input must be told by the code: by names in an unpacked shape, by an annotation, by an einops
    pattern, or by what is done with the output: a sequence is averaged or summed over, or its first place taken, a
    batch is not. The finding stands where the layer is built, in the same file and with no word of `batch_first`,
    and else where it is called. An input of two axes has no batch; an unknown layout is left alone, and so is
    attention between samples that is named so.

    ## References
    - [torch.nn.MultiheadAttention](https://docs.pytorch.org/docs/stable/generated/torch.nn.MultiheadAttention.html)
    - [torch.nn.TransformerEncoderLayer](https://docs.pytorch.org/docs/stable/generated/torch.nn.TransformerEncoderLayer.html)
    """

    meta = Meta(
        code="MSA501",
        name="mha-layout",
        level=Level.WARNING,
        since="0.1.0",
        needs=("MultiheadAttention", "Transformer"),
    )

    @on(MhaCalled)
    def other_layout_than_built_for(self, fact: MhaCalled) -> Iterator[Diagnostic]:
        if fact.unbatched or fact.batch_first is None or any(map(ON_PURPOSE.search, fact.purpose)):
            return
        used = fact.input_layout is None and not fact.batch_first
        placed = fact.placed_at if used and not fact.placed_first else None
        pooled = fact.pooled_at if used and placed is None else None
        if not pooled and not placed and fact.input_layout in {None, "batch" if fact.batch_first else "seq"}:
            return
        takes = "batch first" if fact.batch_first else "sequence first"
        built = _to_be_built_otherwise(fact)
        yield self.report(
            built or fact.at,
            f"{f'this makes nn.{fact.kind} take' if built else f'this nn.{fact.kind} takes'} its input {takes} but"
            f" {_gets(fact)}: the samples of a batch attend to each other, and the tokens of one sample do not",
            trail=(step(fact.at, "called here") if built else step(fact.built_at, f"built {takes} here"))
            + step(placed, "positions are added along its second axis here")
            + step(pooled, "its second axis is reduced here, as the sequence"),
            help="give it the input batch first" if fact.batch_first else "build it with `batch_first=True`",
            fix=Fix("add `batch_first=True`", (append_argument(built, "batch_first=True"),), Safety.UNSAFE)
            if built
            else None,
        )


def _gets(fact: MhaCalled) -> str:
    if fact.input_layout is None:
        return "its second axis is used as the sequence"
    first, second = fact.batch_name, fact.seq_name
    return f"it gets ({first}, {second}, ...)" if fact.input_layout == "batch" else f"it gets ({second}, {first}, ...)"


def _to_be_built_otherwise(fact: MhaCalled) -> Site | None:
    """Where the layer is built, if nobody chose a layout there: then that is the place to choose one."""
    built = fact.built_at
    if fact.batch_first or built is None or built.filename != fact.at.filename or "batch_first" in built.text:
        return None
    return built
