"""`@shape_checked`: jaxtyping axes hold over arguments, annotated locals, results, and the life of an instance."""

from __future__ import annotations

import functools
import inspect
import os
import threading
import types
import typing
import weakref
from collections.abc import Callable
from typing import Any, Literal, TypeVar, overload

import torch

from msalint.runtime.annotated_locals import local_annotations, watch_locals
from msalint.runtime.bindings import Binding, Bindings, ClassDimensions, inferred_dimensions, parse_dimensions
from msalint.runtime.hints import Check, Mismatch, check_of, describe, spell

Mode = Literal["off", "once", "always"]
"""`once` checks each function until a call of it has passed, an instance at a time."""

Checked = TypeVar("Checked", bound=Callable[..., Any])


class ShapeError(TypeError):
    """A value does not fit its annotation; the message says which, what was expected, and where each size came from."""


@overload
def shape_checked(target: Checked, /) -> Checked: ...
@overload
def shape_checked(*, dims: str | None = None, mode: Mode | None = None) -> Callable[[Checked], Checked]: ...
def shape_checked(target: Any = None, /, *, dims: str | None = None, mode: Mode | None = None) -> Any:
    """Check a function, or every annotated method of a class, against its jaxtyping and other annotations.

    `dims` states the sizes of a class once: "d_model = num_heads * d_k, head = num_heads, vocab". A name alone is
    learned from the first tensor and kept. Without it, an axis named as an int attribute (or head for num_heads, d_k
    for head_dim) has that attribute's size. `mode` overrides the environment's MSALINT_RUNTIME (off, once or always);
    "off" gives the object back untouched. Raises `ShapeError` at the call that does not fit.
    """
    if target is None:
        return lambda it: shape_checked_as(it, parse_dimensions(dims) if dims is not None else None, mode)
    return shape_checked_as(target, None, mode)


def shape_checked_as(target: Any, dimensions: ClassDimensions | None, mode: Mode | None) -> Any:
    """`shape_checked` with the dimensions already read."""
    chosen = mode or environment_mode()
    if chosen == "off":
        return target
    if isinstance(target, type):
        return _check_class(target, dimensions, chosen)
    if isinstance(target, types.FunctionType):
        first = next(iter(inspect.signature(target).parameters), None)
        return _check_function(target, _Owner(dimensions or ClassDimensions()) if first == "self" else None, chosen)
    raise TypeError(f"shape_checked takes a function or a class, not {describe(target)}")


def environment_mode() -> Mode:
    """What MSALINT_RUNTIME asks for; "always" if it is not set. Raises ValueError for any other word."""
    word = os.environ.get("MSALINT_RUNTIME", "always").lower()
    if word not in ("off", "once", "always"):
        raise ValueError(f"MSALINT_RUNTIME is {word!r}, not one of off, once, always")
    return word  # type: ignore[return-value]


# --- classes ----------------------------------------------------------------------------------------------------------


class _Owner:
    """The dimensions of a class, and the sizes its instances have pinned. Nothing is kept on the instances."""

    def __init__(self, dimensions: ClassDimensions) -> None:
        self.dimensions = dimensions
        self._pinned: weakref.WeakKeyDictionary[Any, dict[str, Binding]] = weakref.WeakKeyDictionary()

    def lookup(self, instance: object) -> Callable[[str], Binding | None]:
        def look(name: str) -> Binding | None:
            if name.startswith("*"):
                return None
            value = self.dimensions.value(instance, name)
            if value is None and name in self.dimensions.pinned:
                value = self._pinned.get(instance, {}).get(name)
            return value

        return look

    def learn(self, instance: object, bindings: Bindings, title: str) -> None:
        """Keep what the call taught about the pinned names."""
        if not self.dimensions.pinned:
            return
        known = self._pinned.setdefault(instance, {})
        for name in self.dimensions.pinned & bindings.bound.keys():
            learned = bindings.bound[name]
            known.setdefault(name, Binding(learned.size, f"{learned.origin}, at the first call of {title}"))


def _check_class(cls: type, dimensions: ClassDimensions | None, mode: Mode) -> type:
    if dimensions is None:
        init = cls.__dict__.get("__init__")
        parameters = list(inspect.signature(init).parameters) if isinstance(init, types.FunctionType) else []
        dimensions = inferred_dimensions(parameters)
    owner = _Owner(dimensions)
    # A named tuple's methods are generated; a function put in from elsewhere is checked where it was written.
    members = [] if issubclass(cls, tuple) else list(vars(cls).items())
    for name, member in members:
        inner = getattr(member, "__func__", getattr(member, "fget", member))
        if getattr(inner, "__qualname__", None) != f"{cls.__qualname__}.{name}":
            continue
        checked = _check_member(member, owner, mode)
        if checked is not member:
            setattr(cls, name, checked)
    return cls


def _check_member(member: Any, owner: _Owner, mode: Mode) -> Any:
    if isinstance(member, types.FunctionType):
        return _check_function(member, owner, mode)
    if isinstance(member, staticmethod) and isinstance(member.__func__, types.FunctionType):
        return staticmethod(_check_function(member.__func__, None, mode))
    if isinstance(member, classmethod) and isinstance(member.__func__, types.FunctionType):
        return classmethod(_check_function(member.__func__, None, mode))
    if type(member) is property and isinstance(member.fget, types.FunctionType):
        return property(_check_function(member.fget, owner, mode), member.fset, member.fdel, member.__doc__)
    return member


# --- functions --------------------------------------------------------------------------------------------------------


class _Call:
    """One running call: its bindings, and the values met so far for the message."""

    __slots__ = ("bindings", "instance", "named")

    def __init__(self, bindings: Bindings, instance: object | None, named: dict[str, Any]) -> None:
        self.bindings, self.instance, self.named = bindings, instance, named


class _Running(threading.local):
    def __init__(self) -> None:
        self.calls: list[tuple[_Plan, _Call]] = []


_running = _Running()


def _check_function(function: types.FunctionType, owner: _Owner | None, mode: Mode) -> Any:
    if hasattr(function, "__msalint_checked__"):
        return function
    annotated = bool(function.__annotations__) or bool(local_annotations(function))
    if not annotated and not (owner is not None and function.__name__ == "__init__"):
        return function
    plan = _Plan(function, owner)
    # Empty but in mode "once": instances whose call has passed (None stands for a plain function).
    passed: weakref.WeakSet[Any] = weakref.WeakSet()
    once = mode == "once"

    @functools.wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_compiling():
            return function(*args, **kwargs)
        witness = args[0] if owner is not None and args else plan
        if once and witness in passed:
            return function(*args, **kwargs)
        result = plan.run(args, kwargs)
        if once:
            passed.add(witness)
        return result

    checked.__msalint_checked__ = mode  # type: ignore[attr-defined]
    return checked


class _Plan:
    """What to check of one function. Hints are read at the first call, when forward references can be resolved."""

    def __init__(self, function: types.FunctionType, owner: _Owner | None) -> None:
        self.function, self.owner = function, owner
        self.title = function.__qualname__.replace("<locals>.", "")
        self.local_hints = local_annotations(function)
        self.body = watch_locals(function, frozenset(self.local_hints), self._watch)
        code = function.__code__
        self.positional = code.co_varnames[: code.co_argcount]
        self.is_init = owner is not None and function.__name__ == "__init__"
        self.suspends = bool(code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR))

    @functools.cached_property
    def hints(self) -> dict[str, Any]:
        return _resolved_hints(self.function)

    @functools.cached_property
    def checks(self) -> dict[str, Check]:
        found = {}
        for name, hint in self.hints.items():
            check = check_of(hint)
            if check is not None:
                found[name] = check
        return found

    @functools.cached_property
    def local_checks(self) -> dict[str, tuple[Check, Any]]:
        found = {}
        for name, text in self.local_hints.items():
            hint = _evaluated(text, self.function)
            check = check_of(hint)
            if check is not None:
                found[name] = (check, hint)
        return found

    def run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        call = self.enter(args, kwargs)
        if self.suspends:
            return self.function(*args, **kwargs)
        stack = _running.calls
        stack.append((self, call))
        try:
            result = self.body(*args, **kwargs)
        finally:
            stack.pop()
        check = self.checks.get("return")
        if check is not None:
            mismatch = check(result, call.bindings, "the return value")
            if mismatch is not None:
                raise self.error("the return value", result, mismatch, call) from None
        if call.instance is not None and self.owner is not None:
            self._leave(call, self.owner)
        return result

    def enter(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Call:
        """Check the arguments; what does not even fit the signature is left for the call itself to refuse."""
        named = dict(zip(self.positional, args, strict=False))
        named.update(kwargs)
        instance = args[0] if self.owner is not None and args else None
        bindings = Bindings(self.owner.lookup(instance) if self.owner is not None and instance is not None else None)
        call = _Call(bindings, instance, named)
        if instance is not None and self.owner is not None and not self.is_init:
            broken = self.owner.dimensions.broken(instance)
            if broken:
                raise ShapeError(f"{self.title}: the dimensions of {type(instance).__name__} disagree: {broken}")
        for name, check in self.checks.items():
            if name not in named or name == "return":
                continue
            value = named[name]
            mismatch = check(value, bindings, f"argument `{name}`")
            if mismatch is not None and not (value is None and self._defaults_to_none(name)):
                raise self.error(f"argument `{name}`", value, mismatch, call)
        return call

    def _leave(self, call: _Call, owner: _Owner) -> None:
        owner.learn(call.instance, call.bindings, self.title)
        if self.is_init:
            broken = owner.dimensions.broken(call.instance)
            if broken:
                raise ShapeError(f"{self.title}: the dimensions disagree: {broken}")

    def _defaults_to_none(self, name: str) -> bool:
        """`mask: Bool[Tensor, "..."] = None` allows None, as PEP 484 once had it."""
        parameter = inspect.signature(self.function).parameters.get(name)
        return parameter is not None and parameter.default is None

    def _watch(self, name: str, value: Any) -> None:
        """Called by the rebuilt body behind each assignment to an annotated local."""
        if not _running.calls or torch.compiler.is_compiling():
            return
        plan, call = _running.calls[-1]
        entry = self.local_checks.get(name) if plan is self else None
        if entry is None:
            return
        mismatch = entry[0](value, call.bindings, f"local `{name}`")
        if mismatch is not None:
            raise self.error(f"local `{name}`", value, mismatch, call)

    def error(self, what: str, value: Any, mismatch: Mismatch, call: _Call) -> ShapeError:
        return ShapeError(
            "\n".join(
                [
                    f"{self.title}: {what} does not fit: {mismatch.reason}",
                    f"    expected  {mismatch.expected}",
                    f"    got       {describe(value)}",
                    *_bindings_table(call.bindings),
                    *_arguments_table(self.hints, call.named),
                ]
            )
        )


def _bindings_table(bindings: Bindings) -> list[str]:
    known = bindings.all()
    if not known:
        return []
    width = max(len(name) for name in known)
    lines = [f"    {name:{width}} = {binding.size}  from {binding.origin}" for name, binding in known.items()]
    return ["  known so far", *lines]


def _arguments_table(hints: dict[str, Any], named: dict[str, Any]) -> list[str]:
    rows = [(name, spell(hints[name]), describe(value)) for name, value in named.items() if name in hints]
    if not rows:
        return []
    names, texts = (max(len(row[column]) for row in rows) for column in (0, 1))
    lines = [f"    {name:{names}}  {text:{texts}}  {value}" for name, text, value in rows]
    return ["  arguments, expected and got", *lines]


def _resolved_hints(function: types.FunctionType) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function, include_extras=True)
    except Exception:
        # A name that exists for type checkers only: the other hints still count.
        return {
            name: _evaluated(hint, function) if isinstance(hint, str) else hint
            for name, hint in function.__annotations__.items()
        }


def _evaluated(text: str, function: types.FunctionType) -> Any:
    names = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    scope = {}
    for name, cell in names.items():
        try:
            scope[name] = cell.cell_contents
        except ValueError:
            # Not assigned yet.
            continue
    try:
        return eval(text, function.__globals__, scope)
    except Exception:
        return Any
