"""MSA312 bool-mask-added: a boolean mask is added to scores, subtracted, or negated like a number."""

from __future__ import annotations

import re

from msalint.facts import MaskAdded, TruthsCalculatedWith
from msalint.rule import Diagnostic, Fix, Iterator, Level, Meta, Rule, Safety, on, replace, step

SAID = {
    "subtracted": "torch has no `-` for boolean tensors: this raises RuntimeError",
    "negated": "torch has no negative of a boolean tensor: this raises RuntimeError",
    "bits": "`~` turns the bits of {kind} over, so that 0 and 1 become {values}: both count as true",
}

PRIMARY = re.compile(r"[\w.]+(?:[(\[][^()\[\]]*[)\]])*")
"""`mask`, `self.mask`, `mask[:, None]`: what a method can be called on as it is."""


class BoolMaskAdded(Rule):
    """
    ## What it does
    Reports arithmetic with a boolean mask that can't do what it is meant to: added to scores as it is, `1 - mask`,
    `-mask`; and `~mask` where the mask is made of integers (uint8, long) instead of booleans.

    ## Why is this bad?
    Added to scores, True counts as 1: the marked keys get a little more weight, and nothing is hidden. A difference
    with a boolean tensor raises RuntimeError, as byte masks of old versions did not. `~` of integers turns their bits
    over: 0 and 1 become 255 and 254, or -1 and -2, so that a test of either is true.

    ## Example
    ```python
    import torch


    def attention(q, k, v, ids, pad_id):
        keep = torch.ne(ids, pad_id)[:, None, None, :]
        scores = q @ k.transpose(-2, -1) / q.size(-1) ** 0.5
        scores = scores + (1 - keep) * torch.finfo(scores.dtype).min
        return scores.softmax(dim=-1) @ v
    ```

    ## Use instead
    ```python
    import torch


    def attention(q, k, v, ids, pad_id):
        keep = torch.ne(ids, pad_id)[:, None, None, :]
        scores = q @ k.transpose(-2, -1) / q.size(-1) ** 0.5
        scores = scores + (~keep) * torch.finfo(scores.dtype).min
        return scores.softmax(dim=-1) @ v
    ```

    ## Fix safety
    Unsafe: `mask.logical_not()` for `1 - mask`, which also takes the zeros and ones of integers that a caller may hand
    over, but would have to be a float where it goes on to be divided or averaged.

    ## Known limits
    The dtype must be known: from a comparison, a cast, `dtype=torch.bool`. Where only an annotation or a docstring says
    so it is a warning, and nothing is said where the code asks for its dtype. In functions outside of
    modules, in a file that uses numpy as well, differences are left alone: arrays can be subtracted.

    ## References
    - [torch.sub](https://docs.pytorch.org/docs/stable/generated/torch.sub.html)
    - [torch.bitwise_not](https://docs.pytorch.org/docs/stable/generated/torch.bitwise_not.html)
    """

    meta = Meta(code="MSA312", name="bool-mask-added", level=Level.ERROR, since="0.1.0")

    @on(TruthsCalculatedWith)
    def calculated_with(self, fact: TruthsCalculatedWith) -> Iterator[Diagnostic]:
        kind, values = ("a uint8 mask", "255 and 254") if fact.dtype == "uint8" else ("an integer mask", "-1 and -2")
        made_at = fact.made_at if fact.made_at is not fact.mask_site else None
        yield self.report(
            fact.at,
            SAID[fact.how].format(kind=kind, values=values),
            trail=step(made_at, f"the mask is {'boolean' if fact.dtype == 'bool' else 'made'} here"),
            help="the complement of a mask is `~mask`, of a boolean one",
            fix=_complement(fact),
            level=Level.WARNING if fact.said else None,
        )

    @on(MaskAdded)
    def added(self, fact: MaskAdded) -> Iterator[Diagnostic]:
        if fact.boolean and fact.attention:
            yield self.report(
                fact.at,
                "True counts as 1 here: the keys that this boolean mask marks get a little more weight, none is hidden",
                trail=step(fact.made_at, "the mask is made here") + step(fact.softmaxed_at, "softmax taken here"),
                help="fill the hidden scores: scores.masked_fill(mask, torch.finfo(scores.dtype).min)",
                level=Level.WARNING if fact.said else None,
            )


def _complement(fact: TruthsCalculatedWith) -> Fix | None:
    """`mask.logical_not()` in the place of `1 - mask`."""
    if not fact.from_one:
        return None
    mask = fact.mask_site.text
    mended = f"{mask}.logical_not()" if PRIMARY.fullmatch(mask) else f"({mask}).logical_not()"
    return Fix("negate it with `.logical_not()`", (replace(fact.at, mended),), Safety.UNSAFE)
