"""`probe`: run a module and test how it behaves, property by property."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import nn

from msalint.runtime.dict_inputs import taken_apart
from msalint.runtime.experiment import Experiment, NotApplicable
from msalint.runtime.invariance_properties import evaluation_is_deterministic
from msalint.runtime.outcome import SEEDS, Failed, Property
from msalint.runtime.position_properties import POSITION_PROPERTIES, is_of_positions
from msalint.runtime.properties import PROPERTIES
from msalint.runtime.recorder import WeightsTracer
from msalint.runtime.request import Request
from msalint.runtime.subject import Subject, subject_of
from msalint.runtime.target import TargetError, describe_error
from msalint.runtime.trace_target import settled

Status = Literal["pass", "fail", "not applicable"]


@dataclass(frozen=True)
class Finding:
    """One property of one module. `worst` is the largest deviation over the seeds, None where none was measured."""

    name: str
    tried: str
    status: Status
    worst: float | None
    reason: str
    rule: str
    seeds: tuple[int, ...] = SEEDS


@dataclass(frozen=True)
class Report:
    """What `probe` found. `tolerance` is what a deviation is judged by, from the dtype the module could run in."""

    target: str
    dtype: str
    tolerance: float
    findings: tuple[Finding, ...]

    @property
    def failures(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.status == "fail"]

    def text(self) -> str:
        """A line a property, failures with the rule that usually explains them."""
        marks = {"pass": "pass", "fail": "FAIL", "not applicable": "n/a"}
        width = max(len(finding.name) for finding in self.findings)
        lines = [
            f"{self.target}   {self.dtype}, tolerance {self.tolerance:.1e}, seeds {', '.join(map(str, SEEDS))}",
            "",
        ]
        for finding in self.findings:
            worst = "" if finding.worst is None else f"{finding.worst:.1e}"
            rule = f" [{finding.rule}]" if finding.rule else ""
            lines.append(
                f"  {finding.name:{width}}  {marks[finding.status]:4}  {worst:8} {finding.reason}{rule}".rstrip()
            )
        count = len(self.failures)
        passed = sum(finding.status == "pass" for finding in self.findings)
        lines += ["", f"{passed} passed, {count} failed, {len(self.findings) - passed - count} not applicable"]
        return "\n".join(lines) + "\n"

    def as_json(self) -> str:
        findings = [
            {
                "property": finding.name,
                "tried": finding.tried,
                "status": finding.status,
                "worst": finding.worst if finding.worst is None or math.isfinite(finding.worst) else str(finding.worst),
                "reason": finding.reason,
                "rule": finding.rule or None,
                "seeds": list(finding.seeds),
            }
            for finding in self.findings
        ]
        document = {"target": self.target, "dtype": self.dtype, "tolerance": self.tolerance, "findings": findings}
        return json.dumps(document, indent=2) + "\n"


def probe(target: Any, *, properties: Sequence[Property] = PROPERTIES, **asked: Any) -> Report:
    """Test the behaviour of a module, a module class (built on guessed arguments) or an attention function.

    `asked` are the fields of `Request`, as in `probe(module, call="m(x, x, x, key_padding_mask=~keep)[0]")`. A module
    given is neither changed nor moved. Raises `TargetError` if it can't be built or run.
    """
    request = Request(**{"dropout": 0.2, **asked})
    subject, _, _ = settled(subject_of(target, request), request)
    if isinstance(target, nn.Module):
        was_training = target.training
        try:
            return probe_subject(subject, request, properties)
        finally:
            target.train(was_training)
            subject.state.changed(target).put_back(target)
    return probe_subject(subject, request, properties)


def probe_subject(subject: Subject, request: Request, properties: Sequence[Property] = PROPERTIES) -> Report:
    """`probe` on a subject that is known to run."""
    try:
        experiment = Experiment(taken_apart(subject), request)
        if not _has_attention(experiment):
            if not is_of_positions(experiment):
                raise NotApplicable("no attention was seen in it")
            properties = POSITION_PROPERTIES if properties is PROPERTIES else properties
    except NotApplicable as error:
        raise TargetError(f"{subject.name} can't be probed: {error}") from error
    except Exception as error:
        # What runs in torch's fused fast path may not run where it is watched.
        raise TargetError(f"{subject.name} raises when it is watched: {describe_error(error)}") from error
    with warnings.catch_warnings(), torch.random.fork_rng():
        warnings.simplefilter("ignore")
        steady = _find(next(one for one in PROPERTIES if one.check is evaluation_is_deterministic), experiment)
        random = steady.status == "fail" or experiment.noisy
        findings = tuple(_find(one, experiment, random and one.compares) for one in properties)
    dtype = str(experiment.dtype).removeprefix("torch.")
    return Report(subject.name, dtype, experiment.tolerance, findings)


def _has_attention(experiment: Experiment) -> bool:
    tokens = experiment.tokens(0)
    with torch.no_grad(), WeightsTracer() as tracer:
        derived = {tracer.number_of(tokens)}
        experiment.run(tokens)
    normalised = {"softmax", "log_softmax", "exp", "scaled_dot_product_attention", "multi_head_attention_forward"}
    for op in tracer.ops:
        # The frequencies of positions come out of an exponential too, which reads no token.
        if any(tensor.number in derived for tensor in op.inputs):
            if op.name.rpartition(".")[2] in normalised:
                return True
            derived.update(tensor.number for tensor in op.results)
    return bool(tracer.attentions)


def _find(one: Property, experiment: Experiment, unsure: bool = False) -> Finding:
    if unsure:
        return Finding(one.name, one.tried, "not applicable", None, "two runs of it differ by themselves", "")
    try:
        with torch.no_grad():
            shown = one.check(experiment)
    except NotApplicable as error:
        return Finding(one.name, one.tried, "not applicable", None, str(error), "")
    except Failed as error:
        return Finding(one.name, one.tried, "fail", error.worst, str(error), error.rule)
    except Exception as error:
        # The module ran as it stands, so what it raises here comes from what the property did to its input.
        return Finding(one.name, one.tried, "not applicable", None, f"it raises: {describe_error(error)}", "")
    return Finding(one.name, one.tried, "pass", shown.worst, shown.note, "")
