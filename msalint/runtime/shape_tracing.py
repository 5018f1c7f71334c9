"""`trace_shapes`: the flow of one run as rows with named axes, and where it breaks the contract of attention."""

from __future__ import annotations

import linecache
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from msalint.runtime import contract
from msalint.runtime.axis_names import axis_names
from msalint.runtime.comment_check import Disagreement, disagreements
from msalint.runtime.contract import Problem
from msalint.runtime.flow_tracer import FlowTracer, input_labels, labels_of_kind
from msalint.runtime.hints import hints_of, is_array
from msalint.runtime.sizes import Sizes
from msalint.runtime.tracer import TracedOp
from msalint.shapes.vocabulary import HEAD, HEAD_DIM, role_of_name


@dataclass(frozen=True)
class Row:
    """One operation of the flow: its place, the text of its expression, and its result with the axes by name."""

    op: TracedOp
    text: str
    axes: tuple[str, ...]


@dataclass(frozen=True)
class Flow:
    """A finished trace. `sites` counts where values are weighted; `problems` where the contract breaks."""

    rows: tuple[Row, ...]
    problems: tuple[Problem, ...]
    comments: tuple[Disagreement, ...]
    sites: int
    sizes: Sizes

    @property
    def sound(self) -> bool:
        return not self.problems and not self.comments


class Recording:
    """What `trace_shapes` yields: `flow()` at any time, `error` if the traced code raised."""

    def __init__(self, tracer: FlowTracer, sizes: Sizes | None) -> None:
        self.tracer = tracer
        self.sizes = sizes or Sizes()
        self.output: list[tuple[Tensor, tuple[int, ...]]] = []
        self.input_shape: tuple[int, ...] | None = None
        self.output_is_annotated = False
        """The axes of the output are written in its annotation: they may well be others than the input's."""

    def note_inputs(self, values: Sequence[Any], batch_first: bool, kind: str | None) -> None:
        """Label every tensor among the inputs; the first one of three axes sets batch, seq and width."""
        for value in values:
            if not isinstance(value, Tensor):
                continue
            if value.dim() == 3 and value.is_floating_point() and self.input_shape is None:
                self.input_shape = tuple(value.shape)
                if kind is None:
                    self._take_sizes(tuple(value.shape), batch_first)
            labels = input_labels(value, batch_first) if kind is None else labels_of_kind(value, kind)
            if labels is not None:
                self.tracer.label_input(value, labels)

    def _take_sizes(self, shape: tuple[int, ...], batch_first: bool) -> None:
        batch, seq = shape[:2] if batch_first else (shape[1], shape[0])
        heads = self.sizes.heads if shape[2] % self.sizes.heads == 0 else 1
        self.sizes = self.sizes.changed(batch=batch, seq=seq, heads=heads, d_k=shape[2] // heads)

    def note_output(self, value: Any) -> None:
        out = value[0] if isinstance(value, (tuple, list)) and value else value
        if self.output_is_annotated:
            return
        if isinstance(out, Tensor) and self.input_shape is not None and out.dim() == 3 and self.tracer.ops:
            number = self.tracer.number_of(out)
            labels = self.tracer.labels.get(number)
            made = (op for op in reversed(self.tracer.ops) if any(one.number == number for one in op.results))
            op = next(made, self.tracer.ops[-1])
            self.tracer.problems += contract.output_problems(op, labels, tuple(out.shape), self.input_shape)

    def flow(self) -> Flow:
        """The rows so far, named, with the problems; one problem a kind and line, in the order they happened."""
        tracer = self.tracer
        rows = tuple(
            Row(op, _text(op), axis_names(op.result.shape, tracer.labels.get(op.result.number), self.sizes))
            for op in tracer.ops
        )
        problems = {(problem.kind, problem.op.place): problem for problem in tracer.problems}
        comments = tuple(disagreements(tracer.ops, self.sizes))
        return Flow(rows, tuple(problems.values()), comments, len(tracer.sites), self.sizes)


@contextmanager
def trace_shapes(
    module: nn.Module | None = None, *, batch_first: bool = True, sizes: Sizes | None = None, kind: str | None = None
) -> Iterator[Recording]:
    """Trace what runs inside the block; `recording.flow()` is the result, also after an error.

    Inputs of `module` are read as (batch, seq, d_model), or (seq, batch, d_model) with `batch_first=False`; those of 4
    axes as (batch, head, seq, d_k); `kind` names another layout. Sizes are taken from the module's first input and its
    attributes unless given.
    """
    tracer = FlowTracer()
    recording = Recording(tracer, sizes or (module and _sizes_of(module)) or None)
    handles = []
    if module is not None:

        def before(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            if recording.input_shape is None:
                tracer.paused = True
                recording.note_inputs([*args, *kwargs.values()], batch_first, kind)
                tracer.paused = False

        def after(_: nn.Module, __: Any, output: Any) -> None:
            tracer.paused = True
            recording.note_output(output)
            tracer.paused = False

        handles = [
            module.register_forward_pre_hook(before, with_kwargs=True),
            module.register_forward_hook(after),
        ]
    try:
        with tracer:
            yield recording
    finally:
        for handle in handles:
            handle.remove()


def _annotates_output(function: Any) -> bool:
    return is_array(hints_of(function).get("return"))


def _sizes_of(module: nn.Module) -> Sizes:
    sizes = Sizes()
    for part in module.modules():
        for name, value in vars(part).items():
            if type(value) is int and role_of_name(name) == HEAD:
                return sizes.changed(heads=value)
            if type(value) is int and role_of_name(name) == HEAD_DIM and name != "depth":
                sizes = sizes.changed(d_k=value)
    return sizes


def _text(op: TracedOp) -> str:
    """The expression as written if it stands on one line, else the operation's name.

    Before Python 3.11 only the line is known: then the operation's name and all of the line.
    """
    place = op.place
    text = linecache.getline(place.filename, place.line)
    if place.column is None and text.strip():
        return f"{op.name.rpartition('.')[2]}: {text.strip()}"
    if place.column is None or place.end_column is None or place.end_line != place.line:
        return op.name
    line = text.encode()
    return line[place.column : place.end_column].decode(errors="replace") or op.name


def run_traced(target: Any, args: Sequence[Any], call: Any, sizes: Sizes, kind: str) -> tuple[Flow, Exception | None]:
    """Trace one call on known sizes: the flow, as far as it came, and the error that ended it.

    Gradients tell a learned scale from a fixed one; what runs without them alone (flex attention) runs without.
    """
    flow, error = _run_once(target, args, call, sizes, kind, gradients=True)
    return (flow, error) if error is None else _run_once(target, args, call, sizes, kind, gradients=False)


def _run_once(
    target: Any, args: Sequence[Any], call: Any, sizes: Sizes, kind: str, gradients: bool
) -> tuple[Flow, Exception | None]:
    module = target if isinstance(target, nn.Module) else None
    error: Exception | None = None
    with trace_shapes(module, sizes=sizes, kind=kind) as recording:
        recording.output_is_annotated = _annotates_output(target if module is None else module.forward)
        tracer = recording.tracer
        tracer.paused = True
        if module is None:
            recording.note_inputs(list(args), True, kind)
        tracer.paused = False
        try:
            with torch.set_grad_enabled(gradients):
                output = call()
            tracer.paused = True
            if module is None:
                recording.note_output(output)
        except Exception as caught:
            error = caught
    return recording.flow(), error
