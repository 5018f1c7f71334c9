"""Properties of gradients: those of hand-written functions, of whole weights, and what is registered to get them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import BackwardCFunction

from msalint.runtime.copies import moved
from msalint.runtime.experiment import Experiment, NotApplicable, awakened, first_tensor
from msalint.runtime.guess import constructor_arguments
from msalint.runtime.outcome import SEEDS, Failed, Shown
from msalint.runtime.subject import fresh, in_mode

_STEP = 2.0**-17
"""The step of the difference quotient: its error is near 1e-10 in float64 for values of order one."""


def backward_is_the_gradient(it: Experiment) -> Shown:
    """The derivative along random directions against a central difference, where a hand-written backward takes part.

    Other modules are not judged: what they detach, they detach on purpose.
    """
    if it.is_ids or it.dtype != torch.float64:
        raise NotApplicable("its input has no derivative in float64")
    worst = 0.0
    for seed in SEEDS:
        tokens = it.tokens(seed).requires_grad_()
        generator = torch.Generator().manual_seed(seed)
        with torch.enable_grad():
            output = it.run(tokens)
            if not any(isinstance(node, BackwardCFunction) for node in _nodes(output)):
                raise NotApplicable("no hand-written backward takes part")
            weights = torch.randn(output.shape, generator=generator, dtype=torch.float64)
            try:
                (gradient,) = torch.autograd.grad((output * weights).sum(), tokens)
            except RuntimeError as error:
                raise Failed(f"its backward raises: {str(error).splitlines()[0]}", None) from error
        direction = torch.randn(tokens.shape, generator=generator, dtype=torch.float64)
        near = [it.run(tokens.detach() + sign * _STEP * direction) for sign in (1, -1)]
        measured = float(((near[0] - near[1]) * weights).sum() / (2 * _STEP))
        told = float((gradient * direction).sum())
        worst = max(worst, abs(told - measured) / max(1.0, abs(measured)))
    if not worst <= 1e-5:
        raise Failed("its own backward gives another gradient than its forward has", worst)
    return Shown(worst)


def _nodes(output: Tensor) -> Iterator[Any]:
    seen: set[Any] = set()
    open_ = [output.grad_fn]
    while open_:
        node = open_.pop()
        if node is not None and node not in seen:
            seen.add(node)
            yield node
            open_ += [following for following, _ in node.next_functions]


def gradients_reach_whole_weights(it: Experiment) -> Shown:
    """A square weight of which the diagonal alone gets a gradient, over all seeds: an einsum took one letter twice."""
    if not isinstance(it.module, nn.Module):
        raise NotApplicable("it is a function")
    with it.training() as module, torch.enable_grad():
        awakened(module)
        for seed in SEEDS:
            it.run(it.tokens(seed), module=module).square().sum().backward()  # type: ignore[no-untyped-call]
    squares = {
        name: parameter.grad
        for name, parameter in module.named_parameters()
        if parameter.grad is not None and parameter.dim() == 2 and parameter.shape[0] == parameter.shape[1] > 2
    }
    if not squares:
        raise NotApplicable("it has no square weight")
    for name, gradient in squares.items():
        if bool(gradient.diagonal().any()) and not bool((gradient - gradient.diagonal().diag()).any()):
            raise Failed(f"only the diagonal of {name} gets a gradient", float(len(gradient)))
    return Shown(0.0)


def weights_are_registered(it: Experiment) -> Shown:
    """What asks for a gradient and stays from run to run is a parameter: as built, and as built elsewhere.

    Moving a parameter to where it already is gives the parameter itself, so a class whose constructor takes a dtype or
    a device is built with another one too.
    """
    if not isinstance(it.module, nn.Module):
        raise NotApplicable("it is a function")
    module = it.pristine()
    found = _strays(module)
    if found:
        with torch.enable_grad():
            it.run(it.tokens(0), module=module)
        # A run replaces what the module keeps of the last one; a weight stays.
        after = _strays(module)
        found = {name: tensor for name, tensor in found.items() if after.get(name) is tensor}
    for name, value in (("dtype", torch.float64), ("device", "meta")):
        other = None if found else built_with(it, name, value)
        found = found if other is None else _strays(other)
    if found:
        names = ", ".join(list(found)[:3])
        reason = f"`{names}` asks for a gradient, but is no parameter: no optimiser will train it"
        raise Failed(reason, float(len(found)), "MSA411")
    return Shown(0.0)


def weights_are_initialised(it: Experiment) -> Shown:
    """Built where torch fills memory that is not set with NaN, as `torch.use_deterministic_algorithms` does."""
    if it.subject.cls is None or not isinstance(it.module, nn.Module):
        raise NotApplicable("it was handed over, and can't be built again")
    before, warn = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        other = built_with(it)
    finally:
        torch.use_deterministic_algorithms(before, warn_only=warn)
    if other is None:
        raise NotApplicable("it can't be built again")
    kept = {**dict(other.named_parameters()), **dict(other.named_buffers())}
    for part, owner in other.named_modules():
        kept |= {f"{part}.{n}".lstrip("."): v for n, v in vars(owner).items() if isinstance(v, Tensor)}
    empty = [name for name, value in kept.items() if value.is_floating_point() and bool(value.isnan().any())]
    if empty:
        raise Failed(f"`{', '.join(empty[:3])}` holds memory that nothing has set", float(len(empty)), "MSA407")
    return Shown(0.0)


def _strays(module: nn.Module) -> dict[str, Tensor]:
    return {
        f"{part}.{name}".lstrip("."): value
        for part, owner in module.named_modules()
        for name, value in vars(owner).items()
        if isinstance(value, Tensor) and value.requires_grad
    }


def built_with(it: Experiment, parameter: str = "", value: object = None) -> nn.Module | None:
    """Another one of the class, with one argument of its constructor changed; None where that can't be done."""
    cls = it.subject.cls
    if cls is None or (parameter and parameter not in inspect.signature(cls).parameters):
        return None
    changed = {parameter: value} if parameter else {}
    for keep_defaults in (False, True):
        try:
            arguments = constructor_arguments(cls, it.sizes, it.request.settings, keep_defaults, venture=True)
            # Without gradients a moved parameter would ask for none.
            with torch.enable_grad():
                other: nn.Module = cls(**{**arguments, **changed})
            return in_mode(other, training=False)
        except Exception:
            continue
    return None


_OF_DTYPES = re.compile(r"dtype|scalar type|same type|BFloat16|c10::|Float", re.IGNORECASE)


def dtype_argument_is_kept(it: Experiment) -> Shown:
    """A class whose constructor takes a dtype, built in bfloat16, runs, and gives bfloat16."""
    module = built_with(it, "dtype", torch.bfloat16)
    if module is None:
        raise NotApplicable("its constructor takes no dtype")
    given = {name: moved(value, torch.bfloat16) for name, value in fresh(it.inputs).items()}
    try:
        output = first_tensor(module(**given))
    except RuntimeError as error:
        text = str(error).splitlines()[0]
        if "not implemented" in text or not _OF_DTYPES.search(text):
            raise NotApplicable(f"it can't run in bfloat16: {text}") from error
        raise Failed(f"built with dtype=torch.bfloat16 it raises: {text}", None, "") from error
    if output is not None and output.dtype == torch.float32:
        raise NotApplicable("it gives float32, as one that ends in a loss or in logits may")
    return Shown(0.0)
