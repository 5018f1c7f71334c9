"""Writes a traced flow: the table a reader would draw by hand, or JSON for programs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msalint.runtime.shape_tracing import Flow, Row

_TEXT_WIDTH = 46


def table(flow: Flow, name: str, layout: str = "") -> str:
    """A heading a function, then a line an operation: line number, expression, axes, sizes, strides order, dtype."""
    cells = [(_line_cells(row), row) for row in flow.rows]
    widths = [max([len(cell[column]) for cell, _ in cells] or [0]) for column in range(4)]
    sizes = flow.sizes
    out = [
        f"{name}   batch {sizes.batch}, seq {sizes.seq}, heads {sizes.heads}, d_k {sizes.d_k}, d_model {sizes.d_model}"
    ]
    if layout:
        out.append(f"inputs read as {layout}")
    heading: tuple[str, str] | None = None
    for cell, row in cells:
        if (row.op.filename, row.op.caller) != heading:
            heading = (row.op.filename, row.op.caller)
            out.append(f"\n{short(row.op.filename)}  {row.op.caller}")
        line, text, axes, shape, rest = cell
        columns = (line.rjust(widths[0]), text.ljust(widths[1]), axes.ljust(widths[2]), shape.ljust(widths[3]), rest)
        out.append(f"  {'  '.join(columns)}".rstrip())
    out += ["", *findings(flow)]
    return "\n".join(out) + "\n"


def findings(flow: Flow) -> Iterator[str]:
    """The problems, each with its place and the rule that explains it, and a last line that sums up."""
    for problem in flow.problems:
        rule = f" [{problem.rule}]" if problem.rule else ""
        yield f"{short(problem.op.filename)}:{problem.op.line}: {problem.kind}: {problem.message}{rule}"
    for comment in flow.comments:
        yield (
            f"{short(comment.filename)}:{comment.line}: comment disagrees: it says {comment.comment}, "
            f"the run has {comment.shape}: {comment.reason} [MSA110]"
        )
    count = len(flow.problems) + len(flow.comments)
    places = "1 attention site" if flow.sites == 1 else f"{flow.sites} attention sites"
    yield f"{places}, {'no problem' if not count else '1 problem' if count == 1 else f'{count} problems'}"


def as_json(flow: Flow, name: str) -> str:
    """The flow as one object: target, sizes, operations, problems, comments."""
    document = {
        "target": name,
        "sizes": {key: getattr(flow.sizes, key) for key in ("batch", "seq", "heads", "d_k", "d_model")},
        "attention_sites": flow.sites,
        "operations": [_operation(row) for row in flow.rows],
        "problems": [
            {
                "kind": problem.kind,
                "message": problem.message,
                "rule": problem.rule,
                "filename": problem.op.filename,
                "line": problem.op.line,
            }
            for problem in flow.problems
        ],
        "comments": [
            {
                "filename": comment.filename,
                "line": comment.line,
                "comment": comment.comment,
                "shape": list(comment.shape),
                "reason": comment.reason,
            }
            for comment in flow.comments
        ],
    }
    return json.dumps(document, indent=2) + "\n"


def _operation(row: Row) -> dict[str, Any]:
    op, result = row.op, row.op.result
    return {
        "filename": op.filename,
        "line": op.line,
        "function": op.caller,
        "operation": op.name,
        "text": row.text,
        "axes": list(row.axes),
        "shape": list(result.shape),
        "stride_order": list(result.stride_order),
        "contiguous": result.contiguous,
        "dtype": str(result.dtype).removeprefix("torch."),
        "device": str(result.device),
        "results": len(op.results),
    }


def _line_cells(row: Row) -> tuple[str, str, str, str, str]:
    op, result = row.op, row.op.result
    text = row.text
    if len(text) > _TEXT_WIDTH:
        # The end of a chain is what the row is about; its beginning says of which value.
        text = f"{text[:16]} ... {text[-(_TEXT_WIDTH - 21) :]}"
    many = f" x{len(op.results)}" if len(op.results) > 1 else ""
    strided = "" if result.contiguous else f"strided {' '.join(map(str, result.stride_order))}"
    dtype = str(result.dtype).removeprefix("torch.")
    device = "" if result.device.type == "cpu" else str(result.device)
    rest = "  ".join(part for part in (dtype, device, strided) if part)
    return str(op.line), text, f"({', '.join(row.axes)}){many}", " ".join(map(str, result.shape)), rest


def short(filename: str) -> str:
    """A path as seen from the current folder, if that is shorter."""
    if not os.path.isabs(filename):
        return filename
    try:
        relative = os.path.relpath(filename)
    except ValueError:
        return filename
    return relative if len(relative) < len(filename) else Path(filename).as_posix()
