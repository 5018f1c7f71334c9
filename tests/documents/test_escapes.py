"""What IPython alone reads is found, line for line, and nothing that is Python is taken for it."""

from __future__ import annotations

import ast

import pytest

from msalint.documents.escapes import escaped_lines, is_python

PLAIN = [
    "x = a % b\ny = (a\n  % b)\n",
    's = """\n!ls\n%time\nwhat?\n"""\n',
    "s = '''\n%d''' % 3\n",
    "x %= 3\ny = x != 3\n",
    "f = 'a = !b'\nprint('?')\n",
    "total = a + \\\n  b \\\n    % c\n",
    "x = [\n  1,\n  ; 2]\n".replace(";", ""),
    "d = {'a': '''\n!x\n''', 'b': [\n'%y'\n]}\n# %time in a comment\n# really?\n",
    "s = 'it\\'s \\\n!no'\n",
    'r = r"\\\\"\nz = 1 % 2\n',
    "x = {\n    # why?\n    1: 2,\n}\n",
    "",
]


@pytest.mark.parametrize("text", PLAIN)
def test_python_is_left_alone(text: str) -> None:
    ast.parse(text)
    assert escaped_lines(text) == {}


ESCAPED = [
    ("%matplotlib inline\nx = 1\n", {0: ""}),
    ("x = 1\n!pip install torch\n", {1: ""}),
    ("?nn.Linear\nnn.Linear?\nnn.Linear??\nnp.a*?\n", {0: "", 1: "", 2: "", 3: ""}),
    ("if x:\n    %time f()\n    !ls\n", {1: "    pass", 2: "    pass"}),
    (
        "files = !ls\nt: float = %time f()\na, b = !x\n",
        {0: "files = get_ipython()", 1: "t: float = get_ipython()", 2: "a, b = get_ipython()"},
    ),
    ("!ls \\\n  -l \\\n  -a\nx = 1\n", {0: "", 1: "", 2: ""}),
    ("%%time\nx = 1\n", {0: ""}),
    ("\n\n%%capture out\n!ls\nx = 1", {2: "", 3: ""}),
    ("!echo '(['\nx = 1\n%time y = '\n", {0: "", 2: ""}),
    ("x = '''a\n!b\n'''\n%c\n", {3: ""}),
    ("x = (1,\n  2)\r\n%c\r\ny = 1\r\n", {2: ""}),
    ("/f 1\n,f a b\n;f a b\n", {0: "", 1: "", 2: ""}),
]


@pytest.mark.parametrize(("text", "expected"), ESCAPED)
def test_escapes_are_found_and_what_is_left_is_python(text: str, expected: dict[int, str]) -> None:
    assert escaped_lines(text) == expected
    lines = text.split("\n")
    for number, stand_in in expected.items():
        lines[number] = stand_in
    ast.parse("\n".join(lines))


def test_an_odd_cell_never_hangs_or_fails() -> None:
    for text in ("'''", '"\\', "((((\n%x", ")\n%x", "\\", "%", "!", "?", "x = !", "%%", "\r\r!x\r"):
        escaped_lines(text)


def test_which_cell_magics_hold_python() -> None:
    assert (
        is_python("x = 1") and is_python("%%time\nx = 1") and is_python("%%timeit -n 3\nf()") and is_python("%time f()")
    )
    assert not is_python("%%bash\nls") and not is_python("\n%%html\n<p>") and not is_python("%%writefile a.py\nx = 1")
