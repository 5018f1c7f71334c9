"""MSA508 mha-causal-hint-alone: a causal flag of torch's attention layers without the mask that it speaks of."""

from __future__ import annotations

from msalint.facts import MhaCalled
from msalint.rule import Diagnostic, Iterator, Level, Meta, Rule, on, step


class MhaCausalHintAlone(Rule):
    """
    ## What it does
    Reports nn.MultiheadAttention and nn.Transformer* layers that are called with `is_causal=True` (or
    `tgt_is_causal=True` and its kin) and without the mask that the flag speaks of.

    ## Why is this bad?
    For these layers the flag is a hint that the mask given beside it is causal; it makes no mask. Without one the call
    raises RuntimeError ("Need attn_mask if specifying the is_causal hint"). Only in
    `F.scaled_dot_product_attention` does the flag stand for the mask.

    ## Example
    ```python
    from torch import nn


    class Decoder(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.attn = nn.MultiheadAttention(width, heads, batch_first=True)

        def forward(self, x):
            return self.attn(x, x, x, need_weights=False, is_causal=True)[0]
    ```

    ## Use instead
    ```python
    from torch import nn


    class Decoder(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.attn = nn.MultiheadAttention(width, heads, batch_first=True)

        def forward(self, x):
            future = nn.Transformer.generate_square_subsequent_mask(x.size(1), device=x.device)
            return self.attn(x, x, x, need_weights=False, attn_mask=future, is_causal=True)[0]
    ```

    ## Fix safety
    There is no automatic fix: the mask's length is that of the keys, which the call may not name.

    ## Known limits
    A mask handed in from outside, which may be None, is left alone, and so is a flag that is not known to be on.

    ## References
    - [torch.nn.MultiheadAttention](https://docs.pytorch.org/docs/stable/generated/torch.nn.MultiheadAttention.html)
    """

    meta = Meta(
        code="MSA508",
        name="mha-causal-hint-alone",
        level=Level.ERROR,
        since="0.1.0",
        needs=("is_causal",),
    )

    @on(MhaCalled)
    def hint_without_mask(self, fact: MhaCalled) -> Iterator[Diagnostic]:
        for mask, flag in fact.hints_alone:
            yield self.report(
                flag,
                f"to nn.{fact.kind} the causal flag is only a hint about {mask}, which is not given: this call raises",
                trail=step(fact.at, "called here"),
                help=f"pass `{mask}=nn.Transformer.generate_square_subsequent_mask(length)` beside it",
            )
