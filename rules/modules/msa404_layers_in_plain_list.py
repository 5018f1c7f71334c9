"""MSA404 layers-in-plain-list: layers kept where torch does not find them."""

from __future__ import annotations

from msalint.facts import PlainList
from msalint.rule import Diagnostic, Fix, Iterator, Level, Meta, Rule, Safety, on, step, wrap


class LayersInPlainList(Rule):
    """
    ## What it does
    Reports heads, projections or blocks that an nn.Module keeps in a Python list, tuple or dict and calls in its
    forward.

    ## Why is this bad?
    Only modules that are attributes, or stand in an nn.ModuleList or nn.ModuleDict, are registered. The layers in a
    plain list are not among `parameters()`, so the optimizer never trains them; `state_dict()` does not save them,
    and `.to(device)` leaves them behind. Forward runs all the same.

    ## Example
    ```python
    import torch
    import torch.nn.functional as F
    from torch import nn


    class Head(nn.Module):
        def __init__(self, width, d_k):
            super().__init__()
            self.query, self.key, self.value = nn.Linear(width, d_k), nn.Linear(width, d_k), nn.Linear(width, d_k)

        def forward(self, x):
            return F.scaled_dot_product_attention(self.query(x), self.key(x), self.value(x))


    class MultiHead(nn.Module):
        def __init__(self, width, num_heads, d_k):
            super().__init__()
            self.heads = [Head(width, d_k) for _ in range(num_heads)]

        def forward(self, x):
            return torch.cat([head(x) for head in self.heads], dim=-1)
    ```

    ## Use instead
    ```python
    import torch
    import torch.nn.functional as F
    from torch import nn


    class Head(nn.Module):
        def __init__(self, width, d_k):
            super().__init__()
            self.query, self.key, self.value = nn.Linear(width, d_k), nn.Linear(width, d_k), nn.Linear(width, d_k)

        def forward(self, x):
            return F.scaled_dot_product_attention(self.query(x), self.key(x), self.value(x))


    class MultiHead(nn.Module):
        def __init__(self, width, num_heads, d_k):
            super().__init__()
            self.heads = nn.ModuleList([Head(width, d_k) for _ in range(num_heads)])

        def forward(self, x):
            return torch.cat([head(x) for head in self.heads], dim=-1)
    ```

    ## Fix safety
    Safe where everything in the container is known to be a module (or None), and everything that the file does with
    it, a ModuleList does as well: loops, an index, a slice, `len`, `in`, `enumerate`, `zip`, `reversed`, `append`,
    `extend`, `+=`, `insert(0, ...)`, unpacking, and what helpers do that it is handed to. Of a dict: keys that are
    strings, `keys`, `values`, `items`, `in`, `pop(key)`.

    Unsafe where that is not known: the list is returned, handed to a function of another file, read by
    `getattr(self, name)`, holds what a parameter brought.

    Not offered where a ModuleList can't do it, and that place is shown: `pop()`, `remove`, `index`, `count`, `sort`,
    `reverse`, `copy`, `clear`, `==`, `[...] + self.blocks`, `self.blocks * 2`, tuples or strings among the layers, an
    assignment in front of `super().__init__()`; `get` or `setdefault` of a dict, a key with a dot.

    Either way the layers show up in `parameters()` and `state_dict()` from then on. A checkpoint saved before lacks
    them, as it always did, and is loaded with `strict=False`.

    ## Known limits
    Layers that are also registered another way (a Sequential or ModuleList made of the list, `add_module`, `setattr`,
    an attribute of their own), layers without parameters, and a module handed in from outside and hidden in a list on
    purpose are left alone. What other files do with the attribute of such a module is not looked into when its fix is
    called safe.

    ## References
    - [torch.nn.ModuleList](https://docs.pytorch.org/docs/stable/generated/torch.nn.ModuleList.html)
    - [torch.nn.ModuleDict](https://docs.pytorch.org/docs/stable/generated/torch.nn.ModuleDict.html)
    """

    meta = Meta(code="MSA404", name="layers-in-plain-list", level=Level.ERROR, since="0.1.0")

    @on(PlainList)
    def not_registered(self, fact: PlainList) -> Iterator[Diagnostic]:
        home = "nn.ModuleDict" if fact.container == "dict" else "nn.ModuleList"
        bare = fact.container == "tuple" and not fact.at.text.startswith("(")
        before, after = (f"{home}((", "))") if bare else (f"{home}(", ")")
        safety = Safety.SAFE if fact.fits == "yes" else Safety.UNSAFE
        fix = Fix(f"use {home}", wrap(fact.at, before, after), safety, imports=("from torch import nn",))
        yield self.report(
            fact.at,
            f"the {fact.layers} in this {fact.container} are not registered with the module: they are never trained,"
            " saved or moved to a device",
            trail=step(fact.lacking, f"{home} can't do this"),
            help=f"use {home}",
            fix=None if fact.fits == "no" else fix,
        )
