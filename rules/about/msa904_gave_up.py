"""MSA904 gave-up: a definition that was left out because it outgrew the limits of the analysis."""

from __future__ import annotations

from msalint.facts import GaveUp
from msalint.rule import Diagnostic, Iterator, Level, Meta, Rule, on


class GaveUpRule(Rule):
    """
    ## What it does
    Reports a class or function that was not followed to its end: it is nested too deeply, or has more branches, calls
    or values than the analysis keeps.

    ## Why is this bad?
    It isn't. But no rule has looked at the rest of the definition, so silence about it means nothing.

    ## Example
    ```python
    import torch

    def weights(scores):
        return torch.softmax(scores + NESTED, dim=-1)
    ```

    ## Use instead
    ```python
    import torch

    def weights(scores, bias):
        return torch.softmax(scores + bias, dim=-1)
    ```
    where NESTED stands for an expression of some thousand nested parentheses, as generators of code write them.

    ## Fix safety
    There is no fix. Shorter functions help the reader too.

    ## Known limits
    None known.

    ## References
    None.
    """

    meta = Meta(code="MSA904", name="gave-up", level=Level.NOTE, since="0.1.0")

    @on(GaveUp)
    def outgrown(self, fact: GaveUp) -> Iterator[Diagnostic]:
        yield self.report(fact.at, f"this definition was left out: {fact.reason}")
