"""MSA207 root-precedence: `d_k ** 1 / 2` is half of d_k, not its root."""

from __future__ import annotations

from msalint.facts import PowerPrecedence
from msalint.rule import Diagnostic, Fix, Iterator, Level, Meta, Rule, Safety, on, replace


class RootPrecedence(Rule):
    """
    ## What it does
    Reports `d_k ** 1 / 2`, `d_k ** -1 / 2`, `scores / d_k ** 1 / 2` and their kin, in which the power is taken before
    the division.

    ## Why is this bad?
    `d_k ** 1 / 2` is `(d_k ** 1) / 2`, half of d_k. As a scale it makes the scores of wide heads far too small (or,
    with the sign wrong, too large), and nothing raises.

    ## Example
    ```python
    import torch

    def attention(query, key, value):
        scale = query.size(-1) ** -1 / 2
        scores = query @ key.transpose(-2, -1) * scale
        return torch.softmax(scores, dim=-1) @ value
    ```

    ## Use instead
    ```python
    import torch

    def attention(query, key, value):
        scale = query.size(-1) ** (-1 / 2)
        scores = query @ key.transpose(-2, -1) * scale
        return torch.softmax(scores, dim=-1) @ value
    ```

    ## Fix safety
    Safe: an exponent of 1 does nothing, so the root that the parentheses make is what was meant. The numbers change,
    as they must; a model that was trained with the faulty scale should be trained again or keep it as `d_k / 2`.

    ## Known limits
    Only literal exponents of 1 or -1 over a literal number are looked at: `x ** n / 2` may mean what it says.

    ## References
    - [Python: operator precedence](https://docs.python.org/3/reference/expressions.html#operator-precedence)
    """

    meta = Meta(code="MSA207", name="root-precedence", level=Level.ERROR, since="0.1.0", needs=("**",))

    @on(PowerPrecedence)
    def power_binds_first(self, fact: PowerPrecedence) -> Iterator[Diagnostic]:
        yield self.report(
            fact.at,
            f"the power binds before the division, so this is {fact.value}, not a root of {fact.base}",
            fix=Fix("put the exponent in parentheses", (replace(fact.at, fact.mended),), Safety.SAFE),
        )
