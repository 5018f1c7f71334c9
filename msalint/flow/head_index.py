"""Indices that count heads, put to attention weights that have no heads any more."""

from __future__ import annotations

from msalint.diagnostic import Site
from msalint.facts import AveragedWeightsIndexed
from msalint.shapes.vocabulary import HEAD, role_of_name, says
from msalint.state import State
from msalint.syntax import nodes as n
from msalint.values import Tensor


def tell_averaged(state: State, weights: Tensor, call: Site, node: n.Index, around: object) -> None:
    """`weights[:, head]` of weights (batch, query, key), or of one sample's (query, key)."""
    whole, weights = state.resolve(state.averaged[id(call)]), state.resolve(weights)
    parts = [item for item in node.items if not (isinstance(item, n.Const) and item.value in (None, Ellipsis))]
    place = 1 if weights.lead is whole.lead and weights.axes == whole.axes else 0
    if place == 0 and (whole.lead is not None or weights.lead is not None or weights.axes != whole.axes[1:]):
        return
    if len(parts) == len(node.items) > place and counts_heads(parts[place], around):
        state.emit(AveragedWeightsIndexed(call, node, parts[place].text))
    elif whole.lead is None and place == 1 and len(parts) > len(whole.axes):
        state.emit(AveragedWeightsIndexed(call, node))


def counts_heads(index: n.Expr, around: object) -> bool:
    """Whether an index is called a head, or counts the heads in a loop of the function `around`."""
    if not isinstance(index, (n.Name, n.Attr)):
        return False
    if says(index.text.rsplit(".", 1)[-1], "head", "heads"):
        return True
    if not isinstance(index, n.Name) or not isinstance(around, n.Node):
        return False
    for node in around.walk():
        loops = [node] if isinstance(node, n.For) else node.loops if isinstance(node, n.Comprehension) else []
        for loop in loops:
            if isinstance(loop.target, n.Name) and loop.target.id == index.id and _over_heads(loop.iter.text):
                return True
    return False


def _over_heads(iterated: str) -> bool:
    """`range(self.num_heads)`."""
    return iterated.startswith("range(") and role_of_name(iterated[len("range(") : -1]) == HEAD
