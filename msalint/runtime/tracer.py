"""Writes down every torch operation of a run: source line, inputs, results with sizes, strides order and dtype."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import torch
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakIdKeyDictionary

_PACKAGES_BELOW = tuple(
    f"{Path(part)}/" for part in (Path(torch.__file__).parent, *(Path(p) / "einops" for p in sys.path if p))
)
_GENERATED = ("/jaxtyping/", "/beartype/", "/msalint/runtime/tracer.py", "/msalint/runtime/checked.py")
_RUNNERS = ("/msalint/runtime/subject.py", "/msalint/runtime/experiment.py", "/msalint/runtime/cached_decoding.py")


class Place(NamedTuple):
    """Where the expression stands that ran: lines count from 1, columns in UTF-8 bytes from 0 (None before 3.11)."""

    filename: str
    line: int
    column: int | None = None
    end_line: int | None = None
    end_column: int | None = None


@dataclass(frozen=True)
class TracedTensor:
    """What a tensor was at one moment. `number` is the same wherever the same tensor object shows up again."""

    number: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device

    @property
    def stride_order(self) -> tuple[int, ...]:
        """The axes from the slowest to the fastest in memory; (0, 2, 1) for the transpose of a contiguous matrix.

        Axes of size 1 hold their place among the others, since their stride says nothing.
        """
        moving = [axis for axis, size in enumerate(self.shape) if size != 1]
        ranked = iter(sorted(moving, key=lambda axis: -self.stride[axis]))
        return tuple(next(ranked) if size != 1 else axis for axis, size in enumerate(self.shape))

    @property
    def contiguous(self) -> bool:
        expected = 1
        for size, stride in zip(reversed(self.shape), reversed(self.stride), strict=True):
            if size != 1 and stride != expected:
                return False
            expected *= size
        return True


@dataclass(frozen=True)
class TracedOp:
    """One torch operation. `name` is `torch.x`, `F.x` or `Tensor.x`, whichever way it was called.

    `caller` is the qualified name of the function that holds the line. `arguments` and `keywords` are the call's own,
    every tensor in them replaced by its `TracedTensor`.
    """

    name: str
    place: Place
    caller: str
    inputs: tuple[TracedTensor, ...]
    results: tuple[TracedTensor, ...]
    arguments: tuple[Any, ...] = field(default=(), repr=False)
    keywords: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def result(self) -> TracedTensor:
        """The only result, or the first of many (as of `chunk`)."""
        return self.results[0]

    @property
    def filename(self) -> str:
        return self.place.filename

    @property
    def line(self) -> int:
        return self.place.line

    @property
    def shape(self) -> tuple[int, ...]:
        return self.result.shape

    @property
    def stride_order(self) -> tuple[int, ...]:
        return self.result.stride_order

    @property
    def dtype(self) -> torch.dtype:
        return self.result.dtype


class Tracer(TorchFunctionMode):
    """A context in which each torch operation is appended to `ops`; those before an error stay readable after it.

    An operation inside another one (the softmax in `F.multi_head_attention_forward`) is not seen. Reading an attribute
    that is no tensor (`x.shape`) is no operation.
    """

    def __init__(self) -> None:
        super().__init__()
        self.ops: list[TracedOp] = []
        self.paused = False
        self._numbers: Any = WeakIdKeyDictionary()
        self._next_number = 0

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if self.paused:
            return func(*args, **kwargs)
        op, result = self.described(func, args, kwargs)
        if op is not None:
            self.ops.append(op)
            self.seen(op, func, args, kwargs, result)
        return result

    def described(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[TracedOp | None, Any]:
        """Run an operation: what it was (None if it gives no tensor), and its result."""
        # Described before the call: an operation in place changes what its input was.
        arguments, keywords = self._describe(args), self._describe(kwargs)
        result = func(*args, **kwargs)
        results = tuple(_tensors(self._describe(result)))
        if not results:
            return None, result
        place, caller = _user_place(sys._getframe(2))
        inputs = tuple(_tensors((arguments, keywords)))
        return TracedOp(_name_of(func), place, caller, inputs, results, arguments, keywords), result

    def seen(
        self, op: TracedOp, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
    ) -> None:
        """For tracers that want the tensors themselves, right after the operation; nothing in here is traced."""

    def number_of(self, tensor: torch.Tensor) -> int:
        """The number that stands for a tensor in the trace; a tensor not met before gets the next one."""
        number: int | None = self._numbers.get(tensor)
        if number is None:
            number = self._numbers[tensor] = self._next_number
            self._next_number += 1
        return number

    def _describe(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self.snapshot(value)
        if isinstance(value, (tuple, list)) and not isinstance(value, torch.Size):
            return tuple(self._describe(item) for item in value)
        if isinstance(value, dict):
            return {key: self._describe(item) for key, item in value.items()}
        return value

    def snapshot(self, tensor: torch.Tensor) -> TracedTensor | None:
        """What a tensor is right now; None for one with no sizes or strides of its own."""
        with torch._C.DisableTorchFunction():
            try:
                shape, stride = tuple(tensor.shape), tuple(tensor.stride())
            except RuntimeError:
                # Nested or sparse.
                return None
            return TracedTensor(self.number_of(tensor), shape, stride, tensor.dtype, tensor.device)


def trace(call: Callable[[], Any]) -> list[TracedOp]:
    """The torch operations that `call()` runs, in order. An error of `call` is passed on (`Tracer` keeps the ops)."""
    tracer = Tracer()
    with tracer:
        call()
    return tracer.ops


def _tensors(described: Any) -> Iterator[TracedTensor]:
    if isinstance(described, TracedTensor):
        yield described
    elif isinstance(described, tuple) and not isinstance(described, torch.Size):
        for item in described:
            yield from _tensors(item)
    elif isinstance(described, dict):
        for item in described.values():
            yield from _tensors(item)


@cache
def _name_of(func: Callable[..., Any]) -> str:
    name: str = getattr(func, "__name__", type(func).__name__)
    if name in ("__get__", "__set__"):
        # Reading `x.mT`, `x.data`; writing `x.data = ...`.
        return f"Tensor.{getattr(getattr(func, '__self__', None), '__name__', name)}"
    for prefix, namespace in (("torch", torch), ("F", F), ("Tensor", torch.Tensor)):
        if getattr(namespace, name, None) is func:
            return f"{prefix}.{name}"
    return f"Tensor.{name}" if hasattr(torch.Tensor, name) else name


def _user_place(frame: FrameType | None) -> tuple[Place, str]:
    """The innermost frame that is neither torch's, einops', nor a wrapper made for checking.

    A torch module that is run by itself is its own user: then its innermost layer's line counts.
    """
    layer: FrameType | None = None
    while frame is not None and _is_below(frame.f_code.co_filename):
        if layer is None and _is_layer(frame.f_code.co_filename):
            layer = frame
        frame = frame.f_back
    if frame is None or frame.f_code.co_filename.replace("\\", "/").endswith(_RUNNERS):
        frame = layer
    if frame is None:
        return Place("<unknown>", 0), "<unknown>"
    return _place_of(frame), _qualified(frame)


def _qualified(frame: FrameType) -> str:
    """`Class.method`. Before Python 3.11 the class is looked for among those of `self`."""
    code = frame.f_code
    known: str | None = getattr(code, "co_qualname", None)
    if known is not None:
        return known
    for cls in type(frame.f_locals.get("self")).__mro__:
        if getattr(vars(cls).get(code.co_name), "__code__", None) is code:
            return f"{cls.__qualname__}.{code.co_name}"
    return code.co_name


def _place_of(frame: FrameType) -> Place:
    code = frame.f_code
    positions = _positions(code)
    if not positions:
        return Place(code.co_filename, frame.f_lineno)
    line, end_line, column, end_column = positions[frame.f_lasti // 2]
    return Place(code.co_filename, line or frame.f_lineno, column, end_line, end_column)


@lru_cache(maxsize=4096)
def _positions(code: CodeType) -> list[tuple[int | None, int | None, int | None, int | None]]:
    if sys.version_info >= (3, 11):
        return list(code.co_positions())
    return []


@cache
def _is_layer(filename: str) -> bool:
    name = filename.replace("\\", "/")
    return "/torch/nn/modules/" in name and not name.endswith(("/module.py", "/container.py"))


@cache
def _is_below(filename: str) -> bool:
    name = filename.replace("\\", "/")
    if name.startswith("<") and not name.startswith("<ipython"):
        return True
    return name.startswith(_PACKAGES_BELOW) or any(part in name for part in _GENERATED)
