"""Loads what `trace` and `probe` are pointed at: `pkg.module:Class`, `path/file.py:Class`, or `...:function`."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from torch import nn


class TargetError(Exception):
    """The target can't be loaded, built or run; the message is for the person who named it."""


def load_target(text: str) -> Any:
    """The class or function a target names. Runs the module's own code. Raises `TargetError`."""
    place, colon, name = text.rpartition(":")
    if not colon or (len(place) == 1 and name.startswith(("\\", "/"))):
        place, name = text, ""
    module = load_file(Path(place)) if place.endswith(".py") else _load_module(place)
    if not name:
        return _only_candidate(module, text)
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            raise TargetError(f"{place} has no {name!r}{_choices(module)}")
        found = getattr(found, part)
    if not (inspect.isclass(found) or inspect.isroutine(found) or isinstance(found, nn.Module)):
        raise TargetError(f"{text} is a {type(found).__name__}, neither a class, a function nor a module")
    return found


def load_file(path: Path) -> ModuleType:
    """A file of a package is imported as its module; where its package can't be, with bare packages around it."""
    if not path.is_file():
        raise TargetError(f"there is no file {path}")
    if (path.resolve().parent / "__init__.py").is_file():
        return _load_from_package(path.resolve())
    name = f"msalint_target_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise TargetError(f"{path} can't be loaded as Python")
    module = importlib.util.module_from_spec(spec)
    # Pickling, dataclasses and typing look a class's module up by name.
    sys.modules[name] = module
    sys.path.insert(0, str(path.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise TargetError(f"importing {path} fails: {describe_error(error)}") from error
    finally:
        sys.path.remove(str(path.resolve().parent))
    return module


def _load_from_package(path: Path) -> ModuleType:
    root, names = path.parent, [path.stem]
    while (root / "__init__.py").is_file():
        names.insert(0, root.name)
        root = root.parent
    dotted = ".".join(names)
    before = set(sys.modules)
    sys.path.insert(0, str(root))
    try:
        return importlib.import_module(dotted)
    except Exception as first:
        for name in set(sys.modules) - before:
            if name.split(".")[0] == names[0]:
                del sys.modules[name]
        try:
            # The package's own __init__ may need what the file itself does not.
            for depth in range(1, len(names)):
                bare = ModuleType(".".join(names[:depth]))
                bare.__path__ = [str(root.joinpath(*names[:depth]))]
                sys.modules.setdefault(bare.__name__, bare)
            return importlib.import_module(dotted)
        except Exception:
            raise TargetError(f"importing {dotted} fails: {describe_error(first)}") from first
    finally:
        sys.path.remove(str(root))


def _load_module(name: str) -> ModuleType:
    if not all(part.isidentifier() for part in name.split(".")):
        raise TargetError(f"{name!r} is neither a module nor a .py file; write pkg.module:Class or path/file.py:Class")
    sys.path.insert(0, str(Path.cwd()))
    try:
        return importlib.import_module(name)
    except Exception as error:
        raise TargetError(f"importing {name} fails: {describe_error(error)}") from error
    finally:
        sys.path.remove(str(Path.cwd()))


def _only_candidate(module: ModuleType, text: str) -> Any:
    found = candidates(module)
    named = [name for name in found if "attention" in name.lower() or "attn" in name.lower()]
    for names in (found, named):
        if len(names) == 1:
            return getattr(module, names[0])
    raise TargetError(f"say which one is meant, as in {text}:Name{_choices(module)}")


def candidates(module: ModuleType) -> list[str]:
    """The names of the torch modules that a module defines itself."""
    return [
        name
        for name, value in vars(module).items()
        if inspect.isclass(value) and issubclass(value, nn.Module) and value.__module__ == module.__name__
    ]


def _choices(module: ModuleType) -> str:
    names = candidates(module)
    return f"; it defines {', '.join(names)}" if names else "; it defines no torch module"


def describe_error(error: BaseException) -> str:
    """The error in one line: type and first line of its message."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
