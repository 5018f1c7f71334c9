"""Properties of sameness: what should make no difference to an output makes none."""

from __future__ import annotations

import re

import torch
from torch import nn

from msalint.runtime.cached_decoding import BreaksInParts, in_parts
from msalint.runtime.copies import moved, tensors_in
from msalint.runtime.experiment import Experiment, NotApplicable
from msalint.runtime.head_leak import head_overlap
from msalint.runtime.inputs import IMAGES
from msalint.runtime.mask_properties import causal_plane, causal_way, is_meant_causal
from msalint.runtime.outcome import SEEDS, Failed, Shown
from msalint.runtime.pattern_properties import SharedKeys
from msalint.runtime.tracer import TracedOp, Tracer


def samples_are_apart(it: Experiment) -> Shown:
    it.need_batch()
    worst = 0.0
    for seed in SEEDS:
        tokens = it.tokens(seed)
        if tokens.shape[0] < 2:
            tokens = it.tokens(seed, batch=2)
        output = it.run(tokens)
        if output.shape[0] != tokens.shape[0]:
            raise NotApplicable(f"its output {tuple(output.shape)} has no batch axis")
        other = tokens.clone()
        other[-1] = it.disturbed(tokens, seed)[-1]
        worst = max(worst, float((it.run(other) - output)[:-1].abs().max()))
    if not worst <= it.tolerance:
        raise Failed("a sample's output depends on another sample", worst, "MSA104")
    return Shown(worst)


def batch_order_does_not_matter(it: Experiment) -> Shown:
    """Samples in another order give their outputs in that order: none depends on its place in the batch."""
    it.need_batch()
    tokens = it.tokens(0)
    size = tokens.shape[0]
    if size < 2:
        raise NotApplicable("it was handed one sample")
    if it.kept and any(True for value in it.kept.values.values() for _ in tensors_in(value)):
        raise NotApplicable("it keeps tensors of its samples between runs")
    beside = _by_sample(it, tokens)
    worst = 0.0
    for seed in SEEDS:
        tokens = it.tokens(seed)
        output = it.run(tokens)
        if output.dim() < 2 or output.shape[0] != size:
            raise NotApplicable(f"its output {tuple(output.shape)} has no batch axis")
        turned = {name: value.roll(1, axis) for name, (value, axis) in beside.items()}
        worst = max(worst, float((it.run(tokens.roll(1, 0), turned) - output.roll(1, 0)).abs().max()))
    if not worst <= it.tolerance:
        if isinstance(it.module, nn.Module) and _adds_a_row_for_each_place(it, it.module):
            raise NotApplicable("its tokens have positions too: both axes may be those of a grid")
        raise Failed("a sample's output depends on its place in the batch", worst, "MSA707")
    return Shown(worst)


def _by_sample(it: Experiment, tokens: torch.Tensor) -> dict[str, tuple[torch.Tensor, int]]:
    """What else is given by the sample, and along which axis. Raises `NotApplicable` where that can't be told."""
    axis = 1 if it.kind in ("seq_first", "ids_seq_first") else 0
    found = {}
    for name, value in it.inputs.items():
        if name in (it.main, *it.same) or value is None or isinstance(value, (bool, int, float, str)):
            continue
        if it.text is not None or not isinstance(value, torch.Tensor) or tokens.shape[0] in tokens.shape[1:2]:
            raise NotApplicable(f"it can't be told what in `{name}` belongs to which sample")
        axes = [place for place, size in enumerate(value.shape) if size == tokens.shape[0]]
        if len(axes) > 1 and axis in axes:
            axes = [axis]
        if len(axes) > 1 or (value.dim() > 2 and not axes):
            raise NotApplicable(f"it can't be told what in `{name}` belongs to which sample")
        if axes:
            found[name] = (moved(value, it.dtype), axes[0])
    return found


def heads_are_apart(it: Experiment) -> Shown:
    with SharedKeys() as keys:
        it.run(it.tokens(0))
    if keys.shares:
        raise NotApplicable("its query heads share key heads")
    shared = head_overlap(it)
    if shared:
        raise Failed("heads read each other's features before the output projection", float(shared), "MSA102")
    return Shown(0.0)


_POSITIONS = re.compile(r"pos|rot|rel|alibi|freq|sin|cos|wpe|bias_table|time|shift|conv|window|distance", re.IGNORECASE)


def permutation_carries_over(it: Experiment) -> Shown:
    tokens, _ = it.tokenwise(0)
    if not bool(it.influence().all()):
        raise NotApplicable("not every token sees every other")
    if tokens.shape[1] in it.run(tokens).shape[2:]:
        raise NotApplicable("its output has tokens on two axes")
    alike = it.run(tokens[:, :1].expand_as(tokens))
    if it.is_ids and not float((alike - alike[:, :1]).abs().max()) <= it.tolerance:
        raise NotApplicable("one id at all places comes out unlike: it has positions")
    if it.others and is_meant_causal(it):
        raise NotApplicable("it is causal, and reads another sequence")
    beside = _beside(it, tokens)
    worst = 0.0
    for seed in SEEDS:
        tokens = it.tokens(seed)
        order = torch.randperm(tokens.shape[1], generator=torch.Generator().manual_seed(seed + 1))
        turned = {name: value[:, order] for name, value in beside.items()}
        worst = max(worst, float((it.run(tokens[:, order], turned) - it.run(tokens)[:, order]).abs().max()))
    if not worst <= it.tolerance:
        if _has_positions(it):
            raise NotApplicable("it has positions")
        raise Failed("permuted tokens don't give permuted outputs, though it has no positions", worst, "MSA103")
    return Shown(worst)


def _beside(it: Experiment, tokens: torch.Tensor) -> dict[str, torch.Tensor]:
    """What else has a place for each token, to be put into the same order. Raises `NotApplicable` for the rest."""
    found = {}
    for name, value in it.inputs.items():
        if name in (it.main, *it.same) or it.text is not None or not isinstance(value, (torch.Tensor, list)):
            continue
        if not isinstance(value, torch.Tensor) or value.shape != tokens.shape[:2] or it.kind != "rows":
            raise NotApplicable(f"`{name}` may go by the order of the tokens too")
        found[name] = value
    return found


def _has_positions(it: Experiment) -> bool:
    if not isinstance(it.module, nn.Module):
        return False
    if any(isinstance(part, nn.RNNBase) for part in it.module.modules()):
        return True
    state = [*dict(it.module.named_parameters()), *dict(it.module.named_buffers()), *dict(it.module.named_modules())]
    if any(_POSITIONS.search(name) for name in state) or "arange" in it.source():
        return True
    return _adds_a_row_for_each_place(it, it.module)


def _adds_a_row_for_each_place(it: Experiment, module: nn.Module) -> bool:
    """Whether a table that the module keeps, cut to the length, is added to what comes of the tokens."""
    tokens = it.tokens(0)
    with Tracer() as tracer:
        plain = (value for part in module.modules() for value in vars(part).values() if isinstance(value, torch.Tensor))
        kept = {tracer.number_of(value) for value in (*module.parameters(), *module.buffers(), *plain)}
        it.run(tokens)
    for op in tracer.ops:
        name = op.name.rpartition(".")[2].strip("_")
        rows = [tensor for tensor in op.inputs if tensor.number in kept and tokens.shape[1] in tensor.shape[:-1]]
        if name in ("add", "radd", "iadd") and rows and len(rows) < len(op.inputs):
            return True
        if op.inputs and all(tensor.number in kept for tensor in op.inputs):
            kept.update(tensor.number for tensor in op.results)
    return False


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
        drawn = _draws_noise(it)
        if drawn:
            it.noisy = True
            raise NotApplicable(f"it draws noise of its own ({drawn}), as a variational encoder does")
        raise Failed("two runs in eval differ", worst, "MSA601")
    return Shown(worst)


_NOISE = frozenset("randn randn_like normal normal_ randint multinomial rsample".split())
_DROPPING = frozenset(
    "dropout dropout_ dropout1d dropout2d dropout3d alpha_dropout feature_alpha_dropout rand rand_like uniform_ "
    "bernoulli bernoulli_ scaled_dot_product_attention multi_head_attention_forward".split()
)


def _draws_noise(it: Experiment) -> str:
    """The operation that draws normal noise in eval; "" if there is none, or anything that may drop something."""
    tokens = it.tokens(0)
    with Tracer() as tracer:
        it.run(tokens)
    names = {op.name.rpartition(".")[2]: op for op in tracer.ops}
    dropping = [op for name, op in names.items() if name in _DROPPING and _drops(op)]
    return "" if dropping else next((name for name in names if name in _NOISE), "")


def _drops(op: TracedOp) -> bool:
    """Whether an operation that can drop does: dropout in eval is called, and leaves all as it is."""
    if "attention" in op.name:
        given = (*op.arguments, *op.keywords.values())
        return any(type(value) is float and 0 < value < 1 for value in given)
    if "dropout" in op.name:
        rate, active = (
            op.keywords.get(name, op.arguments[place] if len(op.arguments) > place else default)
            for place, name, default in ((1, "p", 0.5), (2, "training", True))
        )
        return active is not False and rate != 0
    return True


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
    it.need_batch()
    worst = 0.0
    for seed in SEEDS:
        tokens = it.tokens(seed)
        whole = it.run(tokens)
        if whole.shape[0] != tokens.shape[0]:
            raise NotApplicable(f"its output {tuple(whole.shape)} has no batch axis")
        try:
            one = it.run(tokens[:1])
        except (RuntimeError, ValueError, IndexError) as error:
            if any(
                not isinstance(value, torch.Tensor) and any(True for _ in tensors_in(value))
                for value in it.inputs.values()
            ):
                raise NotApplicable("it is handed tensors of this batch in another value") from error
            raise Failed(f"it raises on a batch of one: {str(error).splitlines()[0]}", None, "MSA311") from error
        if one.shape != whole[:1].shape:
            reason = f"a batch of one gives {tuple(one.shape)}, not {tuple(whole[:1].shape)}"
            raise Failed(reason, None, "MSA104")
        worst = max(worst, float((one - whole[:1]).abs().max()))
    if not worst <= it.tolerance:
        raise Failed("a sample alone gives another output than in its batch", worst, "MSA104")
    return Shown(worst)


def one_token_is_enough(it: Experiment) -> Shown:
    if it.kind in IMAGES:
        raise NotApplicable("its input is no row of tokens")
    if any(name in it.parameters and name in it.subject.inputs for name in ("mask", "attn_mask", "attention_mask")):
        raise NotApplicable("it needs a mask of fixed size")
    for seed in SEEDS:
        tokens = it.tokens(seed, seq=1)
        try:
            output = it.run(tokens)
        except (RuntimeError, ValueError, IndexError, AssertionError) as error:
            if not _takes_any_length(it):
                raise NotApplicable("its length is fixed") from error
            raise Failed(f"it raises on a sequence of one: {str(error).splitlines()[0]}", None, "MSA311") from error
        if not bool(output.isfinite().all()):
            raise Failed("a sequence of one gives NaN", float("nan"), "MSA301")
    return Shown(0.0)


def _takes_any_length(it: Experiment) -> bool:
    """Whether it runs on one token less than it was given, unlike windows of a fixed size."""
    if re.search(r"self\.(n|num_)?(tokens|seq|patches|positions|len)", it.source()):
        return False
    length = it.tokens(0).shape[1]
    try:
        it.run(it.tokens(0, seq=length - 1 if length > 2 else length + 1))
    except Exception:
        return False
    return True


def cached_steps_equal_the_whole(it: Experiment) -> Shown:
    """Token by token, and a prompt with one token after it, against the whole sequence at once.

    Of a module that keeps its cache on itself only if it is causal: nothing else says that it is to be used so.
    """
    worst = max(_change_in_parts(it, [1] * steps, [steps - 1, 1]) for steps in [it.tokenwise(0)[0].shape[1]])
    if not worst <= it.tolerance:
        raise Failed("decoding with a cache gives another output than the whole sequence", worst, "MSA505")
    return Shown(worst)


def cached_parts_equal_the_whole(it: Experiment) -> Shown:
    """A prompt with several tokens after it, as drafts and prompts in parts are decoded: an error of sizes is a fault.

    Another output is none: a module may be made for one token at a time, and masks no others.
    """
    steps = it.tokenwise(0)[0].shape[1]
    if steps < 4:
        raise NotApplicable("its sequence is too short")
    try:
        worst = _change_in_parts(it, [steps - 2, 2])
    except BreaksInParts as error:
        raise Failed(f"it raises on two tokens after a cache: {error}", None, "MSA505") from error
    if not worst <= it.tolerance:
        raise NotApplicable("it is made for one token after a cache: it masks nothing among several")
    return Shown(worst)


def _change_in_parts(it: Experiment, *plans: list[int]) -> float:
    way = causal_way(it)
    worst = 0.0
    last = None
    for seed in SEEDS:
        tokens = it.tokens(seed)
        masks = it.masks.values(way, causal_plane(tokens)) if way is not None else None
        if last is None:
            last = bool(it.influence(masks).triu(1).any())
        if it.kept and last:
            raise NotApplicable("it is not causal")
        for lengths in plans:
            change = (in_parts(it, tokens, way, lengths) - it.run(tokens, masks)).abs()
            # Where no token's future is hidden, only the last one sees the same in parts as in the whole.
            worst = max(worst, float((change[:, -1:] if last else change).max()))
    return worst
