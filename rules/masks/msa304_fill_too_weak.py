"""MSA304 fill-too-weak: hidden scores are filled with a number that softmax does not take for nothing."""

from __future__ import annotations

import re

from msalint.facts import MaskFilled
from msalint.rule import Diagnostic, Fix, Iterator, Level, Meta, Rule, Safety, on, replace, step

EPSILON = re.compile(r"eps|epsilon|tiny", re.IGNORECASE)
WEAKEST = -100.0
"""Fills from here up to -1 hide well only while scores are small."""


class FillTooWeak(Rule):
    """
    ## What it does
    Reports attention scores that are filled under a mask with 0, a positive number, or a negative one near 0 (`1e-9`
    and `-1e-9` for `-1e9`, an `eps` parameter) before softmax; fills from -1 to -100 as a warning.

    ## Why is this bad?
    Softmax compares. A score of 0 among scores of either sign gets about the average weight: the hidden keys are
    attended as if nothing had been masked, and a large positive fill attends to nothing else.

    ## Example
    ```python
    import torch


    def attention(q, k, v, mask):
        scores = q @ k.transpose(-2, -1) / q.size(-1) ** 0.5
        scores = scores.masked_fill(mask == 0, -1e-9)
        return torch.softmax(scores, dim=-1) @ v
    ```

    ## Use instead
    ```python
    import torch


    def attention(q, k, v, mask):
        scores = q @ k.transpose(-2, -1) / q.size(-1) ** 0.5
        scores = scores.masked_fill(mask == 0, torch.finfo(scores.dtype).min)
        return torch.softmax(scores, dim=-1) @ v
    ```

    ## Fix safety
    Unsafe: weights change wherever the mask hides something.

    ## Known limits
    Fills without a softmax after them (zeroing, pooling, linear attention), fills after softmax, fills of rows that
    are hidden whole, and bounded scores (cosine, tanh) filled with a number from -1 to -100 are left alone, and so are
    biases that are added.

    ## References
    - [torch.Tensor.masked_fill](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.masked_fill.html)
    """

    meta = Meta(code="MSA304", name="fill-too-weak", level=Level.ERROR, since="0.1.0")

    @on(MaskFilled)
    def filled(self, fact: MaskFilled) -> Iterator[Diagnostic]:
        fill = 0.0 if fact.fill is None and EPSILON.fullmatch(fact.fill_parameter) else fact.fill
        if fill is None or fill < WEAKEST or fact.hidden is None or fact.whole_rows or fact.mends or not fact.attention:
            return
        close = fill <= -1.0
        if close and fact.bounded:
            return
        if close:
            said = f"a hidden score of {fill:g} still gets some weight where the others are low"
        else:
            share = "most of the weight" if fill >= 50 else "about as much weight as the others"
            number = f"{fill:g}" if fact.fill is not None else fact.fill_parameter
            said = f"a score of {number} hides nothing: softmax gives the masked keys {share}"
        yield self.report(
            fact.at,
            said,
            trail=step(fact.softmaxed_at, "softmax taken here"),
            help="fill with torch.finfo(scores.dtype).min",
            fix=_least(fact),
            level=Level.WARNING if close else None,
        )


def _least(fact: MaskFilled) -> Fix | None:
    if fact.fill_site is None or fact.scores_site is None or not fact.scores_site.text.isidentifier():
        return None
    least = f"torch.finfo({fact.scores_site.text}.dtype).min"
    return Fix(f"fill with {least}", (replace(fact.fill_site, least),), Safety.UNSAFE, imports=("import torch",))
