"""MSA504 sdpa-mask-and-causal: a mask and the causal flag in one call of F.scaled_dot_product_attention."""

from __future__ import annotations

from msalint.facts import SdpaCalled
from msalint.rule import Diagnostic, Fix, Iterator, Level, Meta, Rule, Safety, on, replace, step


class SdpaMaskAndCausal(Rule):
    """
    ## What it does
    Reports calls of `F.scaled_dot_product_attention` that pass a mask together with `is_causal=True`.

    ## Why is this bad?
    The two exclude each other: the call is documented to raise, and does on most kernels and versions. Some kernels
    (the CPU's fused one in torch 2.5 to 2.13) take both without a word, so that the code works on one machine and
    raises on the next.

    ## Example
    ```python
    import torch.nn.functional as F


    def attend(query, key, value, padding_mask):
        mask = padding_mask[:, None, None, :]
        return F.scaled_dot_product_attention(query, key, value, attn_mask=mask, is_causal=True)
    ```

    ## Use instead
    ```python
    import torch
    import torch.nn.functional as F


    def attend(query, key, value, padding_mask):
        length = query.size(-2)
        causal = torch.ones(length, length, dtype=torch.bool, device=query.device).tril()
        mask = padding_mask[:, None, None, :] & causal
        return F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    ```

    ## Fix safety
    Unsafe: the flag is turned off, where the mask is seen to hide the future itself. Where it is not, that would let
    the future in without a word, so no fix is offered.

    ## Known limits
    Only paths on which both are known to be given are errors. A mask that is a parameter handed straight on, which may
    be None, beside a literal `is_causal=True` is a warning: the call raises for whoever passes a mask.

    ## References
    - [F.scaled_dot_product_attention](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html)
    """

    meta = Meta(
        code="MSA504",
        name="sdpa-mask-and-causal",
        level=Level.ERROR,
        since="0.1.0",
        needs=("scaled_dot_product_attention",),
    )

    @on(SdpaCalled)
    def both_given(self, fact: SdpaCalled) -> Iterator[Diagnostic]:
        if fact.api != "sdpa" or fact.causal is not True or fact.mask_given is False:
            return
        if fact.mask_given is None and not fact.mask_parameter:
            return
        sometimes = fact.mask_given is None
        yield self.report(
            fact.causal_site or fact.at,
            f"attn_mask and is_causal=True exclude each other: {'given a mask, ' if sometimes else ''}this call raises,"
            " or depends on the kernel that torch picks",
            trail=step(fact.mask_site, "the mask"),
            help="put the causal part into the mask and leave the flag off",
            fix=_flag_off(fact),
            level=Level.WARNING if sometimes else None,
        )


def _flag_off(fact: SdpaCalled) -> Fix | None:
    hides_future = fact.mask_hidden is not None and "causal" in fact.mask_hidden.kinds
    if fact.causal_site is None or fact.causal_site.text != "True" or not hides_future:
        return None
    return Fix("turn the flag off", (replace(fact.causal_site, "False"),), Safety.UNSAFE)
