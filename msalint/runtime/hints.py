"""Checks a value against a type hint: jaxtyping axes by our own bindings, every other kind of hint by beartype."""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Union, get_args, get_origin

from beartype import BeartypeConf
from beartype.door import is_bearable
from beartype.roar import BeartypeException

from msalint.runtime.bindings import Bindings
from msalint.shapes.notation import NotationError, TypedAxis, parse_jaxtyping

_CONF = BeartypeConf(is_pep484_tower=True)
"""An int is a float, as PEP 484 has it: `dropout: float` takes 0."""


@dataclass(frozen=True)
class Mismatch:
    """Why a value does not fit its hint. `near`: its rank was right, so this reason is telling."""

    reason: str
    expected: str
    near: bool = False


Check = Callable[[Any, Bindings, str], "Mismatch | None"]
"""(value, bindings, origin) -> what is wrong; sizes are learned on the way."""


def check_of(hint: Any) -> Check | None:
    """The check a hint asks for, or None if it allows anything or is not understood."""
    if hint is Any or hint is object or isinstance(hint, (str, typing.ForwardRef)):
        return None
    if hint is None or hint is type(None):
        return _none
    if is_array(hint):
        return _array_check(hint)
    origin = get_origin(hint)
    if origin is Annotated:
        return check_of(get_args(hint)[0])
    if origin is Union or isinstance(hint, types.UnionType):
        return _union_check(hint)
    if holds_array(hint):
        if origin is tuple:
            return _tuple_check(hint)
        if origin is not None and isinstance(origin, type) and issubclass(origin, Sequence):
            return _each_check(hint)
        return None
    return _plain_check(hint)


def hints_of(function: Any) -> dict[str, Any]:
    """The hints of a function by parameter, and of its result under "return"; none if one can't be evaluated."""
    try:
        return typing.get_type_hints(function)
    except Exception:
        return {}


def is_array(hint: Any) -> bool:
    """Whether a hint is one of jaxtyping's, such as `Float[Tensor, "batch seq"]`."""
    return isinstance(hint, type) and hasattr(hint, "dim_str") and hasattr(hint, "array_type")


def holds_array(hint: Any) -> bool:
    return is_array(hint) or any(holds_array(part) for part in get_args(hint))


def spell(hint: Any) -> str:
    """A hint as a person would write it."""
    if is_array(hint):
        return f'{hint.dtype.__name__}[{hint.array_type.__name__}, "{hint.dim_str}"]'
    if hint is None or hint is type(None):
        return "None"
    if get_origin(hint) is Union or isinstance(hint, types.UnionType):
        return " | ".join(spell(part) for part in get_args(hint))
    if get_args(hint):
        name = getattr(get_origin(hint), "__name__", str(get_origin(hint)))
        return f"{name}[{', '.join('...' if part is ... else spell(part) for part in get_args(hint))}]"
    return getattr(hint, "__name__", str(hint))


def describe(value: Any) -> str:
    """What a value is, in a few words: "float32 (2, 5, 21)" for a tensor."""
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"{str(value.dtype).removeprefix('torch.')} {_shape(value)}"
    if isinstance(value, tuple) and len(value) < 6:
        return f"({', '.join(describe(item) for item in value)})"
    text = repr(value)
    return text if len(text) < 40 else f"a {type(value).__name__}"


def _shape(value: Any) -> tuple[int, ...]:
    return tuple(value.shape)


def _none(value: Any, bindings: Bindings, origin: str) -> Mismatch | None:
    return None if value is None else Mismatch(f"it is {describe(value)}", "None")


def _array_check(hint: Any) -> Check | None:
    text = spell(hint)
    try:
        axes: list[TypedAxis] | None = parse_jaxtyping(hint.dim_str)
    except NotationError:
        axes = None
    any_shape = hint.dtype[hint.array_type, "..."]
    kinds: dict[tuple[type, Any], bool] = {}

    def check(value: Any, bindings: Bindings, origin: str) -> Mismatch | None:
        kind = (type(value), getattr(value, "dtype", None))
        fits = kinds.get(kind)
        if fits is None:
            # jaxtyping decides on array type and dtype; neither depends on the sizes.
            fits = kinds[kind] = isinstance(value, any_shape)
        if not fits:
            return Mismatch(f"it is {describe(value)}", text)
        if axes is None:
            return None
        shape = _shape(value)
        reason = bindings.fit(axes, shape, origin)
        return None if reason is None else Mismatch(reason, text, near=len(shape) == len(axes))

    return check


def _union_check(hint: Any) -> Check | None:
    parts = [check_of(part) for part in get_args(hint)]
    checks = [part for part in parts if part is not None]
    if len(checks) < len(parts):
        return None
    if not holds_array(hint):
        return _plain_check(hint)
    text = spell(hint)

    def check(value: Any, bindings: Bindings, origin: str) -> Mismatch | None:
        found: Mismatch | None = None
        for part in checks:
            mismatch = part(value, bindings, origin)
            if mismatch is None:
                return None
            if found is None or (mismatch.near and not found.near):
                found = mismatch
        return Mismatch(found.reason, text, found.near) if found else None

    return check


def _tuple_check(hint: Any) -> Check | None:
    parts = get_args(hint)
    if len(parts) == 2 and parts[1] is ...:
        return _each_check(hint)
    checks = [check_of(part) for part in parts]
    text = spell(hint)

    def check(value: Any, bindings: Bindings, origin: str) -> Mismatch | None:
        if not isinstance(value, tuple) or len(value) != len(checks):
            return Mismatch(f"it is {describe(value)}", text)
        for index, (item, part) in enumerate(zip(value, checks, strict=True)):
            mismatch = part(item, bindings, f"item {index} of {origin}") if part else None
            if mismatch is not None:
                return Mismatch(f"item {index}: {mismatch.reason}", text)
        return None

    return check


def _each_check(hint: Any) -> Check | None:
    """`list[X]`, `Sequence[X]` and `tuple[X, ...]`: every item is an X."""
    part = check_of(get_args(hint)[0])
    if part is None:
        return None
    each, kind, text = part, get_origin(hint), spell(hint)

    def check(value: Any, bindings: Bindings, origin: str) -> Mismatch | None:
        if not isinstance(value, kind):
            return Mismatch(f"it is {describe(value)}", text)
        for index, item in enumerate(value):
            mismatch = each(item, bindings, f"item {index} of {origin}")
            if mismatch is not None:
                return Mismatch(f"item {index}: {mismatch.reason}", text)
        return None

    return check


def _plain_check(hint: Any) -> Check | None:
    text = spell(hint)
    if not _beartype_knows(hint):
        return None

    def check(value: Any, bindings: Bindings, origin: str) -> Mismatch | None:
        return None if is_bearable(value, hint, conf=_CONF) else Mismatch(f"it is {describe(value)}", text)

    return check


def _beartype_knows(hint: Any) -> bool:
    try:
        is_bearable(None, hint, conf=_CONF)
    except (BeartypeException, TypeError):
        return False
    return True
