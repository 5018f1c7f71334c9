"""Where the strings of a JSON text stand, and the same text with some of them changed and nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_SPACE = re.compile(r"[ \t\n\r]*")
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_NESTED = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)
_ATOM = re.compile(r"[-+.\w]+")
_CHARACTER = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|.", re.DOTALL
)


class Value(NamedTuple):
    """A value of a valid JSON text: from `start` up to `end`, under `key` if it stands in an object."""

    start: int
    end: int
    key: str | None = None


def whole(text: str) -> Value:
    """The value that a text is."""
    return _value(text, 0)


def children(text: str, parent: Value) -> Iterator[Value]:
    """The values of an array or an object, in order; none of anything else."""
    opening = text[parent.start]
    if opening not in "[{":
        return
    at = _space(text, parent.start + 1)
    while text[at] not in "]}":
        key = None
        if opening == "{":
            name = _value(text, at)
            key = json.loads(text[name.start : name.end])
            at = _space(text, name.end) + 1
        value = _value(text, at)
        yield Value(value.start, value.end, key)
        at = _space(text, value.end)
        if text[at] == ",":
            at = _space(text, at + 1)


def child(text: str, parent: Value, key: str) -> Value | None:
    """The value under a key; of two, the last one, which is the one that readers take."""
    found = None
    for value in children(text, parent):
        if value.key == key:
            found = value
    return found


def _space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return at if match is None else match.end()


def _value(text: str, at: int) -> Value:
    start = _space(text, at)
    if text[start] in "[{":
        depth = 0
        for match in _NESTED.finditer(text, start):
            sign = match.group()
            depth += 1 if sign in ("[", "{") else -1 if sign in ("]", "}") else 0
            if depth == 0:
                return Value(start, match.end())
    found = (_STRING if text[start] == '"' else _ATOM).match(text, start)
    return Value(start, len(text) if found is None else found.end())


def with_text(text: str, value: Value, new: str) -> str:
    """A JSON text in which a string, or an array of the lines of one, spells `new`. What stays stays as written."""
    if text[value.start] == "[":
        return text[: value.start] + _lines(text, value, new) + text[value.end :]
    return text[: value.start] + _string(text[value.start : value.end], new, _escaped(text)) + text[value.end :]


def _escaped(text: str) -> bool:
    """Whether a file writes letters beyond ASCII as escapes."""
    return "\\u" in text and text.isascii()


def _string(raw: str, new: str, ascii_only: bool) -> str:
    """A JSON string for `new`, with the characters of `raw` where they are the same at both ends."""
    old = json.loads(raw)
    signs = _CHARACTER.findall(raw[1:-1])
    if len(signs) != len(old):
        return json.dumps(new, ensure_ascii=ascii_only)
    head, tail = _same(old, new)
    middle = json.dumps(new[head : len(new) - tail], ensure_ascii=ascii_only)[1:-1]
    return '"' + "".join(signs[:head]) + middle + "".join(signs[len(signs) - tail :]) + '"'


def _lines(text: str, array: Value, new: str) -> str:
    """The array of strings that spells `new`, an element a line, with the blanks between them as the array has them."""
    elements = list(children(text, array))
    raws = [text[one.start : one.end] for one in elements]
    old = [json.loads(raw) for raw in raws]
    lines = re.findall(r"[^\n]*\n|[^\n]+", new)
    head, tail = _same(old, lines)
    fresh, gone = lines[head : len(lines) - tail], raws[head : len(raws) - tail]
    if len(fresh) == len(gone):
        written = [_string(raw, line, _escaped(text)) for raw, line in zip(gone, fresh)]
    else:
        written = [json.dumps(line, ensure_ascii=_escaped(text)) for line in fresh]
    if not elements:
        return "[" + ", ".join(written) + "]"
    lead, trail = text[array.start + 1 : elements[0].start], text[elements[-1].end : array.end - 1]
    comma = text[elements[0].end : elements[1].start] if len(elements) > 1 else "," + (lead or " ")
    return "[" + lead + comma.join([*raws[:head], *written, *raws[len(raws) - tail :]]) + trail + "]"


def _same(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """How many items at the beginning, and then at the end, two sequences share."""
    most = min(len(old), len(new))
    head = next((number for number in range(most) if old[number] != new[number]), most)
    most -= head
    tail = next((number for number in range(most) if old[-1 - number] != new[-1 - number]), most)
    return head, tail
