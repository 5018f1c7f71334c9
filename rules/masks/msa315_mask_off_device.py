"""MSA315 mask-off-device: a mask made in forward with no device meets scores that lie where the inputs do."""

from __future__ import annotations

from msalint.facts import OffDevice
from msalint.rule import Diagnostic, Fix, Iterator, Level, Meta, Rule, Safety, append_argument, on, step


class MaskOffDevice(Rule):
    """
    ## What it does
    Reports a mask that a forward (or a function as long as one of its inputs) makes with torch.ones, torch.full,
    torch.arange or nn.Transformer.generate_square_subsequent_mask and no `device=`, and that is put on scores or handed
    to an attention API without being moved.

    ## Why is this bad?
    The mask lies on torch's default device, which is the CPU, and the scores where the inputs are. On a GPU the first
    call raises "expected all tensors to be on the same device"; tests on the CPU pass.

    ## Example
    ```python
    import torch
    import torch.nn.functional as F


    def causal_attention(q, k, v):
        n = q.size(-2)
        past = torch.ones(n, n, dtype=torch.bool).tril()
        return F.scaled_dot_product_attention(q, k, v, attn_mask=past)
    ```

    ## Use instead
    ```python
    import torch
    import torch.nn.functional as F


    def causal_attention(q, k, v):
        n = q.size(-2)
        past = torch.ones(n, n, dtype=torch.bool, device=q.device).tril()
        return F.scaled_dot_product_attention(q, k, v, attn_mask=past)
    ```

    ## Fix safety
    Safe: `device=` of an input that is at hand; on the default device nothing changes, elsewhere the code raises as it
    is. Where no input is at hand there is no fix.

    ## Known limits
    What goes through `.to(...)`, `new_ones`, `ones_like`, a buffer, or is made in `__init__` or in a script is left
    alone, and so are masks that only index scores, for which torch takes a CPU tensor. Code that never leaves the CPU,
    or sets torch's default device, has nothing to mend: ignore the rule there.

    ## References
    - [torch.ones](https://docs.pytorch.org/docs/stable/generated/torch.ones.html)
    - [pytorch/pytorch#178684](https://github.com/pytorch/pytorch/issues/178684)
    """

    meta = Meta(code="MSA315", name="mask-off-device", level=Level.WARNING, since="0.1.0")

    @on(OffDevice)
    def made_elsewhere(self, fact: OffDevice) -> Iterator[Diagnostic]:
        yield self.report(
            fact.at,
            "made on torch's default device, the CPU, and put on scores that lie where the inputs do: this raises where"
            " that is a GPU",
            trail=step(fact.used_at, "the two meet here"),
            help="make it on the scores' device, or keep it as a buffer",
            fix=_device_given(fact),
        )


def _device_given(fact: OffDevice) -> Fix | None:
    """`device=` of an input at hand, for all that the mask is made of."""
    if not all(beside for _, beside in fact.made):
        return None
    edits = tuple(append_argument(site, f"device={beside}.device") for site, beside in fact.made)
    return Fix("make it on the device of the inputs", edits, Safety.SAFE)
