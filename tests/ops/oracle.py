"""Compares what an op model says of a call with what torch does: sizes, memory order, dtype, and refusals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import torch

import msalint.ops  # noqa: F401 -- fills the tables
from msalint.diagnostic import Position, Site, Span
from msalint.facts import Fact, SizesDisagree, Viewed
from msalint.ops.table import METHODS, PATHS, Invocation, Operation
from msalint.shapes.axes import Atom, Axis, Ident, Layout, MemoryItem
from msalint.shapes.size import Size
from msalint.state import State
from msalint.values import Const, DType, Int, Items, Layer, Many, Opaque, Real, ShapeValue, Tensor, Value, dtype_kind


@dataclass(frozen=True)
class Nowhere:
    """A site for calls that no file holds."""

    filename: str
    span: Span
    text: str = ""


NOWHERE = Nowhere("<table>", Span(Position(1, 1), Position(1, 1)))


@dataclass(frozen=True)
class Call:
    """Arguments of a call, tensors and plain values as torch takes them."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        listed = [_text(arg) for arg in self.args] + [f"{k}={_text(v)}" for k, v in self.kwargs.items()]
        return f"({', '.join(listed)})"


@dataclass
class Outcome:
    """What one call showed. `known`: the model told the whole shape; `ordered`: the memory order as well."""

    complaints: list[str]
    ran: bool = False
    known: bool = False
    ordered: bool = False


def _text(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"<{tuple(value.shape)} by {value.stride()}>"
    if isinstance(value, (tuple, list)) and any(isinstance(v, torch.Tensor) for v in value):
        return f"[{', '.join(_text(v) for v in value)}]"
    return repr(value)


# --- from torch to abstract values -------------------------------------------------------------------------------


def abstract(value: Any) -> Value:
    """The abstract value that knows everything about a concrete one."""
    if isinstance(value, torch.Tensor):
        return abstract_tensor(value)
    if isinstance(value, torch.dtype):
        return DType(str(value).removeprefix("torch."))
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return Const(value)
    if isinstance(value, int):
        return Int(Size.of(value))
    if isinstance(value, float):
        return Real(value)
    if isinstance(value, (tuple, list)):
        return Items(tuple(abstract(item) for item in value), "list" if isinstance(value, list) else "tuple")
    return Opaque()


def abstract_tensor(tensor: torch.Tensor) -> Tensor:
    """One atom for each axis of another size than 1, in the memory order that the strides tell."""
    axes: tuple[Axis, ...] = tuple(
        () if size == 1 else (Atom(Size.of(size), Ident("new", names=[f"axis{place}"])),)
        for place, size in enumerate(tensor.shape)
    )
    return Tensor(None, axes, layout_of(tensor, axes), kind_of(tensor.dtype))


def kind_of(dtype: torch.dtype) -> str | None:
    return dtype_kind(str(dtype).removeprefix("torch."))


def layout_of(tensor: torch.Tensor, axes: Sequence[Axis]) -> Layout | None:
    """The layout of axes of one atom each; None where places overlap in memory."""
    strided = [(tensor.stride(i), tensor.shape[i], axis[0].ident) for i, axis in enumerate(axes) if axis]
    moving = sorted((one for one in strided if one[0]), key=lambda one: -one[0])
    gaps: set[MemoryItem] = set()
    for (stride, _, ident), (after, size, _) in zip(moving, moving[1:]):
        if stride < after * size:
            return None
        if stride != after * size:
            gaps.add(ident)
    if moving and moving[-1][0] != 1:
        gaps.add(moving[-1][2])
    return Layout(tuple(ident for _, _, ident in moving), frozenset(gaps))


# --- one call ----------------------------------------------------------------------------------------------------


def torch_function(path: str) -> Callable[..., Any] | None:
    """What a full name stands for in torch, None if it has nothing of that name."""
    first, *rest = path.split(".")
    roots: dict[str, Any] = {"torch": torch}
    try:
        found: Any = reduce(getattr, rest, roots[first])
    except (AttributeError, KeyError):
        return None
    return found if callable(found) else None


def invoke(operation: Operation, name: str, call: Call) -> tuple[State, Value | None]:
    """Run a model; the state holds the facts that it told."""
    state = State()
    given = [abstract(arg) for arg in call.args]
    keywords = {key: abstract(value) for key, value in call.kwargs.items()}
    sites: list[Site] = [NOWHERE] * len(given)
    return state, operation(Invocation(state, NOWHERE, name, given, keywords, sites, dict.fromkeys(keywords, NOWHERE)))


def compare_call(operation: Operation, name: str, real: Callable[..., Any], call: Call) -> Outcome:
    """A model against torch: the same shape, order and dtype, the same refusal, or no claim."""
    state, claimed = invoke(operation, name, call)
    telling = [fact for fact in state.facts if is_refusal(fact)]
    try:
        actual = real(*_copied(call.args), **call.kwargs)
    except (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError, AssertionError) as error:
        return Outcome(missed_refusal(name, call, telling, claimed, error))
    complaints = [f"{name}{call} runs, and the model tells of {type(fact).__name__}" for fact in telling]
    outcome = Outcome(complaints, ran=True)
    for problem in compare_values(state, claimed, actual, outcome):
        outcome.complaints.append(f"{name}{call}: {problem}")
    return outcome


def _copied(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments with tensors of their own memory, so that an operation in place leaves the grid as it is."""
    return tuple(same_strides(arg) if isinstance(arg, torch.Tensor) else arg for arg in args)


def same_strides(tensor: torch.Tensor) -> torch.Tensor:
    """Another tensor of the same values, sizes and strides."""
    need = 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride())) if tensor.numel() else 0
    storage = torch.zeros(need, dtype=tensor.dtype)
    made = torch.as_strided(storage, tensor.shape, tensor.stride())
    if all(stride or size == 1 for size, stride in zip(tensor.shape, tensor.stride())):
        made.copy_(tensor.detach())
    return made


def is_refusal(fact: Fact) -> bool:
    if isinstance(fact, Viewed):
        return fact.mismatch or (fact.broken is not None and fact.certain)
    return isinstance(fact, SizesDisagree)


def missed_refusal(name: str, call: Call, telling: list[Fact], claimed: Value | None, error: Exception) -> list[str]:
    """A view that torch refuses because of its strides is the one refusal that a model must know."""
    if "view size is not compatible" not in str(error) or telling:
        return []
    if not isinstance(claimed, Tensor) or claimed.layout is None:
        return []
    return [f"{name}{call}: torch refuses the view, and the model says nothing"]


# --- results -----------------------------------------------------------------------------------------------------


def compare_values(state: State, claimed: Value | None, actual: Any, outcome: Outcome) -> Iterator[str]:
    """What is wrong with a claim; `outcome` learns how much it said."""
    if claimed is None or isinstance(claimed, (Opaque, Many)):
        if isinstance(claimed, Many) and isinstance(actual, (tuple, list)) and actual:
            yield from compare_values(state, claimed.element, actual[0], outcome)
        return
    if isinstance(actual, torch.Tensor):
        if not isinstance(claimed, Tensor):
            if not (isinstance(claimed, Real) and actual.numel() == 1):
                yield f"torch gives a tensor, the model {type(claimed).__name__}"
            return
        yield from compare_tensors(state, state.resolve(claimed), actual, outcome)
    elif isinstance(actual, torch.Size):
        yield from _compare_shapes(state, claimed, actual, outcome)
    elif isinstance(actual, (tuple, list)) and isinstance(claimed, Items):
        if len(claimed.items) != len(actual):
            yield f"torch gives {len(actual)} results, the model {len(claimed.items)}"
            return
        for one, other in zip(claimed.items, actual):
            yield from compare_values(state, one, other, outcome)
    elif isinstance(actual, int) and not isinstance(actual, bool):
        size = state.as_size(claimed)
        outcome.known = size is not None
        if size is not None and size.constant not in (None, actual):
            yield f"torch gives {actual}, the model {size}"
    elif isinstance(claimed, (Tensor, Items, Layer)):
        yield f"torch gives {type(actual).__name__}, the model {type(claimed).__name__}"


def _compare_shapes(state: State, claimed: Value, actual: torch.Size, outcome: Outcome) -> Iterator[str]:
    if not isinstance(claimed, ShapeValue):
        yield f"torch gives a shape, the model {type(claimed).__name__}"
        return
    sizes = tuple(state.size_of(axis).constant for axis in claimed.axes)
    outcome.known = claimed.lead is None and None not in sizes
    if outcome.known and sizes != tuple(actual):
        yield f"torch gives {tuple(actual)}, the model {sizes}"


def compare_tensors(state: State, claimed: Tensor, actual: torch.Tensor, outcome: Outcome) -> Iterator[str]:
    """Sizes, memory order and dtype of a claim."""
    sizes = [state.size_of(axis).constant for axis in claimed.axes]
    text = f"({', '.join('?' if s is None else str(s) for s in sizes)}{', ...' if claimed.lead else ''})"
    if len(sizes) > actual.dim() or (claimed.lead is None and len(sizes) != actual.dim()):
        yield f"torch gives {tuple(actual.shape)}, the model {text}"
        return
    behind = actual.shape[actual.dim() - len(sizes) :]
    if any(size is not None and size != real for size, real in zip(sizes, behind)):
        yield f"torch gives {tuple(actual.shape)}, the model {text}"
        return
    if claimed.dtype is not None and claimed.dtype != kind_of(actual.dtype):
        yield f"torch gives {actual.dtype}, the model {claimed.dtype}"
    outcome.known = outcome.known or (claimed.lead is None and None not in sizes)
    if claimed.lead is None and claimed.layout is not None and not claimed.traits.implementation_layout:
        outcome.ordered = True
        yield from compare_layouts(state, claimed, actual)


def compare_layouts(state: State, claimed: Tensor, actual: torch.Tensor) -> Iterator[str]:
    """Each atom's stride against the claimed order: the next follows at once, or a gap lies between."""
    layout = claimed.layout
    if layout is None or actual.numel() == 0:
        return
    strides: dict[MemoryItem, tuple[int, int]] = {}
    for place, axis in enumerate(claimed.axes):
        stride = actual.stride(place)
        for atom in reversed(axis):
            size = state.relations.resolve(atom.size).constant
            if size is None:
                return
            strides[atom.ident] = (size, stride)
            stride *= size
    moving = [item for item in layout.order if strides.get(item, (1, 0))[0] != 1]
    told = f"order {[item.names or item for item in moving if isinstance(item, Ident)]}, gaps {len(layout.gaps)}"
    still = [item for item, (size, stride) in strides.items() if size != 1 and item not in layout.order and stride]
    if still or any(item not in strides for item in moving):
        yield f"torch strides {actual.stride()} of {tuple(actual.shape)}, the model's {told}, atoms left out"
        return
    if moving and (strides[moving[-1]][1] == 1) == (moving[-1] in layout.gaps):
        yield f"torch strides {actual.stride()} of {tuple(actual.shape)}, the model's {told}, at the end"
        return
    for here, after in zip(moving, moving[1:]):
        size, stride = strides[after]
        if (strides[here][1] == size * stride) == (here in layout.gaps):
            yield f"torch strides {actual.stride()} of {tuple(actual.shape)}, the model's {told}"
            return


# --- inputs ------------------------------------------------------------------------------------------------------


def counted(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """A contiguous tensor of small positive values."""
    total = 1
    for size in shape:
        total *= size
    return (torch.arange(total) % 7 + 1).to(dtype).reshape(shape)


def grid(*ranks: int) -> list[torch.Tensor]:
    """Tensors of the ranks asked for: contiguous, permuted, sliced, stepped, expanded, with sizes 0 and 1."""
    found = [tensor for tensor in _GRID if tensor.dim() in ranks]
    return found or list(_GRID)


def _variants() -> Iterator[torch.Tensor]:
    yield counted()
    for length in (3, 1, 0):
        yield counted(length)
    yield counted(7)[::2]
    shapes: tuple[tuple[int, ...], ...] = ((2, 3), (3, 1), (1, 3), (0, 3), (2, 0))
    yield from (counted(*shape) for shape in shapes)
    yield counted(2, 3).t()
    yield counted(2, 5)[:, :3]
    yield counted(2, 6)[:, ::2]
    yield counted(1, 3).expand(2, 3)
    shapes = ((2, 3, 4), (2, 1, 4), (1, 3, 4), (2, 3, 1), (2, 0, 4), (2, 6, 6))
    yield from (counted(*shape) for shape in shapes)
    yield counted(2, 3, 4).transpose(1, 2)
    yield counted(2, 3, 4).transpose(0, 1)
    yield counted(2, 3, 4).permute(2, 1, 0)
    yield counted(2, 5, 4)[:, :3]
    yield counted(2, 3, 6)[..., :4]
    yield counted(2, 3, 4)[:1]
    yield counted(2, 3, 4)[:, 1:2]
    yield counted(2, 1, 4).expand(2, 3, 4)
    yield counted(3, 1).expand(2, 3, 4)
    shapes = ((2, 3, 4, 5), (1, 3, 4, 5), (2, 1, 4, 1), (2, 0, 4, 5), (2, 3, 5, 5))
    yield from (counted(*shape) for shape in shapes)
    yield counted(2, 3, 4, 5).transpose(1, 2)
    yield counted(2, 3, 4, 5).permute(0, 3, 1, 2)
    yield counted(2, 3, 4, 5).permute(2, 0, 3, 1)
    yield counted(2, 3, 4, 5)[:, :, 1:3]
    yield counted(2, 3, 4, 5)[..., ::2]
    yield counted(2, 3, 1, 5).expand(2, 3, 4, 5)
    yield counted(3, 2, 3, 4, 5)[1]
    yield counted(2, 3, 4, 3, 5)[:, :, :, 1]
    yield counted(2, 3, 4, 3, 5).permute(3, 0, 2, 1, 4)


_GRID = list(_variants())


def operation_of(name: str) -> Operation:
    """The model of a method (a bare name) or of a function (a full name)."""
    return PATHS[name] if "." in name else METHODS[name]
