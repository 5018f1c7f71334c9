"""Puts the axes that reading the code claims for a line beside what a run had there."""

from __future__ import annotations

import ast
import contextlib
import linecache
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from types import FrameType
from typing import Any

import torch
from torch import Tensor

from msalint.runtime.bindings import Bindings
from msalint.runtime.tracer import TracedTensor, Tracer
from msalint.shapes.notation import ANONYMOUS, ELLIPSIS, NotationError, Term, TypedAxis, parse_term

Place = tuple[int, str]
"""A line and a name that is bound on it."""


@dataclass(frozen=True)
class StaticClaim:
    """What reading says of a value: line, name and axes, and whether memory runs in another order (None: not known)."""

    line: int
    name: str
    axes: tuple[str, ...]
    strided: bool | None = None

    @property
    def place(self) -> Place:
        return self.line, self.name


@dataclass(frozen=True)
class Compared:
    """A claim and what the run had: `reason` says how they differ, None if they agree or the line did not run."""

    claim: StaticClaim
    shape: tuple[int, ...] | None
    reason: str | None


def compare(paths: Sequence[Sequence[StaticClaim]], call: Callable[[], Any], filename: str) -> list[Compared]:
    """Each claim of the path that a run of `call` took beside what its name held right after its statement.

    The path taken is the one whose places are those of the run; where several are, the one that agrees best. One name
    of an axis has one size throughout. An error of `call` ends the run, and later claims count as not run.
    """
    places = {claim.place for path in paths for claim in path}
    seen = _observed(places, call, filename)
    ran = places & {place for place, tensors in seen.items() if tensors}
    best: list[Compared] = []
    least: tuple[int, int] | None = None
    for path in paths:
        compared = _compared(path, seen)
        odd = len({claim.place for claim in path} ^ ran)
        cost = (odd, sum(one.reason is not None for one in compared))
        if least is None or cost < least:
            best, least = compared, cost
    return best


def _compared(path: Sequence[StaticClaim], seen: Mapping[Place, Sequence[TracedTensor]]) -> list[Compared]:
    """A line a different claim; a place that is passed several times has to fit one of the values it had."""
    known = Bindings()
    turns: dict[Place, int] = {}
    found: dict[StaticClaim, Compared] = {}
    for claim in path:
        tensors = seen.get(claim.place, ())
        turn = turns[claim.place] = turns.get(claim.place, -1) + 1
        if not tensors:
            found.setdefault(claim, Compared(claim, None, None))
            continue
        turn %= len(tensors)
        reasons: list[str | None] = []
        for tensor in (*tensors[turn:], *tensors[:turn]):
            reasons.append(_difference(claim, tensor, known))
            if reasons[-1] is None:
                found.setdefault(claim, Compared(claim, tensor.shape, None))
                break
        else:
            found[claim] = Compared(claim, tensors[turn].shape, reasons[0])
    return list(found.values())


def comparison_table(compared: Sequence[Compared]) -> str:
    """A line a claim: line number, name, static axes, traced sizes, and the difference if there is one."""
    rows = [
        (
            str(one.claim.line),
            one.claim.name,
            f"({', '.join(one.claim.axes)})",
            "not run" if one.shape is None else " ".join(map(str, one.shape)),
            one.reason or "",
        )
        for one in compared
    ]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(4)]
    lines = [
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[4]]).rstrip()
        for row in rows
    ]
    wrong = sum(one.reason is not None for one in compared)
    ran = sum(one.shape is not None for one in compared)
    return "\n".join([*lines, f"{ran} of {len(compared)} static claims ran, {wrong} disagree"]) + "\n"


def _observed(places: Set[Place], call: Callable[[], Any], filename: str) -> dict[Place, list[TracedTensor]]:
    """Run `call` and note what each name held as the run left a line of its statement, once for each time it did."""
    spans = list(_statements(filename))
    due: dict[int, list[Place]] = {}
    for place in places:
        inside = [span for span in spans if span[0] <= place[0] <= span[1]]
        first, last = min(inside, key=lambda span: span[1] - span[0], default=(place[0], place[0]))
        for line in range(first, last + 1):
            due.setdefault(line, []).append(place)
    found: dict[Place, list[TracedTensor]] = {}
    tracer = Tracer()
    left: dict[int, int] = {}

    def leave(frame: FrameType, to: int | None) -> None:
        for place in due.get(left.get(id(frame), 0), ()):
            if to is not None and place in due.get(to, ()):
                continue  # still inside the statement
            value = frame.f_locals.get(place[1])
            tensor = tracer.snapshot(value) if isinstance(value, Tensor) else None
            if tensor is not None:
                found.setdefault(place, []).append(tensor)

    def step(frame: FrameType, event: str, _: Any) -> Any:
        if event == "exception":
            # The statement did not bind what it was about to; an `except` goes on at a line of its own.
            left.pop(id(frame), None)
            return step
        if event in ("line", "return"):
            leave(frame, frame.f_lineno if event == "line" else None)
            left[id(frame)] = frame.f_lineno
        return step

    def enter(frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename != filename:
            return None
        left.pop(id(frame), None)
        return step

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        with contextlib.suppress(Exception), torch.no_grad():
            call()
    finally:
        sys.settrace(before)
    return found


def _difference(claim: StaticClaim, tensor: TracedTensor, known: Bindings) -> str | None:
    try:
        axes = [_typed(_term(axis)) for axis in claim.axes]
    except NotationError:
        return None
    reason = known.fit(axes, tensor.shape, f"line {claim.line}")
    # An axis of size 1 lies anywhere, so that either order may be read into it.
    if reason is None and claim.strided is tensor.contiguous and 1 not in tensor.shape:
        return "it is contiguous" if tensor.contiguous else f"it is strided {' '.join(map(str, tensor.stride_order))}"
    return reason


def _term(axis: str) -> Term:
    if axis in (ELLIPSIS, "?", ANONYMOUS):
        return ELLIPSIS if axis == ELLIPSIS else ANONYMOUS
    return parse_term(axis)


def _typed(term: Term) -> TypedAxis:
    if isinstance(term, int):
        return TypedAxis("size", term)
    if term == ELLIPSIS:
        return TypedAxis("variadic", ELLIPSIS)
    if term == ANONYMOUS:
        return TypedAxis("anonymous", ANONYMOUS)
    return TypedAxis("name" if isinstance(term, str) else "expression", term)


def _statements(filename: str) -> Iterator[tuple[int, int]]:
    try:
        tree = ast.parse("".join(linecache.getlines(filename)))
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(tree):
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return)):
            yield node.lineno, node.end_lineno or node.lineno
