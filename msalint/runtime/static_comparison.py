"""Puts the axes that reading the code claims for a line beside what a run had there."""

from __future__ import annotations

import ast
import linecache
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from msalint.runtime.bindings import Bindings
from msalint.runtime.shape_tracing import Flow
from msalint.runtime.tracer import TracedOp, TracedTensor
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


def compare(claims: Sequence[StaticClaim], flow: Flow, filename: str) -> list[Compared]:
    """Each claim about a file beside the run's last result of its statement. One name has one size throughout."""
    known = Bindings()
    ops = [row.op for row in flow.rows if row.op.filename == filename]
    spans = list(_statements(filename))
    return [_compare(claim, ops, spans, known) for claim in claims]


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


def _compare(
    claim: StaticClaim, ops: Sequence[TracedOp], spans: Sequence[tuple[int, int]], known: Bindings
) -> Compared:
    first, last = min(
        ((first, last) for first, last in spans if first <= claim.line <= last),
        key=lambda span: span[1] - span[0],
        default=(claim.line, claim.line),
    )
    at = [op for op in ops if first <= op.line <= last]
    if not at:
        return Compared(claim, None, None)
    # A statement that binds several names gives each a result of its own.
    reasons = [(tensor, _difference(claim, tensor, known)) for tensor in dict.fromkeys(at[-1].results)]
    tensor, reason = next(((t, r) for t, r in reasons if r is None), reasons[0])
    return Compared(claim, tensor.shape, reason)


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
