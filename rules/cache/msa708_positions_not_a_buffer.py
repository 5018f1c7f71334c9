"""MSA708 positions-not-a-buffer: a table or mask that forward uses is kept where `.to(device)` does not reach it."""

from __future__ import annotations

from msalint.facts import LeftBehind
from msalint.rule import Diagnostic, Iterator, Level, Meta, Rule, on, step


class PositionsNotABuffer(Rule):
    """
    ## What it does
    Reports a table of positions or a mask that `__init__` makes and keeps under a plain attribute, and that a forward
    adds to its input or puts on scores without moving it.

    ## Why is this bad?
    `module.to(device)`, `.half()` and DataParallel move parameters and buffers, and nothing else. On a GPU the first
    call raises "expected all tensors to be on the same device"; tests on the CPU pass.

    ## Example
    ```python
    import torch
    from torch import nn


    class PositionalEncoding(nn.Module):
        def __init__(self, max_len, d_model):
            super().__init__()
            self.pe = torch.zeros(1, max_len, d_model)

        def forward(self, x):
            return x + self.pe[:, : x.size(1)]
    ```

    ## Use instead
    ```python
    import torch
    from torch import nn


    class PositionalEncoding(nn.Module):
        def __init__(self, max_len, d_model):
            super().__init__()
            self.register_buffer("pe", torch.zeros(1, max_len, d_model))

        def forward(self, x):
            return x + self.pe[:, : x.size(1)]
    ```

    ## Fix safety
    None is offered: a buffer enters the state dict, unless it is registered with `persistent=False`.

    ## Known limits
    A table that is made with a `device=`, or that goes through `.to(...)` on its way, is left alone. Code that never
    leaves the CPU has nothing to mend: ignore the rule there.

    ## References
    - [torch.nn.Module.register_buffer](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html)
    """

    meta = Meta(code="MSA708", name="positions-not-a-buffer", level=Level.WARNING, since="0.1.0")

    @on(LeftBehind)
    def not_moved(self, fact: LeftBehind) -> Iterator[Diagnostic]:
        yield self.report(
            fact.at,
            f"`{fact.name or 'this'}` is no buffer, so that it stays behind when the module is moved to a device: the"
            " next call raises there",
            trail=step(fact.used_at, "meets what lies where the inputs do"),
            help=f'use `self.register_buffer("{fact.name or "name"}", ..., persistent=False)`',
        )
