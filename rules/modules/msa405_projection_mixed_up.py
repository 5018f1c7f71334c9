"""MSA405 projection-mixed-up: a key or value made by another one's layer, while its own is never called."""

from __future__ import annotations

import re

from msalint.facts import MixedUp, Projected
from msalint.rule import Diagnostic, Fix, Iterator, Level, Meta, Rule, Safety, on, replace, step

ON_PURPOSE = re.compile(r"shar(ed?|ing)\b|\btie[ds]?\b|\btying\b|reuse|reformer", re.IGNORECASE)


class ProjectionMixedUp(Rule):
    """
    ## What it does
    Reports a query, key or value that is made by the projection of another of the three, where the module builds a
    projection for it and never calls that one.

    ## Why is this bad?
    Two of the three are the same map of the input, which is less than the module was meant to learn, and nothing
    raises. The layer that stands idle gets no gradient: its weights stay as they were drawn, in every checkpoint.

    ## Example
    ```python
    import torch
    from torch import nn


    class Attention(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.width = width
            self.q_proj, self.k_proj, self.v_proj = (nn.Linear(width, width) for _ in range(3))

        def forward(self, x):
            q, k, v = self.q_proj(x), self.k_proj(x), self.k_proj(x)
            return torch.softmax(q @ k.mT * self.width ** -0.5, dim=-1) @ v
    ```

    ## Use instead
    ```python
    import torch
    from torch import nn


    class Attention(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.width = width
            self.q_proj, self.k_proj, self.v_proj = (nn.Linear(width, width) for _ in range(3))

        def forward(self, x):
            q, k, v = self.q_proj(x), self.k_proj(x), self.v_proj(x)
            return torch.softmax(q @ k.mT * self.width ** -0.5, dim=-1) @ v
    ```

    ## Fix safety
    Unsafe: another layer is called, whose weights were never trained.

    ## Known limits
    Layers are told apart by their names. Queries and keys of one layer (Reformer), and keys and values of one, are
    left alone where the module has no layer for the other, where another path or method uses it, or where names and
    docstrings speak of sharing.

    ## References
    - [Attention Is All You Need](https://arxiv.org/abs/1706.03762), section 3.2.2
    """

    meta = Meta(code="MSA405", name="projection-mixed-up", level=Level.ERROR, since="0.1.0", every_path=True)

    @on(Projected)
    def made_by_another(self, fact: Projected) -> Iterator[Diagnostic]:
        if any(map(ON_PURPOSE.search, fact.purpose)):
            return
        for mixed in fact.mixed_up:
            yield self.report(
                mixed.at,
                f"the {mixed.slot} is made by `{mixed.used}`, and `{mixed.own}` is never called: it gets no gradient,"
                f" and the {mixed.slot} has no projection of its own",
                trail=step(fact.at, f"used as the {mixed.slot} here"),
                help=f"call `{mixed.own}`",
                fix=_own_layer(mixed),
            )


def _own_layer(mixed: MixedUp) -> Fix | None:
    text, times = re.subn(rf"\b{re.escape(mixed.used)}\b", mixed.own, mixed.at.text)
    return Fix(f"call `{mixed.own}`", (replace(mixed.at, text),), Safety.UNSAFE) if times == 1 else None
