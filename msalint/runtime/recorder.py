"""Records attention weights as a model runs, from a manual softmax, the fused kernel, or nn.MultiheadAttention."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from msalint.runtime.contraction import Contraction, contraction_of
from msalint.runtime.tracer import TracedOp, TracedTensor, Tracer

SOFTMAXES = frozenset({"softmax", "_softmax"})
MOVES = frozenset(
    "view reshape transpose permute swapaxes movedim mT T flatten unflatten squeeze unsqueeze expand contiguous clone "
    "detach repeat_interleave unbind chunk split __getitem__".split()
)


@dataclass(frozen=True)
class Attention:
    """The weights of one attention call, (*lead, query, key): (batch, head, query, key) as a rule. Detached, on CPU."""

    weights: Tensor
    op: TracedOp
    module: str
    """The dotted name of the innermost module that was running, "" for the model itself."""
    scored: bool = True
    """The softmax ran over products of queries and keys, not over what a layer gave (pooling, linear attention)."""

    @property
    def by_head(self) -> Tensor:
        """(batch, head, query, key), with one head where the weights have none."""
        weights = self.weights
        while weights.dim() < 4:
            weights = weights.unsqueeze(-3 if weights.dim() == 3 else 0)
        return weights.flatten(0, weights.dim() - 4)


class WeightsTracer(Tracer):
    """Fills `attentions`. A tensor counts as weights from its softmax on, through dropout, masks, casts and views."""

    def __init__(self) -> None:
        super().__init__()
        self.attentions: list[Attention] = []
        self.running: list[str] = []
        self._softmaxed: set[int] = set()
        self._unscored: set[int] = set()
        self._products: set[int] = set()

    def seen(
        self, op: TracedOp, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
    ) -> None:
        name = op.name.rpartition(".")[2]
        if name == "scaled_dot_product_attention":
            self._keep(_sdpa_weights(*args, **kwargs), op)
        elif name == "multi_head_attention_forward":
            self._keep(_module_weights(func, args, kwargs), op)
        elif name in SOFTMAXES:
            self._softmaxed.add(op.result.number)
            if not any(tensor.number in self._products for tensor in op.inputs):
                self._unscored.add(op.result.number)
        else:
            spec = contraction_of(op)
            if spec is not None:
                operand = _weights_operand(spec, op, args, self._softmaxed)
                if operand is not None:
                    scored = not any(tensor.number in self._unscored for tensor in op.inputs)
                    self._keep(operand, op, scored)
                elif not any(isinstance(value, nn.Parameter) for value in args):
                    self._products.add(op.result.number)
            else:
                for marked in (self._softmaxed, self._unscored, self._products):
                    if _inherits(op, name, marked):
                        marked.update(tensor.number for tensor in op.results)

    def _keep(self, weights: Tensor, op: TracedOp, scored: bool = True) -> None:
        running = self.running[-1] if self.running else ""
        self.attentions.append(Attention(weights.detach().cpu(), op, running, scored))


def _inherits(op: TracedOp, name: str, marked: set[int]) -> bool:
    """Whether a result goes on being what an input was: moved, or changed element by element."""
    known = [tensor for tensor in op.inputs if tensor.number in marked]
    return bool(known) and (name in MOVES or any(tensor.shape == op.result.shape for tensor in known))


@contextmanager
def record_attention(model: nn.Module) -> Iterator[list[Attention]]:
    """Record the weights of every attention call inside the block, in order.

    Weights that a fused kernel never shows are computed again from its inputs; dropout is as the run had it for manual
    attention, and left out of what is computed again.
    """
    tracer = WeightsTracer()
    handles: list[Any] = []

    def leave(*_: Any) -> None:
        tracer.running.pop()

    for name, module in model.named_modules():
        handles.append(module.register_forward_pre_hook(lambda *_, name=name: tracer.running.append(name)))
        handles.append(module.register_forward_hook(leave, always_call=True))
    fast = torch.backends.mha.get_fastpath_enabled()
    # The fused encoder layer shows neither its weights nor its steps.
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with tracer:
            yield tracer.attentions
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
        for handle in handles:
            handle.remove()


def _weights_operand(spec: Contraction, op: TracedOp, args: tuple[Any, ...], softmaxed: set[int]) -> Tensor | None:
    """The weights among the operands of a product with values, as (*shared axes, query, key)."""
    left, right = spec.left_number in softmaxed, spec.right_number in softmaxed
    if left == right or len(spec.contracted) != 1:
        return None
    letters, number = (spec.left, spec.left_number) if left else (spec.right, spec.right_number)
    free = spec.free(letters)
    tensor = _tensor_of(number, op, args)
    if tensor is None or len(free) != 1 or tensor.dim() != len(letters):
        return None
    lead = [letter for letter in letters if letter not in (*free, *spec.contracted)]
    return tensor.permute([letters.index(letter) for letter in (*lead, *free, *spec.contracted)])


def _tensor_of(number: int, op: TracedOp, args: tuple[Any, ...]) -> Tensor | None:
    pairs = list(zip(_flat(op.arguments), _flat(args), strict=False))
    for described, value in pairs:
        if isinstance(described, TracedTensor) and described.number == number and isinstance(value, Tensor):
            return value
    return None


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, (tuple, list)) and not isinstance(value, torch.Size):
        for item in value:
            yield from _flat(item)
    else:
        yield value


@torch.no_grad()
def _sdpa_weights(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """The weights that F.scaled_dot_product_attention forms: rows with no key to see are zero, as its output is."""
    if enable_gqa:
        key = key.repeat_interleave(query.shape[-3] // key.shape[-3], dim=-3)
    wide = torch.promote_types(query.dtype, torch.float32)
    scores = query.to(wide) @ key.to(wide).mT * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        seen = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
        scores = scores.masked_fill(~seen, float("-inf"))
    if attn_mask is not None:
        if attn_mask.dtype == torch.bool:
            scores = scores.masked_fill(~attn_mask, float("-inf"))
        else:
            scores = scores + attn_mask
    return scores.softmax(dim=-1).nan_to_num(0.0)


@torch.no_grad()
def _module_weights(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    """The weights of nn.MultiheadAttention by head, from a second call that asks for them."""
    again = {**kwargs, "need_weights": True, "average_attn_weights": False, "training": False}
    if again.get("attn_mask") is None and again.get("is_causal"):
        again["is_causal"] = False
    by_head: Any = F.multi_head_attention_forward(*args, **again)[1]
    weights: Tensor = by_head
    return weights
