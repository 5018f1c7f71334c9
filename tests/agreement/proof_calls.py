"""What the proofs of the fixtures call: modules and functions of theirs, with the arguments they were given."""

from __future__ import annotations

import copy
import functools
import importlib
import inspect
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from msalint.runtime.copies import copied
from msalint.testing import run_proof

CALLS_PER_TARGET = 2


@dataclass(frozen=True)
class ProofCall:
    """A module as it was before the call (or a function), and what it was called with, by parameter."""

    file: Path
    name: str
    target: Any
    values: dict[str, Any]


def calls_of(proof: Path, files: Sequence[Path]) -> list[ProofCall]:
    """The first calls that a proof makes of each module and function defined in the files, no two of equal sizes."""
    found: dict[tuple[Path, str], dict[str, ProofCall]] = {}
    wanted = {file.resolve() for file in files}

    def note(file: Path, name: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        seen = found.setdefault((file, name), {})
        values = _bound(target.forward if isinstance(target, nn.Module) else target, args, kwargs)
        if values is None or len(seen) >= CALLS_PER_TARGET or (key := repr(_sizes(values))) in seen:
            return
        try:
            kept = target if not isinstance(target, nn.Module) else copied(target)
            seen[key] = ProofCall(file, name, kept, copy.deepcopy(values))
        except RuntimeError:
            return  # a tensor with a history can't be copied

    with _modules_noted(wanted, note), _functions_noted(wanted, note):
        run_proof(proof)
    return [call for seen in found.values() for call in seen.values()]


Note = Callable[[Path, str, Any, tuple[Any, ...], dict[str, Any]], None]


@contextmanager
def _modules_noted(wanted: set[Path], note: Note) -> Iterator[None]:
    plain: Any = nn.Module.__call__

    def noting(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        file = _file_of(type(self).__module__)
        if file in wanted and isinstance(self, nn.Module):
            note(file, type(self).__name__, self, args, kwargs)
        return plain(self, *args, **kwargs)

    nn.Module.__call__ = noting  # type: ignore[method-assign]
    try:
        yield
    finally:
        nn.Module.__call__ = plain  # type: ignore[method-assign]


@contextmanager
def _functions_noted(wanted: set[Path], note: Note) -> Iterator[None]:
    """Fixtures are loaded by `proofkit.load`: the functions of what it gives tell when they are called."""
    # A proof imports the kit anew: run_proof forgets what lies above its folder.
    proofkit = importlib.import_module("fixtures.proofkit")
    plain = proofkit.load

    def wrapped(function: types.FunctionType, file: Path) -> Callable[..., Any]:
        @functools.wraps(function)
        def noting(*args: Any, **kwargs: Any) -> Any:
            note(file, function.__name__, function, args, kwargs)
            return function(*args, **kwargs)

        return noting

    def load(here: Path, name: str) -> types.ModuleType:
        module: types.ModuleType = plain(here, name)
        file = _file_of(module.__name__)
        if file in wanted:
            for key, value in list(vars(module).items()):
                if isinstance(value, types.FunctionType) and value.__module__ == module.__name__:
                    setattr(module, key, wrapped(value, file))
                elif inspect.isclass(value) and value.__module__ == module.__name__:
                    _methods_noted(value, file, note)
        return module

    proofkit.load = load  # type: ignore[attr-defined]
    try:
        yield
    finally:
        proofkit.load = plain  # type: ignore[attr-defined]


def _methods_noted(cls: type, file: Path, note: Note) -> None:
    """Of a module class without a forward, the calls of its methods, each as if it were its forward."""
    if not issubclass(cls, nn.Module) or cls.forward is not nn.Module.forward:
        return

    def wrapped(method: types.FunctionType) -> Callable[..., Any]:
        @functools.wraps(method)
        def noting(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
            self.forward = types.MethodType(method, self)
            note(file, cls.__name__, self, args, kwargs)
            del self.forward
            return method(self, *args, **kwargs)

        return noting

    for key, value in list(vars(cls).items()):
        if isinstance(value, types.FunctionType) and not key.startswith("_"):
            setattr(cls, key, wrapped(value))


def _file_of(module: str) -> Path | None:
    name = getattr(sys.modules.get(module), "__file__", None)
    return Path(name).resolve() if name else None


def _bound(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any] | None:
    """The arguments by parameter; None where they can't be given by name."""
    try:
        signature = inspect.signature(function)
        arguments = dict(signature.bind(*args, **kwargs).arguments)
    except (TypeError, ValueError):
        return None
    for parameter in signature.parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY) and parameter.name in arguments:
            return None
        if parameter.kind is parameter.VAR_KEYWORD:
            arguments.update(arguments.pop(parameter.name, {}))
    return arguments


def _sizes(value: Any) -> Any:
    if isinstance(value, Tensor):
        return tuple(value.shape), value.dtype
    if isinstance(value, dict):
        return {key: _sizes(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)) and not isinstance(value, torch.Size):
        return [_sizes(item) for item in value]
    return value if isinstance(value, (int, float, str, type(None))) else type(value).__name__
