"""Traces a loaded target from building it to its flow: what `msalint trace` does between its options and its report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from msalint.runtime.layout import SPELLED
from msalint.runtime.request import Request
from msalint.runtime.subject import Subject, first_attempt, other_layout, subject_of
from msalint.runtime.target import TargetError, describe_error
from msalint.runtime.trace_shapes import Flow, run_traced


@dataclass(frozen=True)
class TargetTrace:
    """The flow as far as it came; `failure` says why it ended early, or why there is no attention in it."""

    subject: Subject
    flow: Flow
    failure: TargetError | None

    @property
    def layout(self) -> str:
        """The axes that the inputs were read as having, "" if they are ids or images."""
        return SPELLED.get(self.subject.kind, "")


def trace_target(target: Any, request: Request) -> TargetTrace:
    """Build, run and trace a target. Raises `TargetError` if it can't be built at all."""
    failure: TargetError | None = None
    try:
        subject = subject_of(target, request)
    except TargetError as error:
        # The flow up to the error is worth more than the error alone.
        subject, failure = first_attempt(target, request), error
    flow, raised = _run(subject)
    twin = other_layout(subject, request) if raised is None and flow.problems else None
    if twin is not None:
        # Nothing states the layout of the inputs: the one under which the flow is sound is the one it is made for.
        other, _ = _run(twin)
        if not other.problems:
            subject, flow = twin, other
    if failure is None and raised is not None:
        failure = TargetError(f"{subject.name} raises: {describe_error(raised)}")
    if failure is None and flow.sites == 0:
        failure = TargetError(f"{subject.name} runs, but no attention was seen in it")
    return TargetTrace(subject, flow, failure)


def _run(subject: Subject) -> tuple[Flow, Exception | None]:
    return run_traced(subject.target, list(subject.inputs.values()), subject.call, subject.sizes)
