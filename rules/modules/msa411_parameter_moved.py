"""MSA411 parameter-moved: what a module keeps is a moved copy of its nn.Parameter."""

from __future__ import annotations

import re

from msalint.facts import ParameterMoved
from msalint.rule import Diagnostic, Edit, Fix, Iterator, Level, Meta, Rule, Safety, Span, on, step, wrap

_ONE_CALL = re.compile(r"[\w.]+(\([^()]*\))?", re.DOTALL)


class MovedParameter(Rule):
    """
    ## What it does
    Reports `self.name = nn.Parameter(...).to(device)` (or `.cuda()`, `.half()`, a dtype) in a module.

    ## Why is this bad?
    Where something is to be moved, `.to` returns a new tensor, which is no nn.Parameter: the module does not register
    it. It is not among `parameters()`, so no optimizer trains it; `state_dict()` does not save it and a later
    `.to(device)` leaves it behind. On a CPU in float32 nothing moves and the fault does not show.

    ## Example
    ```python
    import torch
    from torch import nn


    class PositionalEncoding(nn.Module):
        def __init__(self, length, width, device):
            super().__init__()
            self.pe = nn.Parameter(torch.zeros(1, length, width)).to(device)

        def forward(self, x):
            return x + self.pe[:, : x.size(1)]
    ```

    ## Use instead
    ```python
    import torch
    from torch import nn


    class PositionalEncoding(nn.Module):
        def __init__(self, length, width, device):
            super().__init__()
            self.pe = nn.Parameter(torch.zeros(1, length, width).to(device))

        def forward(self, x):
            return x + self.pe[:, : x.size(1)]
    ```

    ## Fix safety
    Safe: the same values on the same device, registered. A checkpoint saved before lacks them, as it always did.

    ## Known limits
    Parameters that need no gradient, moves to the CPU or to float32, what is wrapped or detached afterwards, and a
    registered parameter that forward moves are left alone.

    ## References
    - [torch.nn.Parameter](https://docs.pytorch.org/docs/stable/generated/torch.nn.parameter.Parameter.html)
    - [pytorch/pytorch#17484](https://github.com/pytorch/pytorch/issues/17484)
    """

    meta = Meta(code="MSA411", name="parameter-moved", level=Level.ERROR, since="0.1.0", needs=("Parameter",))

    @on(ParameterMoved)
    def kept_as_a_copy(self, fact: ParameterMoved) -> Iterator[Diagnostic]:
        yield self.report(
            fact.at,
            f"this gives a new tensor wherever it moves anything: `{fact.attribute}` is then no parameter, is not"
            " trained and not saved",
            trail=() if _chained(fact) else step(fact.parameter, "the parameter is made here"),
            help="move the data, or the module as a whole, and wrap it in nn.Parameter last",
            fix=_data_moved(fact),
        )


def _chained(fact: ParameterMoved) -> bool:
    return fact.at.span.start == fact.parameter.span.start and fact.at.text.startswith(fact.parameter.text)


def _data_moved(fact: ParameterMoved) -> Fix | None:
    """`nn.Parameter(data).to(device)` as `nn.Parameter(data.to(device))`."""
    if not _chained(fact) or fact.data is None:
        return None
    moves = fact.at.text[len(fact.parameter.text) :]
    plain = _ONE_CALL.fullmatch(fact.data.text) is not None
    moved = wrap(fact.data, "" if plain else "(", moves if plain else f"){moves}")
    cut = Edit(Span(fact.parameter.span.end, fact.at.span.end), "", fact.at.filename)
    edits = moved[1:] if plain else moved
    return Fix("move the data instead", (*edits, cut), Safety.SAFE)
