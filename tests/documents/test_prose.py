"""Code in Markdown, reStructuredText and docstrings is found, told of at its place in the file, and mended there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msalint import cli
from msalint.check import lint_document
from msalint.diagnostic import Position
from msalint.documents.block import Block
from msalint.documents.kinds import read_document
from msalint.documents.usual_names import with_usual_imports
from msalint.fix_document import fix_document
from msalint.settings import Settings
from msalint.source import LineTable

DOCS = Settings(include_docs=True)

FAULT = """import torch

def attend(q, k, v, heads):
    b, h, t, d = q.shape
    w = torch.softmax(q @ k.transpose(-2, -1) / d ** 0.5, dim=-1)
    return (w @ v).transpose(1, 2).view(b, t, h * d)
"""
"""Line 6 is MSA101, column 12, with a safe fix."""


def indented(text: str, by: str = "    ") -> str:
    return "".join(by + line if line.strip() else line for line in text.splitlines(keepends=True))


def prompts(text: str, indent: str = "") -> str:
    """The same code as examples: a statement's first line behind `>>> `, others behind `... `."""
    rows = []
    for line in text.splitlines():
        first = bool(line) and not line[0].isspace()
        rows.append(f"{indent}{'>>> ' if first else '... '}{line}".rstrip() if line else f"{indent}>>>")
    return "\n".join(rows) + "\n"


def blocks(text: str, name: str) -> list[str]:
    return [piece.text for piece in read_document(text, name, docs=True).pieces if isinstance(piece, Block)]


def places(text: str, name: str) -> list[tuple[str, int, int]]:
    return [(one.code, *one.span.start) for one in lint_document(text, name, DOCS)]


def mended(text: str, name: str) -> str:
    return fix_document(text, name, DOCS).text


# What is a block


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("```python\nx = 1\n```\n", ["x = 1\n"]),
        ("~~~ py\nx = 1\n~~~", ["x = 1\n"]),
        ("```py\nx = 1\n", ["x = 1\n"]),
        ('```python title="a.py" {1,2}\nx = 1\n```\n', ["x = 1\n"]),
        ("``` {.python .numberLines}\nx = 1\n```\n", ["x = 1\n"]),
        ("```{code-cell} ipython3\nx = 1\n```\n", ["x = 1\n"]),
        ("```{code-block} python\nx = 1\n```\n", ["x = 1\n"]),
        ("````python\n```\nx\n```\n````\n", ["```\nx\n```\n"]),
        ("- a\n\n  ```python\n  if x:\n\n      y = 1\n  ```\n", ["if x:\n\n    y = 1\n"]),
        ("```pycon\n>>> if x:\n...     y\n1\n\n>>> z\n```\n", ["if x:\n    y\nz\n"]),
        ("```python\n>>> x = 1\n>>> x\n1\n```\n", ["x = 1\nx\n"]),
        ("```\nx = 1\n```\n```bash\nls\n```\n```pythonic\nx\n```\n```text\n```python\n```\n", []),
        ("text `python` x = 1\n\n    x = 1\n", []),
        ("```python\n\n```\n", []),
        ("", []),
    ],
)
def test_markdown(text: str, expected: list[str]) -> None:
    assert blocks(text, "a.md") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (".. code-block:: python\n\n   x = 1\n\n   y = 2\n\nText\n", ["x = 1\n\ny = 2\n"]),
        (".. code:: py\n   :number-lines:\n   :name: it\n\n   x = 1\n", ["x = 1\n"]),
        ("  .. sourcecode:: python3\n\n      if x:\n          y\n  text\n", ["if x:\n    y\n"]),
        (".. testcode::\n\n   x = 1\n.. code-block:: bash\n\n   ls\n", ["x = 1\n"]),
        ("Text::\n\n   x = 1\n\n>>> x = 1\n>>> x\n1\n\nMore\n\n>>> y\n", ["x = 1\nx\n", "y\n"]),
        (".. code-block:: python\n\n   >>> x = 1\n   >>> x\n   1\n", ["x = 1\nx\n"]),
        (".. code-block:: python\n", []),
    ],
)
def test_restructured(text: str, expected: list[str]) -> None:
    assert blocks(text, "a.rst") == expected


def test_docstrings() -> None:
    text = (
        '"""Module.\n\n>>> x = 1\n"""\n\nclass A:\n    """A.\n\n    ```python\n    y = 2\n    ```\n    """\n\n'
        "    async def f(self):\n        r'''F.\n\n"
        "        .. code-block:: python\n\n            z = \"\\n\"\n        '''\n"
        '        """Not a docstring. >>> no\n        >>> no\n        """\n'
        'def g():\n    """G.\n\n    >>> s = "\\n"\n    """\n'
        'def h():\n    "one line >>> no"\n'
    )
    assert sorted(blocks(text, "a.py")) == ["x = 1\n", "y = 2\n", 'z = "\\n"\n']
    assert blocks("def f(:\n", "a.py") == []


# What is said of it


CASES = [
    ("a.md", "# A\n\n```python\n" + FAULT + "```\n", (9, 12)),
    ("a.md", "- item\n\n  ```py\n" + indented(FAULT, "  ") + "  ```\n", (9, 14)),
    ("a.md", "```pycon\n" + prompts(FAULT) + "```\n", (7, 16)),
    ("a.rst", ".. code-block:: python\n   :linenos:\n\n" + indented(FAULT, "   ") + "\nText\n", (9, 15)),
    ("a.rst", "Text\n\n" + prompts(FAULT) + "\nText\n", (8, 16)),
    ("a.py", 'def f():\n    """F.\n\n    ```python\n' + indented(FAULT) + '    ```\n    """\n', (10, 16)),
    ("a.py", 'def f():\n    """F.\n\n' + prompts(FAULT, "    ") + '    """\n', (9, 20)),
]


@pytest.mark.parametrize(("name", "text", "place"), CASES)
def test_a_finding_is_told_at_its_place_in_the_file(name: str, text: str, place: tuple[int, int]) -> None:
    assert places(text, name) == [("MSA101", *place)]
    (one,) = lint_document(text, name, DOCS)
    assert text.split("\n")[place[0] - 1][place[1] - 1 :].startswith("(w @ v)")
    assert [step.span.start.line for step in one.trail] == [place[0]]


@pytest.mark.parametrize(("name", "text", "place"), CASES)
@pytest.mark.parametrize("line_break", ["\n", "\r\n"])
def test_a_fix_changes_its_line_in_the_file(name: str, text: str, place: tuple[int, int], line_break: str) -> None:
    text = text.replace("\n", line_break)
    new = mended(text, name)
    assert new == text.replace(".view(", ".contiguous().view(") != text
    assert places(new, name) == []


def test_docstrings_are_looked_into_only_when_asked() -> None:
    name, text, _ = CASES[-1]
    assert lint_document(text, name, replace(DOCS, include_docs=False)) == []


def test_what_is_no_python_is_passed_over() -> None:
    text = (
        "```python\nsoftmax(...\n```\n\n```python\ntorch.softmax(x, dim=-1) -> weights\n```\n```python\n"
        + FAULT
        + "```\n"
    )
    assert [code for code, *_ in places(text, "a.md")] == ["MSA101"]


def test_an_example_needs_no_imports() -> None:
    body = FAULT.removeprefix("import torch\n\n")
    assert places(f"```python\n{body}```\n", "a.md") == [("MSA101", 5, 12)]
    assert places(f"```python\n{body}\ntorch = mine()\n```\n", "a.md") == []
    assert mended(f"```python\n{body}```\n", "a.md") == f"```python\n{body}```\n".replace(
        ".view(", ".contiguous().view("
    )


def test_the_usual_imports_are_those_that_lack() -> None:
    def added(text: str) -> str:
        return with_usual_imports(text).removeprefix(text)

    assert added("y = F.softmax(nn.Linear(3, 3)(x))\n") == "from torch import nn\nimport torch.nn.functional as F\n"
    for text in ("import torch.nn as nn\nnn.x\n", "def f(nn):\n    nn.x\n", "nn = 3\nnn.x\n", "x.nn.y\n", "xnn.y\n"):
        assert added(text) == ""


def test_suppressions_in_a_block() -> None:
    line = "h * d)"
    assert places("```python\n" + FAULT.replace(line, line + "  # noqa: MSA101") + "```\n", "a.md") == []
    shown = "```python\nx = 1  # noqa: MSA101\n```\n"
    assert places(shown, "a.md") == [] and mended(shown, "a.md") == shown, "a page may explain what a suppression is"
    assert places(shown.replace("101", "999"), "a.md") == [("MSA903", 2, 16)]


def test_a_comment_of_the_code_covers_the_docstring_too() -> None:
    name, text, _ = CASES[-1]
    hidden = text.rstrip() + "  # noqa: MSA101\n"
    assert places(hidden, name) == []
    assert [code for code, *_ in places(hidden.replace("MSA101", "MSA302"), name)] == ["MSA101", "MSA902"]
    above = "# msalint: ignore[MSA101] -- shown as it should not be\n" + text
    assert places(above, name) == []


def test_a_line_that_goes_and_lines_that_come() -> None:
    def put(text: str, new: str, name: str = "a.md") -> str | None:
        (piece,) = (one for one in read_document(text, name, docs=True).pieces if isinstance(one, Block))
        return piece.rewritten(new)

    fenced = "- ```\n  ```python\n  a\n  b\n  ```\n".replace("- ```\n", "- x\n\n")
    assert put(fenced, "b\n") == fenced.replace("  a\n", "")
    assert put(fenced, "a\nnew\n\nb\n") == fenced.replace("  b\n", "  new\n\n  b\n")
    assert put(fenced, "a\nb\nnew\n") == fenced.replace("  b\n", "  b\n  new\n")
    assert put(fenced, "new\na\nb\n") == fenced.replace("  a\n", "  new\n  a\n")
    examples = ">>> a = (1,\n...      2)\n>>> a\n(1, 2)\n>>> b\n"
    assert put(examples, "a = (1,\n     2)\na\nif c:\n    d\nb\n", "a.rst") == (
        ">>> a = (1,\n...      2)\n>>> a\n(1, 2)\n>>> if c:\n...     d\n>>> b\n"
    )
    assert put(examples, "a = (1,\n     2)\n", "a.rst") == ">>> a = (1,\n...      2)\n(1, 2)\n"
    assert put(fenced, "") is None


def test_a_fix_never_ends_the_docstring_it_stands_in() -> None:
    text = 'def f():\n    """F.\n\n    >>> a = 1\n    """\n'
    *_, piece = read_document(text, "a.py", docs=True).pieces
    assert piece.rewritten("a = 2\n") == text.replace("a = 1", "a = 2")
    assert piece.rewritten('a = """"""\n') is None
    assert piece.rewritten('a = "\\n"\n') is None


# Jupytext's files are plain Python


PERCENT = """# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
# ---

# %% [markdown]
# # Attention

# %%
# %matplotlib inline
# !pip install torch
import torch

# %% tags=["a"]
"""
LIGHT = """# # Attention

# +
# %matplotlib inline
import torch
# -

# + [markdown]
# Words.
# -

"""


@pytest.mark.parametrize("head", [PERCENT, LIGHT])
def test_jupytext_is_plain_python(head: str) -> None:
    text = head + FAULT.removeprefix("import torch\n\n")
    assert places(text, "a.py") == [("MSA101", head.count("\n") + 4, 12)]
    assert mended(text, "a.py") == text.replace(".view(", ".contiguous().view(")


# The command line


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text, _ in CASES[-3:]:
        Path(name).write_text(text)
    Path("b.md").write_text("# Coding: basics\n\n```python\n" + FAULT + "```\n")
    return tmp_path


def found(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    cli.run([*arguments, "--output-format", "pylint"])
    return [line.partition(":")[0] for line in capsys.readouterr().out.splitlines()]


def test_docs_are_found_when_asked_for(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert found(capsys, ".") == []
    assert found(capsys, ".", "--include-docs") == ["a.py", "a.rst", "b.md"]
    assert found(capsys, "b.md") == ["b.md"], "a file that was named is checked"
    Path("msalint.toml").write_text("include-docs = true\n")
    assert found(capsys, ".") == ["a.py", "a.rst", "b.md"]
    assert found(capsys, ".", "--no-include-docs") == []


def test_a_wrong_setting_is_told(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("msalint.toml").write_text('include-docs = "yes"\n')
    assert cli.run(["."]) == 2
    assert "`include-docs` must be true or false" in capsys.readouterr().err


def test_a_frame_shows_the_lines_of_the_document(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["a.rst"]) == 1
    out = capsys.readouterr().out
    assert "8 | ...     return (w @ v).transpose(1, 2).view(b, t, h * d)\n" in out
    assert "8 | + ...     return (w @ v).transpose(1, 2).contiguous().view(b, t, h * d)\n" in out


def test_fixes_on_the_command_line(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = {name: Path(name).read_text() for name in ("a.py", "a.rst", "b.md")}
    assert cli.run(["--diff", "--include-docs", "."]) == 1
    out = capsys.readouterr().out
    assert "+++ b.md\n" in out and "\n+...     return (w @ v).transpose(1, 2).contiguous()" in out
    assert cli.run(["--fix", "."]) == 0
    assert {name: Path(name).read_text() for name in texts} == texts
    assert cli.run(["--fix", "--include-docs", "."]) == 0
    for name, text in texts.items():
        assert Path(name).read_text() == text.replace(".view(", ".contiguous().view(") != text


# Whatever comes

ROWS = st.sampled_from(
    [
        *("```python", "```", "~~~py", "~~~", "  ```py", "  ```", "````", ".. code-block:: python", "   .. code:: py"),
        *("   :name: x", "   x = 1", "x = 1", "    if y:", "        z", "", "  ", ">>> a", "... b", ">>>", "1"),
        *("    >>> c", "\t>>> d", "\tx", "é = 2", ".. testcode::", "- ```py", "\x0c", "\u2028x", '"""', "def f():"),
        *('    """F.', '    """'),
    ]
)


@settings(deadline=None)
@given(st.lists(ROWS, max_size=14), st.sampled_from(["a.md", "a.rst", "a.py"]), st.sampled_from(["\n", "\r\n", "\r"]))
def test_every_character_of_a_block_is_where_it_is_said_to_be(rows: list[str], name: str, line_break: str) -> None:
    text = line_break.join(rows)
    table = LineTable(text)
    for piece in read_document(text, name, docs=True).pieces:
        assert piece.rewritten(piece.text) == text
        for number, line in enumerate(piece.text.split("\n")[:-1] if isinstance(piece, Block) else [], 1):
            for column, character in enumerate(line, 1):
                place = piece.outward(Position(number, column))
                assert table.line(place.line)[place.column - 1] == character


@settings(deadline=None)
@given(
    st.lists(ROWS, max_size=14),
    st.sampled_from(["a.md", "a.rst"]),
    st.lists(st.sampled_from(["new", "x = 1", "", "if y:", "    z"])),
)
def test_a_rewritten_block_reads_back_as_its_new_text(rows: list[str], name: str, lines: list[str]) -> None:
    text = "\n".join(rows) + "\n"
    for number, piece in enumerate(read_document(text, name).pieces):
        new = piece.text + "".join(line + "\n" for line in lines) + "end\n"
        changed = piece.rewritten(new)
        if isinstance(piece, Block) and not piece.prompts:
            assert changed is not None
            assert read_document(changed, name).pieces[number].text == new
