"""Properties of masks: what is hidden does not matter, and what is seen does."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from msalint.runtime.experiment import Experiment, NotApplicable
from msalint.runtime.inputs import IMAGES
from msalint.runtime.mask_ways import MaskWay
from msalint.runtime.outcome import SEEDS, Failed, Shown
from msalint.runtime.seen_keys import causal_fault, seen_keys
from msalint.runtime.tracer import Tracer


def padding_way(it: Experiment) -> MaskWay | None:
    """The way of passing a padding mask that works; None if the module takes no mask."""
    return _way(it, causal=False)


def causal_way(it: Experiment) -> MaskWay | None:
    """The way of passing a causal mask that works; None if the module takes none."""
    return _way(it, causal=True)


def _way(it: Experiment, causal: bool) -> MaskWay | None:
    tokens, output = it.tokens(0), it.run(it.tokens(0))
    if it.kind in IMAGES or not (it.is_tokenwise(output, tokens) or (it.is_pooled(output, tokens) and not causal)):
        raise NotApplicable(f"its output {tuple(output.shape)} has no place for each token")
    # Right padding is no test of a module that is causal by itself, so a way that hides left padding too is better.
    trials = [causal_plane(tokens)] if causal else [padded(tokens, left=False), padded(tokens, left=True)]
    first: Failed | None = None
    fallback: MaskWay | None = None
    for way in it.masks.ways(causal, trials[0]):
        if causal and way.parameter in _padding_parameters(it):
            continue
        if any(name not in it.same and name in way.parameter for name in it.others):
            # `memory_key_padding_mask` hides what is in another sequence.
            continue
        try:
            output = it.run(tokens, it.masks.values(way, trials[0]))
            if not it.is_tokenwise(output, tokens) and not it.is_pooled(output, tokens):
                continue
            leaks = [_hidden_change(it, tokens, it.masks.values(way, allowed), allowed, 0) for allowed in trials]
        except Exception:
            continue
        if max(leaks) <= it.tolerance or (leaks[-1] <= it.tolerance and it.is_pooled(output, tokens)):
            return way
        leak = leaks[0]
        if leak <= it.tolerance:
            fallback = fallback or way
            continue
        kind = "later tokens" if causal else "padded tokens"
        used = float((output - it.run(tokens)).abs().max()) > it.tolerance
        reason = f"{kind} still reach the output with {way}" if used else f"a mask changes nothing: {way}"
        # A name that tells the polarity makes an inverted mask the likeliest fault, else too weak a fill.
        rule = "MSA308" if it.masks.meaning(way.parameter) is not None else "MSA304"
        first = first or Failed(reason, leak, rule if used else "MSA313")
    if fallback is None and first is not None:
        raise first
    return fallback


def working_ways(it: Experiment) -> Iterator[tuple[MaskWay, dict[str, object]]]:
    """For each parameter that takes masks the first way of passing one that it runs with, and such a mask."""
    tokens = it.tokens(0)
    taken: set[str] = set()
    for causal, allowed in ((False, padded(tokens, left=False)), (True, causal_plane(tokens))):
        for way in it.masks.ways(causal, allowed):
            if way.parameter in taken:
                continue
            values = it.masks.values(way, allowed)
            try:
                it.run(tokens, values)
            except Exception:
                continue
            taken.add(way.parameter)
            yield way, values


def _padding_parameters(it: Experiment) -> set[str]:
    """Parameters that take one row of keys a sample, so that no causal mask fits them."""
    try:
        way = _way(it, causal=False)
    except Failed:
        return set()
    return {way.parameter} if way is not None and "query" not in way.shape else set()


def _hidden_change(it: Experiment, tokens: Tensor, masks: dict[str, object], allowed: Tensor, seed: int) -> float:
    """How much the outputs change when tokens do that they may not see; infinite for NaN."""
    worst = 0.0
    output = it.run(tokens, masks)
    # A padded token's own output is of no use to anyone.
    real = allowed.diagonal(dim1=1, dim2=2)
    for place in range(tokens.shape[1]):
        blind = ~allowed[:, :, place] & real
        if not bool(blind.any()):
            continue
        other = tokens.clone()
        other[:, place] = it.disturbed(tokens, seed)[:, place]
        change = (it.run(other, masks) - output).abs()
        if it.is_tokenwise(output, tokens):
            value = change.flatten(2).amax(dim=2).masked_fill(~blind, 0.0)
        else:
            value = change.flatten(1).amax(dim=1).masked_fill(~blind.any(dim=1), 0.0)
        worst = max(worst, float(torch.where(value.isnan(), torch.inf, value).max()))
    return worst


def padded(tokens: Tensor, left: bool, whole: bool = False) -> Tensor:
    """(batch, query, key): one key of the first sample hidden, two of the second, ...; or all keys of the last one."""
    batch, seq = tokens.shape[:2]
    keep = torch.ones(batch, seq, dtype=torch.bool)
    for sample in range(batch):
        keep[sample, seq - min(1 + sample, seq - 1) :] = False
    if left:
        keep = keep.flip(1)
    if whole:
        keep = torch.ones(batch, seq, dtype=torch.bool)
        keep[-1] = False
    return keep[:, None, :].expand(batch, seq, seq)


def causal_plane(tokens: Tensor) -> Tensor:
    seq = tokens.shape[1]
    return torch.ones(seq, seq, dtype=torch.bool).tril().expand(tokens.shape[0], seq, seq)


def _needed_way(it: Experiment) -> MaskWay:
    way = padding_way(it)
    if way is None:
        raise NotApplicable("it takes no mask")
    return way


def right_padding_is_hidden(it: Experiment) -> Shown:
    return _padding(it, left=False)


def left_padding_is_hidden(it: Experiment) -> Shown:
    return _padding(it, left=True)


def _padding(it: Experiment, left: bool) -> Shown:
    way = _needed_way(it)
    if left and way.coding == "lengths":
        raise NotApplicable("it takes lengths, and so padding at the end alone")
    worst = 0.0
    for seed in SEEDS:
        tokens = it.tokens(seed)
        allowed = padded(tokens, left)
        masks = it.masks.values(way, allowed)
        worst = max(worst, _hidden_change(it, tokens, masks, allowed, seed))
        output = it.run(tokens, masks)
        if it.is_pooled(output, tokens) and _reads_the_last(it, way, seed):
            if not left:
                raise NotApplicable("it reads its last token, and so is made for padding at the beginning")
            worst = max(worst, _change_alone(it, way, tokens, output))
        real = output[allowed.diagonal(dim1=1, dim2=2)] if it.is_tokenwise(output, tokens) else output
        if bool(real.isnan().any()):
            raise Failed(f"real tokens come out NaN with {way}", float("nan"), "MSA301")
    if worst > it.tolerance:
        raise Failed(f"padded tokens reach real ones, with {way}", worst, "MSA304")
    return Shown(worst, f"with {way}")


def _reads_the_last(it: Experiment, way: MaskWay, seed: int) -> bool:
    """Whether padding at the end reaches one row a sample, and padding at the beginning does not."""
    tokens = it.tokens(seed)
    right, left = padded(tokens, left=False), padded(tokens, left=True)
    changes = [_hidden_change(it, tokens, it.masks.values(way, one), one, seed) for one in (right, left)]
    return changes[0] > it.tolerance >= changes[1]


def _change_alone(it: Experiment, way: MaskWay, tokens: Tensor, output: Tensor) -> float:
    """How much the output of the first sample, padded by one token at the beginning, differs from that without it."""
    alone = tokens[:1, 1:]
    seen = torch.ones(1, alone.shape[1], alone.shape[1], dtype=torch.bool)
    return float((it.run(alone, it.masks.values(way, seen)) - output[:1]).abs().max())


def masked_row_is_finite(it: Experiment) -> Shown:
    way = _needed_way(it)
    for seed in SEEDS:
        tokens = it.tokens(seed)
        masks = it.masks.values(way, padded(tokens, left=False, whole=True))
        if not it.is_ids:
            tokens = tokens.to(it.dtype).requires_grad_()
        with torch.enable_grad():
            output = it.run(tokens, masks)
            if not bool(output.isfinite().all()):
                raise Failed(f"a sample with no key to see gives NaN, with {way}", float("nan"), "MSA301")
            if not it.is_ids:
                output.square().sum().backward()  # type: ignore[no-untyped-call]
                if tokens.grad is not None and not bool(tokens.grad.isfinite().all()):
                    raise Failed("the gradient of a sample with no key to see is NaN", float("nan"), "MSA301")
    return Shown(0.0, f"with {way}")


def future_is_hidden(it: Experiment) -> Shown:
    tokens, output = it.tokenwise(0)
    if it.is_of_scores(tokens, output):
        raise NotApplicable("it makes weights of scores, and mixes no values")
    way = _way(it, causal=True)
    masks = it.masks.values(way, causal_plane(tokens)) if way is not None else None
    pattern = seen_keys(it, masks)
    fault = causal_fault(pattern) if pattern is not None else None
    if fault is not None:
        raise Failed(fault[0], 1.0, fault[1])
    for seed in SEEDS:
        free, seen = _influences(it, None, seed), _influences(it, masks, seed)
        if way is None:
            _judge_own_causality(it, seen)
        elif bool(seen.triu(1).any()):
            raise Failed(f"tokens depend on later ones, with {way}", 1.0, "MSA310")
        elif bool((free & ~seen).diagonal().any()):
            raise Failed(f"some tokens don't see themselves, with {way}", 1.0, "MSA309")
        elif bool((free & ~seen).tril().any()):
            raise Failed(f"some tokens don't see earlier ones, with {way}", 1.0, "MSA310")
    return Shown(0.0, f"with {way}" if way is not None else "by itself")


def _influences(it: Experiment, masks: dict[str, object] | None, seed: int) -> Tensor:
    """Who depends on whom, for tokens as they are or much smaller: large scores let one key take all the weight."""
    seen = it.influence(masks, seed)
    for scale in () if it.is_ids else (2.0**-4, 2.0**-10):
        if bool((seen | seen.T).all()):
            break
        seen = seen | it.influence(masks, seed, scale)
    return seen


def _judge_own_causality(it: Experiment, seen: Tensor) -> None:
    """A module that is given no mask: causal by itself, or meant to be, or not at all."""
    later, earlier = bool(seen.triu(1).any()), bool(seen.tril(-1).any())
    if not later and not earlier:
        raise NotApplicable("its tokens don't see each other")
    if not later:
        if not bool(seen.diagonal().all()):
            raise Failed("some tokens don't see themselves", 1.0, "MSA309")
        return
    if not earlier:
        raise Failed("tokens depend on later ones only", 1.0, "MSA310")
    if it.text or any("causal" in name for name in it.parameters) or not is_meant_causal(it):
        raise NotApplicable("it is asked for no causal mask, and attends both ways")
    if it.others or it.beside:
        raise NotApplicable(f"what its tokens see may hang on `{(it.others + it.beside)[0]}`")
    raise Failed("tokens depend on later ones, though it is named or equipped for causality", 1.0, "MSA313")


def is_meant_causal(it: Experiment) -> bool:
    """By its name, by a triangular mask among its tensors, or by one that it makes."""
    name = type(it.module).__name__ if isinstance(it.module, nn.Module) else getattr(it.module, "__name__", "")
    if "causal" in name.lower():
        return True
    if isinstance(it.module, nn.Module) and any(_is_triangle(value) for value in it.module.buffers()):
        return True
    tokens = it.tokens(0)
    with Tracer() as tracer:
        it.run(tokens)
    square = (tokens.shape[1], tokens.shape[1])
    made = [op for op in tracer.ops if op.name.rpartition(".")[2].rstrip("_") in ("tril", "triu")]
    return any(op.shape[-2:] == square for op in made)


def _is_triangle(value: Tensor) -> bool:
    if value.dim() < 2 or value.shape[-1] != value.shape[-2] or value.shape[-1] < 2:
        return False
    plane = value.flatten(0, -3)[0] if value.dim() > 2 else value
    hidden = plane != plane[0, 0]
    return bool(hidden.any()) and bool((hidden == torch.ones_like(hidden).triu(1)).all())
