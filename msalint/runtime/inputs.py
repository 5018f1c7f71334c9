"""Makes inputs for a module or function, from the names, annotations and layout that its own source states."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from msalint.runtime.bindings import evaluate
from msalint.runtime.guess import Unguessable, size_for
from msalint.runtime.hints import hints_of, is_array
from msalint.runtime.layout import AXES, declared_layout
from msalint.runtime.request import Request
from msalint.runtime.sizes import Sizes
from msalint.runtime.target import TargetError
from msalint.shapes.notation import NotationError, Term, parse_jaxtyping
from msalint.shapes.vocabulary import BATCH, mask_polarity, role_of_name, says, stated_polarity

MAIN = ("query", "x", "hidden_states", "input_ids", "ids", "src", "q")
"""Names of the parameter that takes the tokens, the surest first."""

IMAGES = ("image", "clip")
"""Kinds of inputs that are no row of tokens."""

_ID_NAMES = frozenset("input_ids ids idx token_ids indices src_ids tgt_ids".split())
_QUERIES = frozenset("q query queries".split())
LENGTH_NAMES = frozenset("lengths lens seq_lens src_lengths tgt_lengths seq_lengths input_lengths".split())
_MEMORY_NAMES = frozenset(
    "memory context encoder_hidden_states enc_out encoder_output encoder_outputs kv y cond".split()
)


def forms(built: Any, request: Request, sizes: Sizes) -> Iterator[tuple[Sizes, str, dict[str, Any]]]:
    """Ways to call it, the most natural first: hidden states, then ids, then heads, then images."""
    if request.values:
        kind = _kind_of(main_input(request.values), built)
        yield _sizes_of_values(request.values, _fitted_sizes(built, sizes), kind), kind, dict(request.values)
        return
    fitted = _told_apart(_fitted_sizes(built, sizes), request)
    kinds = ("named",) if request.call is not None else _kinds(built)
    fills = (None, "rows", "wide") if _wants_mask(built) else (None, "wide") if request.mask != "none" else (None,)
    for fill, kind in itertools.product(fills, kinds):
        torch.manual_seed(request.seed)
        try:
            with torch.device(request.device):
                inputs = (
                    named_tensors(request, fitted) if kind == "named" else inputs_of(built, request, fitted, kind, fill)
                )
        except Unguessable as error:
            name = type(built).__name__ if isinstance(built, nn.Module) else built.__name__
            raise TargetError(f"{name} can't be called: {error}") from error
        yield fitted, kind, inputs


def main_input(values: Mapping[str, Any]) -> Tensor | None:
    """The tensor of tokens among arguments of forward: the one of a usual name, else the first that is no mask."""
    data = {name: value for name, value in values.items() if is_data(name, value)}
    return data[main_name(list(data))] if data else None


def main_name(names: Sequence[str]) -> str:
    """Which of the tensors an output has places for: a target beside a source, a usual name, else the first."""
    if any(says(name, "src", "source") for name in names):
        names = [name for name in names if says(name, "tgt", "target")] or names
    return next((name for name in MAIN if name in names), names[0])


def is_data(name: str, value: Any) -> bool:
    return isinstance(value, Tensor) and value.dtype != torch.bool and value.dim() >= 2 and not is_mask_name(name)


def _kind_of(main: Tensor | None, built: Any) -> str:
    """How a tensor that was handed over is laid out, by its rank and by what the module states."""
    if main is None:
        return "named"
    if not main.is_floating_point():
        return "ids"
    stated = declared_layout(built)
    if stated is not None and len(AXES[stated]) == main.dim():
        return stated
    heads = not isinstance(built, nn.Module) or not any(True for _ in built.parameters())
    return {2: "unbatched", 3: "rows", 4: "heads" if heads else "image"}.get(main.dim(), "image")


def _sizes_of_values(values: Mapping[str, Any], sizes: Sizes, kind: str) -> Sizes:
    main = main_input(values)
    if main is None:
        return sizes
    return sizes_of_input(sizes, kind, tuple(main.shape))


def named_tensors(request: Request, sizes: Sizes) -> dict[str, Any]:
    """What a `--call` may name: x, memory, ids, keep (padding), causal, both; masks are True where a key counts."""
    lengths = torch.arange(sizes.seq, 0, -1)[: sizes.batch, None]
    keep = torch.arange(sizes.seq) < lengths if sizes.batch <= sizes.seq else torch.ones(sizes.batch, sizes.seq).bool()
    causal = torch.ones(sizes.seq, sizes.seq, dtype=torch.bool).tril()
    named: dict[str, Any] = {
        "x": torch.randn(sizes.batch, sizes.seq, sizes.d_model),
        "memory": torch.randn(sizes.batch, sizes.memory, sizes.d_model),
        "ids": torch.randint(sizes.vocab, (sizes.batch, sizes.seq)),
        "keep": keep,
        "causal": causal,
        "both": keep[:, None, None, :] & causal,
    }
    for name, shape in request.inputs.items():
        named[name] = torch.randn(shape)
    return named


def _fitted_sizes(built: Any, sizes: Sizes) -> Sizes:
    """The sizes as asked, with a module's own heads and width where its constructor kept its defaults."""
    width = heads = None
    if isinstance(built, nn.Module):
        image = next((layer for layer in built.modules() if isinstance(layer, (nn.Conv2d, nn.Conv3d))), None)
        sizes = sizes.changed(channels=image.in_channels) if image is not None else sizes
    own = getattr(built, "__dict__", {})
    for name, value in (*own.items(), *getattr(own.get("config"), "__dict__", {}).items()):
        role = role_of_name(name)
        if type(value) is not int:
            continue
        if role == "head":
            heads = heads or value
        elif role == "width" and name not in ("c", "d", "e"):
            width = width or value
    if isinstance(built, nn.Module):
        first = next((layer for layer in built.modules() if isinstance(layer, nn.Linear)), None)
        width = first.in_features if first is not None else width
    if heads and width and width % heads == 0:
        return sizes.changed(heads=heads, d_k=width // heads)
    if width and width % sizes.heads == 0:
        return sizes.changed(d_k=width // sizes.heads)
    if width:
        return sizes.changed(heads=1, d_k=width)
    return sizes


def _told_apart(sizes: Sizes, request: Request) -> Sizes:
    """Another length and batch where one that nobody asked for would read as heads or widths."""
    taken = {sizes.heads, sizes.d_k, sizes.d_model}
    if request.seq is None and sizes.seq in taken:
        sizes = sizes.changed(seq=next(size for size in (5, 6, 9, 10, 13) if size not in taken))
    if request.batch is None and sizes.batch in taken | {sizes.seq}:
        sizes = sizes.changed(batch=next(size for size in (2, 3, 4, 10) if size not in taken | {sizes.seq}))
    if sizes.memory in taken | {sizes.seq, sizes.batch}:
        sizes = sizes.changed(memory=next(size for size in (11, 12, 14, 15, 17) if size not in taken))
    return sizes.changed(batch=request.batch or sizes.batch, seq=request.seq or sizes.seq)


def sizes_of_input(sizes: Sizes, kind: str, shape: tuple[int, ...]) -> Sizes:
    """The sizes with batch, length and width as an input has them that a person gave."""
    axes = AXES.get(kind)
    if axes is None or len(shape) != len(axes):
        return sizes
    by_name = dict(zip(axes, shape, strict=True))
    sizes = sizes.changed(batch=by_name.get("batch", 1), seq=by_name["seq"])
    if kind in ("ids", "ids_seq_first"):
        return sizes
    if "head" in by_name:
        return sizes.changed(heads=by_name["head"], d_k=by_name["d_k"])
    heads = sizes.heads if by_name["d_model"] % sizes.heads == 0 else 1
    return sizes.changed(heads=heads, d_k=by_name["d_model"] // heads)


def _kinds(built: Any) -> tuple[str, ...]:
    stated = declared_layout(built)
    kinds = _likely_kinds(built)
    of_ids = kinds[0] == "ids"
    if stated is None or of_ids != stated.startswith("ids"):
        return kinds
    return (stated, *(kind for kind in kinds if kind != stated))


def _likely_kinds(built: Any) -> tuple[str, ...]:
    if not isinstance(built, nn.Module):
        return ("heads", "rows", "ids")
    if (
        not any(True for _ in built.parameters())
        and next(iter(inspect.signature(built.forward).parameters), "") in _QUERIES
    ):
        return ("heads", "rows", "ids")
    known = (nn.Embedding, nn.Linear, nn.Conv2d, nn.Conv3d)
    first = next((layer for layer in built.modules() if isinstance(layer, known)), None)
    if isinstance(first, nn.Embedding):
        return ("ids", "rows", "heads")
    if isinstance(first, nn.Conv3d):
        return ("clip", "image", "rows")
    if isinstance(first, nn.Conv2d):
        return ("image", "rows", "heads", "ids")
    return ("rows", "heads", "ids", "image", "seq_first", "map", "map_last", "parts")


def _wants_mask(built: Any) -> bool:
    parameters = inspect.signature(built.forward if isinstance(built, nn.Module) else built).parameters.values()
    return any(is_mask_name(parameter.name) and parameter.default is parameter.empty for parameter in parameters)


def inputs_of(built: Any, request: Request, sizes: Sizes, kind: str, fill: str | None) -> dict[str, Any]:
    """Inputs by parameter name. `fill`: what a mask that is required but not asked for is: all seen, of either rank."""
    function = built.forward if isinstance(built, nn.Module) else built
    parameters = list(inspect.signature(function).parameters.values())
    hints = hints_of(function)
    unknown = set(request.inputs) - {parameter.name for parameter in parameters}
    if unknown:
        names = ", ".join(parameter.name for parameter in parameters)
        raise Unguessable(f"forward has no parameter {sorted(unknown)[0]!r}; it has {names}")
    inputs: dict[str, Any] = {}
    for index, parameter in enumerate(parameters):
        name = parameter.name
        if name in request.inputs:
            inputs[name] = torch.randn(request.inputs[name])
        elif is_mask_name(name):
            mask = _mask(name, request, sizes, built)
            if mask is None and fill is not None and parameter.default is parameter.empty:
                seen = (sizes.batch, sizes.seq) if fill == "rows" else (sizes.batch, 1, sizes.seq, sizes.seq)
                mask = torch.full(seen, _polarity(name, request, built) == "keep")
            if mask is not None and mask.dim() == 2 and fill == "wide" and request.mask == "causal":
                mask = mask[None, None]
            if mask is not None or parameter.default is parameter.empty:
                inputs[name] = mask
        elif parameter.default is parameter.empty and parameter.kind not in (
            parameter.VAR_POSITIONAL,
            parameter.VAR_KEYWORD,
        ):
            inputs[name] = _input(name, hints.get(name), sizes, kind, first=index == 0)
    if not any(isinstance(value, Tensor) for value in inputs.values()):
        # All are optional: one of several ways in has to be taken.
        ways = [p.name for p in parameters if p.default is None and not is_mask_name(p.name)]
        for name in [name for name in (*MAIN, *ways) if name in ways][:1]:
            inputs[name] = _input(name, hints.get(name), sizes, kind, first=True)
    return inputs


def _input(name: str, hint: Any, sizes: Sizes, kind: str, first: bool) -> Any:
    if is_array(hint):
        shape = _annotated_shape(hint.dim_str, sizes)
        if shape is not None:
            kinds = [
                kind for kind in (hint.dtype.dtypes if isinstance(hint.dtype.dtypes, (tuple, list)) else ()) if kind
            ]
            return torch.randn(shape) if any("float" in kind for kind in kinds) else torch.randint(sizes.vocab, shape)
    size = size_for(name, sizes)
    if hint is int or (
        size is not None and len(name) > 1 and hint is not Tensor and says(name, "num", "n", "size", "len")
    ):
        return size if size is not None else 1
    if hint is float or says(name, "dropout", "scale"):
        return 0.0
    if hint is bool:
        return False
    if name in ("position_ids", "positions"):
        return torch.arange(sizes.seq).expand(sizes.batch, sizes.seq)
    if name in LENGTH_NAMES or says(name, "lengths", "lens"):
        beside = any(says(name, word) for word in _MEMORY_NAMES if "_" not in word)
        return torch.full((sizes.batch,), sizes.memory if beside and not first else sizes.seq)
    if kind == "channels_first":
        return torch.randn(sizes.batch, sizes.d_model, sizes.seq)
    if kind == "ids_seq_first":
        return torch.randint(sizes.vocab, (sizes.seq, sizes.batch))
    if name in _ID_NAMES or kind == "ids" or name.endswith("_ids"):
        return torch.randint(sizes.vocab, (sizes.batch, sizes.seq))
    if kind == "image":
        return torch.randn(sizes.batch, sizes.channels, sizes.image, sizes.image)
    if kind == "clip":
        return torch.randn(sizes.batch, sizes.channels, sizes.patch, sizes.image, sizes.image)
    if kind == "map":
        return torch.randn(sizes.batch, sizes.d_model, sizes.image, sizes.image)
    if kind == "map_last":
        return torch.randn(sizes.batch, sizes.image, sizes.image, sizes.d_model)
    if kind == "parts":
        return torch.randn(sizes.batch, sizes.patch, sizes.seq, sizes.d_model)
    if kind == "heads":
        return torch.randn(sizes.batch, sizes.heads, sizes.seq, sizes.d_k)
    if kind == "heads_third":
        return torch.randn(sizes.batch, sizes.seq, sizes.heads, sizes.d_k)
    length = sizes.memory if name in _MEMORY_NAMES and not first else sizes.seq
    if kind == "seq_first":
        return torch.randn(length, sizes.batch, sizes.d_model)
    return torch.randn(sizes.batch, length, sizes.d_model)


def _annotated_shape(spec: str, sizes: Sizes) -> tuple[int, ...] | None:
    try:
        axes = parse_jaxtyping(spec)
    except NotationError:
        return None
    shape: list[int] = []
    for axis in axes:
        if axis.kind == "variadic":
            shape.append(sizes.batch)
        else:
            size = _term_size(axis.term, sizes)
            if size is None:
                return None
            shape.append(size)
    return tuple(shape)


def _term_size(term: Term, sizes: Sizes) -> int | None:
    return evaluate(term, lambda name: sizes.batch if role_of_name(name) == BATCH else size_for(name, sizes))


def is_mask(name: str, value: Any) -> bool:
    """Whether an argument is a mask: by its name, or as a boolean tensor of several axes."""
    return is_mask_name(name) or (isinstance(value, Tensor) and value.dtype == torch.bool and value.dim() > 1)


def is_mask_name(name: str) -> bool:
    return says(name, "mask", "keep", "hide") or name.endswith("mask")


def _mask(name: str, request: Request, sizes: Sizes, built: Any) -> Tensor | None:
    """A boolean mask as asked: (batch, seq) for a padding mask, else it broadcasts to (batch, head, seq, seq)."""
    if request.mask == "none":
        return None
    named = named_tensors(request, sizes)
    if says(name, "padding", "pad"):
        if request.mask == "causal":
            return None
        keep: Tensor = named["keep"]
    else:
        keep = {"causal": named["causal"], "padding": named["keep"][:, None, None, :], "both": named["both"]}[
            request.mask
        ]
    return keep if _polarity(name, request, built) == "keep" else ~keep


def _polarity(name: str, request: Request, built: Any) -> str:
    """What True means: as a person says, a docstring or the name does, and that a key is seen where none does."""
    stated = (stated_polarity(text, name) for text in docs_of(built) if name in text)
    said = next((one for one in stated if one), None) or mask_polarity(name)
    return request.mask_true or said or ("hide" if says(name, "hide", "hidden") else "keep")


def docs_of(target: Any) -> tuple[str, ...]:
    """The docstrings that may say what a mask means: of forward, and of the class."""
    owners = (target.forward, type(target)) if isinstance(target, nn.Module) else (target,)
    return tuple(owner.__doc__ for owner in owners if owner.__doc__)
