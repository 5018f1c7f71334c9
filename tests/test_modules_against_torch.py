"""Every torch.nn layer that is modelled, and every einops pattern, gives what the real one gives, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("torch")

import einops
import torch
from einops.layers import torch as einops_layers
from torch import nn

from msalint.ops import layers
from msalint.ops.table import PATHS, Invocation
from msalint.state import State
from msalint.values import AttentionTuple, Items, Layer, Value
from tests.ops.oracle import (
    NOWHERE,
    Call,
    Outcome,
    abstract,
    compare_call,
    compare_values,
    counted,
    grid,
    is_refusal,
)

torch.set_num_threads(1)

SEQUENCES = [counted(2, 5, 12), counted(5, 2, 12).transpose(0, 1), counted(1, 5, 12), counted(5, 12)]
IMAGES = [counted(2, 6, 8, 8), counted(2, 8, 8, 6).permute(0, 3, 1, 2), counted(6, 8, 8)]
IDS = [torch.zeros(2, 5, dtype=torch.long), torch.zeros(5, dtype=torch.long), torch.zeros(2, 1, dtype=torch.long)]
MEMORY = counted(2, 7, 12)

Case = tuple[tuple[Any, ...], dict[str, Any], list[tuple[Any, ...]]]
"""Arguments of the layer, keywords, and what it is called with."""


def each(inputs: list[torch.Tensor]) -> list[tuple[Any, ...]]:
    return [(tensor,) for tensor in inputs]


ACTIVATIONS = "Identity ReLU GELU SiLU ELU SELU LeakyReLU Tanh Sigmoid Softplus PReLU Mish Hardswish ReLU6 Hardtanh"
LAYERS: dict[str, list[Case]] = {
    "Linear": [((12, 7), {}, each(SEQUENCES)), ((12, 7), {"bias": False}, each([counted(12), counted(2, 5, 4, 12)]))],
    "Dropout": [((0.1,), {}, each(grid(0, 1, 2, 3))), ((), {"p": 0.0}, each(grid(4)))],
    "Dropout1d": [((0.1,), {}, each(grid(2, 3)))],
    "Dropout2d": [((0.1,), {}, each(grid(4)))],
    "AlphaDropout": [((0.1,), {}, each(grid(2)))],
    "Softmax": [((), {"dim": dim}, each(grid(2, 3, 4))) for dim in (-1, 1, 0)],
    "LogSoftmax": [((), {"dim": -1}, each(grid(2, 3, 4)))],
    "Softmax2d": [((), {}, each(grid(4)))],
    "LayerNorm": [((12,), {}, each(SEQUENCES)), ((), {"normalized_shape": 12}, each(SEQUENCES))],
    "RMSNorm": [((12,), {}, each(SEQUENCES))],
    "Embedding": [((9, 4), {}, each(IDS)), ((9,), {"embedding_dim": 4}, each(IDS))],
    "Conv1d": [
        ((12, 7, 1), {}, each([counted(2, 12, 5)])),
        ((12, 7, 3), {"padding": 1}, each([counted(2, 12, 5)])),
        ((12, 7, 3), {}, each([counted(2, 12, 5)])),
        ((12, 7), {"kernel_size": 2, "stride": 2}, each([counted(2, 12, 6)])),
    ],
    "Conv2d": [
        ((6, 7, 1), {}, each(IMAGES)),
        ((6, 7, 3), {"padding": 1}, each(IMAGES)),
        ((6, 7), {"kernel_size": 4, "stride": 4}, each(IMAGES)),
        ((6, 7, (3, 3)), {"padding": "same"}, each(IMAGES)),
    ],
    "Conv3d": [((6, 7, 1), {}, each([counted(2, 6, 3, 4, 5)]))],
    "MultiheadAttention": [
        ((12, 3), {"batch_first": True}, [(x, MEMORY, MEMORY) for x in SEQUENCES[:2]]),
        ((12, 3), {}, [(counted(5, 2, 12), counted(7, 2, 12), counted(7, 2, 12))]),
        ((12, 3), {"batch_first": True}, [(counted(5, 12), counted(7, 12), counted(7, 12))]),
    ],
    "TransformerEncoderLayer": [((12, 3, 16), {"batch_first": True}, each(SEQUENCES))],
    "TransformerDecoderLayer": [((12, 3, 16), {"batch_first": True}, [(x, MEMORY) for x in SEQUENCES[:2]])],
    "Flatten": [((), {}, each(grid(3, 4))), ((2,), {}, each(grid(4))), ((0, 1), {}, each(grid(2, 3)))],
    "Unflatten": [
        ((2, (3, 4)), {}, each(SEQUENCES[:3])),
        ((), {"dim": 1, "unflattened_size": (5, 1)}, each(SEQUENCES[:3])),
    ],
    "LSTM": [
        ((12, 4), {"batch_first": True}, each(SEQUENCES[:3])),
        ((12, 4), {"bidirectional": True}, each(SEQUENCES[:3])),
    ],
    "GRU": [((12, 4), {"batch_first": True}, each(SEQUENCES[:3]))],
    "Rearrange": [(("b n (h d) -> b h n d",), {"h": 3}, each(SEQUENCES[:3]))],
    "Reduce": [(("b n d -> b d", "mean"), {}, each(SEQUENCES[:3]))],
    **{name: [((), {}, each(grid(*range(5))))] for name in ACTIVATIONS.split()},
    "BatchNorm1d": [((12,), {}, each([counted(2, 12, 5), counted(2, 12), counted(2, 5, 12).transpose(1, 2)]))],
    "BatchNorm2d": [((6,), {}, each(IMAGES[:2]))],
    "BatchNorm3d": [((6,), {}, each([counted(2, 6, 3, 4, 5)]))],
    "GroupNorm": [((3, 6), {}, each(IMAGES[:2])), ((2, 12), {}, each([counted(2, 12, 5)]))],
    "InstanceNorm1d": [((12,), {}, each([counted(2, 12, 5), counted(2, 5, 12).transpose(1, 2)]))],
    "InstanceNorm2d": [((6,), {}, each(IMAGES[:2]))],
}

EXEMPT = {
    "LazyLinear": "a Linear once it was called",
    "NonDynamicallyQuantizableLinear": "a Linear by another name",
    "SyncBatchNorm": "needs a process group",
    "QuickGELU": "torch has it in no release; models bring their own",
    "ModuleList": "kept as a list",
    "ModuleDict": "kept as a dict",
    "ParameterList": "kept as a list",
    "Sequential": "its children are called one by one",
    "TransformerEncoder": "a stack of its layer",
    "TransformerDecoder": "a stack of its layer",
    "Transformer": "its decoder's output",
}


def test_every_layer_is_compared_or_exempt_for_a_reason() -> None:
    assert sorted(set(layers.PARAMETERS) - set(LAYERS) - set(EXEMPT)) == []
    assert sorted((set(LAYERS) | set(EXEMPT)) - set(layers.PARAMETERS)) == []


@pytest.mark.parametrize("kind", sorted(LAYERS))
def test_layer_agrees_with_torch(kind: str) -> None:
    torch.manual_seed(0)
    outcomes = []
    for given, keywords, calls in LAYERS[kind]:
        real = getattr(einops_layers if kind in {"Rearrange", "Reduce"} else nn, kind)(*given, **keywords).eval()
        outcomes += [compare_layer(kind, given, keywords, real, args) for args in calls]
    complaints = [line for outcome in outcomes for line in outcome.complaints]
    assert not complaints, "\n".join(["", *complaints[:12], f"{len(complaints)} in all"])
    assert any(outcome.ran for outcome in outcomes)
    assert any(outcome.known for outcome in outcomes)


def compare_layer(
    kind: str, given: tuple[Any, ...], keywords: dict[str, Any], real: Callable[..., Any], args: tuple[Any, ...]
) -> Outcome:
    """One layer built and called, the model against torch."""
    state = State()
    named = {key: abstract(value) for key, value in keywords.items()}
    build = Invocation(state, NOWHERE, kind, [abstract(one) for one in given], named, [NOWHERE] * len(given))
    layer = layers.build(build, kind)
    assert isinstance(layer, Layer)
    call = Invocation(state, NOWHERE, kind, [abstract(one) for one in args], {}, [NOWHERE] * len(args))
    claimed = layers.apply(call, layer, lambda function, values: values[0])
    telling = [fact for fact in state.facts if is_refusal(fact)]
    try:
        with torch.no_grad():
            actual = real(*args)
    except (RuntimeError, ValueError, IndexError, AssertionError):
        return Outcome([])
    outcome = Outcome([f"{kind}{Call(args)} runs, and the model tells of {fact}" for fact in telling], ran=True)
    told = pair_of(claimed) if isinstance(claimed, AttentionTuple) else claimed
    for problem in compare_values(state, told, actual, outcome):
        outcome.complaints.append(f"{kind}{given}{keywords}{Call(args)}: {problem}")
    return outcome


def pair_of(value: AttentionTuple) -> Value:
    return Items((value.output, value.weights))


# --- einops ------------------------------------------------------------------------------------------------------


def patterns() -> Iterator[tuple[str, Call]]:
    """einops' functions with their calls."""
    plain = [counted(2, 3, 12), counted(3, 2, 12).transpose(0, 1), counted(2, 3, 24)[..., :12], counted(1, 3, 12)]
    for x in plain:
        yield "rearrange", Call((x, "b n (h d) -> b h n d"), {"h": 4})
        yield "rearrange", Call((x, "b n (h d) -> (b h) n d"), {"d": 3})
        yield "rearrange", Call((x, "b n d -> b d n"))
        yield "rearrange", Call((x, "b n d -> (b n) d"))
        yield "rearrange", Call((x, "b n d -> b () n d"))
        yield "rearrange", Call((x, "b n (k h d) -> k b h n d"), {"k": 3, "h": 2})
        yield "rearrange", Call((x, "... (h d) -> ... h d"), {"h": 2})
        yield "rearrange", Call((x, "b ... -> ... b"))
        yield "rearrange", Call((x, "b n (h d) -> b h n d"), {"h": 5})
        yield "rearrange", Call((x, "b n -> n b"))
        yield "repeat", Call((x, "b n d -> b h n d"), {"h": 4})
        yield "repeat", Call((x, "b n d -> b (n r) d"), {"r": 2})
        yield "repeat", Call((x, "b n d -> b (r n) d"), {"r": 2})
        yield "reduce", Call((x, "b n d -> b d", "mean"))
        yield "reduce", Call((x, "b n (h d) -> b h", "sum"), {"h": 3})
        yield "reduce", Call((x, "b n d -> b () d", "max"))
    images = counted(2, 4, 6, 5)
    yield "rearrange", Call((images, "b c h w -> b (h w) c"))
    yield "rearrange", Call((images, "b c (i p) w -> (b i) c p w"), {"p": 2})
    yield "rearrange", Call(([counted(2, 3), counted(2, 3)], "k a b -> a (k b)"))


@pytest.mark.parametrize("name", ["rearrange", "repeat", "reduce"])
def test_pattern_agrees_with_einops(name: str) -> None:
    real: Callable[..., Any] = getattr(einops, name)
    calls = [call for function, call in patterns() if function == name]
    outcomes = [compare_call(PATHS[f"einops.{name}"], name, lambda *a, **k: caught(real, a, k), call) for call in calls]
    complaints = [line for outcome in outcomes for line in outcome.complaints]
    assert not complaints, "\n".join(["", *complaints])
    assert sum(outcome.known for outcome in outcomes) > len(outcomes) // 2


def caught(real: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """einops' own errors as torch's kind."""
    try:
        return real(*args, **kwargs)
    except einops.EinopsError as error:
        raise ValueError(str(error)) from error


@pytest.mark.parametrize(
    ("pattern", "operands"),
    [
        ("b h i d, b h j d -> b h i j", (counted(2, 3, 4, 5), counted(2, 3, 6, 5))),
        ("batch head query key, batch head key d -> batch query head d", (counted(2, 3, 4, 6), counted(2, 3, 6, 5))),
        ("... i d, ... j d -> ... i j", (counted(2, 4, 5), counted(2, 6, 5))),
        ("b n d -> b d", (counted(2, 4, 5),)),
    ],
)
def test_named_einsum_agrees_with_einops(pattern: str, operands: tuple[torch.Tensor, ...]) -> None:
    outcome = compare_call(PATHS["einops.einsum"], "einsum", einops.einsum, Call((*operands, pattern)))
    assert not outcome.complaints and outcome.known
