"""Properties of numbers: sums, scale, dtypes, gradients, dropout and parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from msalint.runtime.contraction import contraction_of
from msalint.runtime.experiment import Experiment, NotApplicable, awakened
from msalint.runtime.flow_tracer import FlowTracer, Scale, labels_of_kind
from msalint.runtime.mask_properties import padded, padding_way
from msalint.runtime.mask_ways import MaskWay
from msalint.runtime.outcome import SEEDS, Failed, Shown
from msalint.runtime.recorder import MOVES, SOFTMAXES, WeightsTracer
from msalint.runtime.subject import in_mode
from msalint.runtime.tracer import TracedOp


def weights_sum_to_one(it: Experiment) -> Shown:
    worst = 0.0
    for seed in SEEDS:
        with WeightsTracer() as tracer:
            it.run(it.tokens(seed))
        seen = [a for a in tracer.attentions if a.scored]
        manual = [a for a in seen if a.op.name.rpartition(".")[2] != "scaled_dot_product_attention"]
        if not manual:
            raise NotApplicable("its weights are made inside a fused kernel, or not by a softmax of scores")
        for attention in manual:
            sums = attention.weights.double().sum(-1)
            # A query that may see no key has no weights at all.
            off = torch.where((attention.weights == 0).all(-1), 0.0, (sums - 1).abs())
            worst = max(worst, float(off.max()))
    if worst > it.tolerance:
        reason = "the weights that meet the values don't sum to 1 over the keys"
        raise Failed(reason, worst, "MSA211")
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


def dropped_scores_get_no_weight(it: Experiment) -> Shown:
    """In training, a score that dropout takes away has no weight: a score of 0 is as good as any other."""
    worst, seen = 0.0, False
    with it.training() as module:
        for seed in SEEDS:
            torch.manual_seed(seed)
            with _DroppedScores() as tracer:
                it.run(it.tokens(seed), module=module)
            worst, seen = max(worst, tracer.worst), seen or tracer.met
    if not seen:
        raise NotApplicable("no scores meet a dropout on their way to a softmax")
    if worst > it.tolerance:
        reason = f"in training a score that dropout has set to 0 still gets a weight, of up to {worst:.2f}"
        raise Failed(reason, worst, "MSA603")
    return Shown(worst)


class _DroppedScores(WeightsTracer):
    """Follows the places that dropout sets to zero in scores up to the softmax, and notes the weights they get."""

    def __init__(self) -> None:
        super().__init__()
        self.worst, self.met = 0.0, False
        self._dropped: dict[int, Tensor] = {}

    def seen(
        self, op: TracedOp, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
    ) -> None:
        super().seen(op, func, args, kwargs, result)
        name = op.name.rpartition(".")[2]
        dropped = next((self._dropped[one.number] for one in op.inputs if one.number in self._dropped), None)
        if any(one.number in self._products and one.number not in self._dropped for one in op.inputs):
            # Scores with a part that was dropped, as a bias may be, are whole scores.
            dropped = None
        if name.startswith("dropout") and op.inputs and op.inputs[0].number in self._products:
            places = (result == 0) & ((args[0] != 0) | torch.tensor(result is args[0]))
            if bool(places.any()):
                self._dropped[op.result.number] = places
        elif dropped is None or not isinstance(result, Tensor):
            return
        elif name in SOFTMAXES and dropped.shape == result.shape:
            self.met = True
            axis = op.keywords.get("dim", op.arguments[1] if len(op.arguments) > 1 else -1)
            # Where nothing is left, the weights have to go somewhere.
            dropped = dropped & ~dropped.all(axis, keepdim=True)
            self.worst = max(self.worst, float(torch.where(dropped, result.detach(), 0.0).max()))
        elif result.shape == dropped.shape and name not in MOVES:
            self._dropped[op.result.number] = dropped
        elif name in MOVES and isinstance(args[0], Tensor) and contraction_of(op) is None:
            self._dropped[op.result.number] = func(dropped, *args[1:], **kwargs)


def half_is_finite(it: Experiment) -> Shown:
    return _low_precision(it, torch.float16)


def bfloat16_is_finite(it: Experiment) -> Shown:
    return _low_precision(it, torch.bfloat16)


def _low_precision(it: Experiment, dtype: torch.dtype) -> Shown:
    if not isinstance(it.module, nn.Module):
        raise NotApplicable("it is a function")
    module = in_mode(it.pristine(), training=False).to(dtype)
    way = _quiet_way(it)
    for seed in SEEDS:
        for tokens, masks, whole in _trials(it, way, seed):
            fitted = {name: _cast(value, dtype) for name, value in masks.items()}
            try:
                output = it.run(tokens, fitted, module=module)
            except RuntimeError as error:
                text = str(error).splitlines()[0]
                raise NotApplicable(f"it can't run in this dtype: {text}") from error
            if bool(output.isfinite().all()):
                continue
            if not whole:
                raise Failed("its output is not finite", float("nan"), "MSA303")
            # What is not finite in any dtype is told by "fully masked row".
            if bool(it.run(tokens, masks).isfinite().all()):
                reason = "a sample with no key to see is not finite: its mask overflows where it is added to scores"
                raise Failed(reason, float("nan"), "MSA303")
    return Shown(0.0)


def _trials(it: Experiment, way: MaskWay | None, seed: int) -> Iterator[tuple[Tensor, dict[str, object], bool]]:
    """Tokens without a mask, with padding, and a sample that is all padding (then True), with scores of some tens.

    Tokens that are all alike give one score a row, which is below zero in half of the heads: a mask that is added to
    it may leave what the dtype holds.
    """
    tokens = it.tokens(seed)
    yield tokens, {}, False
    if way is None:
        return
    yield tokens, it.masks.values(way, padded(tokens, left=False)), False
    # A mask that is handed over in the dtype itself is the caller's, and so is what it does to scores.
    if not it.is_ids and way.coding != "additive":
        alike = 16 * tokens[:, :1].expand_as(tokens)
        yield alike, it.masks.values(way, padded(tokens, left=False, whole=True)), True


LARGE = (1e2, 1e3, 1e4)


def large_values_stay_finite(it: Experiment) -> Shown:
    """Inputs up to 1e4 times as large, in float32: a softmax that subtracts its maximum holds any of them."""
    if it.is_ids:
        raise NotApplicable("it takes ids")
    module = it.module
    if isinstance(module, nn.Module):
        module = in_mode(it.pristine(), training=False)
        if any(p.dtype != torch.float32 for p in module.parameters() if p.is_floating_point()):
            raise NotApplicable("it is not in float32")
    for seed in SEEDS:
        tokens = it.tokens(seed).float()
        for scale in (1.0, *LARGE):
            if not bool(it.run(tokens * scale, module=module).isfinite().all()):
                if scale == 1.0:
                    raise NotApplicable("its output is not finite for usual inputs")
                raise Failed(f"inputs {scale:.0e} times as large give NaN or infinity", scale, "")
    return Shown(LARGE[-1], "times the usual inputs")


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
        if not scale.factor or scale.width is None:
            raise NotApplicable("the scale is learned, or the queries and keys are normalised")
        if scale.factor == 1.0 and not isinstance(it.module, nn.Module):
            raise NotApplicable("it is a function that does not scale, and may be handed scaled queries")
        if scale.factor == 1.0 and _has_bias_table(it):
            raise NotApplicable("it adds a learned bias to scores that are not scaled, as T5 does on purpose")
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


def _has_bias_table(it: Experiment) -> bool:
    if not isinstance(it.module, nn.Module):
        return False
    return any("relative" in name or "bias_table" in name or "rel_" in name for name, _ in it.module.named_parameters())


def _scales(it: Experiment) -> list[Scale]:
    tracer = FlowTracer()
    tokens = it.tokens(0)
    rows = labels_of_kind(it.subject.inputs[it.main], it.kind)
    if rows is None:
        return []

    def label(values: Iterable[object]) -> None:
        tracer.paused = True
        for value in values:
            labels = labels_of_kind(value, it.kind) if isinstance(value, Tensor) else None
            if isinstance(value, Tensor) and labels is not None:
                tracer.label_input(value, labels)
        tracer.paused = False

    def called(*args: object, **kwargs: object) -> Any:
        label([*args, *kwargs.values()])
        return it.module(*args, **kwargs)

    watched: Any = called
    handles = []
    if isinstance(it.module, nn.Module):
        watched = it.module
        hook = it.module.register_forward_pre_hook
        handles = [hook(lambda _, args, kwargs: label([*args, *kwargs.values()]), with_kwargs=True)]
    try:
        with tracer, torch.enable_grad():
            it.run(tokens, module=watched)
    finally:
        for handle in handles:
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
        # A gate that starts at zero (gamma * attention + x) would keep every gradient behind it at zero.
        awakened(module)
        strangers = _Strangers(own)
        with strangers:
            it.run(it.tokens(0), module=module).square().sum().backward()  # type: ignore[no-untyped-call]
            if not it.is_ids:
                # Large scores saturate a softmax, which then has no gradient.
                it.run(it.tokens(0) / 64, module=module).square().sum().backward()  # type: ignore[no-untyped-call]
        silent = [
            name
            for name, p in module.named_parameters()
            if p.requires_grad and p.dim() > 1 and (p.grad is None or not bool(p.grad.abs().any()))
            if not used_elsewhere(module, name)
        ]
    if strangers.count:
        reason = f"{strangers.count} parameters are used that the module does not list, so no optimiser will train them"
        raise Failed(reason, float(strangers.count), "MSA404")
    if silent:
        raise Failed(f"no gradient reaches {', '.join(silent[:4])}", float(len(silent)), "MSA406")
    return Shown(0.0)


def used_elsewhere(module: nn.Module, parameter: str) -> bool:
    """Whether forward leaves a part alone that another method of its owner works with, one called by others."""
    path = parameter.split(".")
    for depth, name in enumerate(path):
        methods = vars(type(module.get_submodule(".".join(path[:depth]))))
        uses = {
            method: set(inspect.unwrap(function).__code__.co_names)
            for method, function in methods.items()
            if hasattr(function, "__code__")
        }
        naming = {method for method, names in uses.items() if name in names} - _reached("__init__", uses)
        entry = getattr(module.forward, "__name__", "forward") if depth == 0 else "forward"
        if naming and not naming & _reached(entry, uses):
            return True
    return False


def _reached(method: str, uses: dict[str, set[str]]) -> set[str]:
    """The methods of a class that one of them calls, itself included; `uses` are the names in each."""
    found, open_ = {method}, [method]
    while open_:
        called = uses.get(open_.pop(), set()) & set(uses) - found
        found |= called
        open_ += called
    return found


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
