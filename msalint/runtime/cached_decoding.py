"""Decodes token by token with a module's cache, whichever of the usual interfaces it has."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from msalint.runtime.experiment import Experiment, NotApplicable, first_tensor
from msalint.runtime.hints import hints_of
from msalint.runtime.mask_ways import MaskWay

_NAMES = ("past", "past_key_value", "layer_past", "past_kv", "kv_cache", "past_key_values", "cache")
"""Parameters for a cache."""


def step_by_step(it: Experiment, tokens: Tensor, causal: MaskWay | None) -> Tensor:
    """The outputs of one token at a time, (batch, seq, ...). Raises `NotApplicable` if no cache interface is known."""
    if not isinstance(it.module, nn.Module) or it.text is not None:
        raise NotApplicable("it has no cache that is known")
    name = next((name for name in _NAMES if name in it.parameters), None)
    if name is None:
        raise NotApplicable("it takes no cache")
    flags = {flag: True for flag in ("use_cache",) if flag in it.parameters}
    if causal is not None and causal.coding == "flag":
        flags[causal.parameter] = True
    first: NotApplicable | None = None
    for cache, kept in _new_caches(it.module, name):
        try:
            return _steps(it, it.module, tokens, flags, name, cache, kept)
        except NotApplicable as error:
            first = first or error
    raise first or NotApplicable("it takes no cache that is known")


def _steps(
    it: Experiment, module: nn.Module, tokens: Tensor, flags: dict[str, bool], name: str, cache: Any, kept: bool
) -> Tensor:
    outputs = []
    for place in range(tokens.shape[1]):
        step = tokens[:, place : place + 1].to(it.dtype) if not it.is_ids else tokens[:, place : place + 1]
        given = {parameter: it._from_rows(step) for parameter in dict.fromkeys([it.main, *it.same])}
        try:
            result = module(**given, **flags, **{name: cache})
        except Exception as error:
            raise NotApplicable(f"its `{name}` can't be used as was tried ({type(error).__name__})") from error
        output = first_tensor(result)
        if output is None:
            raise NotApplicable("a step gives no tensor")
        outputs.append(it._to_rows(output))
        if kept:
            if isinstance(cache, dict) and not cache:
                raise NotApplicable(f"it puts nothing into `{name}`")
        elif not isinstance(result, (tuple, list)) or len(result) < 2 or result[1] is None:
            raise NotApplicable(f"it takes `{name}` but gives none back")
        else:
            cache = result[1]
    return torch.cat(outputs, dim=1)


def _new_caches(module: nn.Module, name: str) -> Iterator[tuple[Any, bool]]:
    """Empty caches, and whether the module fills them: of the annotated class, None for one it gives back, a dict."""
    hint = hints_of(module.forward).get(name)
    for part in (hint, *typing.get_args(hint)):
        if inspect.isclass(part) and part not in (tuple, list, dict, type(None), Tensor):
            try:
                yield part(), True
            except Exception:
                continue
    yield None, False
    yield {}, True
