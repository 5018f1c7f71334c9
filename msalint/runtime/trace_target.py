"""Traces a loaded target from building it to its flow: what `msalint trace` does between its options and its report."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from msalint.runtime.copies import tensors_in
from msalint.runtime.layout import AXES
from msalint.runtime.request import Request
from msalint.runtime.shape_tracing import Flow, run_traced
from msalint.runtime.subject import Subject, first_attempt, other_layout, subject_of
from msalint.runtime.target import TargetError, describe_error


@dataclass(frozen=True)
class TargetTrace:
    """The flow as far as it came; `failure` says why it ended early, or why there is no attention in it."""

    subject: Subject
    flow: Flow
    failure: TargetError | None

    @property
    def source(self) -> tuple[str, str]:
        """The file that defines what runs, and its name in there: of the class whose forward it is, or the function.

        Raises `TargetError` if there is none.
        """
        target = self.subject.target
        classes = type(target).__mro__ if isinstance(target, nn.Module) else ()
        defined = next((cls for cls in classes if "forward" in vars(cls)), target)
        try:
            return inspect.getfile(defined), defined.__qualname__
        except TypeError as error:
            raise TargetError(f"{self.subject.name} has no source file") from error

    @property
    def layout(self) -> str:
        """The axes that the inputs were read as having, "" if they are ids or images."""
        axes = AXES.get(self.subject.kind)
        return f"({', '.join(axes)})" if axes else ""


def trace_target(target: Any, request: Request) -> TargetTrace:
    """Build, run and trace a target. Raises `TargetError` if it can't be built at all."""
    failure: TargetError | None = None
    try:
        subject = subject_of(target, request)
    except TargetError as error:
        # The flow up to the error is worth more than the error alone.
        subject, failure = first_attempt(target, request), error
    subject, flow, raised = settled(subject, request)
    if failure is None and raised is not None:
        failure = TargetError(f"{subject.name} raises: {describe_error(raised)}")
    if failure is None and flow.sites == 0:
        failure = TargetError(f"{subject.name} runs, but no attention was seen in it")
    return TargetTrace(subject, flow, failure)


def settled(subject: Subject, request: Request) -> tuple[Subject, Flow, Exception | None]:
    """The subject on the layout of inputs that it is made for, its flow, and the error that ended it.

    Where nothing states the layout, it is the one under which the flow is sound.
    """
    flow, raised = _run(subject)
    twin = other_layout(subject, request) if raised is None and flow.problems else None
    if twin is not None and _keeps_batch(twin) >= _keeps_batch(subject):
        other, _ = _run(twin)
        if not other.problems:
            return twin, other, None
    return subject, flow, raised


def _keeps_batch(subject: Subject) -> bool:
    """Whether the first tensor of its output has an axis of the batch size: a pooled axis is not the batch."""
    with torch.no_grad(), torch.random.fork_rng():
        output = subject.call()
    tensor = next(tensors_in(output), None)
    return tensor is not None and subject.sizes.batch in tensor.shape


def _run(subject: Subject) -> tuple[Flow, Exception | None]:
    return run_traced(subject.target, list(subject.inputs.values()), subject.call, subject.sizes, subject.kind)
