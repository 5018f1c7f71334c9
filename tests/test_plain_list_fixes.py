"""Which plain lists of layers may safely become module lists: what each use does with either, under torch."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest
import torch
from torch import nn

from msalint.check import lint_source
from msalint.diagnostic import Diagnostic, Safety
from msalint.fix import apply
from msalint.flow.known_modules import DICT_NAMES

HEAD = """\
import copy
import torch
import torch.nn.functional as F
from torch import nn


def longest(layers, x):
    return max(layers, key=lambda layer: layer(x).sum().item())


def last(layers):
    return layers.pop()


class Tensors(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.proj = nn.Linear(width, width)

    def forward(self, x):
        return self.proj(x)


class Shape:
    pass


def fresh(width):
    return Tensors(width)


class Kept(nn.Module):
"""

MADE = "self.blocks = [Tensors(width) for _ in range(3)]"

ATTENDING = "\n    return F.scaled_dot_product_attention(x, x, x)"

SAME = {
    "a_loop": ("", "for block in self.blocks:\n    x = block(x)"),
    "a_comprehension": ("", "x = sum([block(x) for block in self.blocks])"),
    "a_place": ("", "x = self.blocks[0](self.blocks[-1](x))"),
    "a_place_counted": ("", "for i in range(len(self.blocks)):\n    x = self.blocks[i](x)"),
    "counted": ("", "for i, block in enumerate(self.blocks):\n    x = block(x) * (i + 1)"),
    "in_step": ("", "for block, scale in zip(self.blocks, (1, 2, 3)):\n    x = block(x) * scale"),
    "backwards": ("", "for block in reversed(self.blocks):\n    x = block(x)"),
    "a_part_in_a_loop": ("", "for block in self.blocks[1:]:\n    x = block(x)"),
    "a_part_of_a_part": ("", "x = self.blocks[1:][0](x)"),
    "looked_for": ("", "x = x * (self.blocks[0] in self.blocks)"),
    "its_truth": ("", "x = self.blocks[0](x) if self.blocks and not self.blocks is None else x"),
    "taken_apart": ("", "a, b, c = self.blocks\nx = a(b(c(x)))"),
    "spread": ("", "x = longest([*self.blocks], x)(x)"),
    "copied_to_a_list": ("", "others = list(self.blocks)\nothers.pop()\nx = others[-1](x)"),
    "sorted_into_a_list": ("", "x = sorted(self.blocks, key=lambda b: b.proj.weight[0, 0].item())[0](x)"),
    "appended": ("self.blocks.append(fresh(width))", "for block in self.blocks:\n    x = block(x)"),
    "an_empty_place": (
        "self.blocks.append(None)",
        "for block in self.blocks:\n    x = block(x) if block is not None else x",
    ),
    "extended": ("self.blocks.extend([Tensors(width), copy.deepcopy(fresh(width))])", "x = self.blocks[4](x)"),
    "extended_by_adding": ("self.blocks += [Tensors(width).eval()]", "x = self.blocks[3](x)"),
    "put_in_front": ("self.blocks.insert(0, Tensors(width))", "x = self.blocks[0](x)"),
    "replaced": ("self.blocks[1] = Tensors(width)", "for block in self.blocks:\n    x = block(x)"),
    "taken_out": ("del self.blocks[0]", "x = self.blocks[0](x) * len(self.blocks)"),
    "under_a_local_name": ("", "layers = self.blocks\nfor layer in layers:\n    x = layer(x)"),
    "handed_to_a_function": ("", "x = longest(self.blocks, x)(x)"),
    "handed_to_a_method": ("", "x = self.run(self.blocks, x)"),
}
"""Each with further lines of `__init__` and of `forward`: what comes out is the same."""

OTHER = {
    "the_last_taken_off": ("", "x = self.blocks.pop()(x)"),
    "removed": ("self.blocks.remove(self.blocks[0])", "x = self.blocks[0](x)"),
    "its_place": ("", "x = x * self.blocks.index(self.blocks[1])"),
    "how_often": ("", "x = x * self.blocks.count(self.blocks[1])"),
    "turned_round": ("self.blocks.reverse()", "x = self.blocks[0](x)"),
    "sorted_in_place": ("self.blocks.sort(key=id)", "x = self.blocks[0](x)"),
    "emptied": ("self.blocks.clear()\nself.blocks.append(Tensors(width))", "x = self.blocks[0](x)"),
    "a_copy": ("", "for block in self.blocks.copy():\n    x = block(x)"),
    "behind_a_list": ("", "for block in [Tensors(4)] + self.blocks:\n    x = x + block(x).sum() * 0"),
    "repeated": ("", "for block in self.blocks * 2:\n    x = block(x)"),
    "compared": ("", "x = x * (self.blocks == list(self.blocks))"),
    "a_part_compared": ("", "x = x * (self.blocks[1:] == list(self.blocks)[1:])"),
    "a_part_replaced": ("self.blocks[0:1] = [Tensors(width)]", "x = self.blocks[0](x)"),
    "a_string_among_them": ("self.blocks.append('end')", "x = self.blocks[0](x)"),
    "pairs": ("self.blocks.append((Tensors(width), 2))", "x = self.blocks[3][0](x)"),
    "extended_by_numbers": ("self.blocks.extend([1, 2])", "x = self.blocks[0](x) * self.blocks[3]"),
    "a_plain_object": ("self.blocks.append(Shape())", "x = self.blocks[0](x)"),
    "popped_under_a_local_name": ("", "layers = self.blocks\nx = layers.pop()(x)"),
    "popped_by_a_function": ("", "x = last(self.blocks)(x)"),
    "popped_by_a_method": ("", "x = self.shorten(self.blocks)(x)"),
    "popped_from_outside": ("", "x = x * 1", "def prune(model):\n    return model.blocks.pop()(torch.ones(4))"),
    "popped_by_a_subclass": (
        "",
        "x = x * 1",
        """\
class Shorter(Kept):
    def prune(self):
        return self.blocks.pop()(torch.ones(4))


def prune(model):
    return Shorter.prune(model)""",
    ),
}
"""Each with further lines: torch refuses a module list there, or something else comes out."""

UNKNOWN = {
    "returned": ("", "x = self.layers()[0](x)", "", "def layers(self):\n    return self.blocks"),
    "handed_to_a_stranger": ("", "x = strange(self.blocks, x)"),
    "of_what_it_was_given": ("self.blocks.append(extra)", "x = self.blocks[0](x)"),
    "added_up": ("", "for block in self.blocks + [Tensors(4)]:\n    x = x + block(x).sum() * 0"),
    "taken_by_place": ("", "x = self.blocks.pop(0)(x)"),
    "put_at_a_place": ("self.blocks.insert(-1, Tensors(width))", "x = self.blocks[0](x)"),
    "asked_for_its_type": ("", "x = x * isinstance(self.blocks, list)"),
    "printed": ("", "print(self.blocks)"),
    "made_anew": ("", "x = self.blocks[0](x)", "", "def reset(self):\n    self.blocks = []"),
    "read_by_name": ("", "x = getattr(self, 'blocks')[0](x)"),
    "read_by_any_name": ("", "x = getattr(self, self.which)(x)"),
    "kept_twice": ("self.others = self.blocks", "x = self.others[0](x)"),
}
"""Each with further lines: whether it comes out the same can't be known from the file."""


def written(init: str, forward: str, behind: str = "", method: str = "", made: str = MADE) -> str:
    parts = [
        f"def __init__(self, width, extra=None):\n    super().__init__()\n    {made}\n{textwrap.indent(init, '    ')}",
        "def run(self, layers, x):\n    for layer in layers:\n        x = layer(x)\n    return x",
        "def shorten(self, layers):\n    return layers.pop()",
        method,
        "def forward(self, x):\n" + textwrap.indent(forward, "    ") + ATTENDING,
    ]
    return HEAD + "\n\n".join(textwrap.indent(part, "    ") for part in parts if part) + "\n\n\n" + behind + "\n"


def finding(text: str) -> Diagnostic:
    found = [one for one in lint_source(text) if one.code == "MSA404"]
    assert len(found) == 1, found
    return found[0]


def mended(text: str) -> str:
    return text.replace(MADE, "self.blocks = nn.ModuleList([Tensors(width) for _ in range(3)])")


def outcome(text: str) -> Any:
    """What the module computes, or how it fails."""
    torch.manual_seed(0)
    space: dict[str, Any] = {}
    exec(compile(text, "kept", "exec"), space)
    try:
        model = space["Kept"](4)
        results = [model(torch.arange(24.0).reshape(2, 3, 4) / 24)]
        return results + ([space["prune"](model)] if "prune" in space else [])
    except (TypeError, AttributeError, KeyError, ValueError) as error:
        return type(error)


def same(one: Any, other: Any) -> bool:
    if not isinstance(one, list) or not isinstance(other, list):
        return one is other
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("use", SAME)
def test_a_use_that_a_module_list_has_too_keeps_the_fix_safe(use: str) -> None:
    text = written(*SAME[use])
    found = finding(text)
    assert found.fix is not None and found.fix.safety is Safety.SAFE
    assert apply(text, [found]).text == mended(text)
    before = outcome(text)
    assert isinstance(before, list) and same(before, outcome(mended(text)))


@pytest.mark.parametrize("use", OTHER)
def test_a_use_that_a_module_list_lacks_is_shown_and_leaves_no_fix(use: str) -> None:
    text = written(*OTHER[use])
    found = finding(text)
    assert found.fix is None and found.help == "use nn.ModuleList"
    assert [step.message for step in found.trail] == ["nn.ModuleList can't do this"]
    before = outcome(text)
    assert isinstance(before, list) and not same(before, outcome(mended(text)))


@pytest.mark.parametrize("use", UNKNOWN)
def test_a_use_that_is_not_known_leaves_the_fix_unsafe(use: str) -> None:
    found = finding(written(*UNKNOWN[use]))
    assert found.fix is not None and found.fix.safety is Safety.UNSAFE and not found.trail


def test_the_same_name_in_a_class_of_its_own_does_not_count() -> None:
    other = """\
class Stack:
    def __init__(self):
        self.blocks = []

    def top(self):
        return self.blocks.pop()"""
    found = finding(written("", "x = self.blocks[0](x)", other))
    assert found.fix is not None and found.fix.safety is Safety.SAFE


def test_a_list_that_a_method_goes_on_filling_is_mended_where_it_was_made() -> None:
    fill = "def fill(self, width):\n    self.blocks.append(Tensors(width))"
    text = written("self.fill(width)", "x = self.blocks[0](x)", "", fill, made="self.blocks = []")
    assert "self.blocks = nn.ModuleList([])\n" in apply(text, [finding(text)]).text


def test_a_module_list_is_not_put_in_front_of_the_base_s_init() -> None:
    text = written("", "x = self.blocks[0](x)")
    turned = text.replace(f"super().__init__()\n        {MADE}", f"{MADE}\n        super().__init__()")
    assert turned != text
    assert isinstance(outcome(turned), list) and outcome(mended(turned)) is AttributeError
    assert finding(turned).fix is None


def test_a_list_repeated_is_wrapped_as_a_whole() -> None:
    times = "[Tensors(width)] * 3"
    text = written("", "for block in self.blocks:\n    x = block(x)", made=f"self.blocks = {times}")
    found = finding(text)
    assert f"nn.ModuleList({times})" in apply(text, [found]).text


DICTS = {
    "by_key": ("", "x = self.blocks['query'](x)", "yes"),
    "its_items": ("", "for name, block in self.blocks.items():\n    x = block(x) * len(name)", "yes"),
    "its_values": ("", "x = sum(block(x) for block in self.blocks.values())", "yes"),
    "its_keys": ("", "x = self.blocks[sorted(self.blocks.keys())[0]](x) * ('key' in self.blocks)", "yes"),
    "a_new_key": ("self.blocks['value'] = Tensors(width)", "x = self.blocks['value'](x)", "yes"),
    "popped": ("", "x = self.blocks.pop('key')(x)", "yes"),
    "asked_with_get": ("", "x = self.blocks.get('query')(x)", "no"),
    "popped_or_else": ("", "x = self.blocks.pop('query', None)(x)", "no"),
    "a_number": ("self.blocks[3] = Tensors(width)", "x = self.blocks[3](x)", "no"),
    "a_dot": ("self.blocks['a.b'] = Tensors(width)", "x = self.blocks['a.b'](x)", "no"),
    "a_name_of_the_class": ("self.blocks['type'] = Tensors(width)", "x = self.blocks['type'](x)", "no"),
    "joined": ("", "x = (self.blocks | {})['query'](x)", "no"),
    "turned_round": ("", "x = x * len(list(reversed(self.blocks)))", "perhaps"),
    "a_key_that_is_given": ("self.blocks[str(extra)] = Tensors(width)", "x = self.blocks['query'](x)", "perhaps"),
}


@pytest.mark.parametrize("use", DICTS)
def test_a_dict_becomes_a_module_dict_by_the_same_measure(use: str) -> None:
    init, forward, fits = DICTS[use]
    plain = "{'query': Tensors(width), 'key': fresh(width)}"
    text = written(init, forward, made=f"self.blocks = {plain}")
    found = finding(text)
    safety = {"yes": Safety.SAFE, "perhaps": Safety.UNSAFE, "no": None}[fits]
    assert (found.fix.safety if found.fix else None) is safety
    wrapped = text.replace(plain, f"nn.ModuleDict({plain})")
    if fits != "perhaps":
        assert same(outcome(text), outcome(wrapped)) is (fits == "yes")


def test_the_names_that_a_module_dict_keeps_for_itself_are_those_of_torch() -> None:
    assert {name for name in dir(nn.ModuleDict()) if not name.startswith("_")} <= DICT_NAMES


def test_a_dict_that_is_filled_under_a_local_name_is_mended_where_it_was_made() -> None:
    init = "for name in ('query', 'key'):\n    layers[name] = Tensors(width)\nself.blocks = layers"
    text = written(init, "x = self.blocks['query'](x)", made="layers = {'value': Tensors(width)}")
    assert "layers = nn.ModuleDict({'value': Tensors(width)})" in apply(text, [finding(text)]).text


@pytest.mark.parametrize("target", ["self.blocks = self.others", "self.others = self.blocks"])
def test_a_list_under_two_names_is_mended_if_asked(target: str) -> None:
    text = written("", "x = self.blocks[0](x)", made=f"{target} = [Tensors(width)]")
    found = [one for one in lint_source(text) if one.code == "MSA404"][-1]
    assert found.fix is not None and found.fix.safety is Safety.UNSAFE
    assert f"{target} = nn.ModuleList([Tensors(width)])" in apply(text, [found]).text


def test_one_of_two_lists_is_mended_if_asked() -> None:
    made = "self.blocks = [Tensors(width)] if width else []"
    text = written("", "for block in self.blocks:\n    x = block(x)", made=made)
    found = finding(text)
    assert found.fix is not None and found.fix.safety is Safety.UNSAFE
    wrapped = apply(text, [found]).text
    assert "self.blocks = nn.ModuleList([Tensors(width)]) if width else []" in wrapped
    assert same(outcome(text), outcome(wrapped))
