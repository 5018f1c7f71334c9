"""Properties of modules that give tokens their positions: tables that are added, rotations, tables of sines."""

from __future__ import annotations

import inspect
import re
from typing import Any

import torch
from torch import Tensor, nn

from msalint.runtime.copies import moved
from msalint.runtime.experiment import Experiment, NotApplicable, first_tensor
from msalint.runtime.guess import constructor_arguments
from msalint.runtime.inputs import inputs_of
from msalint.runtime.outcome import SEEDS, Failed, Property, Shown
from msalint.runtime.structure_properties import device_is_followed
from msalint.runtime.subject import fresh, in_mode
from msalint.shapes.vocabulary import SEQ, WIDTH, role_of_name, says

_NAMES = re.compile(r"pos(?:ition)?s?(?![a-z])|position|rotary|rope|sinusoid|alibi", re.IGNORECASE)
_LONG = 1024
_WIDE = 512


def is_of_positions(it: Experiment) -> bool:
    """Whether a module without attention is named for positions, keeps them, or makes sines and cosines."""
    target = it.module
    source = _sources(target)
    if re.search(r"\bsin\b", source) and re.search(r"\bcos\b", source):
        return True
    names = [type(target).__name__ if isinstance(target, nn.Module) else getattr(target, "__name__", "")]
    if isinstance(target, nn.Module):
        # A table has a row for each place; a class token has one.
        state = (*target.named_parameters(), *target.named_buffers())
        names += [name for name, value in state if value.dim() > 1 and value.numel() > value.shape[-1]]
    return any(_NAMES.search(name) for name in names)


def _sources(target: Any) -> str:
    """The source of a function, or of the classes that make up a module, those of torch aside."""
    classes = type(target).__mro__ if isinstance(target, nn.Module) else (target,)
    found = ""
    for one in classes:
        if not str(getattr(one, "__module__", "torch")).startswith(("torch", "builtins")):
            try:
                found += inspect.getsource(one)
            except (OSError, TypeError):
                continue
    return found


def _feature_axis(it: Experiment, output: Tensor) -> int:
    """The axis of the features in what it gives, as it gives it."""
    of_maps = it.kind in ("image", "map", "clip", "channels_first")
    return 1 if of_maps and output.dim() == it.subject.inputs[it.main].dim() else output.dim() - 1


def _given(it: Experiment, tokens: Tensor, more: dict[str, Any] | None = None) -> Tensor:
    """What it gives for tokens that are laid out as it takes them."""
    given = {name: moved(value, it.dtype) for name, value in fresh(it.inputs).items()}
    given.update(dict.fromkeys([it.main, *it.same], tokens), **(more or {}))
    # Learned positions often start at zero.
    output = first_tensor(it.awake()(**given))
    if output is None:
        raise NotApplicable("its output holds no tensor")
    return output


def _alike(it: Experiment, seed: int) -> Tensor:
    """One token at all places of all samples, laid out as the module takes it."""
    tokens = it.subject.inputs[it.main]
    if it.is_ids:
        return torch.full_like(tokens, 1 + seed)
    axis = _feature_axis(it, tokens)
    shape = [size if place == axis else 1 for place, size in enumerate(tokens.shape)]
    token = torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return token.expand(tokens.shape).to(it.dtype)


def places_come_out_apart(it: Experiment) -> Shown:
    """The same token at two places differs there: else its position was computed and thrown away, or is one row."""
    if it.tokens(0).shape[1] < 2:
        raise NotApplicable("it has one place")
    for seed in SEEDS:
        output = _given(it, _alike(it, seed))
        axes = [axis for axis in range(output.dim()) if axis != _feature_axis(it, output) and output.shape[axis] > 1]
        spread = max(float((output - output.narrow(axis, 0, 1)).abs().max()) for axis in axes)
        if spread <= it.tolerance:
            raise Failed("the same token comes out the same at every place: no position reaches it", spread, "MSA709")
    return Shown(spread)


def offset_moves_on(it: Experiment) -> Shown:
    """Tokens behind a prefix of a length that it is told come out as they do behind that prefix itself."""
    name = next((n for n in it.parameters if says(n, "offset", "past", "start", "first") and _is_count(it, n)), None)
    if name is None:
        raise NotApplicable("it is told of no prefix")
    worst = 0.0
    for seed in SEEDS:
        tokens = it.tokens(seed, seq=max(4, it.tokens(seed).shape[1]))
        whole = it.run(tokens, {name: 0})
        if not it.is_tokenwise(whole, tokens):
            raise NotApplicable(f"its output {tuple(whole.shape)} has no place for each token")
        for place in range(1, tokens.shape[1]):
            rest = it.run(tokens[:, place:], {name: place})
            worst = max(worst, float((rest - whole[:, place:]).abs().max()))
    if not worst <= it.tolerance:
        raise Failed(f"`{name}` does not move positions on by as many tokens", worst, "")
    return Shown(worst, f"by `{name}`")


def _is_count(it: Experiment, name: str) -> bool:
    target = it.module.forward if isinstance(it.module, nn.Module) else it.module
    default = inspect.signature(target).parameters[name].default
    return type(it.inputs.get(name, default)) is int


def _table(it: Experiment, module: nn.Module, tokens: Tensor, inputs: dict[str, Any]) -> Tensor:
    """(place, feature) of a fixed table: what comes out for tokens of zeros, or what is given in place of them."""
    if any(True for _ in module.parameters()):
        raise NotApplicable("its positions are learned")
    output = first_tensor(module(**{**inputs, it.main: tokens.clone() if it.is_ids else torch.zeros_like(tokens)}))
    if output is None:
        raise NotApplicable("its output holds no tensor")
    feature = _feature_axis(it, output)
    for axis in range(output.dim()):
        # All samples have the same positions, and some tables have an axis for them.
        if axis != feature and not bool((output - output.narrow(axis, 0, 1)).any()):
            output = output.narrow(axis, 0, 1)
    table = output.movedim(feature, -1).flatten(0, -2).double()
    if len(table) < 3:
        raise NotApplicable("it gives no table of places")
    return table


def sines_and_cosines_belong_together(it: Experiment) -> Shown:
    """Of a table of sines, the product of two places depends on their distance alone: each pair has one frequency."""
    if not isinstance(it.module, nn.Module):
        raise NotApplicable("it is a function")
    inputs = fresh(it.inputs)
    table = _table(it, it.module, it.subject.inputs[it.main], {name: moved(v, it.dtype) for name, v in inputs.items()})
    first = table[0].sort().values
    half = len(first) // 2
    pairs = torch.cat([torch.zeros(half), torch.ones(len(first) - half)]).to(first)
    if (
        len(first) % 2
        or len(table) < 3
        or float((first - pairs).abs().max()) > 1e-6
        or float(table.abs().max()) > 1.001
    ):
        raise NotApplicable("it is no table of pairs of a sine and a cosine")
    worst = _off_diagonals(table @ table.T) / half
    if worst > 1e-4:
        raise Failed("a sine and its cosine have different frequencies: a shift is no rotation", worst, "")
    return Shown(worst)


def _off_diagonals(products: Tensor) -> float:
    """How much the values of each diagonal differ."""
    worst = 0.0
    for distance in range(-len(products) + 2, len(products) - 1):
        line = products.diagonal(distance)
        worst = max(worst, float(line.max() - line.min()))
    return worst


def rotation_is_relative(it: Experiment) -> Shown:
    """Of a rotation, the product of a query and a key depends on the distance of their places alone."""
    if it.is_ids or re.search(r"2d|axial|grid|height", it.source(), re.IGNORECASE):
        raise NotApplicable("it rotates no row of tokens")
    worst = 0.0
    for seed in SEEDS:
        rotated = []
        for number in (seed, seed + len(SEEDS)):
            tokens = it.tokens(number)[:1, :1].expand(it.tokens(0).shape).to(it.dtype)
            output = it.run(tokens)
            if output.shape != tokens.shape:
                raise NotApplicable("it gives no rotated tokens")
            change = (output.flatten(2).norm(dim=-1) - tokens.flatten(2).norm(dim=-1)).abs().max()
            if float(change) > 1e-4 or not bool((output - tokens).abs().max() > it.tolerance):
                raise NotApplicable("it does not rotate its tokens")
            rotated.append(output[0].flatten(1).double())
        worst = max(worst, _off_diagonals(rotated[0] @ rotated[1].T) / float(rotated[0][0].norm() ** 2))
    if worst > 1e-4:
        raise Failed("the product of a query and a key depends on more than the distance of their places", worst, "")
    return Shown(worst)


def columns_count(it: Experiment) -> Shown:
    """Most columns of a fixed table differ between its places by more than float32 rounds, at a width of 512."""
    cls = it.subject.cls
    if cls is None or not isinstance(it.module, nn.Module):
        raise NotApplicable("it was handed over, and can't be built wider")
    sizes = it.sizes.changed(heads=8, d_k=_WIDE // 8, seq=32, image=32)
    settings = {name: value for name, value in it.request.settings.items() if role_of_name(name) != WIDTH}
    try:
        wide = in_mode(cls(**constructor_arguments(cls, sizes, settings, venture=True)), training=False)
        inputs = inputs_of(wide, it.request, sizes, it.kind, None)
        table = _table(it, wide, inputs[it.main], inputs)
    except NotApplicable:
        raise
    except Exception as error:
        raise NotApplicable(f"it can't be built at a width of {_WIDE}") from error
    if float(table.abs().max()) > 1.001:
        raise NotApplicable("it is no table of sines")
    dead = float(((table.amax(0) - table.amin(0)) < torch.finfo(torch.float32).eps).double().mean())
    if dead > 0.5:
        raise Failed(f"{dead:.0%} of its columns are the same at all places: their frequencies are next to none", dead)
    return Shown(dead)


def angles_are_exact(it: Experiment) -> Shown:
    """Input in bfloat16, a long sequence: what comes out is that of float32, to sixteen roundings."""
    if it.is_ids:
        raise NotApplicable("it takes ids")
    module = in_mode(it.pristine(), training=False) if isinstance(it.module, nn.Module) else it.module
    inputs = fresh(it.inputs)
    long = {n: _LONG for n, v in inputs.items() if type(v) is int and role_of_name(n) == SEQ}
    tokens = (_alike(it, 0) if long else it.from_rows(it.tokens(0, seq=_LONG))).float()
    worst = 0.0
    outputs = []
    for dtype in (torch.float32, torch.bfloat16):
        given = {**inputs, **dict.fromkeys([it.main, *it.same], tokens.to(dtype)), **long}
        output = first_tensor(module(**given))
        if output is None:
            raise NotApplicable("its output holds no tensor")
        outputs.append(output.float())
    bound = 16 * torch.finfo(torch.bfloat16).eps * max(1.0, float(outputs[0].abs().max()))
    worst = float((outputs[1] - outputs[0]).abs().max())
    if not worst <= bound:
        raise Failed("late positions are wrong for inputs in bfloat16: their angles are computed in it", worst, "")
    return Shown(worst)


POSITION_PROPERTIES = (
    Property("places apart", "one token at all places", places_come_out_apart, False),
    Property("prefix", "tokens behind a prefix of a length that is told", offset_moves_on, False),
    Property("sine pairs", "products of places of a fixed table", sines_and_cosines_belong_together, False),
    Property("relative rotation", "products of a query and a key at all places", rotation_is_relative, False),
    Property("columns", f"places of a fixed table {_WIDE} wide", columns_count, False),
    Property("exact angles", f"{_LONG} places, for inputs in bfloat16", angles_are_exact, False),
    Property("device", "module and input on the meta device", device_is_followed, False),
)
