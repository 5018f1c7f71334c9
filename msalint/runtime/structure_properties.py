"""Properties of the module around its attention: its layers, its settings, what it keeps, the device it follows."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from msalint.runtime.copies import moved, tensors_in
from msalint.runtime.experiment import Experiment, NotApplicable
from msalint.runtime.outcome import Failed, Shown
from msalint.runtime.subject import fresh, settings_of
from msalint.runtime.tracer import TracedOp, Tracer


def _module(it: Experiment) -> nn.Module:
    if not isinstance(it.module, nn.Module):
        raise NotApplicable("it is a function")
    return it.module


def _lists(module: nn.Module) -> Iterator[tuple[str, Sequence[nn.Module]]]:
    for name, part in module.named_modules():
        if isinstance(part, nn.ModuleList) and len(part) > 1:
            yield name, list(part)


def _twice_in_a_row(module: nn.Module) -> Iterator[str]:
    """Each `nn.Sequential` in which one instance stands twice; an activation or a norm may well be shared."""
    for name, part in module.named_modules():
        if isinstance(part, nn.Sequential):
            layers = [layer for layer in part if any(p.dim() > 1 for p in layer.parameters())]
            if len({id(layer) for layer in layers}) < len(layers):
                yield name


def layers_are_apart(it: Experiment) -> Shown:
    lists = list(_lists(_module(it)))
    for name in _twice_in_a_row(_module(it)):
        raise Failed(f"one layer stands in `{name}` several times, and has one set of weights", 1.0, "MSA409")
    if not lists:
        raise NotApplicable("it has no list of layers")
    for name, layers in lists:
        weights = [{id(p) for p in layer.parameters()} for layer in layers]
        for index, mine in enumerate(weights):
            if any(mine & other for other in weights[:index]):
                raise Failed(f"layers of `{name}` have the same weights: one layer stands in it twice", 1.0, "MSA409")
    return Shown(0.0)


def heads_read_one_input(it: Experiment) -> Shown:
    """Heads of a list named so get one input; linear layers of any list don't read each other with nothing between."""
    module = _module(it)
    if not any(True for _ in _lists(module)):
        raise NotApplicable("it has no list of heads")
    for name, layers in _lists(module):
        if "head" in name.rpartition(".")[2].lower():
            inputs = [given for _, given, _ in _calls(it, layers)]
            if len(inputs) == len(layers) and any(not _alike(one, inputs[0]) for one in inputs[1:]):
                raise Failed(f"a head of `{name}` reads what another head gave, not the input", 1.0, "MSA410")
    listed = [layer for _, layers in _lists(module) for one in layers for layer in one.modules()]
    linear = [layer for layer in listed if isinstance(layer, nn.Linear) and layer.in_features == layer.out_features]
    calls = _calls(it, linear)
    results = {id(output): layer for layer, _, output in calls}
    chained = [layer for layer, given, _ in calls if any(results.get(id(value), layer) is not layer for value in given)]
    # Values alone may be handed from hop to hop on purpose.
    if len(chained) > max(len(layers) for _, layers in _lists(module)) - 1:
        raise Failed("linear layers of a list read what their neighbours gave, not the input", 1.0, "MSA410")
    return Shown(0.0)


def _calls(it: Experiment, layers: Sequence[nn.Module]) -> list[tuple[nn.Module, list[Tensor], Any]]:
    """Each call of some layers in a run: the layer, its tensors, its output. All are kept, so no two share an id."""
    calls: list[tuple[nn.Module, list[Tensor], Any]] = []

    def note(layer: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        calls.append((layer, [value for value in (*args, *kwargs.values()) if isinstance(value, Tensor)], output))

    handles = [layer.register_forward_hook(note, with_kwargs=True) for layer in dict.fromkeys(layers)]
    try:
        it.run(it.tokens(0))
    finally:
        for handle in handles:
            handle.remove()
    return calls


def _alike(ours: Sequence[Tensor], theirs: Sequence[Tensor]) -> bool:
    return len(ours) == len(theirs) and all(map(torch.equal, ours, theirs))


def settings_stay(it: Experiment) -> Shown:
    module = _module(it)
    before = it.subject.settings
    it.run(it.tokens(0))
    with it.training() as trained:
        it.run(it.tokens(0), module=trained)
        found = {
            **settings_of(module),
            **{name: v for name, v in settings_of(trained).items() if before.get(name) != v},
        }
    changed = [f"{name} from {before[name]} to {found[name]}" for name in before if found.get(name) != before[name]]
    if changed:
        raise Failed(f"a run changes its settings: {', '.join(changed[:3])}", float(len(changed)), "MSA413")
    return Shown(0.0)


def graph_is_let_go(it: Experiment) -> Shown:
    _module(it)
    with it.training() as module, torch.enable_grad():
        it.run(it.tokens(0), module=module)
        kept = [
            f"{name}.{key}".lstrip(".")
            for name, part in module.named_modules()
            for key, value in vars(part).items()
            if key not in ("_parameters", "_modules")
            if any(tensor.grad_fn is not None for tensor in tensors_in(value))
        ]
    if kept:
        reason = f"after a training run it keeps {', '.join(kept[:3])} with the graph behind: its memory is not freed"
        raise Failed(reason, float(len(kept)), "MSA803")
    return Shown(0.0)


_INDEXING = frozenset("__getitem__ __setitem__ index_select gather take embedding to copy_ device cpu".split())
_MIXED = re.compile(r"same device|different devices|meta.*cpu|cpu.*meta", re.IGNORECASE | re.DOTALL)


def device_is_followed(it: Experiment) -> Shown:
    """On the meta device nothing is computed, but a mask that was made on the CPU meets scores that are not there."""
    try:
        target = it.subject.target
        return _runs_elsewhere(it, it.pristine().to("meta") if isinstance(target, nn.Module) else target)
    except Failed as error:
        left = _left_behind(it.pristine()) if isinstance(it.module, nn.Module) else {}
        if not left or not _runs_with_all(it):
            raise
        if "device" in _constructor_names(it):
            raise NotApplicable("its constructor is told the device, and was told the CPU") from error
        reason = f"`{next(iter(left))}` is a plain attribute, which stays behind when the module is moved"
        raise Failed(reason, None, "MSA708") from error


def _left_behind(module: nn.Module) -> dict[str, tuple[nn.Module, str]]:
    """The tensors that a module keeps as plain attributes, which `to` does not move: the owner and the name of each."""
    return {
        f"{part}.{name}".lstrip("."): (owner, name)
        for part, owner in module.named_modules()
        for name, value in vars(owner).items()
        if isinstance(value, Tensor)
    }


def _runs_with_all(it: Experiment) -> bool:
    """Whether it would run elsewhere if its plain attributes were moved with it."""
    module = it.pristine().to("meta")
    for owner, name in _left_behind(module).values():
        setattr(owner, name, getattr(owner, name).to("meta"))
    try:
        _runs_elsewhere(it, module)
    except (Failed, NotApplicable):
        return False
    return True


def _constructor_names(it: Experiment) -> list[str]:
    try:
        return list(inspect.signature(type(it.module).__init__).parameters)
    except (TypeError, ValueError):
        return []


def _runs_elsewhere(it: Experiment, module: Any) -> Shown:
    target = it.subject.target
    given = {name: moved(value, device="meta") for name, value in fresh(it.inputs).items()}
    if it.text:
        raise NotApplicable("a --call may make tensors of its own")
    tracer = _Own()
    try:
        with tracer:
            module(**given)
    except Exception as error:
        text = str(error).splitlines()[0] if str(error) else type(error).__name__
        if tracer.globals and not isinstance(target, nn.Module):
            raise NotApplicable("it uses layers that it was not given, which stay where they are") from error
        if _MIXED.search(str(error)):
            raise Failed(f"on another device it raises: {text}", None, "MSA315") from error
        if not any(_mixes(op) for op in tracer.ops):
            raise NotApplicable(f"it can't run without values ({type(error).__name__})") from error
    mixed = next((op for op in tracer.ops if _mixes(op)), None)
    if mixed is not None and tracer.globals and not isinstance(target, nn.Module):
        raise NotApplicable("it uses layers that it was not given, which stay where they are")
    if mixed is not None:
        reason = f"a tensor made on the CPU meets one of the module's device, line {mixed.line}"
        raise Failed(reason, None, "MSA315")
    return Shown(0.0)


class _Own(Tracer):
    """Notes whether parameters on the CPU are used: those of a function are not its own."""

    globals = False

    def described(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[TracedOp | None, Any]:
        self.globals = self.globals or any(isinstance(value, nn.Parameter) for value in (*args, *kwargs.values()))
        return super().described(func, args, kwargs)


def _mixes(op: TracedOp) -> bool:
    kinds = {tensor.device.type for tensor in op.inputs if tensor.shape}
    return len(kinds) > 1 and op.name.rpartition(".")[2] not in _INDEXING
