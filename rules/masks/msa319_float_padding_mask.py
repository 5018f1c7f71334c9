"""MSA319 float-padding-mask: a mask of numbers 0 and 1 is handed to an API that adds such masks to the scores."""

from __future__ import annotations

from msalint.facts import NumbersAsMask
from msalint.rule import Diagnostic, Fix, Iterator, Level, Meta, Rule, Safety, on, replace, step


class FloatPaddingMask(Rule):
    """
    ## What it does
    Reports a mask of zeros and ones that is no boolean one (`keep.float()`, tril of ones, `(ids != pad).long()`) and
    is handed to F.scaled_dot_product_attention, nn.MultiheadAttention or nn.Transformer*.

    ## Why is this bad?
    These add a mask of floats to the scores. 0 and 1 hide nothing: the keys marked with 1 get a little more weight, and
    padding and future are attended. A mask of integers is refused with an error.

    ## Example
    ```python
    import torch
    import torch.nn.functional as F


    def causal_attention(q, k, v):
        n = q.size(-2)
        mask = torch.tril(torch.ones(n, n, device=q.device))
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    ```

    ## Use instead
    ```python
    import torch
    import torch.nn.functional as F


    def causal_attention(q, k, v):
        n = q.size(-2)
        mask = torch.tril(torch.ones(n, n, device=q.device)).bool()
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    ```

    ## Fix safety
    Unsafe: what is hidden changes. `.bool()` or `== 0`, whichever gives the truth that the API takes: True is attended
    in F.scaled_dot_product_attention, and hidden in nn.MultiheadAttention and nn.Transformer*.

    ## Known limits
    The mask's values and its dtype must be known from what made it; where only a docstring tells the values it is a
    warning. A mask known by name alone is left alone, whatever it is cast to: it may be an additive one.

    ## References
    - [F.scaled_dot_product_attention](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html)
    - [nn.MultiheadAttention](https://docs.pytorch.org/docs/stable/generated/torch.nn.MultiheadAttention.html)
    """

    meta = Meta(code="MSA319", name="float-padding-mask", level=Level.ERROR, since="0.1.0")

    @on(NumbersAsMask)
    def handed_over(self, fact: NumbersAsMask) -> Iterator[Diagnostic]:
        if fact.dtype in {"int", "uint8"}:
            said = f"{fact.parameter} takes booleans, or floats to be added: a mask of integers raises"
        else:
            said = f"a float {fact.parameter} is added to the scores: its zeros and ones hide nothing"
        yield self.report(
            fact.mask_site,
            said,
            trail=step(fact.made_at, "the zeros and ones are made here") + step(fact.at, "added to the scores here"),
            fix=_as_truths(fact),
            level=Level.WARNING if fact.said else None,
        )


def _as_truths(fact: NumbersAsMask) -> Fix | None:
    """The mask as booleans, True where the API has it."""
    meaning = fact.ones.meaning_or_triangle()
    if meaning is None:
        return None
    text = fact.mask_site.text
    whole = text if text.endswith(")") or text.replace(".", "").replace("_", "").isalnum() else f"({text})"
    same = (meaning == "keep") == fact.keep_true
    mended = replace(fact.mask_site, f"{whole}.bool()" if same else f"{whole} == 0")
    return Fix("make it boolean", (mended,), Safety.UNSAFE)
