"""What a module keeps between its runs (a cache, a counter, its last weights), so that a run can start without it."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from msalint.runtime.copies import is_plain_object, moved, tensors_in

Name = tuple[str, str]
"""A part by its dotted name, and an attribute or buffer of it."""

_INNER = frozenset({"_parameters", "_buffers", "_modules"})


@dataclass(frozen=True)
class KeptState:
    """Values that a module may change as it runs, as they were at one moment.

    Flags, rates and words are left out: a run that changes those changes settings. `names` are all that there were,
    so that what a run adds can be told.
    """

    values: Mapping[Name, Any]
    names: frozenset[Name]

    def changed(self, module: nn.Module) -> KeptState:
        """The part of it that is no longer so in the module, with the names of what came to it as None of its own."""
        found = _kept(module)
        other = {name: value for name, value in self.values.items() if not _alike(value, found.get(name))}
        return KeptState(other, frozenset(other) | (frozenset(found) - self.names))

    def put_back(self, module: nn.Module, dtype: torch.dtype | None = None) -> None:
        """Make the module hold these values again, and nothing under names of it that have none."""
        parts = dict(module.named_modules())
        for part, name in self.names:
            owner = parts.get(part)
            if owner is None:
                continue
            place: dict[str, Any] = owner._buffers if name in owner._buffers else owner.__dict__
            if (part, name) in self.values:
                place[name] = moved(copy.deepcopy(self.values[part, name]), dtype)
            else:
                place.pop(name, None)

    def __bool__(self) -> bool:
        return bool(self.names)


def state_of(module: Any) -> KeptState:
    """What a module and its parts keep now; nothing for what is no module."""
    if not isinstance(module, nn.Module):
        return KeptState({}, frozenset())
    found = _kept(module)
    values = {}
    for name, value in found.items():
        try:
            # Tensors with a history can't be copied as they are.
            memo = {id(t): t.detach().clone().requires_grad_() for t in tensors_in(value) if t.grad_fn is not None}
            values[name] = copy.deepcopy(value, memo)
        except Exception:
            continue
    return KeptState(values, frozenset(found))


def _kept(module: nn.Module) -> dict[Name, Any]:
    found: dict[Name, Any] = {}
    for part, owner in module.named_modules():
        for name, value in (*vars(owner).items(), *owner._buffers.items()):
            if name not in _INNER and not name.startswith("_") and _may_change(value):
                found[part, name] = value
    return found


def _may_change(value: Any) -> bool:
    if value is None or isinstance(value, Tensor) or type(value) is int:
        return True
    if isinstance(value, (list, tuple, dict, deque)):
        return not any(isinstance(item, nn.Module) for item in (value.values() if isinstance(value, dict) else value))
    return is_plain_object(value)


def _alike(ours: Any, theirs: Any, depth: int = 5) -> bool:
    if isinstance(ours, Tensor) or isinstance(theirs, Tensor):
        if not isinstance(ours, Tensor) or not isinstance(theirs, Tensor):
            return False
        known = ours.device.type != "meta" and theirs.device.type != "meta"
        alike = ours.shape == theirs.shape and ours.dtype == theirs.dtype
        return alike and (not known or torch.equal(ours.nan_to_num(), theirs.nan_to_num()))
    if type(ours) is not type(theirs) or not depth:
        return type(ours) is type(theirs)
    if isinstance(ours, (list, tuple, deque)):
        return len(ours) == len(theirs) and all(_alike(a, b, depth - 1) for a, b in zip(ours, theirs, strict=True))
    if isinstance(ours, dict):
        return ours.keys() == theirs.keys() and all(_alike(ours[key], theirs[key], depth - 1) for key in ours)
    if hasattr(ours, "__dict__"):
        return _alike(vars(ours), vars(theirs), depth - 1)
    return bool(ours is theirs or ours == theirs)
