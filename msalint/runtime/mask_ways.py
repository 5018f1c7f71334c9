"""The ways a module may take a mask: by which parameter, in which shape, and what its values mean."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from msalint.runtime.inputs import LENGTH_NAMES, is_mask
from msalint.shapes.vocabulary import mask_polarity, says, stated_polarity

Coding = Literal["keep", "hide", "additive", "ones keep", "ones hide", "lengths", "flag", "call"]

_WORDS: Mapping[str, str] = {
    "keep": "True where a key is seen",
    "hide": "True where a key is hidden",
    "additive": "0 where a key is seen, very low where not",
    "ones keep": "1 where a key is seen, else 0",
    "ones hide": "1 where a key is hidden, else 0",
}
_SHAPES = (
    "(batch, key)",
    "(batch, 1, query, key)",
    "(batch, 1, 1, key)",
    "(batch, query, key)",
    "(1, 1, query, key)",
    "(query, key)",
)


_PLANES = ("(1, 1, query, key)", "(query, key)")


@dataclass(frozen=True)
class MaskWay:
    """How a module takes a mask: the parameter, the shape and the coding that make hidden keys count for nothing."""

    parameter: str
    shape: str
    coding: Coding

    def __str__(self) -> str:
        if self.coding == "call":
            return "the mask of --call"
        if self.coding in ("lengths", "flag"):
            return f"`{self.parameter}`"
        return f"`{self.parameter}` as {self.shape}, {_WORDS[self.coding]}"


@dataclass(frozen=True)
class MaskWays:
    """What is known of the masks of one module.

    `text`: a call of a person's own. `docs`: docstrings that may say what True means. `examples`: values that
    parameters were handed, which tell shape and coding. `polarity`: what a person said that True means.
    """

    parameters: Sequence[str]
    text: str | None
    docs: Sequence[str]
    examples: Mapping[str, Any]
    polarity: Literal["keep", "hide"] | None
    dtype: torch.dtype

    def ways(self, causal: bool, allowed: Tensor) -> Iterator[MaskWay]:
        """The ways to try, the likeliest first. `allowed` (batch, query, key) has the sizes that examples have."""
        if self.text:
            words = set(re.findall(r"\w+", self.text))
            if words & ({"causal", "both"} if causal else {"keep", "both"}):
                yield MaskWay("", "", "call")
            return
        for name in self.parameters:
            padding = says(name, "padding", "pad")
            if is_mask(name, self.examples.get(name)) and not says(name, "head") and not (causal and padding):
                for shape in self._shapes(name, padding, allowed):
                    # One plane for all samples can't say what is padding in each.
                    if ("query" in shape) if causal else shape not in _PLANES:
                        for coding in self._codings(name):
                            yield MaskWay(name, shape, coding)
        if not causal and not any(is_mask(name, self.examples.get(name)) for name in self.parameters):
            yield from (MaskWay(name, "(batch)", "lengths") for name in self.parameters if name in LENGTH_NAMES)
        if causal:
            for name in self.parameters:
                if name in ("causal", "is_causal", "use_causal_mask"):
                    yield MaskWay(name, "True", "flag")

    def meaning(self, name: str) -> str | None:
        """What True means in a mask of this name, where a person, its name or a docstring says so."""
        stated = (stated_polarity(text, name) for text in self.docs if name in text)
        return self.polarity or next((said for said in stated if said), None) or mask_polarity(name)

    def _shapes(self, name: str, padding: bool, allowed: Tensor) -> Sequence[str]:
        example = self.examples.get(name)
        if isinstance(example, Tensor):
            fitting = [shape for shape in _SHAPES if _shaped(shape, allowed).shape == example.shape]
            return fitting or _SHAPES
        return ("(batch, key)",) if padding else _SHAPES

    def _codings(self, name: str) -> Sequence[Coding]:
        meaning = self.meaning(name)
        example = self.examples.get(name)
        if isinstance(example, Tensor) and example.dtype != torch.bool:
            if bool(((example != 0) & (example != 1)).any()):
                return ("additive",)
            if not example.is_floating_point() or bool((example == 1).any()):
                return ("ones keep", "ones hide") if meaning is None else (_ones(meaning),)
        if meaning is None:
            return ("keep", "hide") if isinstance(example, Tensor) else ("keep", "hide", "additive", "ones keep")
        boolean: Coding = "hide" if meaning == "hide" else "keep"
        if isinstance(example, Tensor):
            return (boolean,)
        return (boolean, "additive") if says(name, "attention", "attn") else (boolean, _ones(meaning))

    def values(self, way: MaskWay, allowed: Tensor) -> dict[str, Any]:
        """The arguments that state `allowed` (batch, query, key), True where a key is seen, in one way."""
        if way.coding == "call":
            return call_masks(allowed)
        if way.coding == "flag":
            return {way.parameter: True}
        if way.coding == "lengths":
            return {way.parameter: allowed[:, -1].sum(-1)}
        mask = _shaped(way.shape, allowed)
        if way.coding in ("hide", "ones hide"):
            mask = ~mask
        if way.coding == "additive":
            lowest = torch.finfo(self.dtype).min
            return {way.parameter: torch.zeros(mask.shape, dtype=self.dtype).masked_fill(~mask, lowest)}
        if way.coding in ("ones keep", "ones hide"):
            example = self.examples.get(way.parameter)
            mask = mask.to(
                example.dtype if isinstance(example, Tensor) and not example.is_floating_point() else self.dtype
            )
        return {way.parameter: mask}

    def all_seen(self, name: str, allowed: Tensor) -> dict[str, Any]:
        """A mask that hides nothing, in the likeliest way; none where nothing says what its values mean."""
        codings = self._codings(name)
        if len(codings) > 1 and self.meaning(name) is None:
            return {}
        way = MaskWay(name, self._shapes(name, says(name, "padding", "pad"), allowed)[0], codings[0])
        return self.values(way, torch.ones_like(allowed))


def call_masks(allowed: Tensor) -> dict[str, Tensor]:
    """The masks that a `--call` may name, for what each query may see (batch, query, key)."""
    return {"keep": allowed[:, -1], "causal": allowed[0], "both": allowed[:, None]}


def _ones(meaning: str) -> Coding:
    return "ones hide" if meaning == "hide" else "ones keep"


def _shaped(shape: str, allowed: Tensor) -> Tensor:
    return {
        "(batch, key)": allowed[:, -1],
        "(batch, 1, 1, key)": allowed[:, None, -1:],
        "(batch, 1, query, key)": allowed[:, None],
        "(batch, query, key)": allowed,
        "(query, key)": allowed[0],
        "(1, 1, query, key)": allowed[None, :1],
    }[shape]
