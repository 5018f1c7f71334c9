"""MSA106 key-transposed-wrongly: a product of attention contracts two different axes."""

from __future__ import annotations

import re

from msalint.facts import Multiplied, Weighted, axis_name, axis_size
from msalint.rule import Diagnostic, Fix, Iterator, Level, Meta, Rule, Safety, insert_after, on, replace, step

TURN = re.compile(r"\.(T|mT|t\(\)|(transpose|swapaxes|swapdims|permute)\([-\d, ]*\))$")

COMPETITION = re.compile(r"slot|compet|inverted", re.I)


class KeyTransposedWrongly(Rule):
    """
    ## What it does
    Reports a product of query and key that contracts d_k with another axis: no transpose at all, `.T` or `.t()` on a
    batch, the `transpose(1, 2)` of three axes on four. Also a product of weights and values that sums over the queries
    instead of the keys: `v @ weights`, or weights that were transposed after softmax.

    ## Why is this bad?
    Where the sizes differ torch raises; where they happen to agree (as many tokens as d_k, a square weight matrix)
    nothing is raised and the result is no attention: weights that were normalised over keys are summed over queries,
    so what reaches one token does not sum to 1.

    ## Example
    ```python
    import torch
    from torch import nn


    class Attention(nn.Module):
        def __init__(self, width, heads, d_k):
            super().__init__()
            self.heads, self.d_k = heads, d_k
            self.qkv = nn.Linear(width, 3 * heads * d_k)

        def forward(self, x):
            B, L, _ = x.shape
            q, k, v = self.qkv(x).view(B, L, 3, self.heads, self.d_k).permute(2, 0, 3, 1, 4).unbind(0)
            scores = torch.matmul(q, k) * self.d_k ** -0.5
            return torch.softmax(scores, dim=-1) @ v
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

        def forward(self, x):
            B, L, _ = x.shape
            q, k, v = self.qkv(x).view(B, L, 3, self.heads, self.d_k).permute(2, 0, 3, 1, 4).unbind(0)
            scores = torch.matmul(q, k.transpose(-2, -1)) * self.d_k ** -0.5
            return torch.softmax(scores, dim=-1) @ v
    ```

    ## Fix safety
    Unsafe: the numbers change wherever the product went through.

    ## Known limits
    Products whose axes are not known are left alone, and so are those that contract positions on purpose: linear
    attention, channel attention, cross-covariance, values kept as (batch, channels, pixels).

    ## References
    - [torch.matmul](https://docs.pytorch.org/docs/stable/generated/torch.matmul.html)
    - [torch.Tensor.T](https://docs.pytorch.org/docs/stable/tensors.html#torch.Tensor.T)
    """

    meta = Meta(code="MSA106", name="key-transposed-wrongly", level=Level.ERROR, since="0.1.0")

    @on(Multiplied)
    def contracts_features_with_positions(self, fact: Multiplied) -> Iterator[Diagnostic]:
        if not fact.swapped:
            return
        left, right = (axis_name(axis) for axis in fact.product.contracted)
        moved = fact.product.right.traits.moved
        yield self.report(
            fact.at,
            f"this product pairs {left} of the query with {right} of the key: torch raises, or where the two sizes"
            " happen to agree the scores mean nothing",
            trail=step(moved[0], f"the key's axes were last moved by this {moved[1]}") if moved else (),
            help="the last two axes of the key have to change places: `.transpose(-2, -1)`",
            fix=_last_two_turned(fact),
        )

    @on(Weighted)
    def sums_over_queries(self, fact: Weighted) -> Iterator[Diagnostic]:
        said = " ".join((fact.weights_site.text, *fact.purpose))
        if not fact.swapped or fact.renormalised or COMPETITION.search(said):
            return
        plain = TURN.sub("", fact.weights_site.text)
        turned = fact.transposed_after is not None and plain != fact.weights_site.text
        edits = (replace(fact.weights_site, plain),) if turned else ()
        yield self.report(
            fact.at,
            f"softmax normalised {fact.normalised}, but this product sums over {fact.contracted}, the queries' axis, so"
            " the weights that reach one token do not sum to 1",
            trail=step(fact.softmax.at, f"normalised over {fact.normalised} here")
            + step(fact.transposed_after, "the weights are transposed here"),
            help="values are summed over the axis that softmax normalised: `weights @ value`",
            fix=Fix("use the weights as softmax left them", edits, Safety.UNSAFE) if edits else None,
        )

    @on(Weighted)
    def keys_gather_values(self, fact: Weighted) -> Iterator[Diagnostic]:
        if not fact.exchanged or fact.renormalised:
            return
        yield self.report(
            fact.transposed_after or fact.at,
            f"the weights are normalised and summed over {fact.contracted}, the queries' axis, so each key gathers"
            " values: what is called query and key have changed places, and a mask or another length tells them apart",
            trail=step(fact.softmax.at, f"normalised over {fact.normalised} here"),
            help="normalise over the keys (`dim=-1`), and use the weights as they are",
            level=Level.WARNING,
        )


def _last_two_turned(fact: Multiplied) -> Fix | None:
    """`k`, `k.T` or `k.transpose(1, 2)` -> `k.transpose(-2, -1)`, where the axes in front agree or a turn is undone."""
    text = fact.right_site.text
    plain = TURN.sub("", text)
    left, right = ([axis_size(axis) for axis in side.axes[:-2]] for side in (fact.product.left, fact.product.right))
    title = "turn the key with `.transpose(-2, -1)`"
    if plain != text:
        return Fix(title, (replace(fact.right_site, f"{plain}.transpose(-2, -1)"),), Safety.UNSAFE)
    if left == right and re.fullmatch(r"[\w.\[\]]+", text):
        return Fix(title, (insert_after(fact.right_site, ".transpose(-2, -1)"),), Safety.UNSAFE)
    return None
