"""Labels each element of a running tensor with the sample, token and feature it stands for, and carries them along.

The labels of a tensor are integer arrays of its own shape. An operation that only moves elements (view, transpose,
chunk, cat, ...) is run again on the labels, so whatever an axis means after any chain of them is read off, not guessed:

    x (batch, seq, d_model)   token[b, s, f] = s
    x.view(batch, head, seq, d_k)                  token runs on along head and seq: the heads were not split in order
    x.view(batch, seq, head, d_k).transpose(1, 2)  token is constant along head and d_k, and counts along seq
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from msalint.runtime.contraction import Contraction

SAMPLE, TOKEN, FEATURE = "sample", "token", "feature"
KEY_SAMPLE, KEY_TOKEN, KEY_FEATURE = "key_sample", "key_token", "key_feature"
"""Scores and weights stand for a pair: (sample, token, feature) is one of it, the other names are the other's."""

UNKNOWN = -1
"""The label of an element that stands for nothing in the input: a class token, padding, a bias."""

LARGEST = 1 << 22
"""Tensors with more elements than this are not labelled."""


@dataclass(frozen=True)
class Labels:
    """What the elements of one tensor stand for.

    `pair`: a product of queries and keys, or weights made of it. `normalised`: which token of the pair softmax ran
    over. `context`: weighted values that no projection has read yet. `factor`: what the values were
    multiplied by since the last projection (of a pair: both sides' and its own), None once a learned tensor did it.
    `width`: how many features a pair's product summed over.
    """

    arrays: Mapping[str, Tensor]
    pair: bool = False
    normalised: str | None = None
    context: bool = False
    factor: float | None = 1.0
    width: int | None = None

    def varies(self, name: str, axis: int) -> bool:
        """Whether the label changes along an axis, unknown elements aside."""
        array = self.arrays.get(name)
        if array is None or array.dim() == 0:
            return False
        size = array.shape[axis]
        if size < 2:
            return False
        low, high = array.narrow(axis, 0, size - 1), array.narrow(axis, 1, size - 1)
        return bool(((low != high) & (low != UNKNOWN) & (high != UNKNOWN)).any())

    def varying(self, axis: int) -> frozenset[str]:
        return frozenset(name for name in self.arrays if self.varies(name, axis))

    def scrambled(self, axis: int) -> bool:
        """Whether token and feature run on together along an axis, other than as a merge of whole axes of both."""
        if not {TOKEN, FEATURE} <= self.varying(axis):
            return False
        token, feature = (self.arrays[name].movedim(axis, -1).flatten(0, -2)[0] for name in (TOKEN, FEATURE))
        pairs = torch.unique(torch.stack([token, feature], dim=-1), dim=0)
        whole = torch.unique(token).numel() * torch.unique(feature).numel()
        return not (whole == token.numel() == pairs.shape[0])


def counted(shape: Sequence[int], axis: int) -> Tensor:
    """0, 1, 2, ... along one axis of an array of this shape."""
    axis %= max(len(shape), 1)
    view = [1] * len(shape)
    view[axis] = shape[axis]
    return torch.arange(shape[axis], dtype=torch.int32).view(view).expand(tuple(shape))


def row_labels(shape: Sequence[int], sample: int | None, token: int | None, features: Sequence[int]) -> Labels:
    """Labels of an input: which axis counts samples, which tokens, and which (outermost first) count features."""
    arrays = {}
    if sample is not None:
        arrays[SAMPLE] = counted(shape, sample)
    if token is not None:
        arrays[TOKEN] = counted(shape, token)
    feature = torch.zeros((), dtype=torch.int32)
    for axis in features:
        feature = feature * shape[axis] + counted(shape, axis)
    arrays[FEATURE] = feature.expand(tuple(shape))
    return Labels(arrays)


def moved(labels: Sequence[Labels | None], shapes: Sequence[tuple[int, ...]], again: Callable[..., Any]) -> Any:
    """Labels of the results of an operation that moves elements. `again(arrays)` runs it on one array an input.

    Elements of an input without labels are unknown. Returns what `again` returns, with Labels for tensors.
    """
    known = [entry for entry in labels if entry is not None]
    names = list(dict.fromkeys(name for entry in known for name in entry.arrays))
    results: dict[str, Any] = {}
    for name in names:
        arrays = []
        for entry, shape in zip(labels, shapes, strict=True):
            array = None if entry is None else entry.arrays.get(name)
            # A view of the tensor is legal or has raised: the strides of the labels must not stand in its way.
            arrays.append(torch.full(shape, UNKNOWN, dtype=torch.int32) if array is None else array.contiguous())
        results[name] = again(arrays)
    head = known[0]
    first = results[names[0]]
    if isinstance(first, Tensor):
        return replace(head, arrays=results)
    return [replace(head, arrays={name: results[name][index] for name in names}) for index in range(len(first))]


def pointwise(labels: Sequence[Labels], shape: tuple[int, ...]) -> Labels | None:
    """Labels of an element by element operation: those of the operand with the result's own shape, or broadcast."""
    fitting = [entry for entry in labels if _shape(entry) == shape] or list(labels)
    # A pair of scores and masks, or a context and a residual: the richer one says what the result is.
    best = max(fitting, key=lambda entry: (entry.pair, len(entry.arrays)))
    try:
        arrays = {name: array.expand(shape) for name, array in best.arrays.items()}
    except RuntimeError:
        return None
    return replace(best, arrays=arrays, context=any(entry.context for entry in fitting))


def projected(labels: Labels, shape: tuple[int, ...]) -> Labels:
    """Labels behind a layer that reads the last axis: the rows stay, the features are its own columns.

    A row that held several tokens or samples is unknown afterwards.
    """
    arrays = {}
    for name in (SAMPLE, TOKEN):
        if name in labels.arrays:
            array = labels.arrays[name]
            first = array.select(-1, 0)
            mixed = labels.varies(name, -1)
            row = torch.full_like(first, UNKNOWN) if mixed else first
            arrays[name] = row.unsqueeze(-1).expand(shape)
    arrays[FEATURE] = counted(shape, -1)
    return Labels(arrays)


def product(left: Labels, right: Labels, spec: Contraction, shape: tuple[int, ...]) -> Labels:
    """Labels of a product of two operands, of which each element is a row of one with a row of the other."""
    if left.pair != right.pair:
        weights, values = (left, right) if left.pair else (right, left)
        weight_axes, value_axes = (spec.left, spec.right) if left.pair else (spec.right, spec.left)
        query = (KEY_SAMPLE, KEY_TOKEN) if weights.normalised == TOKEN else (SAMPLE, TOKEN)
        arrays = {}
        for name, source in zip((SAMPLE, TOKEN), query, strict=True):
            if source in weights.arrays:
                arrays[name] = spread(weights.arrays[source], weight_axes, spec.out, shape)
        if FEATURE in values.arrays:
            arrays[FEATURE] = spread(values.arrays[FEATURE], value_axes, spec.out, shape)
        return Labels(arrays, context=True)
    arrays = {}
    for name, key_name in ((SAMPLE, KEY_SAMPLE), (TOKEN, KEY_TOKEN), (FEATURE, KEY_FEATURE)):
        if name in left.arrays:
            arrays[name] = spread(left.arrays[name], spec.left, spec.out, shape)
        if name in right.arrays:
            arrays[key_name] = spread(right.arrays[name], spec.right, spec.out, shape)
    factor = None if left.factor is None or right.factor is None else left.factor * right.factor
    return Labels(arrays, pair=True, factor=factor)


def spread(array: Tensor, axes: str, out: str, shape: tuple[int, ...]) -> Tensor:
    """Bring an operand's array to the axes of the result: contracted axes at their first element, missing ones new."""
    for axis in range(len(axes) - 1, -1, -1):
        if axes[axis] not in out:
            array, axes = array.select(axis, 0), axes[:axis] + axes[axis + 1 :]
    order = [axes.index(letter) for letter in out if letter in axes]
    array = array.permute(order)
    for axis, letter in enumerate(out):
        if letter not in axes:
            array = array.unsqueeze(axis)
    return array.expand(shape)


def _shape(labels: Labels) -> tuple[int, ...]:
    return tuple(next(iter(labels.arrays.values())).shape)
