"""MSA507 sdpa-padding-mask: a key padding mask handed to F.scaled_dot_product_attention as it is."""

from __future__ import annotations

from msalint.facts import MaskMisplaced
from msalint.rule import Diagnostic, Fix, Iterator, Level, Meta, Rule, Safety, insert_after, on


class SdpaPaddingMask(Rule):
    """
    ## What it does
    Reports a (batch, seq) mask given to `F.scaled_dot_product_attention` with no axes for heads and queries.

    ## Why is this bad?
    The mask is broadcast against (batch, head, query, key) from the right, so its batch lies on the queries. Where the
    sizes differ the call raises; with one sample, or as many samples as tokens, it hides the wrong keys without a word.
    Only nn.MultiheadAttention has a parameter for masks of this shape (key_padding_mask).

    ## Example
    ```python
    import torch.nn.functional as F


    def attend(query, key, value, keep):
        batch, heads, length, d_k = query.shape
        batch, length = keep.shape
        return F.scaled_dot_product_attention(query, key, value, attn_mask=keep)
    ```

    ## Use instead
    ```python
    import torch.nn.functional as F


    def attend(query, key, value, keep):
        batch, heads, length, d_k = query.shape
        batch, length = keep.shape
        return F.scaled_dot_product_attention(query, key, value, attn_mask=keep[:, None, None, :])
    ```

    ## Fix safety
    Unsafe: which keys are hidden changes, as it must.

    ## Known limits
    The mask's two axes must be known, the first one as the batch: by its name, or as that of the queries.

    ## References
    - [F.scaled_dot_product_attention](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html)
    """

    meta = Meta(
        code="MSA507",
        name="sdpa-padding-mask",
        level=Level.ERROR,
        since="0.1.0",
        needs=("scaled_dot_product_attention",),
    )

    @on(MaskMisplaced)
    def batch_on_queries(self, fact: MaskMisplaced) -> Iterator[Diagnostic]:
        if fact.api != "sdpa" or not fact.two_axes:
            return
        yield self.report(
            fact.mask_site,
            f"this {fact.mask} mask is broadcast against {fact.onto} from the right, so its {fact.axis} lies on the"
            " queries: this raises, or hides the wrong keys where the sizes happen to agree",
            fix=_with_axes(fact),
        )


def _with_axes(fact: MaskMisplaced) -> Fix | None:
    missing = "None, " * (fact.onto.count(",") - 1)
    if not fact.mask_site.text.replace(".", "").replace("_", "").isalnum():
        return None
    return Fix(f"write `[:, {missing}:]`", (insert_after(fact.mask_site, f"[:, {missing}:]"),), Safety.UNSAFE)
