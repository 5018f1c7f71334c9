"""MSA320 additive-mask-multiplied: an additive mask is multiplied by a mask of zeros and ones."""

from __future__ import annotations

from msalint.facts import MaskCleared
from msalint.rule import Diagnostic, Iterator, Level, Meta, Rule, on, step


class AdditiveMaskMultiplied(Rule):
    """
    ## What it does
    Reports an additive mask (0 where a key is seen, far below 0 where it is hidden) that is multiplied by a 0/1 mask
    of what may be seen: tril of ones, `ids != pad`.

    ## Why is this bad?
    In an additive mask 0 means seen. Where the other mask is 0, that is where it was to hide more, the product is 0 and
    hides nothing; where it is 1, the mask stays as it was. A causal mask times tril of ones is 0 everywhere: the future
    is visible, and the loss of a language model falls to nothing. Times -inf, the zeros become NaN.

    ## Example
    ```python
    import torch


    def causal_attention(q, k, v):
        n = q.size(-2)
        bias = torch.full((n, n), torch.finfo(torch.float32).min, device=q.device).triu(1)
        bias = bias * torch.tril(torch.ones(n, n, device=q.device))
        scores = q @ k.transpose(-2, -1) / q.size(-1) ** 0.5 + bias
        return scores.softmax(dim=-1) @ v
    ```

    ## Use instead
    ```python
    import torch


    def causal_attention(q, k, v):
        n = q.size(-2)
        bias = torch.full((n, n), torch.finfo(torch.float32).min, device=q.device).triu(1)
        past = torch.tril(torch.ones(n, n, dtype=torch.bool, device=q.device))
        bias = bias.masked_fill(~past, torch.finfo(torch.float32).min)
        scores = q @ k.transpose(-2, -1) / q.size(-1) ** 0.5 + bias
        return scores.softmax(dim=-1) @ v
    ```

    ## Fix safety
    There is no fix: whether both masks are to hide (fill the one under the other), or one of them is not needed, is for
    the author to say.

    ## Known limits
    Both masks must be known: the additive one by the values it was made of (or by a docstring that calls it additive,
    then it is a warning), the other by what made it. A factor of what is to be hidden (`bias * (j > i)`) is left alone:
    both must agree to hide, which is a way to write an intersection.

    ## References
    - [huggingface/transformers#31673](https://github.com/huggingface/transformers/issues/31673)
    """

    meta = Meta(code="MSA320", name="additive-mask-multiplied", level=Level.ERROR, since="0.1.0")

    @on(MaskCleared)
    def cleared(self, fact: MaskCleared) -> Iterator[Diagnostic]:
        outcome = "it becomes NaN" if fact.infinite else "its hiding is cleared"
        yield self.report(
            fact.at,
            f"in an additive mask 0 means seen: multiplied by a mask of what is kept, {outcome} where that is 0",
            trail=step(fact.hidden_at, "additive mask made here") + step(fact.kept_at, "factor made here"),
            help="fill where the other mask hides: bias.masked_fill(~keep, torch.finfo(bias.dtype).min)",
            level=Level.WARNING if fact.said else None,
        )
