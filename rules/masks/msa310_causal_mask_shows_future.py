"""MSA310 causal-mask-shows-future: the wrong triangle is hidden, so that a token sees what comes after it."""

from __future__ import annotations

from msalint.facts import MaskAdded, MaskFilled, MhaCalled, Region, SdpaCalled, reads_backwards
from msalint.rule import Diagnostic, Fix, Iterator, Level, Meta, Rule, Safety, Site, on, step, wrap


class CausalMaskShowsFuture(Rule):
    """
    ## What it does
    Reports scores whose lower triangle is hidden: masked_fill(tril), masked_fill(triu == 0), torch.where with its
    branches exchanged, an additive mask with -inf below the diagonal.

    ## Why is this bad?
    Each token sees its future and not its past. Trained on the next token, the model copies the answer: the loss falls
    to nothing, and what it generates is noise.

    ## Example
    ```python
    import torch


    def causal_attention(q, k, v):
        n = q.size(-2)
        mask = torch.tril(torch.ones(n, n, dtype=torch.bool, device=q.device))
        scores = q @ k.transpose(-2, -1) / q.size(-1) ** 0.5
        return torch.softmax(scores.masked_fill(mask, -1e9), dim=-1) @ v
    ```

    ## Use instead
    ```python
    import torch


    def causal_attention(q, k, v):
        n = q.size(-2)
        mask = torch.tril(torch.ones(n, n, dtype=torch.bool, device=q.device))
        scores = q @ k.transpose(-2, -1) / q.size(-1) ** 0.5
        return torch.softmax(scores.masked_fill(~mask, -1e9), dim=-1) @ v
    ```

    ## Fix safety
    Unsafe: every output changes.

    ## Known limits
    A boolean triangle handed to an attention API the wrong way round is mask-inverted (MSA308). Models that read
    backwards are known by the names and docstrings around.

    ## References
    - [torch.tril](https://docs.pytorch.org/docs/stable/generated/torch.tril.html)
    """

    meta = Meta(code="MSA310", name="causal-mask-shows-future", level=Level.ERROR, since="0.1.0")

    @on(MaskFilled)
    def filled(self, fact: MaskFilled) -> Iterator[Diagnostic]:
        if fact.fill is None or fact.fill < -50:
            negatable = fact.how == "masked_fill" and fact.mask_site.text.isidentifier()
            fix = Fix("negate the mask", wrap(fact.mask_site, "~", ""), Safety.UNSAFE) if negatable else None
            yield from self._judge(fact.hidden, fact.at, fact.purpose, fix)

    @on(MaskAdded)
    def added(self, fact: MaskAdded) -> Iterator[Diagnostic]:
        yield from self._judge(fact.hidden, fact.at, fact.purpose)

    @on(SdpaCalled)
    def handed_to_a_kernel(self, fact: SdpaCalled) -> Iterator[Diagnostic]:
        if fact.mask_additive and fact.mask_site is not None:
            yield from self._judge(fact.mask_hidden, fact.mask_site, fact.purpose)

    @on(MhaCalled)
    def handed_to_a_module(self, fact: MhaCalled) -> Iterator[Diagnostic]:
        for mask in fact.masks:
            if mask.additive:
                yield from self._judge(mask.hidden, mask.site, fact.purpose)

    def _judge(
        self, hidden: Region | None, at: Site, purpose: tuple[str, ...], fix: Fix | None = None
    ) -> Iterator[Diagnostic]:
        if hidden is None or not hidden.hides_past or reads_backwards(purpose):
            return
        yield self.report(
            at,
            "the lower triangle is hidden here: each token sees what comes after it and nothing of what came before",
            trail=step(hidden.made_at, "the triangle is made here"),
            help="hide the upper triangle, without the diagonal",
            fix=fix,
        )
