"""Decodes in parts with a module's cache, whichever of the usual interfaces it has."""

from __future__ import annotations

import copy
import inspect
import typing
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from msalint.runtime.copies import is_plain_object, moved, tensors_in
from msalint.runtime.experiment import Experiment, NotApplicable, first_tensor
from msalint.runtime.hints import hints_of
from msalint.runtime.kept_state import state_of
from msalint.runtime.mask_ways import MaskWay
from msalint.shapes.vocabulary import says

_NAMES = ("past", "past_key_value", "layer_past", "past_kv", "kv_cache", "past_key_values", "cache")
"""Parameters for a cache."""


class BreaksInParts(Exception):
    """The module takes single tokens after a cache, but raises on several; the message is torch's."""


def in_parts(it: Experiment, tokens: Tensor, causal: MaskWay | None, lengths: Sequence[int]) -> Tensor:
    """The outputs of parts of these lengths, one after the other, (batch, seq, ...).

    Raises `NotApplicable` if no cache interface is known, `BreaksInParts` if a part that is no single token raises.
    """
    if not isinstance(it.module, nn.Module) or it.text is not None:
        raise NotApplicable("it has no cache that is known")
    name = next((name for name in _NAMES if name in it.parameters), None)
    if name is None:
        return _on_itself(it, it.module, tokens, lengths)
    flags = {flag: True for flag in ("use_cache",) if flag in it.parameters}
    first: NotApplicable | None = None
    for cache, kept in _new_caches(it, it.module, name):
        try:
            return _handed_on(it, it.module, tokens, flags, name, cache, kept, lengths, causal)
        except NotApplicable as error:
            first = first or error
    raise first or NotApplicable("it takes no cache that is known")


def _on_itself(it: Experiment, module: nn.Module, tokens: Tensor, lengths: Sequence[int]) -> Tensor:
    """In parts with a cache that the module keeps: tensors on it that grow by as much as it is given."""
    if not it.kept:
        raise NotApplicable("it takes no cache")
    it.kept.put_back(module)
    outputs: list[Tensor] = []
    sizes: list[Any] = []
    for step in tokens.split(list(lengths), dim=1):  # type: ignore[no-untyped-call]
        outputs.append(_rows(it, _called(it, module, step, {}, len(outputs) > 0)))
        kept = state_of(module).values
        sizes.append({name: [tuple(t.shape) for t in tensors_in(kept.get(name))] for name in it.kept.names})
    # Equal steps make a cache grow, and leave what is kept of the last run alone as large as it was.
    if len(sizes) > 1 and lengths[0] == lengths[1] and sizes[0] == sizes[1]:
        raise NotApplicable("it takes no cache, and what it keeps does not grow")
    return torch.cat(outputs, dim=1)


def _called(it: Experiment, module: nn.Module, step: Tensor, more: dict[str, Any], followed: bool) -> Any:
    given = {name: moved(value, it.dtype) for name, value in it.inputs.items() if type(value) in (bool, int, float)}
    rows = it.from_rows(step if it.is_ids else step.to(it.dtype))
    given.update(dict.fromkeys([it.main, *it.same], rows))
    try:
        return module(**given, **more)
    except Exception as error:
        masked = any(isinstance(value, Tensor) and value.dtype == torch.bool for value in more.values())
        if followed and step.shape[1] > 1 and isinstance(error, RuntimeError) and not masked:
            raise BreaksInParts(str(error).splitlines()[0]) from error
        raise NotApplicable(f"its cache can't be used as was tried ({type(error).__name__})") from error


def _rows(it: Experiment, result: Any) -> Tensor:
    output = first_tensor(result)
    if output is None:
        raise NotApplicable("a step gives no tensor")
    return it.to_rows(output)


def _handed_on(
    it: Experiment,
    module: nn.Module,
    tokens: Tensor,
    flags: dict[str, bool],
    name: str,
    cache: Any,
    kept: bool,
    lengths: Sequence[int],
    causal: MaskWay | None,
) -> Tensor:
    outputs: list[Tensor] = []
    start = 0
    for step in tokens.split(list(lengths), dim=1):  # type: ignore[no-untyped-call]
        masks = _masks_of_part(it, tokens.shape[0], start, start + step.shape[1], causal)
        start += step.shape[1]
        result = _called(it, module, step, {**flags, **masks, name: cache}, start > step.shape[1])
        outputs.append(_rows(it, result))
        if kept:
            if isinstance(cache, dict) and not cache:
                raise NotApplicable(f"it puts nothing into `{name}`")
        elif not isinstance(result, (tuple, list)) or len(result) < 2 or result[1] is None:
            raise NotApplicable(f"it takes `{name}` but gives none back")
        else:
            cache = result[1]
    return torch.cat(outputs, dim=1)


def _masks_of_part(it: Experiment, batch: int, start: int, end: int, causal: MaskWay | None) -> dict[str, Any]:
    """The causal mask of the tokens of a part over all keys so far; none for one token, which sees them all."""
    if causal is None or (end - start == 1 and causal.coding != "flag"):
        return {}
    allowed = torch.ones(end, end, dtype=torch.bool).tril()[start:].expand(batch, -1, -1)
    return it.masks.values(causal, allowed)


def _new_caches(it: Experiment, module: nn.Module, name: str) -> Iterator[tuple[Any, bool]]:
    """Caches to begin with, and whether the module fills them.

    The one that was handed over, an object of the annotated class, None for one it gives back, a dict.
    """
    given = it.inputs.get(name)
    if is_plain_object(given):
        if any(type(value) is int and says(key, "idx", "index", "layer") for key, value in vars(module).items()):
            raise NotApplicable("it is one layer of several that share a cache")
        yield moved(copy.deepcopy(given), it.dtype), True
    hint = hints_of(module.forward).get(name)
    for part in (hint, *typing.get_args(hint)):
        if inspect.isclass(part) and part not in (tuple, list, dict, type(None), Tensor):
            try:
                yield part(), True
            except Exception:
                continue
    yield None, False
    yield {}, True
