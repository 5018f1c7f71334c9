"""Compares the shape comments of the traced lines with what the run had there."""

from __future__ import annotations

import ast
import linecache
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from io import StringIO

from msalint.runtime.bindings import Bindings
from msalint.runtime.sizes import Sizes
from msalint.runtime.tracer import TracedOp
from msalint.shapes.notation import ANONYMOUS, ELLIPSIS, Term, TypedAxis, parse_shape_claims, parse_shape_comment
from msalint.shapes.vocabulary import BATCH, HEAD, HEAD_DIM, role_of_name


@dataclass(frozen=True)
class Disagreement:
    """A comment that says one shape where the run had another."""

    filename: str
    line: int
    comment: str
    shape: tuple[int, ...]
    reason: str


@dataclass(frozen=True)
class _Claim:
    """The comment behind a statement, and the lines the statement covers."""

    first: int
    last: int
    target: str | None
    text: str
    axes: tuple[Term, ...]


def disagreements(ops: Sequence[TracedOp], sizes: Sizes) -> Iterator[Disagreement]:
    """Each shape comment behind a traced statement that its last result contradicts.

    Within one function a name stands for one size; `B`, `batch`, `num_heads`, `d_k` and their like for the run's own.
    """
    bindings: dict[tuple[str, str], Bindings] = {}
    for filename in dict.fromkeys(op.filename for op in ops):
        for claim in _claims(filename):
            results = [op for op in ops if op.filename == filename and claim.first <= op.line <= claim.last]
            if not results:
                continue
            op = results[-1]
            known = bindings.setdefault((filename, op.caller), Bindings())
            shapes = {tensor.shape for tensor in op.results}
            reasons = [_misfit(claim.axes, shape, known, sizes) for shape in shapes]
            if all(reason is not None for reason in reasons):
                yield Disagreement(filename, claim.last, claim.text, op.shape, str(reasons[0]))


def _misfit(axes: tuple[Term, ...], shape: tuple[int, ...], known: Bindings, sizes: Sizes) -> str | None:
    typed = [_typed(axis) for axis in axes]
    by_role = {BATCH: sizes.batch, HEAD: sizes.heads, HEAD_DIM: sizes.d_k}
    if not any(axis.kind == "variadic" for axis in typed) and len(typed) == len(shape):
        for index, (axis, size) in enumerate(zip(typed, shape, strict=True)):
            expected = by_role.get(role_of_name(axis.term) or "") if isinstance(axis.term, str) else None
            others = set(by_role.values()) | {sizes.seq, sizes.d_model}
            # A size that is nobody's may be a local meaning of the letter (H for height, D for depth).
            if expected is not None and size != expected and size in others:
                return f"axis {index} is {size}, not {axis.term} = {expected}"
    # A number in a comment belongs to the author's example, not to this run.
    loose = [TypedAxis("anonymous", ANONYMOUS) if axis.kind == "size" and axis.term != 1 else axis for axis in typed]
    return known.fit(loose, shape, "a comment")


def _typed(term: Term) -> TypedAxis:
    if term == ELLIPSIS:
        return TypedAxis("variadic", ELLIPSIS)
    if term == ANONYMOUS:
        return TypedAxis("anonymous", ANONYMOUS)
    if isinstance(term, int):
        return TypedAxis("size", term)
    return TypedAxis("name" if isinstance(term, str) else "expression", term)


@lru_cache(maxsize=64)
def _claims(filename: str) -> tuple[_Claim, ...]:
    text = "".join(linecache.getlines(filename))
    try:
        tree = ast.parse(text)
        comments = {
            token.start[0]: token.string
            for token in tokenize.generate_tokens(StringIO(text).readline)
            if token.type == tokenize.COMMENT
        }
    except (SyntaxError, ValueError, tokenize.TokenError, RecursionError):
        return ()
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return)):
            continue
        last = node.end_lineno or node.lineno
        comment = comments.get(last)
        axes = parse_shape_comment(comment) if comment else None
        target = _target(node)
        if comment and axes is not None and _speaks_of(comment, target):
            found.append(_Claim(node.lineno, last, target, comment.lstrip("# "), tuple(axes)))
    return tuple(sorted(found, key=lambda claim: claim.first))


def _target(node: ast.stmt) -> str | None:
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id
    if isinstance(node, (ast.AnnAssign, ast.AugAssign)) and isinstance(node.target, ast.Name):
        return node.target.id
    return None


def _speaks_of(comment: str, target: str | None) -> bool:
    """Whether the comment is about the value assigned: it names nothing, or names the target."""
    subject = parse_shape_claims(comment)[0].subject
    return subject is None or target is None or subject == target
