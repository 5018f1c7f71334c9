"""MSA309 causal-mask-hides-diagonal: a causal mask that hides a token from itself."""

from __future__ import annotations

import re

from msalint.facts import MaskAdded, MaskFilled, MhaCalled, Region, SdpaCalled
from msalint.rule import Diagnostic, Fix, Iterator, Level, Meta, Rule, Safety, Site, append_argument, on, replace, step

ON_PURPOSE = re.compile(r"strict|shift|start.?token|\bbos\b|previous|itself|exclu", re.IGNORECASE)
WRITTEN = re.compile(r"(?<=diagonal=)(?:0|-1)\b|(?<=offset=)(?:0|-1)\b|(?<=triu\()0(?=\))|(?<=tril\()-1(?=\))")


class CausalMaskHidesDiagonal(Rule):
    """
    ## What it does
    Reports a causal mask with the diagonal on the wrong side: triu(0) or triu_indices with offset 0 as what is hidden,
    tril(-1) or `key < query` as what is kept.

    ## Why is this bad?
    A token may not attend to itself, and the first one may attend to nothing: its row is NaN (or the mean of all
    values, the future too, under a finite fill). The model has to predict from the token before the last.

    ## Example
    ```python
    import torch


    def causal_attention(q, k, v):
        n = q.size(-2)
        future = torch.triu(torch.ones(n, n, device=q.device), diagonal=0).bool()
        scores = q @ k.transpose(-2, -1) / q.size(-1) ** 0.5
        return torch.softmax(scores.masked_fill(future, -1e9), dim=-1) @ v
    ```

    ## Use instead
    ```python
    import torch


    def causal_attention(q, k, v):
        n = q.size(-2)
        future = torch.triu(torch.ones(n, n, device=q.device), diagonal=1).bool()
        scores = q @ k.transpose(-2, -1) / q.size(-1) ** 0.5
        return torch.softmax(scores.masked_fill(future, -1e9), dim=-1) @ v
    ```

    ## Fix safety
    Unsafe: every output changes.

    ## Known limits
    Diagonals that are worked out (cached keys, windows) are not judged. Strictly-past attention that is meant, with a
    start token in front of the keys, is known by the names and docstrings around.

    ## References
    - [torch.triu](https://docs.pytorch.org/docs/stable/generated/torch.triu.html)
    """

    meta = Meta(code="MSA309", name="causal-mask-hides-diagonal", level=Level.ERROR, since="0.1.0")

    @on(MaskFilled, MaskAdded)
    def put_on_scores(self, fact: MaskFilled | MaskAdded) -> Iterator[Diagnostic]:
        if fact.fill is None or fact.fill < -50:
            yield from self._judge(fact.hidden, fact.at, fact.purpose)

    @on(SdpaCalled)
    def handed_to_a_kernel(self, fact: SdpaCalled) -> Iterator[Diagnostic]:
        yield from self._judge(fact.mask_hidden, fact.at, fact.purpose)

    @on(MhaCalled)
    def handed_to_a_module(self, fact: MhaCalled) -> Iterator[Diagnostic]:
        for mask in fact.masks:
            yield from self._judge(mask.hidden, mask.site, fact.purpose)

    def _judge(self, hidden: Region | None, used_at: Site, purpose: tuple[str, ...]) -> Iterator[Diagnostic]:
        if hidden is None or not hidden.hides_itself or any(map(ON_PURPOSE.search, purpose)):
            return
        yield self.report(
            hidden.made_at or used_at,
            "this causal mask hides the diagonal: a token may not see itself, and the first one sees nothing at all",
            trail=step(used_at, "used to hide keys here"),
            help="hide what lies strictly above the diagonal",
            fix=_one_up(hidden.made_at),
        )


def _one_up(made_at: Site | None) -> Fix | None:
    """The triangle with its diagonal one further up."""
    text = made_at.text if made_at is not None else ""
    if made_at is None or "tri" not in text:
        return None
    if len(WRITTEN.findall(text)) == 1:
        mended = WRITTEN.sub(lambda found: str(int(found[0]) + 1), text)
        return Fix("move the diagonal by one", (replace(made_at, mended),), Safety.UNSAFE)
    if "triu(" in text and "diagonal" not in text and text.endswith(")"):
        return Fix("begin above the diagonal", (append_argument(made_at, "diagonal=1"),), Safety.UNSAFE)
    return None
