"""On which device a new tensor lies: that of an input, or torch's default one, where it meets scores that need not."""

from __future__ import annotations

from msalint.diagnostic import Site
from msalint.facts import LeftBehind, OffDevice
from msalint.ops.table import Invocation
from msalint.state import State, is_axis_symbol
from msalint.values import Made, Tensor, Value, replace


def placed(call: Invocation, tensor: Tensor | None) -> Tensor | None:
    """A tensor fresh from a factory, with what its `device=` says; one of no axes goes with any device."""
    if tensor is None or call.unknown_arguments or (tensor.lead is None and not any(tensor.axes)):
        return tensor
    if "device" in call.kwargs:
        return tensor.with_traits(device_given=True)
    if not _in_forward(call.state, tensor):
        return tensor
    beside = call.beside() if call.beside is not None else ""
    return tensor.with_traits(made_by_default=(Made(call.at, beside),))


def _in_forward(state: State, tensor: Tensor) -> bool:
    """A module's method other than `__init__`, or a function that makes it as long as one of its inputs is."""
    if not state.context or "__init__" in state.context:
        return False
    symbols = [symbol for axis in tensor.axes for symbol in state.size_of(axis).symbols()]
    return bool(state.module_name) or any(is_axis_symbol(symbol) and symbol.name != "?" for symbol in symbols)


def tell_off_device(state: State, mask: Value | None, at: Site) -> None:
    """Tell of a mask that was made on the default device, now that it meets a tensor that lies where the inputs do."""
    tell_left_behind(state, mask, at)
    if not isinstance(mask, Tensor) or mask.traits.buffer or not mask.traits.made_by_default:
        return
    first, *more = mask.traits.made_by_default
    state.emit(OffDevice(first.at, at, tuple((made.at, made.beside) for made in (first, *more))))


def tell_left_behind(state: State, table: Value | None, at: Site) -> None:
    """Tell of a mask or table that `module.to(device)` leaves behind, now that it meets what lies elsewhere."""
    if not isinstance(table, Tensor) or "__init__" in state.context:
        return
    traits = table.traits
    if traits.plain is not None and not (traits.buffer or traits.parameter or traits.device_given):
        state.emit(LeftBehind(traits.plain, at, traits.name))


def both_by_default(left: Tensor, right: Tensor) -> tuple[Made, ...]:
    """What a result of two tensors was made of, if both were made on the default device."""
    a, b = left.traits.made_by_default, right.traits.made_by_default
    return tuple({id(made.at): made for made in (*a, *b)}.values()) if a and b else ()


def joined(left: Tensor, right: Tensor, result: Tensor) -> Tensor:
    """The result of two tensors with what is known of its device."""
    given = left.traits.device_given or right.traits.device_given
    traits = replace(result.traits, made_by_default=both_by_default(left, right), device_given=given)
    return replace(result, traits=traits)


def moved(tensor: Tensor) -> Tensor:
    """A tensor that was brought elsewhere, or may have been."""
    if tensor.traits.made_by_default or tensor.traits.plain is not None:
        return tensor.with_traits(made_by_default=(), plain=None)
    return tensor
