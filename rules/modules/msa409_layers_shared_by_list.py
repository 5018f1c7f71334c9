"""MSA409 layers-shared-by-list: a stack that is one layer over and over."""

from __future__ import annotations

import re

from msalint.facts import LayersShared
from msalint.rule import Diagnostic, Iterator, Level, Meta, Rule, on

_ON_PURPOSE = re.compile(
    r"shar(?:ed?|ing)|tied?\b|tying|tie_|albert|universal|recurr|recurs|loop|iterat|siamese|twin|common|global",
    re.IGNORECASE,
)


class LayersSharedByList(Rule):
    """
    ## What it does
    Reports an nn.ModuleList, or a Sequential, of one attention layer or block many times (`[layer] * n`,
    `[layer for _ in range(n)]`), or of blocks that are all given the same attention or feed-forward layer, built before
    the list.

    ## Why is this bad?
    A list holds references: there is one set of weights, whatever the depth. The model trains with a fraction of its
    parameters, each step adds up the gradients of all depths, and `state_dict()` still names every layer.

    ## Example
    ```python
    from torch import nn


    class Encoder(nn.Module):
        def __init__(self, width, heads, depth):
            super().__init__()
            layer = nn.TransformerEncoderLayer(width, heads, batch_first=True)
            self.layers = nn.ModuleList([layer for _ in range(depth)])

        def forward(self, x):
            for layer in self.layers:
                x = layer(x)
            return x
    ```

    ## Use instead
    ```python
    from torch import nn


    class Encoder(nn.Module):
        def __init__(self, width, heads, depth):
            super().__init__()
            self.layers = nn.ModuleList(
                [nn.TransformerEncoderLayer(width, heads, batch_first=True) for _ in range(depth)]
            )

        def forward(self, x):
            for layer in self.layers:
                x = layer(x)
            return x
    ```

    ## Fix safety
    None is offered: the layer is to be built, or deep-copied, inside the list, and a model that was trained with one
    set of weights has no others to load.

    ## Known limits
    Code that says that weights are shared or tied (ALBERT, universal and recurrent stacks) is left alone, and so are
    shared parts that form no attention: prediction heads, embeddings, norms, rotary tables. Blocks that are given one
    layer are a warning, as that may be meant. Lists that grow by `append` are not looked at.

    ## References
    - [copy.deepcopy](https://docs.python.org/3/library/copy.html)
    - [ALBERT](https://arxiv.org/abs/1909.11942), which shares on purpose
    """

    meta = Meta(
        code="MSA409",
        name="layers-shared-by-list",
        level=Level.ERROR,
        since="0.1.0",
        needs=("ModuleList", "Sequential"),
    )

    @on(LayersShared)
    def one_set_of_weights(self, fact: LayersShared) -> Iterator[Diagnostic]:
        if any(_ON_PURPOSE.search(text) for text in (fact.layer, *fact.purpose)):
            return
        if fact.whole:
            said = f"every element of this list is `{fact.layer}` itself: one set of weights, however deep the stack is"
            yield self.report(fact.at, said, help="build the layer inside the list, or copy.deepcopy it there")
        else:
            said = f"every layer of this list is given the same `{fact.layer}`: they share its weights"
            yield self.report(fact.at, said, help=f"build `{fact.layer}` inside the list", level=Level.WARNING)
