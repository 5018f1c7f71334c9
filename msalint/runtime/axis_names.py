"""Names for the axes of a traced tensor: from its labels where it has some, else from sizes that are distinct."""

from __future__ import annotations

from msalint.runtime.labels import FEATURE, KEY_FEATURE, KEY_SAMPLE, KEY_TOKEN, SAMPLE, TOKEN, Labels
from msalint.runtime.sizes import Sizes


def axis_names(shape: tuple[int, ...], labels: Labels | None, sizes: Sizes) -> tuple[str, ...]:
    """One name an axis. `?` behind a name: the axis does not run in the order of what it is named for.

    >>> axis_names((2, 5, 63), None, Sizes())
    ('batch', 'seq', '3*d_model')
    """
    return tuple(_axis_name(axis, size, labels, sizes) for axis, size in enumerate(shape))


def _axis_name(axis: int, size: int, labels: Labels | None, sizes: Sizes) -> str:
    if size == 1:
        return "1"
    if labels is None:
        return name_of_size(size, sizes)
    if not labels.pair and labels.scrambled(axis):
        return f"{name_of_size(size, sizes)}?"
    varying = labels.varying(axis)
    names = list(dict.fromkeys(name for key, name in _LABEL_NAMES if key in varying))
    if varying & {FEATURE, KEY_FEATURE}:
        names.append(_feature_name(axis, size, labels, sizes, alone=not names))
    return "*".join(names) or name_of_size(size, sizes)


_LABEL_NAMES = ((SAMPLE, "batch"), (KEY_SAMPLE, "batch"), (TOKEN, "seq"), (KEY_TOKEN, "keys"))


def _feature_name(axis: int, size: int, labels: Labels, sizes: Sizes, alone: bool) -> str:
    """An axis of features: d_k steps by one, head by d_k, the whole width counts all of it."""
    array = labels.arrays[FEATURE if FEATURE in labels.varying(axis) else KEY_FEATURE]
    line = array.movedim(axis, -1).reshape(-1, size)[0]
    step = int(line[1] - line[0])
    if not alone:
        return "head"
    if size == sizes.d_k and step == 1:
        return "d_k"
    if size == sizes.heads and step != sizes.d_model:
        return "head"
    if size == sizes.heads and step == sizes.d_model:
        return str(size)
    return name_of_size(size, sizes)


def name_of_size(size: int, sizes: Sizes) -> str:
    """The name of a size, or a product of two names, or the number."""
    named = {
        "batch": sizes.batch,
        "seq": sizes.seq,
        "head": sizes.heads,
        "d_k": sizes.d_k,
        "d_model": sizes.d_model,
        "memory": sizes.memory,
        "vocab": sizes.vocab,
        "classes": sizes.classes,
    }
    for name, value in named.items():
        if value == size and size > 1:
            return name
    if size > sizes.d_model and size % sizes.d_model == 0 and size // sizes.d_model <= 8:
        return f"{size // sizes.d_model}*d_model"
    for left, right in (("batch", "seq"), ("batch", "head"), ("seq", "head"), ("seq", "d_k"), ("seq", "d_model")):
        if named[left] * named[right] == size:
            return f"{left}*{right}"
    return str(size)
