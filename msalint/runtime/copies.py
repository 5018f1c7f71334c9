"""Copies of modules, also of those that keep tensors with a history, and arguments on another device or dtype."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

Copied = TypeVar("Copied")


def copied(module: Copied) -> Copied:
    """A deep copy. Tensors that a run left on the module with their graph, which torch refuses to copy, lose it."""
    memo: dict[int, Any] = {}
    if isinstance(module, nn.Module):
        for part in module.modules():
            for value in vars(part).values():
                for tensor in tensors_in(value):
                    if tensor.grad_fn is not None:
                        memo[id(tensor)] = tensor.detach().clone().requires_grad_()
    return copy.deepcopy(module, memo)


def tensors_in(value: Any, depth: int = 3) -> Iterator[Tensor]:
    """The tensors of a value that is one, or holds some in lists, tuples, dicts and attributes."""
    if isinstance(value, Tensor):
        yield value
    elif depth and isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_in(item, depth - 1)
    elif depth and isinstance(value, dict):
        for item in value.values():
            yield from tensors_in(item, depth - 1)
    elif depth and is_plain_object(value):
        yield from tensors_in(vars(value), depth)


def is_plain_object(value: Any) -> bool:
    """An object with attributes that is neither a module, a class, nor something to call: a cache, a configuration."""
    return hasattr(value, "__dict__") and not isinstance(value, (nn.Module, type)) and not callable(value)


def moved(value: Any, dtype: torch.dtype | None = None, device: str | None = None) -> Any:
    """Tensors, layers, and what lists, dicts and caches hold of them, on a device, the floating ones in a dtype."""
    if isinstance(value, Tensor):
        return value.to(device=device, dtype=dtype if value.is_floating_point() else None)
    if isinstance(value, nn.Module):
        return copied(value).to(device=device, dtype=dtype)
    if isinstance(value, dict):
        return {key: moved(item, dtype, device) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(moved(item, dtype, device) for item in value)
    if is_plain_object(value) and any(True for _ in tensors_in(value)):
        other = copy.copy(value)
        for name, item in vars(value).items():
            object.__setattr__(other, name, moved(item, dtype, device))
        return other
    return value
