"""Properties of what stands beside the tokens: ids that mark padding, lengths of a memory, results that are lost."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from msalint.runtime.copies import tensors_in
from msalint.runtime.experiment import Experiment, NotApplicable
from msalint.runtime.outcome import SEEDS, Failed, Shown
from msalint.runtime.tracer import Tracer
from msalint.shapes.vocabulary import says


def marked_tokens_are_hidden(it: Experiment) -> Shown:
    """Ids beside the tokens that are compared with a number mark padding: what is so marked reaches no other token."""
    tokens, _ = it.tokenwise(0)
    marks = {name: value for name in it.beside if (value := _compared_with(it, name)) is not None}
    if it.is_ids or not marks or tokens.shape[1] < 3:
        raise NotApplicable("no ids beside its tokens are compared with a number")
    worst = 0.0
    for name, mark in marks.items():
        ids = torch.full(it.inputs[name].shape, mark + 1, dtype=it.inputs[name].dtype)
        ids[:, -1] = mark
        for seed in SEEDS:
            tokens = it.tokens(seed)
            other = tokens.clone()
            other[:, -1] = it.disturbed(tokens, seed)[:, -1]
            change = (it.run(other, {name: ids}) - it.run(tokens, {name: ids}))[:, :-1]
            worst = max(worst, float(change.abs().max()))
        if not worst <= it.tolerance:
            raise Failed(f"tokens that `{name}` marks with {mark} reach the others", worst, "MSA304")
    return Shown(worst, f"marked by `{next(iter(marks))}`")


def _compared_with(it: Experiment, name: str) -> int | None:
    """The number that a tensor is compared with; None if there is none, or the tensor is read in another way too."""
    tokens = it.tokens(0)
    with Tracer() as tracer:
        number = tracer.number_of(it.inputs[name])
        it.run(tokens)
    found = None
    for op in tracer.ops:
        if any(tensor.number == number for tensor in op.inputs):
            if op.name.rpartition(".")[2] not in ("eq", "ne", "__eq__", "__ne__"):
                # Cut to the batch, or brought into another dtype, it is another tensor.
                number = op.result.number if op.name.rpartition(".")[2] in ("narrow", "to") else number
                continue
            found = next((value for value in op.arguments if type(value) is int), found)
    return found


def memory_lengths_are_kept(it: Experiment) -> Shown:
    """Content of a second sequence behind the lengths that are told of it changes nothing."""
    name = next((name for name in it.inputs if _is_length(it, name)), None)
    memories = [n for n in it.others if n not in it.same and it.inputs[n].dim() > 2]
    memory = next((n for n in memories if n in (name or "")), memories[0] if len(memories) == 1 else None)
    if name is None or memory is None or it.text is not None:
        raise NotApplicable("it takes no lengths of a second sequence")
    values = it.inputs[memory]
    if memory not in name or values.shape[0] != it.inputs[name].shape[0]:
        raise NotApplicable(f"nothing says that `{name}` are lengths of `{memory}`")
    worst = 0.0
    for seed in SEEDS:
        lengths = torch.full_like(it.inputs[name], values.shape[1] - 1)
        noise = torch.randn(values[:, -1].shape, generator=torch.Generator().manual_seed(seed))
        other = values.clone()
        other[:, -1] += noise.to(values)
        first, second = (it.run(it.tokens(seed), {name: lengths, memory: m.to(it.dtype)}) for m in (values, other))
        worst = max(worst, float((first - second).abs().max()))
    if not worst <= it.tolerance:
        raise Failed(f"`{memory}` behind its lengths reaches the output", worst, "MSA304")
    return Shown(worst, f"by `{name}`")


def _is_length(it: Experiment, name: str) -> bool:
    value = it.inputs[name]
    whole = isinstance(value, Tensor) and value.dim() == 1 and not value.is_floating_point()
    return whole and says(name, "length", "lengths", "len", "lens")


_RESULTS = frozenset("softmax log_softmax masked_fill masked_scatter".split())


def results_are_used(it: Experiment) -> Shown:
    """No softmax and no masked copy of scores is computed and thrown away: each is read, returned or kept."""
    tokens = it.tokens(0)
    with Tracer() as tracer:
        output = it.output(tokens)
    made = {op.result.number: op for op in tracer.ops if op.name.rpartition(".")[2] in _RESULTS}
    if not made:
        raise NotApplicable("it makes no softmax and no masked copy")
    read = {tensor.number for op in tracer.ops for tensor in op.inputs}
    kept = list(tensors_in(output))
    if isinstance(it.module, nn.Module):
        kept += [
            tensor for part in it.module.modules() for value in vars(part).values() for tensor in tensors_in(value)
        ]
    read |= {tracer.number_of(tensor) for tensor in kept}
    for number, op in made.items():
        if number not in read:
            name = op.name.rpartition(".")[2]
            raise Failed(f"the result of {name}, line {op.line}, is computed and thrown away", 1.0, "MSA305")
    return Shown(0.0)
