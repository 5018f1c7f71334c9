"""A string changes inside of a JSON text, and no other byte does."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from msalint.documents.json_strings import Value, child, children, whole, with_text

CODE = st.text(st.sampled_from('ab \n\t"\\/é\U0001f600\u2028{}[],'), max_size=12)
JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | CODE,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(CODE, inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None)
@given(JSON, st.sampled_from([None, 1, "\t"]), st.booleans())
def test_children_are_where_the_parser_says(value: object, indent: int | str | None, ascii_only: bool) -> None:
    text = " " + json.dumps(value, indent=indent, ensure_ascii=ascii_only) + "\n"

    def check(place: Value, expected: object) -> None:
        assert json.loads(text[place.start : place.end]) == expected
        inner = list(children(text, place)) if isinstance(expected, (list, dict)) else []
        if isinstance(expected, list):
            assert len(inner) == len(expected)
            for one, item in zip(inner, expected):
                check(one, item)
        elif isinstance(expected, dict):
            assert [one.key for one in inner] == list(expected)
            for one, item in zip(inner, expected.values()):
                check(one, item)

    check(whole(text), value)


@settings(deadline=None)
@given(CODE, CODE, st.sampled_from([None, 1]), st.booleans(), st.booleans())
def test_a_changed_string_is_the_new_one_and_the_rest_is_untouched(
    old: str, new: str, indent: int | None, as_lines: bool, ascii_only: bool
) -> None:
    source = old.splitlines(keepends=True) if as_lines else old
    text = json.dumps({"é": ["<", source, 1.50]}, indent=indent, ensure_ascii=ascii_only)
    outer = child(text, whole(text), "é")
    assert outer is not None
    place = list(children(text, outer))[1]
    changed = with_text(text, place, new)
    assert changed.startswith(text[: place.start]) and changed.endswith(text[place.end :])
    found = json.loads(changed)["é"][1]
    assert ("".join(found) if as_lines else found) == new
    if as_lines:
        assert all(line.count("\n") <= 1 for line in found)
        assert new == old or all(line.endswith("\n") for line in found[:-1] if "\u2028" not in old)


def replaced(text: str, new: str) -> str:
    place = child(text, whole(text), "s")
    assert place is not None
    return with_text(text, place, new)


def test_escapes_of_what_stays_are_kept() -> None:
    text = r'{"s": "a\u003cb \u00e9 \ud83d\ude00 x\/y"}'
    assert replaced(text, "a<b é 😀 z/y") == r'{"s": "a\u003cb \u00e9 \ud83d\ude00 z\/y"}'
    assert replaced(text, "a<b ü 😀 x/y") == r'{"s": "a\u003cb \u00fc \ud83d\ude00 x\/y"}'
    assert replaced('{"s": "é"}', "éü") == '{"s": "éü"}'


def test_lines_keep_the_blanks_between_them() -> None:
    text = '{"s": [\n   "a\\n",\n   "b"\n  ]}'
    assert replaced(text, "a\nc") == '{"s": [\n   "a\\n",\n   "c"\n  ]}'
    assert replaced(text, "a\nb\nc") == '{"s": [\n   "a\\n",\n   "b\\n",\n   "c"\n  ]}'
    assert replaced(text, "b") == '{"s": [\n   "b"\n  ]}'
    assert replaced('{"s":["a\\n","b"]}', "a\nx\nb") == '{"s":["a\\n","x\\n","b"]}'
    assert replaced('{"s": [\n "a"\n]}', "a\nb") == '{"s": [\n "a\\n",\n "b"\n]}'
    assert replaced('{"s": []}', "a\nb") == '{"s": ["a\\n", "b"]}'


def test_of_two_values_under_one_key_the_last_counts() -> None:
    assert replaced('{"s": "a", "s": "b"}', "c") == '{"s": "a", "s": "c"}'
