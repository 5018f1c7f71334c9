"""The properties of attention that a run can show, each tried on three seeds and judged by a tolerance of its dtype."""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from msalint.runtime.experiment import Experiment, MaskWay, NotApplicable
from msalint.runtime.flow_tracer import FlowTracer, Scale, labels_by_size
from msalint.runtime.head_leak import head_overlap
from msalint.runtime.recorder import WeightsTracer

SEEDS = (0, 1, 2)


class Failed(Exception):
    """The property does not hold: why, the worst value seen, and the rule that usually explains it."""

    def __init__(self, reason: str, worst: float | None = None, rule: str = "") -> None:
        super().__init__(reason)
        self.worst, self.rule = worst, rule


@dataclass(frozen=True)
class Shown:
    """The property holds: the worst value seen, and what there is to say."""

    worst: float | None = None
    note: str = ""


@dataclass(frozen=True)
class Property:
    """A property by name: what is tried, and the check, which raises `Failed` or `NotApplicable`."""

    name: str
    tried: str
    check: Callable[[Experiment], Shown]
    compares: bool = True
    """It compares two runs, which says nothing about a module that is random in eval."""


def weights_sum_to_one(it: Experiment) -> Shown:
    worst = 0.0
    for seed in SEEDS:
        with WeightsTracer() as tracer:
            it.run(it.tokens(seed))
        manual = [a for a in tracer.attentions if a.op.name.rpartition(".")[2] != "scaled_dot_product_attention"]
        if not manual:
            raise NotApplicable("its weights are made inside F.scaled_dot_product_attention or not by softmax")
        for attention in manual:
            worst = max(worst, float((attention.weights.double().sum(-1) - 1).abs().max()))
    if worst > it.tolerance:
        reason = "the weights that meet the values don't sum to 1 over the keys"
        raise Failed(reason, worst, "MSA211")
    return Shown(worst)


def padding_way(it: Experiment) -> MaskWay | None:
    """The way of passing a padding mask that works; None if the module takes no mask."""
    return _way(it, causal=False)


def _way(it: Experiment, causal: bool) -> MaskWay | None:
    tokens, _ = it.tokenwise(0)
    allowed = _causal(tokens) if causal else _padded(tokens, left=False)
    first: Failed | None = None
    for way in it.ways(causal):
        if causal and way.parameter in _padding_parameters(it):
            continue
        try:
            masks = it.masks(way, allowed)
            output = it.run(tokens, masks)
            if not it.is_tokenwise(output, tokens):
                continue
            leak = _hidden_change(it, tokens, masks, allowed, 0)
        except Exception:
            continue
        if leak <= it.tolerance:
            return way
        kind = "later tokens" if causal else "padded tokens"
        used = float((output - it.run(tokens)).abs().max()) > it.tolerance
        reason = f"{kind} still reach the output with {way}" if used else f"a mask changes nothing: {way}"
        first = first or Failed(reason, leak, "MSA308" if used else "MSA313")
    if first is not None:
        raise first
    return None


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
        change = (it.run(other, masks) - output).abs().flatten(2).amax(dim=2)
        value = change.masked_fill(~blind, 0.0)
        worst = max(worst, float(torch.where(value.isnan(), torch.inf, value).max()))
    return worst


def _padded(tokens: Tensor, left: bool, whole: bool = False) -> Tensor:
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


def _causal(tokens: Tensor) -> Tensor:
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
    worst = 0.0
    for seed in SEEDS:
        tokens = it.tokens(seed)
        allowed = _padded(tokens, left)
        if way.shape in ("(query, key)", "(1, 1, query, key)"):
            allowed = allowed[-1:].expand_as(allowed)
        masks = it.masks(way, allowed)
        worst = max(worst, _hidden_change(it, tokens, masks, allowed, seed))
        if bool(it.run(tokens, masks)[allowed.diagonal(dim1=1, dim2=2)].isnan().any()):
            raise Failed(f"real tokens come out NaN with {way}", float("nan"), "MSA301")
    if worst > it.tolerance:
        raise Failed(f"padded tokens reach real ones, with {way}", worst, "MSA304")
    return Shown(worst, f"with {way}")


def masked_row_is_finite(it: Experiment) -> Shown:
    way = _needed_way(it)
    for seed in SEEDS:
        tokens = it.tokens(seed)
        masks = it.masks(way, _padded(tokens, left=False, whole=True))
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
    tokens, _ = it.tokenwise(0)
    way = _way(it, causal=True)
    masks = it.masks(way, _causal(tokens)) if way is not None else None
    for seed in SEEDS:
        seen = it.influence(masks, seed)
        ahead = seen.triu(1)
        if way is None and bool(ahead.any()):
            if (
                it.text
                or any("causal" in name for name in it.parameters)
                or not re.search(r"causal|tril|triu|autoregress", it.source().lower())
            ):
                raise NotApplicable("it is asked for no causal mask, and attends both ways")
            raise Failed("tokens depend on later ones, though its source speaks of causality", 1.0, "MSA313")
        if bool(ahead.any()):
            raise Failed(f"tokens depend on later ones, with {way}", 1.0, "MSA310")
        if not bool(seen.diagonal().all()):
            raise Failed("some tokens don't see themselves", 1.0, "MSA309")
        if not bool((seen | ~torch.ones_like(seen).tril()).all()):
            raise Failed("some tokens don't see earlier ones", 1.0, "MSA310")
    return Shown(0.0, f"with {way}" if way is not None else "by itself")


def _judge_own_causality(it: Experiment, seen: Tensor) -> None:
    """A module that is given no mask: causal by itself, or meant to be, or not at all."""
    if not bool(seen.fill_diagonal_(False).any()):
        raise NotApplicable("its tokens don't see each other")
    if not bool(seen.triu(1).any()):
        if not bool(it.influence().diagonal().all()):
            raise Failed("some tokens don't see themselves", 1.0, "MSA309")
        return
    if bool(seen.triu(1).any()) and not bool(seen.tril(-1).any()):
        raise Failed("tokens depend on later ones only", 1.0, "MSA310")
    if it.text or any("causal" in name for name in it.parameters) or not _is_meant_causal(it):
        raise NotApplicable("it is asked for no causal mask, and attends both ways")
    raise Failed("tokens depend on later ones, though it is named or equipped for causality", 1.0, "MSA313")


def _is_meant_causal(it: Experiment) -> bool:
    """By its name, or by a triangular mask among its tensors."""
    if not isinstance(it.module, nn.Module):
        return False
    if "causal" in type(it.module).__name__.lower():
        return True
    return any(_is_triangle(value) for value in it.module.buffers())


def _is_triangle(value: Tensor) -> bool:
    if value.dim() < 2 or value.shape[-1] != value.shape[-2] or value.shape[-1] < 2:
        return False
    plane = value.flatten(0, -3)[0] if value.dim() > 2 else value
    hidden = plane != plane[0, 0]
    return bool(hidden.any()) and bool((hidden == torch.ones_like(hidden).triu(1)).all())


def samples_are_apart(it: Experiment) -> Shown:
    worst = 0.0
    for seed in SEEDS:
        tokens = it.tokens(seed)
        output = it.run(tokens)
        if output.shape[0] != tokens.shape[0]:
            raise NotApplicable(f"its output {tuple(output.shape)} has no batch axis")
        other = tokens.clone()
        other[-1] = it.disturbed(tokens, seed)[-1]
        worst = max(worst, float((it.run(other) - output)[:-1].abs().max()))
    if not worst <= it.tolerance:
        raise Failed("a sample's output depends on another sample", worst, "MSA104")
    return Shown(worst)


def heads_are_apart(it: Experiment) -> Shown:
    shared = head_overlap(it)
    if shared:
        raise Failed("heads read each other's features before the output projection", float(shared), "MSA102")
    return Shown(0.0)


_POSITIONS = re.compile(r"pos|rot|rel|alibi|freq|sin|cos|wpe|bias_table|time|shift|conv|window|distance", re.IGNORECASE)


def permutation_carries_over(it: Experiment) -> Shown:
    tokens, _ = it.tokenwise(0)
    if not bool(it.influence().all()):
        raise NotApplicable("not every token sees every other")
    if it.is_ids or _has_positions(it):
        raise NotApplicable("it has positions")
    worst = 0.0
    for seed in SEEDS:
        tokens = it.tokens(seed)
        order = torch.randperm(tokens.shape[1], generator=torch.Generator().manual_seed(seed + 1))
        worst = max(worst, float((it.run(tokens[:, order]) - it.run(tokens)[:, order]).abs().max()))
    if not worst <= it.tolerance:
        raise Failed("permuted tokens don't give permuted outputs, though it has no positions", worst, "MSA103")
    return Shown(worst)


def _has_positions(it: Experiment) -> bool:
    if not isinstance(it.module, nn.Module):
        return False
    state = [*dict(it.module.named_parameters()), *dict(it.module.named_buffers()), *dict(it.module.named_modules())]
    return any(_POSITIONS.search(name) for name in state) or "arange" in it.source()


def evaluation_is_deterministic(it: Experiment) -> Shown:
    worst = 0.0
    for seed in SEEDS:
        tokens = it.tokens(seed)
        torch.manual_seed(seed)
        first = it.run(tokens)
        if isinstance(it.module, nn.Module) and not any("BatchNorm" in type(m).__name__ for m in it.module.modules()):
            it.module.train()
            it.run(tokens)
            it.module.eval()
        worst = max(worst, float((it.run(tokens) - first).abs().max()))
    if not worst <= it.tolerance:
        raise Failed("two runs in eval differ", worst, "MSA601")
    return Shown(worst)


def dropout_acts_in_training(it: Experiment) -> Shown:
    if not isinstance(it.module, nn.Module):
        raise NotApplicable("it is a function")
    rates = [m.p for m in it.module.modules() if isinstance(m, nn.Dropout)]
    for part in it.module.modules():
        rates += [v for n, v in vars(part).items() if isinstance(v, float) and "drop" in n.lower()]
    if not any(rate > 0 for rate in rates):
        raise NotApplicable("it has no dropout rate above 0")
    with it.training() as module:
        tokens = it.tokens(0)
        torch.manual_seed(1)
        first = it.run(tokens, module=module)
        torch.manual_seed(2)
        change = float((it.run(tokens, module=module) - first).abs().max())
    if change == 0:
        raise Failed(f"a dropout rate of {max(rates)} changes nothing in training", 0.0, "MSA605")
    return Shown(change)


def half_is_finite(it: Experiment) -> Shown:
    return _low_precision(it, torch.float16)


def bfloat16_is_finite(it: Experiment) -> Shown:
    return _low_precision(it, torch.bfloat16)


def _low_precision(it: Experiment, dtype: torch.dtype) -> Shown:
    if not isinstance(it.module, nn.Module):
        raise NotApplicable("it is a function")
    module = copy.deepcopy(it.subject.target).eval().to(dtype)
    way = _quiet_way(it)
    for seed in SEEDS:
        tokens = it.tokens(seed)
        for masks in [None] if way is None else [None, it.masks(way, _padded(tokens, left=False))]:
            fitted = {name: _cast(value, dtype) for name, value in (masks or {}).items()}
            try:
                output = it.run(tokens, fitted, module=module)
            except RuntimeError as error:
                text = str(error).splitlines()[0]
                if "overflow" not in text:
                    raise NotApplicable(f"it can't run in this dtype: {text}") from error
                raise Failed(f"it raises: {text}", None, "MSA303") from error
            if not bool(output.isfinite().all()):
                raise Failed("its output is not finite", float("nan"), "MSA303")
    return Shown(0.0)


def _cast(value: object, dtype: torch.dtype) -> object:
    if isinstance(value, Tensor) and value.is_floating_point():
        return value.clamp_min(torch.finfo(dtype).min).to(dtype)
    return value


def _quiet_way(it: Experiment) -> MaskWay | None:
    try:
        return padding_way(it)
    except (Failed, NotApplicable):
        return None


def scale_fits_the_heads(it: Experiment) -> Shown:
    scales = _scales(it)
    if set(_constructor_names(it)) & {"temperature", "scale", "scaling", "softmax_scale", "attn_scale"}:
        raise NotApplicable("its scale is an argument of its constructor")
    if not scales:
        raise NotApplicable("no scores were seen on their way to a softmax")
    worst = 0.0
    for scale in scales:
        if scale.factor is None or scale.width is None:
            raise NotApplicable("the scale is learned, or the queries and keys are normalised")
        ratio = scale.factor * scale.width**0.5
        worst = max(worst, abs(ratio - 1.0))
        if abs(ratio - 1.0) > 1e-3:
            raise Failed(*_scale_reason(scale.factor, scale.width, it.sizes.d_model))
    return Shown(worst, f"scale {scales[0].factor:.4g} for d_k = {scales[0].width}")


def _constructor_names(it: Experiment) -> list[str]:
    try:
        return list(inspect.signature(type(it.module).__init__).parameters)
    except (TypeError, ValueError):
        return []


def _scales(it: Experiment) -> list[Scale]:
    tracer = FlowTracer()
    tokens = it.tokens(0)
    rows = labels_by_size(it.subject.inputs[it.main], it.sizes)
    if rows is None:
        return []
    handle = None
    if isinstance(it.module, nn.Module):

        def note(_: nn.Module, args: tuple[object, ...], kwargs: dict[str, object]) -> None:
            tracer.paused = True
            for value in [*args, *kwargs.values()]:
                labels = labels_by_size(value, it.sizes) if isinstance(value, Tensor) else None
                if isinstance(value, Tensor) and labels is not None:
                    tracer.label_input(value, labels)
            tracer.paused = False

        handle = it.module.register_forward_pre_hook(note, with_kwargs=True)
    try:
        with tracer, torch.enable_grad():
            it.run(tokens)
    finally:
        if handle is not None:
            handle.remove()
    return tracer.scales


def _scale_reason(factor: float, width: int, d_model: int) -> tuple[str, float, str]:
    """What the scale is instead of 1 / sqrt(d_k), the standard deviation of scores that it gives, and the rule."""
    spread = factor * width**0.5
    for value, words, rule in (
        (1.0, "scores are not scaled", "MSA201"),
        (d_model**-0.5, "scores are scaled by the root of d_model, not of d_k", "MSA202"),
        (1.0 / width, "scores are scaled by d_k, twice what is due or with no root", "MSA203"),
        (width**0.5, "scores are multiplied by the root of d_k", "MSA204"),
        (2.0 / width, "scores are divided by d_k / 2", "MSA207"),
    ):
        if abs(factor - value) <= 1e-3 * value:
            return f"{words}: their spread is {spread:.2f} times what it should be", spread, rule
    return f"scores are scaled by {factor:.4g}, not 1 / sqrt({width}) = {width**-0.5:.4g}", spread, "MSA201"


def gradients_reach_every_parameter(it: Experiment) -> Shown:
    if not isinstance(it.module, nn.Module):
        raise NotApplicable("it is a function")
    with it.training() as module, torch.enable_grad():
        own = {id(p) for p in module.parameters()}
        strangers = _Strangers(own)
        with strangers:
            it.run(it.tokens(0), module=module).square().sum().backward()  # type: ignore[no-untyped-call]
        silent = [
            name
            for name, p in module.named_parameters()
            if p.requires_grad and p.dim() > 1 and (p.grad is None or not bool(p.grad.abs().any()))
        ]
    if strangers.count:
        reason = f"{strangers.count} parameters are used that the module does not list, so no optimiser will train them"
        raise Failed(reason, float(strangers.count), "MSA404")
    if silent:
        raise Failed(f"no gradient reaches {', '.join(silent[:4])}", float(len(silent)), "MSA406")
    return Shown(0.0)


class _Strangers(TorchFunctionMode):
    """Counts parameters in use that a module does not own."""

    def __init__(self, own: set[int]) -> None:
        super().__init__()
        self.own, self.met = own, set[int]()

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        for value in args:
            if isinstance(value, nn.Parameter) and id(value) not in self.own:
                self.met.add(id(value))
        return func(*args, **(kwargs or {}))

    @property
    def count(self) -> int:
        return len(self.met)


def parameters_are_four_squares(it: Experiment) -> Shown:
    if not isinstance(it.module, nn.Module):
        raise NotApplicable("it is a function")
    width = it.sizes.d_model
    count = sum(p.numel() for p in it.module.parameters())
    bias = count - 4 * width * width
    if bias in (0, width, 3 * width, 4 * width):
        return Shown(0.0, f"{count} = 4 d_model^2" + (f" + {bias // width} d_model" if bias else ""))
    raise NotApplicable(
        f"it has {count} parameters, {count / width**2:.2f} d_model^2: more or less than q, k, v and output"
    )


def strides_do_not_matter(it: Experiment) -> Shown:
    worst = 0.0
    for seed in SEEDS:
        tokens = it.tokens(seed)
        if tokens.dim() < 3:
            raise NotApplicable("it takes ids")
        strided = tokens.transpose(1, 2).contiguous().transpose(1, 2)
        try:
            worst = max(worst, float((it.run(strided) - it.run(tokens)).abs().max()))
        except RuntimeError as error:
            text = str(error).splitlines()[0]
            raise Failed(f"it raises on an input that is not contiguous: {text}", None, "MSA101") from error
    if not worst <= it.tolerance:
        raise Failed("an input that is not contiguous gives another output", worst, "MSA107")
    return Shown(worst)


def one_sample_is_enough(it: Experiment) -> Shown:
    worst = 0.0
    for seed in SEEDS:
        tokens = it.tokens(seed)
        whole = it.run(tokens)
        try:
            one = it.run(tokens[:1])
        except (RuntimeError, ValueError, IndexError) as error:
            raise Failed(f"it raises on a batch of one: {str(error).splitlines()[0]}", None, "MSA311") from error
        if one.shape != whole[:1].shape:
            reason = f"a batch of one gives {tuple(one.shape)}, not {tuple(whole[:1].shape)}"
            raise Failed(reason, None, "MSA104")
        worst = max(worst, float((one - whole[:1]).abs().max()))
    if not worst <= it.tolerance:
        raise Failed("a sample alone gives another output than in its batch", worst, "MSA104")
    return Shown(worst)


def one_token_is_enough(it: Experiment) -> Shown:
    if it.kind == "image":
        raise NotApplicable("its input is an image")
    if any(name in it.parameters and name in it.subject.inputs for name in ("mask", "attn_mask", "attention_mask")):
        raise NotApplicable("it needs a mask of fixed size")
    for seed in SEEDS:
        tokens = it.tokens(seed, seq=1)
        try:
            output = it.run(tokens)
        except (RuntimeError, ValueError, IndexError, AssertionError) as error:
            if re.search(r"self\.(n|num_)?(tokens|seq|patches|positions|len)", it.source()):
                raise NotApplicable("its length is fixed") from error
            raise Failed(f"it raises on a sequence of one: {str(error).splitlines()[0]}", None, "MSA311") from error
        if not bool(output.isfinite().all()):
            raise Failed("a sequence of one gives NaN", float("nan"), "MSA301")
    return Shown(0.0)


def cached_steps_equal_the_whole(it: Experiment) -> Shown:
    from msalint.runtime.cached_decoding import step_by_step

    tokens, _ = it.tokenwise(0)
    way = _way(it, causal=True)
    worst = 0.0
    for seed in SEEDS:
        tokens = it.tokens(seed)
        masks = it.masks(way, _causal(tokens)) if way is not None else None
        stepped = step_by_step(it, tokens, way)
        worst = max(worst, float((stepped - it.run(tokens, masks)).abs().max()))
    if not worst <= it.tolerance:
        raise Failed("decoding with a cache gives another output than the whole sequence", worst, "MSA701")
    return Shown(worst)


PROPERTIES = (
    Property(
        "weights sum to 1", "sum of recorded weights over the axis that meets the values", weights_sum_to_one, False
    ),
    Property("right padding", "other content in padded tokens at the end", right_padding_is_hidden),
    Property("left padding", "other content in padded tokens at the beginning", left_padding_is_hidden),
    Property("fully masked row", "a sample whose keys are all hidden, forward and backward", masked_row_is_finite),
    Property("causality", "other content in one token at a time", future_is_hidden),
    Property("samples apart", "other content in the last sample", samples_are_apart),
    Property("heads apart", "gradient of each head's context on the projections", heads_are_apart, False),
    Property("permutation", "tokens in another order", permutation_carries_over),
    Property("deterministic eval", "two runs in eval, a training run between", evaluation_is_deterministic, False),
    Property("dropout in training", "two training runs with other seeds", dropout_acts_in_training, False),
    Property("scale", "the factor between q k^T and softmax, against 1 / sqrt(d_k)", scale_fits_the_heads, False),
    Property("float16", "the module and its input in half, with and without a mask", half_is_finite, False),
    Property("bfloat16", "the module and its input in bfloat16, with and without a mask", bfloat16_is_finite, False),
    Property("gradient flow", "gradient of the squared output on every weight", gradients_reach_every_parameter, False),
    Property("parameter count", "against 4 d_model^2 and biases", parameters_are_four_squares, False),
    Property("cached decoding", "token by token with a cache, against the whole", cached_steps_equal_the_whole),
    Property("strided input", "the same input, not contiguous", strides_do_not_matter),
    Property("batch of one", "the first sample alone", one_sample_is_enough),
    Property("length of one", "a sequence of one token", one_token_is_enough),
)
