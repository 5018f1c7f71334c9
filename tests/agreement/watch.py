"""Watches a run: what tensor each assignment of chosen files left in its name, call by call."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import torch


@dataclass(frozen=True)
class Seen:
    """The tensor that a name held once an assignment was done; lines count from 1."""

    line: int
    name: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]


@dataclass
class Outermost:
    """One call from outside into a file, with all that its assignments left, in the order they ran."""

    function: str
    line: int
    """Where its definition begins."""
    seen: list[Seen] = field(default_factory=list)
    dense: bool = True
    """All tensors it was given are contiguous, as the flow takes inputs to be."""


class Watcher:
    """A trace function. Only frames of the files given are followed line by line."""

    def __init__(self, files: list[Path]) -> None:
        self.spans = {str(file): assigned_names(file.read_text(encoding="utf-8")) for file in files}
        self.calls: dict[str, list[Outermost]] = {file: [] for file in self.spans}
        self._current: dict[str, Outermost | None] = dict.fromkeys(self.spans)

    def __call__(self, frame: FrameType, event: str, arg: Any) -> Any:
        filename = frame.f_code.co_filename
        if filename not in self.spans or event != "call":
            return None
        outermost = self._current[filename] is None
        if outermost:
            given = [value for value in frame.f_locals.values() if isinstance(value, torch.Tensor)]
            dense = all(value.is_contiguous() for value in given)
            self._current[filename] = Outermost(frame.f_code.co_name, frame.f_code.co_firstlineno, dense=dense)
        return _FrameWatch(self, filename, outermost)

    def finished(self, filename: str, raised: bool) -> None:
        """The outermost call is over. One that raised broke what the flow takes to hold behind every operation."""
        call = self._current[filename]
        self._current[filename] = None
        if call is not None and call.seen and not raised:
            self.calls[filename].append(call)

    def note(self, filename: str, frame: FrameType, line: int) -> None:
        call = self._current[filename]
        for name in self.spans[filename][line][1]:
            value = frame.f_locals.get(name)
            if call is not None and isinstance(value, torch.Tensor) and value.layout is torch.strided:
                call.seen.append(Seen(line, name, tuple(value.shape), tuple(value.stride())))


class _FrameWatch:
    """One frame: an assignment is done once another statement begins, or the frame returns."""

    def __init__(self, watcher: Watcher, filename: str, outermost: bool) -> None:
        self.watcher, self.filename, self.outermost = watcher, filename, outermost
        self.pending: int | None = None
        self.raised = False

    def __call__(self, frame: FrameType, event: str, arg: Any) -> Any:
        spans = self.watcher.spans[self.filename]
        if event == "exception":
            self.pending, self.raised = None, True
            return self
        if event == "line":
            self.raised = False
        if self.pending is not None and not (event == "line" and self._inside(frame.f_lineno)):
            self.watcher.note(self.filename, frame, self.pending)
            self.pending = None
        if event == "line" and frame.f_lineno in spans:
            self.pending = frame.f_lineno
        if event == "return" and self.outermost:
            self.watcher.finished(self.filename, self.raised)
        return self

    def _inside(self, line: int) -> bool:
        assert self.pending is not None
        return self.pending <= line <= self.watcher.spans[self.filename][self.pending][0]


def assigned_names(text: str) -> dict[int, tuple[int, tuple[str, ...]]]:
    """The line each assignment begins on: the line it ends on, and the names it binds."""
    found: dict[int, tuple[int, tuple[str, ...]]] = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            parts = [part for target in targets for part in ast.walk(target)]
            names = [part.id for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)]
            if names:
                found[node.lineno] = (node.end_lineno or node.lineno, tuple(names))
    return found


def enclosing_functions(text: str) -> dict[int, int]:
    """For each line inside a definition, the line that the innermost one begins on."""
    found: dict[int, int] = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            # The walk is breadth first: an inner definition overwrites the outer one.
            found.update(dict.fromkeys(range(node.lineno, (node.end_lineno or node.lineno) + 1), node.lineno))
    return found


@contextmanager
def watching(files: list[Path]) -> Iterator[Watcher]:
    """Watch the files while the block runs."""
    watcher = Watcher(files)
    before = sys.gettrace()
    sys.settrace(watcher)
    try:
        yield watcher
    finally:
        sys.settrace(before)
