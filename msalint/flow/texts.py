"""Strings that code puts together: einsum equations out of pieces, attribute names with a number in them.

f"b h i d, {keys} -> b h i j"     with keys known is a known string
f"layer_{i}"                      with i a loop's number is the one name "layer_{}" for all of its rounds
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msalint.state import State
from msalint.syntax import nodes as n
from msalint.values import UNKNOWN, Const, Int, Items, Opaque, Value

_NUMBERED = "text:"
"""What the key of a text with a number in it begins with."""
_F_STRING = re.compile(r"""[fF](["'])((?:(?!\1|\\).)*)\1""", re.DOTALL)
_MAX_LENGTH = 2_000

ANY_TEXT = Opaque(hint="str")


def folded(state: State, node: n.FString, parts: Sequence[Value]) -> Value:
    """The value of an f-string, of the values of the expressions in it."""
    if not all(isinstance(part, Int) or name_in(part) is not None for part in parts):
        return ANY_TEXT
    written = node.text
    found = _F_STRING.fullmatch(written)
    if found is None or "{{" in written or "}}" in written:
        return ANY_TEXT
    pieces = re.split(r"\{([^{}]*)\}", found[2])
    if len(pieces) != 2 * len(parts) + 1 or any("!" in inner or ":" in inner for inner in pieces[1::2]):
        return ANY_TEXT
    return _joined(state, pieces[::2], parts)


def combined(state: State, sign: str, text: str, other: Value) -> Value:
    """`text + other` or `text % other`."""
    if sign == "+":
        return _joined(state, [text, ""], [other])
    return _formatted(state, text, other) if sign == "%" else UNKNOWN


def _formatted(state: State, pattern: str, value: Value) -> Value:
    """`"layer_%d" % i`."""
    pieces = re.split(r"%[dis]", pattern)
    parts = value.items if isinstance(value, Items) else (value,)
    if len(pieces) != len(parts) + 1 or any("%" in piece for piece in pieces):
        return ANY_TEXT
    return _joined(state, pieces, parts)


def method(state: State, text: str, name: str, args: Sequence[Value]) -> Value:
    """A string's method: `"{},{}->{}".format(a, b, c)`, `"".join(letters)`, `name.lower()`."""
    if name == "format":
        pieces = text.split("{}")
        whole = len(pieces) == len(args) + 1 and not any("{" in piece for piece in pieces)
        return _joined(state, pieces, args) if whole else ANY_TEXT
    if name == "join" and len(args) == 1 and isinstance(args[0], Items):
        items = args[0].items
        return _joined(state, ["", *[text] * (len(items) - 1), ""], items) if items else Const("")
    known = [arg.value for arg in args if isinstance(arg, Const) and isinstance(arg.value, str)]
    if len(known) != len(args):
        return ANY_TEXT
    if name in {"lower", "upper", "strip", "lstrip", "rstrip", "removeprefix", "removesuffix", "replace"}:
        try:
            return Const(getattr(text, name)(*known))
        except TypeError:
            return ANY_TEXT
    if name in {"startswith", "endswith"} and len(known) == 1:
        return Const(getattr(text, name)(known[0]))
    return ANY_TEXT


def letters_of(value: Value) -> Value:
    """A known string as the sequence of its letters; any other value as it is."""
    if isinstance(value, Const) and isinstance(value.value, str) and len(value.value) <= 64:
        return Items(tuple(Const(letter) for letter in value.value), "list")
    return value


def name_in(value: Value | None) -> str | None:
    """The attribute that a string names; one with a loop's number in it stands for all of them alike."""
    if isinstance(value, Const) and isinstance(value.value, str):
        return value.value
    if isinstance(value, Opaque) and value.key.startswith(_NUMBERED):
        return value.key.removeprefix(_NUMBERED)
    return None


def _joined(state: State, pieces: Sequence[str], parts: Sequence[Value]) -> Value:
    """Known pieces with values between them."""
    texts, numbered = [pieces[0]], False
    for part, piece in zip(parts, pieces[1:]):
        text = name_in(part)
        if text is None and isinstance(part, Int):
            number = state.as_int(part)
            text = "{}" if number is None else str(number)
        if text is None:
            return ANY_TEXT
        numbered = numbered or "{}" in text
        texts += [text, piece]
    whole = "".join(texts)
    if len(whole) > _MAX_LENGTH:
        return ANY_TEXT
    return Opaque(f"{_NUMBERED}{whole}", hint="str") if numbered else Const(whole)
