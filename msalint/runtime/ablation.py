"""Switches one head off at a time and measures what changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from msalint.runtime.contraction import contraction_of
from msalint.runtime.recorder import MOVES, SOFTMAXES, record_attention
from msalint.runtime.tracer import TracedOp, Tracer


@dataclass(frozen=True)
class HeadEffect:
    """What the measure became with one head of one attention call off, and by how much it differs from all heads on."""

    attention: int
    head: int
    value: float
    change: float


def ablate_heads(model: nn.Module, measure: Callable[[], float | Tensor]) -> list[HeadEffect]:
    """The effect of each head on `measure()`, which runs the model and gives a loss or any other number.

    A head is off when its context is zero. Heads are those that `record_attention` sees in one call of `measure`.
    """
    with record_attention(model) as attentions:
        whole = float(measure())
    effects = []
    for index, attention in enumerate(attentions):
        for head in range(attention.by_head.shape[1]):
            with _HeadOff(index, head, attention.by_head.shape[1]):
                value = float(measure())
            effects.append(HeadEffect(index, head, value, value - whole))
    return effects


class _HeadOff(TorchFunctionMode):
    """Counts attention calls as `WeightsTracer` does and clears one head's context in one of them."""

    def __init__(self, attention: int, head: int, heads: int) -> None:
        super().__init__()
        self.attention, self.head, self.heads = attention, head, heads
        self.count = 0
        self.softmaxed: set[int] = set()
        self.numbers = Tracer()
        self.fast = True

    def __enter__(self) -> Any:
        self.fast = torch.backends.mha.get_fastpath_enabled()
        torch.backends.mha.set_fastpath_enabled(False)
        return super().__enter__()  # type: ignore[no-untyped-call]

    def __exit__(self, *error: Any) -> None:
        torch.backends.mha.set_fastpath_enabled(self.fast)
        super().__exit__(*error)  # type: ignore[no-untyped-call]

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        op, result = self.numbers.described(func, args, kwargs)
        if op is None:
            return result
        name = op.name.rpartition(".")[2]
        if name == "multi_head_attention_forward":
            return self._module_call(func, args, kwargs, result)
        if name == "scaled_dot_product_attention":
            return self._off(result, -3) if self._is_due() else result
        if name in SOFTMAXES:
            self.softmaxed.add(op.result.number)
        elif contraction_of(op) is not None:
            return self._product(op, result)
        elif any(tensor.number in self.softmaxed for tensor in op.inputs) and (
            name in MOVES or any(tensor.shape == op.result.shape for tensor in op.inputs)
        ):
            self.softmaxed.update(tensor.number for tensor in op.results)
        return result

    def _is_due(self) -> bool:
        self.count += 1
        return self.count - 1 == self.attention

    def _product(self, op: TracedOp, result: Tensor) -> Tensor:
        spec = contraction_of(op)
        if spec is None or len(spec.contracted) != 1:
            return result
        left, right = spec.left_number in self.softmaxed, spec.right_number in self.softmaxed
        letters = spec.left if left else spec.right
        if left == right or len(spec.free(letters)) != 1:
            return result
        if not self._is_due():
            return result
        lead = [letter for letter in letters if letter not in (*spec.free(letters), *spec.contracted)]
        return self._off(result, spec.out.index(lead[-1])) if lead else result

    def _off(self, context: Tensor, axis: int) -> Tensor:
        """Zero the head's part; of an axis that folds batch and heads, every `heads`-th one."""
        keep = torch.ones(context.shape[axis], dtype=context.dtype, device=context.device)
        keep[self.head :: self.heads] = 0
        shape = [1] * context.dim()
        shape[axis] = -1
        return context * keep.view(shape)

    def _module_call(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Any:
        """nn.MultiheadAttention: with the head's rows of the value projection zero, its context is zero."""
        if not self._is_due():
            return result
        width, names = int(args[3]), ["in_proj_weight", "in_proj_bias"]
        rows = slice(self.head * (width // self.heads), (self.head + 1) * (width // self.heads))
        positional, keyword = list(args), dict(kwargs)
        for place, name in ((5, names[0]), (6, names[1])):
            value = positional[place] if len(positional) > place else keyword.get(name)
            if isinstance(value, Tensor):
                cleared = value.detach().clone()
                cleared[2 * width :][rows] = 0
                if len(positional) > place:
                    positional[place] = cleared
                else:
                    keyword[name] = cleared
        separate = keyword.get("v_proj_weight")
        if isinstance(separate, Tensor):
            keyword["v_proj_weight"] = separate.detach().clone()
            keyword["v_proj_weight"][rows] = 0
        return func(*positional, **keyword)
