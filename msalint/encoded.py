"""Frozen dataclasses as plain JSON values, and back: what comes back is checked, never trusted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import lru_cache
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

T = TypeVar("T")


def encoded(value: Any) -> Any:
    """A dataclass as the list of its fields, a tuple as a list, a member of an Enum as its value."""
    if is_dataclass(value):
        return [encoded(getattr(value, item.name)) for item in fields(value)]
    if isinstance(value, tuple):
        return [encoded(item) for item in value]
    return value.value if isinstance(value, Enum) else value


def decoded(kind: type[T], value: Any) -> T:
    """The `kind` that `value` was encoded from. Raises ValueError where it is no such thing."""
    reader: Callable[[Any], T] = _reader(kind)  # type: ignore[arg-type]
    return reader(value)


@lru_cache(maxsize=256)
def _reader(kind: Any) -> Callable[[Any], Any]:
    """What makes a kind of value. Kinds are dataclasses, named and plain tuples, Enums, unions with None, str, int."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is tuple:
        if inner[-1] is Ellipsis:
            return _several(_reader(inner[0]))
        return _as_many(tuple, [_reader(item) for item in inner])
    if isinstance(kind, UnionType) or str(origin) == "typing.Union":
        return _optional([_reader(item) for item in inner if item is not NoneType])
    if is_dataclass(kind) or hasattr(kind, "_fields"):
        hints = get_type_hints(kind)
        names = [item.name for item in fields(kind)] if is_dataclass(kind) else kind._fields
        return _as_many(lambda parts: kind(*parts), [_reader(hints[name]) for name in names])
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind
    return _exactly(kind)


def _several(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def several(value: Any) -> Any:
        return tuple(read(item) for item in _exactly(list)(value))

    return several


def _as_many(make: Callable[[list[Any]], Any], readers: list[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    def as_many(value: Any) -> Any:
        if len(_exactly(list)(value)) != len(readers):
            raise ValueError(f"{len(readers)} values are needed, not {len(value)}")
        return make([read(item) for read, item in zip(readers, value, strict=True)])

    return as_many


def _optional(readers: list[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    (read,) = readers  # of two kinds beside None, the value would not tell which one it is

    def optional(value: Any) -> Any:
        return None if value is None else read(value)

    return optional


def _exactly(kind: type) -> Callable[[Any], Any]:
    def exactly(value: Any) -> Any:
        if type(value) is not kind:
            raise ValueError(f"{value!r} is no {kind.__name__}")
        return value

    return exactly
