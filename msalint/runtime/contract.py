"""The contract of attention, read off the labels: what each product, softmax and merge may run over."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from msalint.runtime.contraction import Contraction
from msalint.runtime.labels import FEATURE, KEY_FEATURE, KEY_SAMPLE, KEY_TOKEN, SAMPLE, TOKEN, Labels, spread
from msalint.runtime.tracer import TracedOp


@dataclass(frozen=True)
class Problem:
    """A place where the flow breaks the (batch, head, seq, d_k) contract. `rule` usually explains it."""

    op: TracedOp
    kind: str
    message: str
    rule: str | None = None


def score_problems(op: TracedOp, left: Labels, right: Labels, spec: Contraction) -> Iterator[Problem]:
    """Queries times keys: the contracted axis is features of one token, the free ones count tokens."""
    for side, labels, letters in (("left", left, spec.left), ("right", right, spec.right)):
        for axis, letter in enumerate(letters):
            if labels.scrambled(axis):
                yield Problem(
                    op,
                    "heads not split in order",
                    f"axis {axis} of the {side} operand runs on from token to token: the heads were split by a view "
                    "with no transpose, and each holds pieces of several tokens",
                    "MSA102",
                )
                return
            if letter in spec.contracted and SAMPLE in labels.varying(axis) and FEATURE not in labels.varying(axis):
                yield Problem(op, "product over the wrong axes", "the product sums over samples of the batch", "MSA104")
                return


def softmax_problems(op: TracedOp, labels: Labels, dim: int) -> Iterator[Problem]:
    """Softmax over a product of queries and keys has to run over tokens of one sample."""
    varying = labels.varying(dim)
    if len(varying & {TOKEN, KEY_TOKEN}) == 1 or labels.arrays[next(iter(labels.arrays))].shape[dim] < 2:
        return
    if {TOKEN, KEY_TOKEN} <= varying:
        message = f"softmax over axis {dim} weighs places that queries and keys share, not the keys of a query"
        yield Problem(op, "softmax not over keys", message, "MSA211")
        return
    if varying & {SAMPLE, KEY_SAMPLE}:
        yield Problem(op, "softmax not over keys", f"softmax over axis {dim} weighs the samples of the batch", "MSA104")
    elif varying & {FEATURE, KEY_FEATURE}:
        what = "heads or features of one token"
        yield Problem(op, "softmax not over keys", f"softmax over axis {dim} weighs {what}, not tokens", "MSA105")


def value_problems(op: TracedOp, weights: Labels, values: Labels, spec: Contraction, left: bool) -> Iterator[Problem]:
    """Weights times values: the axis that softmax ran over meets the tokens of the values, one by one."""
    weight_axes, value_axes = (spec.left, spec.right) if left else (spec.right, spec.left)
    for letter in spec.contracted:
        axis, value_axis = weight_axes.index(letter), value_axes.index(letter)
        varying = weights.varying(axis)
        if weights.normalised is not None and weights.normalised not in varying and varying & {TOKEN, KEY_TOKEN}:
            yield Problem(
                op,
                "softmax not over keys",
                "the values are summed over an axis that softmax did not normalise",
                "MSA211",
            )
            return
        if values.scrambled(value_axis):
            yield Problem(
                op,
                "heads not split in order",
                "the values' key axis runs on from token to token: their heads were split with no transpose",
                "MSA102",
            )
            return
        key = TOKEN if weights.normalised == TOKEN else KEY_TOKEN
        if key in varying and _meet_other_tokens(weights, values, key, letter, spec, left):
            yield Problem(
                op, "product over the wrong axes", "a key's weight meets the value of another token", "MSA106"
            )
            return


def _meet_other_tokens(weights: Labels, values: Labels, key: str, letter: str, spec: Contraction, left: bool) -> bool:
    """Whether weight and value, at the same place of the contracted axis, stand for different tokens."""
    if TOKEN not in values.arrays:
        return False
    weight_axes, value_axes = (spec.left, spec.right) if left else (spec.right, spec.left)
    shared = "".join(other for other in spec.left if other in spec.right and (other in spec.out or other == letter))
    sizes = dict(zip(weight_axes, weights.arrays[key].shape, strict=True))
    for other, size in zip(value_axes, values.arrays[TOKEN].shape, strict=True):
        sizes[other] = max(size, sizes.get(other, 1))
    shape = tuple(sizes[other] for other in shared)
    ours = spread(weights.arrays[key], weight_axes, shared, shape)
    theirs = spread(values.arrays[TOKEN], value_axes, shared, shape)
    return bool(((ours != theirs) & (ours >= 0) & (theirs >= 0)).any())


def sum_problems(op: TracedOp, known: Sequence[Labels]) -> Iterator[Problem]:
    """A residual adds to each token the context of that token."""
    for context in known:
        for other in known:
            if not context.context or other.context or other.pair or TOKEN not in context.arrays.keys() & other.arrays:
                continue
            ours, theirs = context.arrays[TOKEN], other.arrays[TOKEN]
            if bool(((ours != theirs) & (ours >= 0) & (theirs >= 0)).any()) and context.varies(TOKEN, -1):
                message = "the sum adds to a token what mixes several: the heads were merged with no transpose back"
                yield Problem(op, "heads not merged in order", message, "MSA103")
                return


def merge_problems(op: TracedOp, labels: Labels) -> Iterator[Problem]:
    """A projection of the context reads the heads of one token; one of features does not run on from place to place."""
    if not labels.context and len(next(iter(labels.arrays.values())).shape) > 2 and labels.scrambled(-2):
        yield Problem(
            op,
            "axes reordered by a view",
            "the projection reads rows that run on from place to place: a view took one axis for another",
            "MSA107",
        )
    if labels.context and (labels.varies(TOKEN, -1) or labels.varies(SAMPLE, -1)):
        yield Problem(
            op,
            "heads not merged in order",
            "the projection reads rows that mix several tokens: the heads were merged with no transpose back",
            "MSA103",
        )


def api_problems(op: TracedOp, query: Labels | None, key: Labels | None, value: Labels | None) -> Iterator[Problem]:
    """F.scaled_dot_product_attention: axis -2 counts tokens, axis -1 features of one of them."""
    for name, labels in (("query", query), ("key", key), ("value", value)):
        if labels is None:
            continue
        rank = labels.arrays[next(iter(labels.arrays))].dim()
        if any(labels.scrambled(axis) for axis in range(rank)):
            message = f"the heads of `{name}` were split by a view with no transpose: each mixes several tokens"
            yield Problem(op, "heads not split in order", message, "MSA102")
            return
        rows, columns = labels.varying(-2), labels.varying(-1)
        if rows and TOKEN not in rows:
            over = "samples of the batch" if SAMPLE in rows else "heads"
            rule = "MSA104" if SAMPLE in rows else "MSA506"
            yield Problem(op, "product over the wrong axes", f"axis -2 of `{name}` counts {over}, not tokens", rule)
            return
        if columns & {TOKEN, SAMPLE}:
            yield Problem(op, "product over the wrong axes", f"axis -1 of `{name}` runs over tokens", "MSA106")
            return


def module_api_problems(op: TracedOp, key: Labels | None, token_axis: int) -> Iterator[Problem]:
    """nn.MultiheadAttention, seq-first inside: the axis it attends over has to count tokens."""
    if key is None:
        return
    varying = key.varying(token_axis)
    if varying and TOKEN not in varying:
        yield Problem(
            op,
            "product over the wrong axes",
            "nn.MultiheadAttention attends over the samples of the batch: it takes (seq, batch, width) here",
            "MSA501",
        )


def _laid_out(op: TracedOp, labels: Labels | None) -> bool:
    """Whether the output's axes were written out, `view(batch, seq, width)`, and are what they are called there."""
    if op.name.rpartition(".")[2] not in ("view", "reshape", "unflatten") or labels is None:
        return False
    return labels.varying(0) == {SAMPLE} and labels.varying(1) == {TOKEN} and labels.varying(2) <= {FEATURE}


def output_problems(
    op: TracedOp, labels: Labels | None, shape: tuple[int, ...], wanted: tuple[int, ...]
) -> Iterator[Problem]:
    """The output's axes stand as the input's do, and its positions are the input's tokens.

    Another width (one head, another model) or fewer tokens (a class token) are no problem.
    """
    if shape != wanted:
        if sorted(shape) == sorted(wanted) and not _laid_out(op, labels):
            yield Problem(op, "output shape", f"the output is {shape}, the input was {wanted}")
        return
    if labels is None or TOKEN not in labels.arrays:
        return
    token = labels.arrays[TOKEN]
    axis = 1 if labels.varies(TOKEN, 1) else 0
    if token.dim() != 3 or not labels.varies(TOKEN, axis):
        return
    rows = token.movedim(axis, 0).flatten(1)
    place = rows.new_tensor(range(rows.shape[0]))[:, None]
    if bool(((rows != place) & (rows >= 0)).any()):
        yield Problem(op, "output order", "positions of the output hold other tokens than those of the input", "MSA103")
