"""MSA302 zero-times-infinity: a 0/1 mask is multiplied by -inf, and every 0 becomes NaN."""

from __future__ import annotations

import re

from msalint.facts import ZeroTimesInfinity
from msalint.rule import Diagnostic, Fix, Iterator, Level, Meta, Rule, Safety, on, replace, step

TRIANGLE = re.compile(
    r"(?P<head>torch\.tri[ul]\()(?P<ones>torch\.ones\([^()]*\))(?P<rest>[^()]*)\) \* (?P<inf>.+)", re.DOTALL
)
METHOD = re.compile(r"(?P<ones>torch\.ones\([^()]*\))(?P<tail>\.tri[ul]\([^()]*\)) \* (?P<inf>.+)", re.DOTALL)


class InfinityTimesZero(Rule):
    """
    ## What it does
    Reports an additive mask made by multiplying zeros and ones by infinity: `triu(ones(L, L), 1) * -inf`,
    `(1 - mask) * -inf`.

    ## Why is this bad?
    0 * inf is NaN. The ones become -inf as meant, but every zero, that is every key that was to be seen, becomes NaN,
    and with it every score, weight and output.

    ## Example
    ```python
    import torch
    import torch.nn.functional as F


    def causal_attention(q, k, v):
        n = q.size(-2)
        mask = torch.triu(torch.ones(n, n), diagonal=1) * float("-inf")
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    ```

    ## Use instead
    ```python
    import torch
    import torch.nn.functional as F


    def causal_attention(q, k, v):
        n = q.size(-2)
        mask = torch.triu(torch.ones(n, n) * float("-inf"), diagonal=1)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    ```

    ## Fix safety
    Safe: -inf is multiplied in before the triangle is cut, so that zeros stay zeros; all other values are the same.

    ## Known limits
    Seen where the zeros are known: triangles, comparisons, masks by name. A finite constant in the place of -inf is
    fine, and left alone.

    ## References
    - [torch.triu](https://docs.pytorch.org/docs/stable/generated/torch.triu.html)
    """

    meta = Meta(code="MSA302", name="zero-times-infinity", level=Level.ERROR, since="0.1.0", needs=("inf", "Inf"))

    @on(ZeroTimesInfinity)
    def multiplied(self, fact: ZeroTimesInfinity) -> Iterator[Diagnostic]:
        yield self.report(
            fact.at,
            f"0 * inf is NaN: this mask is NaN {fact.zeros}, and so are all scores that it is added to",
            trail=step(fact.made_at, "the zeros are made here"),
            help="fill with -inf (masked_fill, torch.where), or multiply by it before the triangle is cut",
            fix=_cut_last(fact),
        )


def _cut_last(fact: ZeroTimesInfinity) -> Fix | None:
    """The same mask with the triangle cut out of -inf, where it is written in one expression."""
    text = fact.at.text
    if found := TRIANGLE.fullmatch(text):
        mended = f"{found['head']}{found['ones']} * {found['inf']}{found['rest']})"
    elif found := METHOD.fullmatch(text):
        mended = f"({found['ones']} * {found['inf']}){found['tail']}"
    else:
        return None
    return Fix("multiply before the triangle is cut", (replace(fact.at, mended),), Safety.SAFE)
