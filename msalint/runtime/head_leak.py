"""Whether one head's context depends on the features of another head, told by gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from msalint.runtime.experiment import Experiment, NotApplicable
from msalint.runtime.recorder import MOVES, WeightsTracer, record_attention
from msalint.runtime.tracer import TracedOp


def head_overlap(it: Experiment) -> int:
    """How many features of a projection more than one head reads. Raises `NotApplicable` where heads can't be told.

    The context is the input of the projection that runs right after attention; head h is the h-th of its equal parts.
    Projections narrower than the width (shared keys and values) belong to several heads by design and don't count.
    """
    if not isinstance(it.module, nn.Module):
        raise NotApplicable("it is a function, with no projection")
    outputs, context = _projections(it)
    heads = _heads(it)
    if heads < 2:
        raise NotApplicable("it has one head")
    width = context.shape[-1]
    if width % heads:
        raise NotApplicable(f"the context's width {width} does not divide into {heads} heads")
    generator = torch.Generator().manual_seed(0)
    touched: list[list[Tensor]] = []
    with torch.enable_grad():
        parts = context.split(width // heads, dim=-1)  # type: ignore[no-untyped-call]
    for part in parts:
        noise = torch.randn(part.shape, generator=generator, dtype=torch.float64).to(part.dtype)
        with torch.enable_grad():
            total = (part * noise).sum()
        gradients = torch.autograd.grad(total, outputs, retain_graph=True, allow_unused=True)
        touched.append([_features(gradient, output) for gradient, output in zip(gradients, outputs, strict=True)])
    return sum(int((torch.stack(columns).sum(0) > 1).sum()) for columns in zip(*touched, strict=True))


def _features(gradient: Tensor | None, output: Tensor) -> Tensor:
    """Which features, of any token, a gradient reaches."""
    if gradient is None:
        return torch.zeros(output.shape[-1], dtype=torch.int32)
    return (gradient.abs().flatten(0, -2).amax(0) > 0).to(torch.int32)


def _projections(it: Experiment) -> tuple[list[Tensor], Tensor]:
    """Outputs of the linear layers before attention, and the input of the first one after it."""
    assert isinstance(it.module, nn.Module)
    width, before, inputs, context = it.sizes.d_model, list[Tensor](), list[Tensor](), list[Tensor]()
    tracer = _Contexts()
    with torch.enable_grad(), tracer:
        attentions = tracer.attentions

        def note(_: nn.Module, args: tuple[Any, ...], output: Tensor) -> None:
            if attentions:
                context.append(args[0])
                if len(context) == 1 and tracer.number_of(args[0]) not in tracer.contexts:
                    raise NotApplicable("what the first layer after its attention reads is more than the context")
            else:
                inputs.append(args[0])
                if output.requires_grad and output.shape[-1] >= width:
                    before.append(output)

        layers = [layer for layer in it.module.modules() if isinstance(layer, nn.Linear)]
        handles = [layer.register_forward_hook(note) for layer in layers]
        try:
            it.run(it.tokens(0))
        finally:
            for handle in handles:
                handle.remove()
    if any(attention.op.name.endswith("multi_head_attention_forward") for attention in attentions):
        raise NotApplicable("its projections are inside nn.MultiheadAttention")
    if len(attentions) != 1:
        raise NotApplicable(f"it has {len(attentions)} attention calls, not one")
    if not before or not context or not context[0].requires_grad:
        raise NotApplicable("it has no linear layers both before and after its attention")
    # A layer that another one reads is no projection of queries, keys or values: its features belong to all heads.
    last = [output for output in before if not any(_reads(value, output) for value in inputs)]
    if not last:
        raise NotApplicable("its projections can't be told from the layers before them")
    return last, context[0]


class _Contexts(WeightsTracer):
    """Knows the numbers of tensors that are the context of attention, moved about, cast or dropped from at most."""

    def __init__(self) -> None:
        super().__init__()
        self.contexts: set[int] = set()

    def seen(
        self, op: TracedOp, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
    ) -> None:
        before = len(self.attentions)
        super().seen(op, func, args, kwargs, result)
        name = op.name.rpartition(".")[2]
        moved = name in _MOVES and any(tensor.number in self.contexts for tensor in op.inputs)
        if moved or len(self.attentions) > before:
            self.contexts.update(tensor.number for tensor in op.results)


_MOVES = MOVES | set("to type_as float half double bfloat16 dropout cat stack concat nan_to_num".split())


def _reads(value: Tensor, output: Tensor) -> bool:
    if not value.requires_grad:
        return False
    if value is output:
        return True
    with torch.enable_grad():
        total = value.sum()
    return torch.autograd.grad(total, [output], retain_graph=True, allow_unused=True)[0] is not None


def _heads(it: Experiment) -> int:
    with record_attention(it.module) as attentions:
        it.run(it.tokens(0))
    heads = attentions[0].by_head.shape[1]
    return (
        heads
        if heads > 1
        else it.sizes.heads
        if attentions[0].weights.shape[0] == it.sizes.batch * it.sizes.heads
        else 1
    )
