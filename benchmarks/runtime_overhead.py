"""What `@shape_checked` and the tracer cost: time of a forward as a ratio to the bare module, and to plain jaxtyping.

python benchmarks/runtime_overhead.py [--width 64] [--json]
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from beartype import beartype
from jaxtyping import Float, jaxtyped
from torch import Tensor, nn

from msalint.runtime import record_attention, shape_checked, trace_shapes
from msalint.runtime.tracer import Tracer


def attention_class() -> type[nn.Module]:
    """A new class each time, so that each way of checking decorates one of its own."""

    class Attention(nn.Module):
        def __init__(self, d_model: int, num_heads: int) -> None:
            super().__init__()
            self.d_model, self.num_heads, self.d_k = d_model, num_heads, d_model // num_heads
            self.q, self.k, self.v, self.o = (nn.Linear(d_model, d_model) for _ in range(4))

        def split(self, x: Float[Tensor, "batch seq d_model"]) -> Float[Tensor, "batch head seq d_k"]:
            return x.view(*x.shape[:2], self.num_heads, self.d_k).transpose(1, 2)

        def forward(self, x: Float[Tensor, "batch seq d_model"]) -> Float[Tensor, "batch seq d_model"]:
            q: Float[Tensor, "batch head seq d_k"] = self.split(self.q(x))
            k: Float[Tensor, "batch head seq d_k"] = self.split(self.k(x))
            v: Float[Tensor, "batch head seq d_k"] = self.split(self.v(x))
            weights: Float[Tensor, "batch head seq seq"] = (q @ k.mT * self.d_k**-0.5).softmax(-1)
            out: Float[Tensor, "batch seq d_model"] = self.o((weights @ v).transpose(1, 2).flatten(2))
            return out

    return Attention


def with_jaxtyping(cls: type[nn.Module]) -> type[nn.Module]:
    """jaxtyping and beartype on the signatures; they see no annotated local without an import hook."""
    for name in ("split", "forward"):
        setattr(cls, name, jaxtyped(typechecker=beartype)(getattr(cls, name)))
    return cls


WAYS: dict[str, Callable[[type[nn.Module]], type[nn.Module]]] = {
    "bare": lambda cls: cls,
    "shape_checked off": lambda cls: shape_checked(mode="off")(cls),
    "shape_checked once": lambda cls: shape_checked(mode="once")(cls),
    "shape_checked always": lambda cls: shape_checked(mode="always")(cls),
    "jaxtyping + beartype": with_jaxtyping,
}


def time_of(call: Callable[[], Any], rounds: int) -> float:
    """Median time of a call in microseconds."""
    for _ in range(5):
        call()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e6


def measure(width: int, heads: int, seq: int, rounds: int) -> dict[str, float]:
    torch.set_num_threads(1)
    x = torch.randn(2, seq, width)
    modules = {name: way(attention_class())(width, heads).eval() for name, way in WAYS.items()}
    bare = modules["bare"]

    def traced() -> None:
        with Tracer():
            bare(x)

    def labelled() -> None:
        with trace_shapes(bare) as recording:
            bare(x)
        recording.flow()

    def recorded() -> None:
        with record_attention(bare):
            bare(x)

    with torch.no_grad():
        found = {name: time_of(lambda module=module: module(x), rounds) for name, module in modules.items()}
        found["Tracer"] = time_of(traced, rounds)
        found["trace_shapes, flow and contract"] = time_of(labelled, max(rounds // 10, 5))
        found["record_attention"] = time_of(recorded, rounds)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    results = {
        f"d_model {width}, {heads} heads, seq {seq}": measure(width, heads, seq, options.rounds)
        for width, heads, seq in ((64, 4, 16), (768, 12, 128))
    }
    if options.json:
        print(json.dumps(results, indent=2))
        return
    for title, times in results.items():
        print(f"\n{title}\n{'':34}{'us':>9}  {'/ bare':>7}  {'/ jaxtyping':>11}")
        for name, value in times.items():
            ratios = value / times["bare"], value / times["jaxtyping + beartype"]
            print(f"{name:34}{value:9.0f}  {ratios[0]:7.2f}  {ratios[1]:11.2f}")


if __name__ == "__main__":
    main()
