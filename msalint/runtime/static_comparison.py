"""Puts the axes that reading the code claims for a line beside what a run had there."""

from __future__ import annotations

import ast
import contextlib
import linecache
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any

import torch
from torch import Tensor

from msalint.runtime.bindings import Bindings
from msalint.runtime.tracer import TracedTensor, Tracer
from msalint.shapes.notation import ANONYMOUS, ELLIPSIS, NotationError, Term, TypedAxis, parse_term

_DRAWN = re.compile(r"^\s*(\d+)  (\w[\w.]*)\s+(\(.*?\))(?:\s{2,}(.*))?$")


@dataclass(frozen=True)
class StaticClaim:
    """What reading says of a value: its line, name and axes, and whether its memory runs in another order."""

    line: int
    name: str
    axes: tuple[str, ...]
    strided: bool


@dataclass(frozen=True)
class Compared:
    """A claim and what the run had: `reason` says how they differ, None if they agree or the line did not run."""

    claim: StaticClaim
    shape: tuple[int, ...] | None
    reason: str | None


def read_drawing(text: str) -> list[StaticClaim]:
    """The claims of what `msalint shapes` prints: lines such as "  24  q    (B, T, n_embd)    strided"."""
    claims = []
    for line in text.splitlines():
        match = _DRAWN.match(line)
        if match:
            number, name, axes, remarks = match.groups()
            words = [word.strip() for word in (remarks or "").split(",")]
            claims.append(StaticClaim(int(number), name, tuple(_split(axes[1:-1])), "strided" in words))
    return claims


def compare(claims: Sequence[StaticClaim], call: Callable[[], Any], filename: str) -> list[Compared]:
    """Each claim about a file beside what its name held right after its statement, in a run of `call`.

    One name of an axis has one size throughout. An error of `call` ends the run, and later claims count as not run.
    """
    seen = _observed(claims, call, filename)
    known = Bindings()
    return [
        Compared(claim, None, None)
        if tensor is None
        else Compared(claim, tensor.shape, _difference(claim, tensor, known))
        for claim, tensor in zip(claims, seen, strict=True)
    ]


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


def _observed(claims: Sequence[StaticClaim], call: Callable[[], Any], filename: str) -> list[TracedTensor | None]:
    """Run `call` and note each claimed local, as it is when the run leaves a line of the claim's statement."""
    spans = list(_statements(filename))
    due: dict[int, list[int]] = {}
    for index, claim in enumerate(claims):
        inside = [span for span in spans if span[0] <= claim.line <= span[1]]
        first, last = min(inside, key=lambda span: span[1] - span[0], default=(claim.line, claim.line))
        for line in range(first, last + 1):
            due.setdefault(line, []).append(index)
    found: list[TracedTensor | None] = [None] * len(claims)
    tracer = Tracer()
    left: dict[int, int] = {}

    def leave(frame: FrameType) -> None:
        for index in due.get(left.get(id(frame), 0), ()):
            value = frame.f_locals.get(claims[index].name)
            if isinstance(value, Tensor):
                found[index] = tracer.snapshot(value)

    def step(frame: FrameType, event: str, _: Any) -> Any:
        if event == "exception":
            # The statement did not bind what it was about to; an `except` goes on at a line of its own.
            left.pop(id(frame), None)
            return step
        if event in ("line", "return"):
            leave(frame)
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
    if reason is None and claim.strided and tensor.contiguous and 1 not in tensor.shape:
        # The other way round says nothing: a value drawn without a remark may have a layout that is not known.
        return "it is contiguous"
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


def _split(text: str) -> Iterator[str]:
    """Split at commas outside parentheses."""
    depth, start = 0, 0
    for place, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            yield text[start:place].strip()
            start = place + 1
    if text[start:].strip():
        yield text[start:].strip()


def _statements(filename: str) -> Iterator[tuple[int, int]]:
    try:
        tree = ast.parse("".join(linecache.getlines(filename)))
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(tree):
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return)):
            yield node.lineno, node.end_lineno or node.lineno
