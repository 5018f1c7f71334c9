"""A tracer that labels as it goes, so that the flow is checked against the contract while it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from msalint.runtime import contract
from msalint.runtime.contract import Problem
from msalint.runtime.contraction import Contraction, contraction_of
from msalint.runtime.labels import (
    FEATURE,
    KEY_TOKEN,
    LARGEST,
    SAMPLE,
    TOKEN,
    UNKNOWN,
    Labels,
    counted,
    moved,
    pointwise,
    product,
    projected,
    row_labels,
)
from msalint.runtime.layout import AXES, Layout
from msalint.runtime.tracer import TracedOp, TracedTensor, Tracer

_MOVES = frozenset(
    [
        *(
            "view",
            "reshape",
            "transpose",
            "permute",
            "swapaxes",
            "swapdims",
            "movedim",
            "moveaxis",
            "T",
            "mT",
            "H",
            "mH",
        ),
        *("t", "adjoint", "flatten", "unflatten", "squeeze", "unsqueeze", "expand", "expand_as", "view_as"),
        *(
            "reshape_as",
            "contiguous",
            "clone",
            "detach",
            "chunk",
            "split",
            "split_with_sizes",
            "tensor_split",
            "unbind",
        ),
        *("__getitem__", "narrow", "select", "repeat", "repeat_interleave", "tile", "cat", "concat", "concatenate"),
        *("stack", "hstack", "vstack", "roll", "flip", "index_select", "gather", "take_along_dim", "unfold", "pad"),
        *("broadcast_to", "atleast_3d", "transpose_", "squeeze_", "unsqueeze_"),
    ]
)
_JOINS = frozenset(["cat", "concat", "concatenate", "stack", "hstack", "vstack"])
_SOFTMAXES = frozenset(["softmax", "log_softmax"])
_NORMS = frozenset(["layer_norm", "rms_norm", "group_norm", "normalize", "batch_norm"])
_SUMS = frozenset("add add_ __add__ __radd__ __iadd__".split())
_SCALINGS = frozenset(
    ["mul", "mul_", "__mul__", "__rmul__", "multiply", "div", "div_", "__truediv__", "__rtruediv__", "true_divide"]
)
_CONVOLUTIONS = frozenset(["conv1d", "conv2d", "conv3d"])


@dataclass(frozen=True)
class Scale:
    """The number that scores were multiplied by on their way to softmax, and the width their product summed over.

    `factor` is None where a tensor (a learned temperature) had a part in it.
    """

    op: TracedOp
    factor: float | None
    width: int | None


class FlowTracer(Tracer):
    """`ops` as of `Tracer`, `labels` by tensor number, `problems` where the contract broke, `sites` of attention."""

    def __init__(self) -> None:
        super().__init__()
        self.labels: dict[int, Labels] = {}
        self.of_images = False
        self.problems: list[Problem] = []
        self.sites: list[TracedOp] = []
        self.weights: list[TracedOp] = []
        self.scales: list[Scale] = []
        self._softmaxed: set[int] = set()
        self._multipliers: dict[int, float | None] = {}

    def label_input(self, tensor: Tensor, labels: Labels) -> None:
        self.labels[self.number_of(tensor)] = labels

    def seen(
        self, op: TracedOp, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
    ) -> None:
        self._note_weights(op)
        if max(_count(tensor.shape) for tensor in op.results) > LARGEST:
            return
        with torch._C.DisableTorchFunction():
            self._note_multipliers(args)
            for number, labels in self._derived(op, func, args, kwargs):
                self.labels[number] = labels

    def _note_weights(self, op: TracedOp) -> None:
        """Count sites without labels too: a large tensor has none."""
        name = op.name.rpartition(".")[2]
        known = [tensor for tensor in op.inputs if tensor.number in self._softmaxed]
        if name in _SOFTMAXES:
            self._softmaxed.add(op.result.number)
        elif name in ("scaled_dot_product_attention", "multi_head_attention_forward", "_native_multi_head_attention"):
            self._note_site(op)
        elif contraction_of(op) is not None:
            if len(known) == 1:
                self._note_site(op)
        elif known and (name in _MOVES or any(tensor.shape == op.result.shape for tensor in known)):
            self._softmaxed.update(tensor.number for tensor in op.results)

    def _note_site(self, op: TracedOp) -> None:
        if not self.sites or self.sites[-1] is not op:
            self.sites.append(op)

    def _note_multipliers(self, args: tuple[Any, ...]) -> None:
        """Remember what scales may be made of: the value of a tensor of one element, and which tensors are learned."""
        for value in args:
            if not isinstance(value, Tensor):
                continue
            number = self.number_of(value)
            if value.requires_grad:
                self._multipliers[number] = None
            elif value.numel() == 1 and value.device.type != "meta" and not torch._C._functorch.is_batchedtensor(value):
                self._multipliers[number] = float(value)
            else:
                self._multipliers[number] = 1.0

    def _derived(
        self, op: TracedOp, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Iterator[tuple[int, Labels]]:
        known = [self.labels[tensor.number] for tensor in op.inputs if tensor.number in self.labels]
        name = op.name.rpartition(".")[2]
        result = op.result
        if not known:
            # An image has no row of tokens; the places of its first map of features are some.
            if name in _CONVOLUTIONS and len(result.shape) > 3 and (self.of_images or not self.labels):
                self.of_images = True
                self.labels[result.number] = _convolved(result.shape)
            return
        if name in _MOVES:
            yield from self._moved(op, name, func, args, kwargs)
        elif name == "scaled_dot_product_attention":
            yield from self._fused(op)
        elif name in ("multi_head_attention_forward", "_native_multi_head_attention"):
            yield from self._module_api(op, name)
        elif name == "embedding":
            yield result.number, _embedded(known[0], result.shape)
        elif name in _CONVOLUTIONS:
            yield result.number, _convolved(result.shape)
        elif name in ("linear", "bilinear"):
            self.problems += contract.merge_problems(op, known[0])
            yield result.number, projected(known[0], result.shape)
        else:
            spec = contraction_of(op)
            if spec is not None:
                yield from self._product(op, spec)
            elif any(_shape(labels) == result.shape for labels in known):
                yield from self._pointwise(op, name, known)

    def _scaled(self, factor: float | None, name: str, op: TracedOp) -> float | None:
        """The factor behind a multiplication or division: by a number, or by a tensor that is not learned.

        A tensor of many elements (a mask, the cosines of rotary positions) is no scale and leaves the factor alone.
        """
        by: float | None = None
        for value in op.arguments:
            if isinstance(value, (int, float)):
                by = float(value)
            elif isinstance(value, TracedTensor) and value.number not in self.labels:
                by = self._multipliers.get(value.number)
        if len(op.inputs) == 2 and all(tensor.number in self.labels for tensor in op.inputs):
            return factor
        if factor is None or by is None or name == "__rtruediv__":
            return None
        if name in ("mul", "mul_", "__mul__", "__rmul__", "multiply"):
            return factor * by
        return factor / by if by else None

    def _moved(
        self, op: TracedOp, name: str, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Iterator[tuple[int, Labels]]:
        """Run the operation again on labels: of every tensor of a join, else of the first one."""
        count = len(op.inputs) if name in _JOINS else 1
        data = op.inputs[:count]
        if name == "pad":
            kwargs = {**kwargs, "value": UNKNOWN}
            args = args[:2]

        def again(arrays: Sequence[Tensor]) -> Any:
            remaining = iter(arrays)
            places = [0]

            def swap(value: Any) -> Any:
                if isinstance(value, Tensor):
                    places[0] += 1
                    return next(remaining) if places[0] <= count else value.cpu()
                if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
                    return type(value)(swap(item) for item in value)
                return value

            swapped = swap(tuple(args))
            return func(*swapped, **{key: swap(value) for key, value in kwargs.items()})

        try:
            labels = moved([self.labels.get(t.number) for t in data], [t.shape for t in data], again)
        except (RuntimeError, TypeError, ValueError, IndexError, StopIteration):
            # A view that is legal for the strides of the tensor but not for those of its labels, or data on no device.
            return
        entries = [labels] if isinstance(labels, Labels) else labels
        for tensor, entry in zip(op.results, entries, strict=False):
            yield tensor.number, entry

    def _pointwise(self, op: TracedOp, name: str, known: list[Labels]) -> Iterator[tuple[int, Labels]]:
        labels = pointwise(known, op.result.shape)
        if labels is None:
            return
        if name in _SUMS:
            self.problems += contract.sum_problems(op, [one for one in known if _shape(one) == op.result.shape])
        if name in _SOFTMAXES and labels.pair:
            dim = softmax_dim(op)
            self.problems += contract.softmax_problems(op, labels, dim)
            varying = labels.varying(dim)
            # Queries on the left of the product is the custom; the other way round is as good.
            normalised = KEY_TOKEN if KEY_TOKEN in varying else TOKEN if TOKEN in varying else None
            self.scales.append(Scale(op, labels.factor, labels.width))
            labels = Labels(labels.arrays, pair=True, normalised=normalised)
            self.weights.append(op)
        elif name in _NORMS:
            labels = replace(labels, factor=None if name == "normalize" else 1.0)
        elif name in _SCALINGS:
            labels = replace(labels, factor=self._scaled(labels.factor, name, op))
        yield op.result.number, labels

    def _product(self, op: TracedOp, spec: Contraction) -> Iterator[tuple[int, Labels]]:
        left, right = self.labels.get(spec.left_number), self.labels.get(spec.right_number)
        shape = op.result.shape
        if left is not None and right is not None:
            if left.pair and right.pair:
                return
            if left.pair or right.pair:
                weights, values = (left, right) if left.pair else (right, left)
                found = list(contract.value_problems(op, weights, values, spec, left.pair))
                self._note_site(op)
                if found:
                    # What comes out is no context; nothing further down is its own fault.
                    self.problems += found
                    return
            elif _sums_over_tokens(left, right, spec):
                # Pooling and linear attention: what comes out stands for no token.
                return
            else:
                found = list(contract.score_problems(op, left, right, spec))
                if found:
                    self.problems += found
                    return
            labels = product(left, right, spec, shape)
            if labels.pair:
                width = left.arrays[FEATURE].shape[spec.left.index(spec.contracted[0])] if spec.contracted else 1
                alpha = op.keywords.get("alpha", 1)
                # A distance is no product: nothing says what it should be scaled by.
                known = labels.factor is not None and isinstance(alpha, (int, float)) and "cdist" not in op.name
                labels = replace(labels, width=width, factor=labels.factor * alpha if known else None)
            yield op.result.number, labels
        elif (
            left is not None and not left.pair and spec.contracted == [spec.left[-1]] and spec.out[-1] not in spec.left
        ):
            # A product with a parameter reads the last axis, as a Linear does.
            self.problems += contract.merge_problems(op, left)
            yield op.result.number, projected(left, shape)

    def _fused(self, op: TracedOp) -> Iterator[tuple[int, Labels]]:
        given = dict(zip(("query", "key", "value"), op.arguments, strict=False)) | op.keywords
        query, key, value = (self._labels_of(given.get(name)) for name in ("query", "key", "value"))
        self._fused_scale(op, query, key)
        self.problems += contract.api_problems(op, query, key, value)
        if query is None:
            return
        shape = op.result.shape
        arrays = {name: query.arrays[name].select(-1, 0).unsqueeze(-1).expand(shape) for name in query.arrays}
        arrays.pop(FEATURE, None)
        if value is not None and FEATURE in value.arrays:
            # Key heads may be fewer than query heads: then only the query's rows are known.
            array = value.arrays[FEATURE].select(-2, 0).unsqueeze(-2)
            try:
                arrays[FEATURE] = array.expand(shape)
            except RuntimeError:
                arrays[FEATURE] = query.arrays[FEATURE].expand(shape) if _shape(query) == shape else counted(shape, -1)
        yield op.result.number, Labels(arrays, context=True)

    def _fused_scale(self, op: TracedOp, query: Labels | None, key: Labels | None) -> None:
        """The API scales by itself: by `scale`, or by the root of the head width."""
        width = op.inputs[0].shape[-1]
        scale = op.keywords.get("scale")
        if query is None or key is None or query.factor is None or key.factor is None:
            factor = None
        else:
            factor = query.factor * key.factor * (width**-0.5 if scale is None else float(scale))
        self.scales.append(Scale(op, factor, width))

    def _module_api(self, op: TracedOp, name: str) -> Iterator[tuple[int, Labels]]:
        tensors = [value for value in op.arguments if isinstance(value, TracedTensor)][:3]
        if len(tensors) < 2:
            return
        query, key = (self.labels.get(tensor.number) for tensor in tensors[:2])
        token_axis = 0 if name == "multi_head_attention_forward" else 1
        if len(tensors[1].shape) == 3:
            self.problems += contract.module_api_problems(op, key, token_axis)
        if query is not None and _shape(query) == op.result.shape:
            yield op.result.number, projected(query, op.result.shape)

    def _labels_of(self, value: Any) -> Labels | None:
        return self.labels.get(value.number) if isinstance(value, TracedTensor) else None


def _sums_over_tokens(left: Labels, right: Labels, spec: Contraction) -> bool:
    for letter in spec.contracted:
        varying = left.varying(spec.left.index(letter)), right.varying(spec.right.index(letter))
        if all(TOKEN in names and FEATURE not in names for names in varying):
            return True
    return False


def softmax_dim(op: TracedOp) -> int:
    """The axis a softmax runs over; without one, what torch takes: axis 0 for 1 and 3 axes, else axis 1."""
    dim = op.keywords.get("dim")
    if dim is None:
        dim = next((value for value in op.arguments[1:2] if type(value) is int), None)
    rank = len(op.result.shape)
    if dim is None:
        dim = 0 if rank in (0, 1, 3) else 1
    return int(dim) % max(rank, 1)


def input_labels(tensor: Tensor, batch_first: bool = True) -> Labels | None:
    """Labels of an input by its rank: (batch, seq), (batch, seq, width) or (batch, head, seq, d_k)."""
    shape = tuple(tensor.shape)
    if _count(shape) > LARGEST or tensor.dtype == torch.bool:
        return None
    sample, token = (0, 1) if batch_first else (1, 0)
    if len(shape) == 4:
        return row_labels(shape, 0, 2, (1, 3))
    if len(shape) == 3:
        return row_labels(shape, sample, token, (2,))
    if len(shape) == 2 and not tensor.is_floating_point():
        return row_labels(shape, sample, token, ())
    return row_labels(shape, None, 0, (1,)) if len(shape) == 2 else None


def labels_of_kind(tensor: Tensor, kind: str) -> Labels | None:
    """Labels of an input whose layout is known; of ids (batch, seq) too. None for a tensor of another rank."""
    shape = tuple(tensor.shape)
    if _count(shape) > LARGEST or tensor.dtype == torch.bool:
        return None
    if len(shape) == 2 and not tensor.is_floating_point():
        return row_labels(shape, 1, 0, ()) if kind == "ids_seq_first" else row_labels(shape, 0, 1, ())
    beside_ids: dict[str, Layout] = {"named": "rows", "ids": "rows", "ids_seq_first": "seq_first"}
    axes = AXES.get(beside_ids.get(kind, kind), ())
    if len(axes) != len(shape):
        return None
    features = [axis for axis, name in enumerate(axes) if name in ("head", "d_k", "d_model")]
    sample = axes.index("batch") if "batch" in axes else None
    return row_labels(shape, sample, axes.index("seq"), features)


def _embedded(labels: Labels, shape: tuple[int, ...]) -> Labels:
    arrays = {
        name: labels.arrays[name].unsqueeze(-1).expand(shape) for name in (SAMPLE, TOKEN) if name in labels.arrays
    }
    return Labels({**arrays, FEATURE: counted(shape, -1)})


def _convolved(shape: tuple[int, ...]) -> Labels:
    """(batch, channels, *places): the places, row by row, are the tokens."""
    token = torch.zeros((), dtype=torch.int32)
    for axis in range(2, len(shape)):
        token = token * shape[axis] + counted(shape, axis)
    return Labels({SAMPLE: counted(shape, 0), TOKEN: token.expand(shape), FEATURE: counted(shape, 1)})


def _count(shape: Sequence[int]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def _shape(labels: Labels) -> tuple[int, ...]:
    return tuple(next(iter(labels.arrays.values())).shape)
