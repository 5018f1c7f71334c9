"""Properties of who sees whom: tokens that meet, and key heads that are shared in order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from msalint.runtime.contraction import contraction_of
from msalint.runtime.experiment import Experiment, NotApplicable
from msalint.runtime.outcome import Failed, Shown
from msalint.runtime.shape_tracing import run_traced
from msalint.runtime.tracer import TracedOp, Tracer


def tokens_meet(it: Experiment) -> Shown:
    tokens, output = it.tokenwise(0)
    if tokens.shape[1] < 2:
        raise NotApplicable("it has one token")
    if len(it.data) > 1 + len([name for name in it.same if name != it.main]):
        raise NotApplicable("it attends to another input")
    if it.is_of_scores(tokens, output):
        raise NotApplicable("it makes weights of scores, and mixes no values")
    # Small values: large ones may saturate the softmax of scores that are not scaled.
    scale = 1.0 if it.is_ids else 0.25
    seen = it.influence(scale=scale, module=it.awake())
    if bool(seen.fill_diagonal_(False).any()):
        return Shown(0.0)
    if not bool(it.influence(scale=scale, module=it.awake()).any()):
        raise NotApplicable("its output depends on no token, not even on its own")
    tokens = it.tokens(0, batch=max(2, tokens.shape[0]))
    output = it.run(tokens)
    other = tokens.clone()
    other[-1] = it.disturbed(tokens, 0)[-1]
    if it.kind != "unbatched" and float((it.run(other) - output)[:-1].abs().max()) > it.tolerance:
        raise NotApplicable("its samples meet, not its tokens")
    raise Failed("no token's output depends on another token", 1.0, "MSA105")


def axes_are_in_order(it: Experiment) -> Shown:
    flow, _ = run_traced(
        it.subject.target, list(it.subject.inputs.values()), it.subject.call, it.subject.sizes, it.subject.kind
    )
    if flow.problems:
        first = flow.problems[0]
        raise Failed(f"{first.kind}, line {first.op.line}: {first.message}", 1.0, first.rule or "")
    return Shown(0.0)


def groups_are_in_order(it: Experiment) -> Shown:
    tracer = SharedKeys()
    with tracer:
        it.run(it.tokens(0))
    if not tracer.groups:
        raise NotApplicable("its query heads don't share key heads")
    for heads in tracer.groups:
        if any(heads[i] != heads[i - 1] and heads[i] in heads[:i] for i in range(1, len(heads))):
            reason = f"key heads come in the order {heads}: neighbouring query heads don't share one, as they are to"
            raise Failed(reason, 1.0, "MSA705")
    return Shown(0.0)


class SharedKeys(Tracer):
    """For each operand of a product whose heads repeat: which of its distinct heads stands where."""

    def __init__(self) -> None:
        super().__init__()
        self.groups: list[list[int]] = []
        self.shares = False

    def seen(
        self, op: TracedOp, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
    ) -> None:
        if op.name.rpartition(".")[2] != "scaled_dot_product_attention" and contraction_of(op) is None:
            return
        for value in (*args, *kwargs.values()):
            for tensor in value if isinstance(value, (tuple, list)) else (value,):
                if isinstance(tensor, Tensor) and tensor.dim() == 4 and not isinstance(tensor, nn.Parameter):
                    self._note(tensor.detach())

    def _note(self, tensor: Tensor) -> None:
        heads: list[int] = []
        distinct: list[Tensor] = []
        if not tensor.is_floating_point() or not 2 < tensor.shape[1] <= 64:
            return
        for head in tensor.unbind(1):
            place = next((i for i, other in enumerate(distinct) if torch.equal(other, head)), None)
            heads.append(len(distinct) if place is None else place)
            if place is None:
                distinct.append(head)
        self.shares = self.shares or len(distinct) < len(heads)
        if 1 < len(distinct) < len(heads):
            self.groups.append(heads)
