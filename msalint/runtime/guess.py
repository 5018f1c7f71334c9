"""Guesses what a constructor and a forward want, from the names, annotations and defaults of their parameters."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from torch import nn

from msalint.runtime.hints import hints_of
from msalint.runtime.sizes import Sizes
from msalint.shapes.vocabulary import HEAD, HEAD_DIM, SEQ, WIDTH, role_of_name, says


class Unguessable(Exception):
    """A required parameter whose name and annotation say nothing. The message names it."""


_BY_NAME: dict[str, str] = {
    **dict.fromkeys("depth layers n_layers num_layers n_layer num_blocks n_blocks num_hidden_layers".split(), "layers"),
    **dict.fromkeys(
        "vocab vocab_size n_vocab num_embeddings num_tokens src_vocab_size tgt_vocab_size".split(), "vocab"
    ),
    **dict.fromkeys("num_classes n_classes n_class nb_classes out_classes num_labels".split(), "classes"),
    **dict.fromkeys("img_size image_size input_resolution fmap_size".split(), "image"),
    **dict.fromkeys("patch_size".split(), "patch"),
    **dict.fromkeys(
        "patches num_positions n_positions positions n_query num_queries num_slots num_latents".split(), "seq"
    ),
    **dict.fromkeys(
        "max_len max_seq_len max_length block_size context_length n_ctx max_position_embeddings maxlen max_seq_length "
        "max_positions seq_length_max context_size".split(),
        "longest",
    ),
    **dict.fromkeys(
        "in_features out_features in_channels in_dim out_dim input_dim output_dim query_dim".split(), "width"
    ),
    **dict.fromkeys(
        "input_size d_query d_input d_embed d_hidden hidden_channels kdim vdim context_dim".split(), "width"
    ),
    **dict.fromkeys("dim_feedforward d_ff ffn_dim mlp_dim intermediate_size ff_dim ffn_hidden dff".split(), "hidden"),
}


_NUMBERED = re.compile(r"(?:^|_)(?:dims?|size|width|channels|chs|features|units)$|^(?:dim|channels)_")
"""Names that ask for a width without saying which."""

_PAIRS = frozenset("feat_size feature_size resolution grid_size".split())
"""Height and width of a map of features."""

_SMALL: dict[str, Any] = {
    **dict.fromkeys("layer_idx idx layer_id index layer_index block_idx".split(), 0),
    **dict.fromkeys("temperature eps alpha beta gamma scale_factor".split(), 1.0),
    **dict.fromkeys(
        "window window_size kernel_size kernel block stride groups num_groups reduced reduction parts "
        "proj_kernel kv_proj_stride".split(),
        1,
    ),
    **dict.fromkeys("max_batch max_batch_size".split(), 2),
}


def size_for(name: str, sizes: Sizes) -> int | None:
    """The size that a parameter of this name asks for, None if the name tells nothing."""
    lowered = name.lower().strip("_")
    known = _BY_NAME.get(lowered)
    if known == "width":
        return sizes.d_model
    if known == "hidden":
        return 2 * sizes.d_model
    if known is not None:
        return int(getattr(sizes, known))
    by_role = {HEAD: sizes.heads, HEAD_DIM: sizes.d_k, SEQ: sizes.seq, WIDTH: sizes.d_model}
    return by_role.get(role_of_name(lowered) or "")


def constructor_arguments(
    target: Any,
    sizes: Sizes,
    given: Mapping[str, Any],
    keep_defaults: bool = False,
    dropout: float = 0.0,
    venture: bool = False,
) -> dict[str, Any]:
    """Keyword arguments for a class. Sizes with a default are set too, so as to be distinct, unless `keep_defaults`.

    `venture`: a whole number, the width, for what is not annotated and says nothing by its name.

    Raises `Unguessable`, also for a name in `given` that the constructor lacks.
    """
    parameters = _parameters(target)
    unknown = set(given) - {p.name for p in parameters}
    if unknown and not any(p.kind is p.VAR_KEYWORD for p in parameters):
        names = ", ".join(p.name for p in parameters) or "no parameters"
        raise Unguessable(f"it has no parameter {sorted(unknown)[0]!r}; it has {names}")
    hints = hints_of(target.__init__ if inspect.isclass(target) else target)
    arguments: dict[str, Any] = dict(given)
    for parameter in parameters:
        if parameter.name in given or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        hint = hints.get(parameter.name)
        optional = parameter.default is not parameter.empty
        if type(parameter.default) in (float, int) and _is_rate(parameter.name) and dropout and not keep_defaults:
            arguments[parameter.name] = dropout
            continue
        if optional and (keep_defaults or not _is_size(parameter, hint, sizes)):
            continue
        rate = not optional and _is_rate(parameter.name)
        try:
            arguments[parameter.name] = dropout if rate else value_for(parameter.name, hint, sizes)
        except Unguessable:
            if hint is not int and not (venture and hint is None):
                raise
            arguments[parameter.name] = sizes.d_model
    return arguments


def value_for(name: str, hint: Any, sizes: Sizes) -> Any:
    """A value for a required parameter. Raises `Unguessable`."""
    size = size_for(name, sizes)
    if size is not None and hint not in (bool, float, str):
        return size
    if hint is bool or says(name, "bias", "causal", "use", "is"):
        return False
    if _is_rate(name) or hint is float:
        return 0.0
    if name.lower() in ("config", "cfg", "args", "conf", "params", "hparams", "opt", "options"):
        return configuration(hint, sizes)
    if name in ("device", "dtype"):
        return None
    if inspect.isclass(hint) and issubclass(hint, nn.Module):
        return hint(**constructor_arguments(hint, sizes, {}))
    if dataclasses.is_dataclass(hint):
        return configuration(hint, sizes)
    if name.lower() in _PAIRS and hint is not int:
        return (sizes.image, sizes.image)
    if hint in (None, int) and _NUMBERED.search(name.lower()):
        return sizes.d_model
    if name.lower() in _SMALL:
        return _SMALL[name.lower()]
    raise Unguessable(f"nothing tells what its parameter {name!r} wants; give it with --set {name}=...")


def configuration(hint: Any, sizes: Sizes) -> Any:
    """A configuration: the annotated class built by the same rules, else one that guesses what it is asked."""
    if inspect.isclass(hint) and hint not in (dict, object):
        return hint(**constructor_arguments(hint, sizes, {}))
    return GuessedConfiguration(sizes)


class GuessedConfiguration(SimpleNamespace):
    """Answers any attribute whose name is understood, as a constructor's parameter of that name would be."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.__dict__["_sizes"] = sizes

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return value_for(name, None, self.__dict__["_sizes"])
        except Unguessable as error:
            raise AttributeError(f"the guessed configuration has no {name!r}") from error

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)


def _is_rate(name: str) -> bool:
    """Whether a parameter of this name is a dropout rate."""
    return says(name, "dropout", "drop", "p", "pdrop") or name.lower().endswith("dropout")


def _is_size(parameter: inspect.Parameter, hint: Any, sizes: Sizes) -> bool:
    """Whether an optional parameter is a size to be set: its default is an int and its name tells which."""
    return type(parameter.default) is int and size_for(parameter.name, sizes) is not None


def _parameters(target: Any) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(target).parameters.values())
    except (TypeError, ValueError) as error:
        raise Unguessable(f"its signature can't be read ({error})") from error
