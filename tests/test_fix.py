"""Fixes are applied whole or not at all, never overlap, leave Python behind, and come to an end."""

from __future__ import annotations

import re

import pytest

from msalint.diagnostic import Diagnostic, Edit, Fix, Level, Position, Safety, Span
from msalint.fix import ROUNDS, allowed, applicable, apply, fix_source


def diagnostic(fix: Fix | None, filename: str = "x.py") -> Diagnostic:
    span = Span(Position(1, 1), Position(1, 2))
    return Diagnostic("MSA101", "a-rule", Level.ERROR, "words", filename, span, fix=fix)


def edit(line: int, first: int, last: int, text: str) -> Edit:
    return Edit(Span(Position(line, first), Position(line, last)), text)


def fix(*edits: Edit, safety: Safety = Safety.SAFE, imports: tuple[str, ...] = ()) -> Diagnostic:
    return diagnostic(Fix("mend", edits, safety, imports))


def test_edits_are_applied_at_their_places() -> None:
    done = apply("a = b\nc = d\n", [fix(edit(2, 5, 6, "dd")), fix(edit(1, 1, 2, "aa"), edit(1, 5, 6, "bb"))])
    assert done.text == "aa = bb\nc = dd\n"
    assert len(done.mended) == 2


def test_of_two_fixes_that_overlap_the_first_is_taken_whole() -> None:
    first = fix(edit(1, 1, 6, "x = y"))
    second = fix(edit(1, 5, 6, "z"), edit(2, 1, 2, "w"))
    done = apply("a = b\nc = d\n", [first, second])
    assert done.text == "x = y\nc = d\n"
    assert done.mended == (first,)


def test_two_insertions_at_one_place_are_not_both_made() -> None:
    done = apply("x.view(1)\n", [fix(edit(1, 2, 2, ".contiguous()")), fix(edit(1, 2, 2, ".clone()"))])
    assert done.text == "x.contiguous().view(1)\n"


def test_windows_newlines_and_wide_characters_stay_in_place() -> None:
    assert apply("é = 'é'\r\nb = c\r\n", [fix(edit(2, 5, 6, "d"))]).text == "é = 'é'\r\nb = d\r\n"


@pytest.mark.parametrize(
    ("safety", "unsafe", "expected"),
    [
        (Safety.SAFE, False, True),
        (Safety.SAFE, True, True),
        (Safety.UNSAFE, False, False),
        (Safety.UNSAFE, True, True),
        (Safety.DISPLAY, True, False),
    ],
)
def test_which_fixes_may_be_applied(safety: Safety, unsafe: bool, expected: bool) -> None:
    assert applicable(Fix("mend", (edit(1, 1, 1, "x"),), safety), unsafe) is expected


def test_a_fix_without_edits_is_never_applied() -> None:
    assert not applicable(Fix("mend", (), Safety.SAFE), True)
    assert not applicable(None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('"""Doc."""\nimport os\n\nx = 1\n', '"""Doc."""\nimport os\nimport torch\n\nx = 1\n'),
        ('"""Doc."""\n\nx = 1\n', '"""Doc."""\nimport torch\n\nx = 1\n'),
        ("x = 1\n", "import torch\nx = 1\n"),
        ("from __future__ import annotations\nx = 1\n", "from __future__ import annotations\nimport torch\nx = 1\n"),
        ("import torch  # words\nx = 1\n", "import torch  # words\nx = 1\n"),
        ("from os import (\n    path,\n)\nx = 1\n", "from os import (\n    path,\n)\nimport torch\nx = 1\n"),
        ("import os\r\nx = 1\r\n", "import os\r\nimport torch\r\nx = 1\r\n"),
    ],
)
def test_an_import_is_added_behind_the_others_once(text: str, expected: str) -> None:
    line = text.count("\n")
    done = apply(text, [fix(edit(line, 1, 2, "x"), imports=("import torch",))])
    assert done.text == expected


def replacing(pattern: str, new: str, safety: Safety = Safety.SAFE):  # type: ignore[no-untyped-def]
    """A check that finds a pattern anywhere in a text, with the fix to replace it."""

    def check(text: str) -> list[Diagnostic]:
        return [
            fix(edit(number, match.start() + 1, match.end() + 1, new), safety=safety)
            for number, line in enumerate(text.split("\n"), 1)
            for match in re.finditer(pattern, line)
        ]

    return check


def test_rounds_go_on_until_nothing_is_left() -> None:
    done = fix_source("x = aaaa\n", "x.py", replacing("aa", "a"))
    assert done.text == "x = a\n"
    assert fix_source(done.text, "x.py", replacing("aa", "a")).mended == ()


def test_fixes_that_undo_each_other_come_to_an_end() -> None:
    def flip(text: str) -> list[Diagnostic]:
        return replacing("a", "b")(text) or replacing("b", "a")(text)  # type: ignore[no-any-return]

    assert len(fix_source("a = 1\n", "x.py", flip).mended) == ROUNDS


def test_a_fix_that_breaks_the_file_is_left_out_and_the_others_made() -> None:
    def check(text: str) -> list[Diagnostic]:
        return [*replacing("good", "better")(text), *replacing("bad", "(")(text)]

    done = fix_source("x = good\ny = bad\n", "x.py", check)
    assert done.text == "x = better\ny = bad\n"
    assert len(done.mended) == 1


def test_a_file_that_this_python_cannot_read_may_still_be_mended() -> None:
    assert fix_source("print 'bad'\n", "x.py", replacing("bad", "good")).text == "print 'good'\n"


def test_unsafe_fixes_wait_to_be_asked_for() -> None:
    check = replacing("bad", "good", Safety.UNSAFE)
    assert fix_source("x = bad\n", "x.py", check).text == "x = bad\n"
    assert fix_source("x = bad\n", "x.py", check, unsafe=True).text == "x = good\n"


def test_findings_in_other_files_are_not_mended_here() -> None:
    def check(text: str) -> list[Diagnostic]:
        return [diagnostic(Fix("mend", (edit(1, 1, 2, "y"),), Safety.SAFE), "other.py")]

    assert fix_source("x = 1\n", "x.py", check).text == "x = 1\n"


def test_what_would_break_the_file_is_told() -> None:
    def check(text: str) -> list[Diagnostic]:
        return [*replacing("good", "better")(text), *replacing("bad", "(")(text)]

    done = fix_source("x = good\ny = bad\n", "x.py", check)
    assert [one.fix.edits[0].text for one in done.broken if one.fix] == ["("] and done.settled


def test_fixes_that_come_to_no_end_are_told() -> None:
    assert not fix_source("x = a\n", "x.py", replacing("a", "aa")).settled
    assert fix_source("x = aaaa\n", "x.py", replacing("aa", "a")).settled


def test_new_lines_end_as_those_of_the_file_do() -> None:
    assert apply("a = b\r\n", [fix(edit(1, 5, 6, "(\n    c\r\n)"))]).text == "a = (\r\n    c\r\n)\r\n"


def test_insertions_of_one_fix_at_one_place_stand_in_their_order() -> None:
    assert (
        apply("a = b\n", [fix(edit(1, 5, 5, "f("), edit(1, 5, 5, "g("), edit(1, 6, 6, "))"))]).text == "a = f(g(b))\n"
    )


@pytest.mark.parametrize(
    ("module", "needed"),
    [
        ("from torch import nn\n", "from torch import nn"),
        ("import torch.nn as nn\n", "from torch import nn"),
        ("from os import path; import torch as t, torch.nn as nn\n", "from torch import nn"),
        ("try:\n    import torch\nexcept ImportError:\n    torch = None\n", "import torch"),
        ("try:\n    import torch.nn\nexcept ImportError:\n    pass\n", "import torch"),
        ("from torch.nn import functional as F\n", "import torch.nn.functional as F"),
        ("import torch.nn.functional as F\n", "from torch.nn import functional as F"),
        ("from torch import (\n    nn,\n    Tensor,\n)\n", "from torch import nn"),
    ],
)
def test_a_name_that_is_bound_already_is_not_imported_again(module: str, needed: str) -> None:
    done = apply(module + "x = 1\n", [fix(edit(module.count("\n") + 1, 5, 6, "2"), imports=(needed,))])
    assert done.text == module + "x = 2\n"


@pytest.mark.parametrize(
    "module",
    [
        "# from torch import nn\n",
        '"""\nfrom torch import nn\n"""\n',
        "def f():\n    from torch import nn\n",
        "if TYPE_CHECKING:\n    from torch import nn\n",
        "import torch.nn\n",
        "from torch import nn as layers\n",
    ],
)
def test_a_name_that_is_bound_elsewhere_or_only_written_somewhere_is_imported(module: str) -> None:
    done = apply(module + "x = 1\n", [fix(edit(module.count("\n") + 1, 5, 6, "2"), imports=("from torch import nn",))])
    assert done.text.count("from torch import nn\n") == module.count("from torch import nn\n") + 1
    assert done.text.endswith("x = 2\n")


@pytest.mark.parametrize(
    "module",
    [
        "from mine import nn\n",
        "import mlx.nn as nn\n",
        "nn = 3\n",
        "def nn():\n    pass\n",
        "class nn:\n    pass\n",
        "for nn in ():\n    pass\n",
        "with open('x') as nn:\n    pass\n",
        "if True:\n    nn: int = 1\n",
    ],
)
def test_a_fix_whose_name_means_something_else_is_not_made(module: str) -> None:
    text = module + "x = 1\n"
    done = apply(text, [fix(edit(module.count("\n") + 1, 5, 6, "2"), imports=("from torch import nn",))])
    assert done.text == text and not done.mended


def test_imports_that_contradict_each_other_are_not_both_added() -> None:
    first = fix(edit(1, 1, 2, "y"), imports=("import torch.nn.functional as F",))
    second = fix(edit(1, 5, 6, "2"), imports=("from mine import F",))
    assert apply("x = 1\n", [first, second]).mended == (first,)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "#!/usr/bin/env python\n# coding: latin-1\nx = 1\n",
            "#!/usr/bin/env python\n# coding: latin-1\nimport torch\n",
        ),
        ("# words\n\nx = 1\n", "# words\nimport torch\n\nx"),
        ("x = 1", "import torch\n"),
    ],
)
def test_the_first_lines_of_comments_stay_the_first(text: str, expected: str) -> None:
    line = text.rstrip("\n").count("\n") + 1
    assert apply(text, [fix(edit(line, 1, 2, "x"), imports=("import torch",))]).text.startswith(expected)


def test_which_fixes_settings_leave() -> None:
    codes = frozenset({"MSA101"})
    safe, unsafe, shown = (fix(edit(1, 1, 1, "x"), safety=safety) for safety in Safety)

    def left(one: Diagnostic, *sets: frozenset[str]) -> Safety | None:
        found = allowed(one, *sets).fix
        return found.safety if found else None

    none: frozenset[str] = frozenset()
    assert left(safe, none, codes, none) is None
    assert left(safe, codes, none, none) is Safety.SAFE
    assert left(safe, codes, none, codes) is Safety.UNSAFE
    assert left(unsafe, codes, codes, none) is Safety.SAFE
    assert left(shown, codes, codes, none) is left(shown, codes, none, codes) is Safety.DISPLAY
