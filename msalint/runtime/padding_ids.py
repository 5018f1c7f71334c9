"""Whether a module that hides padding by the id of its tokens hides that, and no more."""

from __future__ import annotations

from torch import Tensor

from msalint.runtime.experiment import Experiment, NotApplicable
from msalint.runtime.outcome import SEEDS, Failed, Shown
from msalint.runtime.seen_keys import seen_keys


def padding_ids_are_hidden(it: Experiment) -> Shown:
    if not it.is_ids:
        raise NotApplicable("it takes no ids")
    pad = it.padding_id
    if pad is None:
        raise NotApplicable("it knows no id of padding")
    for seed in SEEDS:
        tokens = it.tokens(seed)
        if tokens.shape[1] < 3:
            raise NotApplicable("its sequence is too short")
        # One in the middle too: a causal mask hides those at the end by itself.
        padded = tokens.clone()
        padded[:, [1, -1]] = pad
        _judge(it, padded, padded[0] == pad, seed)
        padded[-1] = pad
        output = it.run(padded)
        if not bool(output.isfinite().all()):
            raise Failed(f"a sample of padding alone (id {pad}) gives NaN", float("nan"), "MSA301")
    return Shown(0.0, f"with {pad} for padding")


def _judge(it: Experiment, padded: Tensor, hidden: Tensor, seed: int) -> None:
    seen = seen_keys(it, seed=seed, tokens=padded)
    if seen is not None:
        if bool(seen[~hidden][:, hidden].any()):
            only = not bool(seen[~hidden][:, ~hidden].any())
            words = "tokens see padding alone: its mask is inverted" if only else "padded tokens are seen by real ones"
            raise Failed(words, 1.0, "MSA308" if only else "MSA304")
        return
    output = it.run(padded)
    if not it.is_tokenwise(output, padded):
        raise NotApplicable(f"its output {tuple(output.shape)} has no place for each token")
    change = float((it.run(padded[:, :-1]) - output[:, :-1]).abs().max())
    if not change <= it.tolerance:
        raise Failed("padding at the end changes the real tokens", change, "MSA304")
