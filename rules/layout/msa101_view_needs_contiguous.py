"""MSA101 view-needs-contiguous: a view merges axes that are not next to each other in memory."""

from __future__ import annotations

from msalint.facts import Viewed
from msalint.rule import Diagnostic, Fix, Iterator, Level, Meta, Rule, Safety, insert_after, on, step


class ViewNeedsContiguous(Rule):
    """
    ## What it does
    Reports a `.view(...)` or `.view_as(...)` that has to merge axes which are not adjacent, in that order, in memory:
    after `transpose`, `permute`, `swapaxes`, `movedim`, `.T`, `.mT`, `expand`, or a slice of an inner axis, in the same
    chain, some statements later, or in a helper.

    ## Why is this bad?
    A view never copies. Where the strides don't allow one stride for the merged axis, torch raises
    `RuntimeError: view size is not compatible with input tensor's size and stride`. `clone`, casts, elementwise
    operations and dropout keep the strides they are given, so none of them helps.

    ## Example
    ```python
    import torch
    from torch import nn


    class Attention(nn.Module):
        def __init__(self, width, heads, d_k):
            super().__init__()
            self.heads, self.d_k = heads, d_k
            self.qkv = nn.Linear(width, 3 * heads * d_k)
            self.out = nn.Linear(heads * d_k, width)

        def forward(self, x):
            B, L, _ = x.shape
            q, k, v = self.qkv(x).view(B, L, 3, self.heads, self.d_k).permute(2, 0, 3, 1, 4).unbind(0)
            weights = torch.softmax(q @ k.transpose(-2, -1) * self.d_k ** -0.5, dim=-1)
            context = (weights @ v).transpose(1, 2)
            return self.out(context.view(B, L, self.heads * self.d_k))
    ```

    ## Use instead
    ```python
    import torch
    from torch import nn


    class Attention(nn.Module):
        def __init__(self, width, heads, d_k):
            super().__init__()
            self.heads, self.d_k = heads, d_k
            self.qkv = nn.Linear(width, 3 * heads * d_k)
            self.out = nn.Linear(heads * d_k, width)

        def forward(self, x):
            B, L, _ = x.shape
            q, k, v = self.qkv(x).view(B, L, 3, self.heads, self.d_k).permute(2, 0, 3, 1, 4).unbind(0)
            weights = torch.softmax(q @ k.transpose(-2, -1) * self.d_k ** -0.5, dim=-1)
            context = (weights @ v).transpose(1, 2)
            return self.out(context.contiguous().view(B, L, self.heads * self.d_k))
    ```

    ## Fix safety
    Safe: `.contiguous()` returns the tensor itself where it is contiguous already, and a copy with the same values
    where the view would raise. `.reshape` does the same.

    ## Known limits
    The memory order of what `einsum` and `F.scaled_dot_product_attention` return is not documented: it depends on the
    kernel, the device and the version, so a view that needs one order is a warning there. Tensors that come in as
    arguments are taken to be contiguous.

    ## References
    - [torch.Tensor.view](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.view.html)
    - [Tensor views](https://docs.pytorch.org/docs/stable/tensor_view.html)
    """

    meta = Meta(code="MSA101", name="view-needs-contiguous", level=Level.ERROR, since="0.1.0", needs=("view",))

    @on(Viewed)
    def merges_what_is_apart(self, fact: Viewed) -> Iterator[Diagnostic]:
        if fact.broken is None or fact.scramble is not None or fact.mismatch:
            return
        outer, inner = fact.broken.outer.name, fact.broken.inner.name
        if fact.certain:
            message = f"this {fact.op} merges {outer} and {inner}, which are apart in memory, so torch raises here"
        else:
            message = (
                f"this {fact.op} merges {outer} and {inner}, and torch raises unless the kernel that ran"
                " happened to leave them adjacent in memory"
            )
        yield self.report(
            fact.at,
            message,
            trail=step(fact.moved_at, f"moved apart in memory by this {fact.moved_by or 'operation'}"),
            fix=Fix(
                f"insert `.contiguous()` before the {fact.op}",
                (insert_after(fact.receiver, ".contiguous()"),),
                Safety.SAFE,
            ),
            level=None if fact.certain else Level.WARNING,
        )
