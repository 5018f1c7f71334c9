"""Decides, without running or fully parsing anything, which files and which of their definitions deserve a look."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import lru_cache

from msalint.syntax.outline import Outline, outline

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
    sites = _sites(text)
    wanted = _wanted(found, sites)
    loose = [stretch for stretch in found.stretches if stretch.kind in ("assign", "other")]
    scripted = any(sites.between(*found.slice(stretch)) for stretch in loose)
    return replace(found, wanted=wanted, scripted=scripted) if wanted or scripted else None


def is_about_attention(text: str) -> bool:
    """Whether words of attention code stand anywhere in a text; most files end here."""
    return _sites(text).between(0, len(text))


class _Sites:
    """The words of attention code in a text. Those that stand nowhere in it are not looked for in its parts."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.words = [word for word in SITES if word in text]
        pairs = [[[word for word in words if word in text] for words in pair] for pair in _PAIRS]
        self.pairs = [pair for pair in pairs if all(pair)]
        self.uses = "ttention" in text or "ttn" in text

    def between(self, start: int, end: int) -> bool:
        """Whether a part of the text is attention code."""
        if self._any(self.words, start, end):
            return True
        if any(self._any(words, start, end) and self._any(others, start, end) for words, others in self.pairs):
            return True
        return self.uses and _uses_in(self.text, start, end)

    def _any(self, words: list[str], start: int, end: int) -> bool:
        return any(self.text.find(word, start, end) >= 0 for word in words)


_sites = lru_cache(maxsize=2)(_Sites)


def _uses_in(text: str, start: int, end: int) -> bool:
    if text.find("ttention", start, end) < 0 and text.find("ttn", start, end) < 0:
        return False
    return _USES.search(text, start, end) is not None


def _wanted(found: Outline, sites: _Sites) -> tuple[str, ...]:
    """The definitions that hold the words, those that call one of them, and the classes that inherit from one."""
    defining = [stretch for stretch in found.stretches if stretch.definitions]
    holding = [stretch for stretch in defining if sites.between(*found.slice(stretch))]
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
    {
        "jax",
        "flax",
        "haiku",
        "equinox",
        "keras",
        "tensorflow",
        "mlx",
        "paddle",
        "mindspore",
        "tinygrad",
        "chainer",
        "mxnet",
        "theano",
    }
)
"""Frameworks that use the same words. A file that imports one of them, and not torch, is theirs."""

_NEITHER = frozenset({"numpy", "scipy", "pandas", "matplotlib", "sklearn", "tqdm", "PIL", "cv2", "yaml", "requests"})
"""Packages that say nothing about the framework and can't bring torch in."""


@lru_cache(maxsize=2)
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
