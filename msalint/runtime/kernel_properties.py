"""Properties of calls of the fused kernel: arguments that other backends, or another length, do not take as meant."""

from __future__ import annotations

from msalint.runtime.experiment import Experiment, NotApplicable
from msalint.runtime.mask_properties import working_ways
from msalint.runtime.outcome import Failed, Shown
from msalint.runtime.tracer import TracedOp, TracedTensor, Tracer

_NAMES = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal", "scale", "enable_gqa")


def kernel_arguments_agree(it: Experiment) -> Shown:
    tokens = it.tokens(0)
    tracer = Tracer()
    with tracer:
        it.run(tokens)
        for _, masks in working_ways(it):
            it.run(tokens, masks)
    calls = [op for op in tracer.ops if op.name.endswith("scaled_dot_product_attention")]
    if not calls:
        raise NotApplicable("it does not call F.scaled_dot_product_attention")
    for op in calls:
        _judge(op)
    return Shown(0.0)


def _judge(op: TracedOp) -> None:
    given = dict(zip(_NAMES, op.arguments, strict=False)) | op.keywords
    if given.get("is_causal") is not True:
        return
    if isinstance(given.get("attn_mask"), TracedTensor):
        raise Failed("it gets a mask and is_causal=True, which most backends refuse", 1.0, "MSA504")
    query, key = given.get("query"), given.get("key")
    if isinstance(query, TracedTensor) and isinstance(key, TracedTensor) and query.shape[-2] != key.shape[-2]:
        reason = (
            f"is_causal=True with {query.shape[-2]} queries and {key.shape[-2]} keys lets the first query see the "
            "first key alone"
        )
        raise Failed(reason, 1.0, "MSA505")
