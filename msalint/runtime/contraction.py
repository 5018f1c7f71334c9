"""Which axes a product of two tensors contracts: matmul, bmm and einsum, all as letters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from msalint.runtime.tracer import TracedOp, TracedTensor
from msalint.shapes.notation import ELLIPSIS, NotationError, parse_einsum

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

PRODUCTS = frozenset(
    {"cdist", "matmul", "__matmul__", "__rmatmul__", "bmm", "mm", "baddbmm", "addmm", "addbmm", "einsum"}
)


@dataclass(frozen=True)
class Contraction:
    """One letter an axis. `left_number` and `right_number` say which tensors of the trace the operands are."""

    left: str
    right: str
    out: str
    left_number: int
    right_number: int

    @property
    def contracted(self) -> list[str]:
        return [letter for letter in self.left if letter in self.right and letter not in self.out]

    def free(self, side: str) -> list[str]:
        """The letters of one operand that the other one lacks."""
        other = self.right if side == self.left else self.left
        return [letter for letter in side if letter in self.out and letter not in other]

    @property
    def shared(self) -> list[str]:
        """The letters that both operands and the result have."""
        return [letter for letter in self.left if letter in self.right and letter in self.out]


def contraction_of(op: TracedOp) -> Contraction | None:
    """How an operation contracts its two operands; None for anything else, and for vectors."""
    name = op.name.rpartition(".")[2]
    if name not in PRODUCTS:
        return None
    arguments = [*op.arguments, *op.keywords.values()]
    if name == "einsum":
        return _of_einsum(arguments, op)
    tensors = [value for value in arguments if isinstance(value, TracedTensor)]
    if name in ("baddbmm", "addmm"):
        tensors = tensors[1:]
    if len(tensors) < 2:
        return None
    left, right = tensors[:2]
    if name == "__rmatmul__":
        left, right = right, left
    if len(left.shape) < 2 or len(right.shape) < 2 or name == "addbmm":
        return None
    lead = len(op.result.shape) - 2
    batch = _LETTERS[3 : 3 + lead]
    rows_and_columns = "bc" if name == "cdist" else "cb"
    return Contraction(
        # A broadcast axis of size 1 has the letter as well: its labels expand.
        batch[lead - (len(left.shape) - 2) :] + "ac",
        batch[lead - (len(right.shape) - 2) :] + rows_and_columns,
        batch + "ab",
        left.number,
        right.number,
    )


def _of_einsum(arguments: list[Any], op: TracedOp) -> Contraction | None:
    if not arguments or not isinstance(arguments[0], str):
        return None
    tensors = [
        item
        for value in arguments[1:]
        for item in (value if isinstance(value, tuple) else (value,))
        if isinstance(item, TracedTensor)
    ]
    try:
        inputs, output = parse_einsum(arguments[0])
    except NotationError:
        return None
    if len(inputs) != 2 or len(tensors) != 2:
        return None
    unused = [letter for letter in _LETTERS if letter not in arguments[0]]
    sides = []
    for subscripts, tensor in zip((*inputs, output), (*tensors, op.result), strict=True):
        hidden = len(tensor.shape) - (len(subscripts) - 1)
        filled = "".join(unused[-hidden:] if hidden else []) if ELLIPSIS in subscripts else ""
        sides.append("".join(filled if letter == ELLIPSIS else letter for letter in subscripts))
    if any(len(set(side)) < len(side) for side in sides):
        return None
    return Contraction(sides[0], sides[1], sides[2], tensors[0].number, tensors[1].number)
