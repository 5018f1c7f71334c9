"""Decides, without running or fully parsing anything, which files and which of their definitions deserve a look."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from msalint.syntax.outline import Outline, Stretch, outline

SITES = (
    "softmax",
    "Softmax",
    "SOFTMAX",
    "sparsemax",
    "entmax",
    "scaled_dot_product",
    "logsumexp",
    "ultihead",
    "ultiHead",
    "ulti_head",
    "nn.Transformer",
    "TransformerEncoder",
    "TransformerDecoder",
    "flash_attn",
    "memory_efficient_attention",
    "flex_attention",
    "attention_interface",
    "ATTENTION_FUNCTIONS",
    "masked_fill",
    "tril(",
    "triu(",
    "tril_indices",
    "triu_indices",
    "ositionalEnc",
    "ositional_enc",
    "otary",
    "qkv",
    "reveal_shape",
)
"""Words of code that is attention, or makes what attention takes: weights, masks, positions, fused projections."""

_USES = re.compile(r"\b(?:class|def)[ \t]+\w*(?:[Aa]ttention|[Aa]ttn)|(?:Attention|Attn)\w*\(")
"""A definition named for attention, and the making of a layer that is."""

_PAIRS = (
    (("exp(",), ("sum(",)),
    (("sin(",), ("cos(",)),
    (("head",), ("view(", "reshape(", "rearrange(", "unflatten(", "permute(", "transpose(")),
    (("Pos", "pos"), (".Embedding(", ".Parameter(")),
)
"""Words that tell only together: a softmax by hand, sinusoids, heads split or merged, learned positions."""


def candidates(
    text: str | bytes, filename: str = "<text>", read: Callable[[str, str], Outline] = outline
) -> Outline | None:
    """The outline of a file about attention in torch, with the definitions worth a look; None for any other file.

    `read` parses it: one that keeps what it has parsed saves parsing a file again that others import.

    Raises SourceError where such a file is not Python, TooDeep where it nests too deeply to be read.
    """
    if isinstance(text, bytes):
        from msalint.source import decode

        text = decode(text, filename).text
    if not is_about_attention(text) or not is_torch(text):
        return None
    found = read(text, filename)
    wanted = _wanted(found)
    scripted = any(_holds_site(found, stretch) for stretch in found.stretches if stretch.kind in ("assign", "other"))
    return replace(found, wanted=wanted, scripted=scripted) if wanted or scripted else None


def is_about_attention(text: str) -> bool:
    """Whether words of attention code stand anywhere in a text; most files end here."""
    return _site_in(text, 0, len(text)) or _uses_in(text, 0, len(text))


def _site_in(text: str, start: int, end: int) -> bool:
    if _one_in(text, start, end, SITES):
        return True
    return any(_one_in(text, start, end, some) and _one_in(text, start, end, others) for some, others in _PAIRS)


def _one_in(text: str, start: int, end: int, words: tuple[str, ...]) -> bool:
    return any(text.find(word, start, end) >= 0 for word in words)


def _uses_in(text: str, start: int, end: int) -> bool:
    if text.find("ttention", start, end) < 0 and text.find("ttn", start, end) < 0:
        return False
    return _USES.search(text, start, end) is not None


def _holds_site(found: Outline, stretch: Stretch) -> bool:
    start, end = found.slice(stretch)
    return _site_in(found.text, start, end) or _uses_in(found.text, start, end)


def _wanted(found: Outline) -> tuple[str, ...]:
    """The definitions that hold the words, those that call one of them, and the classes that inherit from one."""
    defining = [stretch for stretch in found.stretches if stretch.definitions]
    holding = [stretch for stretch in defining if _holds_site(found, stretch)]
    attention = {name for stretch in holding for name in stretch.definitions}
    if not attention:
        return ()
    wanted = dict.fromkeys(sorted(attention))
    for stretch in defining:
        if any(base in wanted for base in stretch.bases) or _calls_one(found.text, *found.slice(stretch), attention):
            wanted.update(dict.fromkeys(stretch.definitions))
    return tuple(dict.fromkeys(name for stretch in defining for name in stretch.definitions if name in wanted))


def _calls_one(text: str, start: int, end: int, names: Iterable[str]) -> bool:
    for name in names:
        place = text.find(name + "(", start, end)
        while place >= 0:
            before = text[place - 1 : place]
            if not (before.isalnum() or before == "_"):
                return True
            place = text.find(name + "(", place + 1, end)
    return False


# Whose code it is


_IMPORT = re.compile(r"^[ \t]*(?:from[ \t]+([.\w]+)[ \t]+import\b|import[ \t]+([\w., \t]+))", re.MULTILINE)

_FOREIGN = frozenset(
    {"jax", "flax", "haiku", "equinox", "keras", "tensorflow", "mlx", "paddle", "mindspore", "tinygrad"}
)
"""Frameworks that use the same words. A file that imports one of them, and not torch, is theirs."""

_NEITHER = frozenset({"numpy", "scipy", "pandas", "matplotlib", "sklearn", "tqdm", "PIL", "cv2", "yaml", "requests"})
"""Packages that say nothing about the framework and can't bring torch in."""


def is_torch(text: str) -> bool:
    """Whether a text is torch's, as far as its imports tell: torch itself, a project module that may bring it in.

    A text without such an import counts when it speaks of `torch.` or `nn.` (a cell of a notebook).
    """
    if "torch" in text and any(package == "torch" for package in _packages(text)):
        return True
    packages = set(_packages(text))
    if packages & _FOREIGN:
        return False
    if packages - _NEITHER - sys.stdlib_module_names:
        return True
    return "torch." in text or "nn." in text


def _packages(text: str) -> Iterator[str]:
    """The packages a text imports; "" stands for its own, in a relative import."""
    for match in _IMPORT.finditer(text):
        origin, modules = match.groups()
        if origin is not None:
            yield origin.partition(".")[0]
        else:
            for module in modules.split(","):
                name = module.split()
                if name:
                    yield name[0].partition(".")[0]
