"""MSA305 masked-fill-discarded: the result of an operation that returns a new tensor is thrown away."""

from __future__ import annotations

from msalint.facts import Discarded
from msalint.rule import Diagnostic, Fix, Iterator, Level, Meta, Rule, Safety, on, replace

KEEPS = {"masked_fill": "unmasked", "softmax": "unnormalised", "log_softmax": "unnormalised"}


class MaskedFillDiscarded(Rule):
    """
    ## What it does
    Reports a statement that calls masked_fill, softmax, transpose, contiguous or one of their kin on a tensor, or adds
    a mask to it, and does nothing with the result, while the tensor itself is used afterwards.

    ## Why is this bad?
    None of these change the tensor they are called on. The scores that go on are unmasked, the weights unnormalised,
    the axes where they were; as the shape of a fill or a softmax is that of its input, nothing raises.

    ## Example
    ```python
    import torch


    def attention(q, k, v, mask):
        scores = q @ k.transpose(-2, -1) / q.size(-1) ** 0.5
        scores.masked_fill(mask == 0, -1e9)
        return torch.softmax(scores, dim=-1) @ v
    ```

    ## Use instead
    ```python
    import torch


    def attention(q, k, v, mask):
        scores = q @ k.transpose(-2, -1) / q.size(-1) ** 0.5
        scores = scores.masked_fill(mask == 0, -1e9)
        return torch.softmax(scores, dim=-1) @ v
    ```

    ## Fix safety
    Safe: the result is assigned back to the name, which is what the statement was written for.

    ## Known limits
    Statements of a script or a notebook cell, results that nothing reads afterwards (warm-up, timing), an error that is
    awaited, and a second fill of weights that were masked before their softmax are left alone.

    ## References
    - [torch.Tensor.masked_fill_](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.masked_fill_.html)
    """

    meta = Meta(code="MSA305", name="masked-fill-discarded", level=Level.ERROR, since="0.1.0")

    @on(Discarded)
    def thrown_away(self, fact: Discarded) -> Iterator[Diagnostic]:
        if not fact.used_after or fact.harmless or (fact.operation in {"+", "-", "*"} and not fact.masks):
            return
        what = "adding the mask" if fact.masks and fact.operation == "+" else fact.operation
        state = "unmasked" if fact.masks else KEEPS.get(fact.operation, "as it was")
        assigned = f"{fact.target} = {fact.at.text}"
        yield self.report(
            fact.at,
            f"{what} returns a new tensor, which is thrown away here: `{fact.target}` goes on {state}",
            fix=Fix(f"assign it to `{fact.target}`", (replace(fact.at, assigned),), Safety.SAFE),
        )
