"""Builds a module from its class and finds inputs that it runs on."""

from __future__ import annotations

import ast
import contextlib
import copy
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from msalint.runtime.guess import Unguessable, constructor_arguments
from msalint.runtime.inputs import forms, inputs_of, main_input, sizes_of_input
from msalint.runtime.kept_state import KeptState, state_of
from msalint.runtime.layout import TWIN, declared_layout
from msalint.runtime.request import Request
from msalint.runtime.sizes import Sizes
from msalint.runtime.target import TargetError, describe_error


@dataclass(frozen=True)
class Subject:
    """A built module (or a function), the inputs it ran on, and the sizes they were made of."""

    name: str
    target: Any
    inputs: Mapping[str, Any]
    sizes: Sizes
    call: Callable[[], Any]
    kind: str = "rows"
    """How the inputs are laid out (a `Layout`), or "ids", "image", "named"."""
    settings: Mapping[str, object] = field(default_factory=dict)
    """The settings of the target as they were before it first ran."""
    state: KeptState = field(default_factory=lambda: state_of(None))
    """What the target kept before it first ran."""
    cls: Any = None
    """The class that the target was built from, None if it was handed over."""

    @property
    def module(self) -> nn.Module | None:
        return self.target if isinstance(self.target, nn.Module) else None


def subject_of(target: Any, request: Request) -> Subject:
    """The first choice of sizes and inputs on which the target can be built and run.

    Raises `TargetError` with the error of the first attempt, which is the most natural one.
    """
    try:
        return _first_running(target, request)
    except TargetError as error:
        if request.venture or not isinstance(error.__cause__, Unguessable):
            raise
        with contextlib.suppress(TargetError):
            return _first_running(target, replace(request, venture=True))
        raise


def _first_running(target: Any, request: Request) -> Subject:
    first: TargetError | None = None
    for sizes in request.sizes:
        try:
            built = build(target, request, sizes)
        except TargetError as error:
            first = first or error
            continue
        tried = _running(target, built, request, sizes)
        if isinstance(tried, TargetError) and request.seq is None and not request.inputs:
            # Windows and grids of a fixed number of places: the first error names the length that they want.
            length = _wanted_length(tried, request)
            longer = _running(target, built, replace(request, seq=length), sizes) if length else tried
            tried = tried if isinstance(longer, TargetError) else longer
        if isinstance(tried, Subject):
            return tried
        first = first or tried
    raise first or TargetError("no sizes to try")


def _running(target: Any, built: Any, request: Request, sizes: Sizes) -> Subject | TargetError:
    """The target on the first inputs that it runs on, else the error of the most natural ones."""
    first: TargetError | None = None
    settings, state = settings_of(built), state_of(built)
    for fitted, kind, form in forms(built, request, sizes):
        cls = target if inspect.isclass(target) else None
        subject = _subject(target, built, form, request, fitted, kind)
        subject = replace(subject, settings=settings, state=state, cls=cls)
        if subject.module is not None:
            # What an attempt that failed has left.
            state.changed(subject.module).put_back(subject.module)
        try:
            with torch.no_grad(), torch.random.fork_rng():
                subject.call()
        except Exception as error:
            given = shapes_of(subject.inputs)
            found = TargetError(f"{subject.name} raises when run on {given}: {describe_error(error)}")
            found.__cause__ = error
            first = first or found
            continue
        return subject
    return first or TargetError("no inputs to try")


_UNEQUAL = re.compile(r"size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\)")


def _wanted_length(error: TargetError, request: Request) -> int | None:
    """The length that a sum of scores and a bias of fixed size asks for; None if the error speaks of another thing."""
    found = _UNEQUAL.search(str(error))
    lengths = {sizes.seq for sizes in request.sizes}
    pair = [int(size) for size in found.groups()] if found else []
    others = [size for size in pair if size not in lengths]
    return others[0] if len(others) == 1 and others[0] > 1 else None


def first_attempt(target: Any, request: Request) -> Subject:
    """The most natural subject, not yet known to run. Raises `TargetError` if it can't even be built."""
    first: TargetError | None = None
    for sizes in request.sizes:
        try:
            built = build(target, request, sizes)
        except TargetError as error:
            first = first or error
            continue
        fitted, kind, form = next(iter(forms(built, request, sizes)))
        return _subject(target, built, form, request, fitted, kind)
    raise first or TargetError("no sizes to try")


def build(target: Any, request: Request, sizes: Sizes) -> Any:
    """The module of a class, on the asked device and in eval mode; a function or a module as it is."""
    if not inspect.isclass(target):
        return target
    first: Exception | None = None
    for keep_defaults in (False, True):
        try:
            torch.manual_seed(request.seed)
            with torch.device(request.device):
                arguments = constructor_arguments(
                    target, sizes, request.settings, keep_defaults, request.dropout, request.venture
                )
                built = _with_forward(target(**arguments))
            if not callable(built) or not callable(getattr(built, "forward", built)):
                raise TargetError(f"{target.__name__} makes objects that can't be called")
            return in_mode(built, training=False) if isinstance(built, nn.Module) else built
        except TargetError:
            raise
        except Exception as error:
            first = first or error
    reason = str(first) if isinstance(first, Unguessable) else describe_error(first or RuntimeError())
    raise TargetError(f"{target.__name__} can't be built: {reason}") from first


def _with_forward(built: Any) -> Any:
    """The object itself. A module without a forward gets its first public method of tensors for one."""
    if isinstance(built, nn.Module) and type(built).forward is nn.Module.forward:
        methods = {name: m for name, m in vars(type(built)).items() if inspect.isfunction(m) and name[0] != "_"}
        taking = [n for n, m in methods.items() if n not in _HOOKS and len(inspect.signature(m).parameters) > 1]
        if taking:
            object.__setattr__(built, "forward", getattr(built, taking[0]))
    return built


_HOOKS = frozenset(
    "training_step validation_step test_step predict_step configure_optimizers reset_parameters init_weights".split()
)
"""Methods that a trainer calls, or that the constructor does: none of them is how a model is used."""


def settings_of(built: Any) -> dict[str, object]:
    """What a module and its parts keep as plain values, by dotted name; whole numbers may count, and are left out."""
    if not isinstance(built, nn.Module):
        return {}
    return {
        f"{name}.{key}".lstrip("."): value
        for name, part in built.named_modules()
        for key, value in vars(part).items()
        if isinstance(value, (bool, float, str)) and key != "training"
    }


def in_mode(module: nn.Module, training: bool) -> nn.Module:
    """The module itself, in one mode. A `train` of its own may give nothing back."""
    module.train(training)
    return module


def other_layout(subject: Subject, request: Request) -> Subject | None:
    """The same target on inputs of its twin layout, if it does not state its own and runs on it."""
    twin = TWIN.get(subject.kind)
    if twin is None or declared_layout(subject.target) is not None or request.call is not None or request.inputs:
        return None
    if request.values:
        main = main_input(request.values)
        sizes = subject.sizes if main is None else sizes_of_input(subject.sizes, twin, tuple(main.shape))
        return replace(subject, sizes=sizes, kind=twin)
    try:
        with torch.device(request.device):
            inputs = inputs_of(subject.target, request, subject.sizes, twin, None)
        other = _subject(subject.target, subject.target, inputs, request, subject.sizes, twin)
        other = replace(other, settings=subject.settings, state=subject.state, cls=subject.cls)
        with torch.no_grad(), torch.random.fork_rng():
            other.call()
    except Exception:
        return None
    return replace(other, name=subject.name)


def _subject(target: Any, built: Any, inputs: Mapping[str, Any], request: Request, sizes: Sizes, kind: str) -> Subject:
    name = getattr(target, "__name__", type(target).__name__)
    for shape in list(request.inputs.values())[:1]:
        sizes = sizes_of_input(sizes, kind, shape)
    if request.call is not None:
        return Subject(name, built, inputs, sizes, caller(built, request.call, inputs), kind)
    return Subject(name, built, inputs, sizes, lambda: built(**fresh(inputs)), kind)


def fresh(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs for one run: what is no tensor is copied, since a run may fill a cache that it was handed."""
    return {
        name: value if isinstance(value, Tensor) or value is None else copy.deepcopy(value)
        for name, value in inputs.items()
    }


def caller(module: Any, text: str, names: Mapping[str, Any]) -> Callable[[], Any]:
    """Runs a person's own call such as "m(x, x, x, key_padding_mask=~keep)[0]"; `m` is the module."""
    try:
        code = compile(ast.parse(text, mode="eval"), "<call>", "eval")
    except SyntaxError as error:
        raise TargetError(f"--call {text!r} is no Python expression: {error.msg}") from error
    return lambda: eval(code, {"torch": torch, "nn": nn, "F": nn.functional, "m": module, **names})


def shapes_of(inputs: Mapping[str, Any]) -> str:
    parts = [f"{name} {tuple(value.shape)}" for name, value in inputs.items() if isinstance(value, Tensor)]
    return ", ".join(parts) or "no tensors"
