"""A notebook is checked cell by cell as one flow, is told of by cell, and is mended with no other byte changed."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msalint import cli
from msalint.check import lint_bytes, lint_document
from msalint.diagnostic import Diagnostic
from msalint.documents.kinds import read_document, rewritten
from msalint.documents.notebook import foreign_language
from msalint.fix_document import fix_document
from msalint.settings import Settings
from msalint.source import SourceError
from tests.documents.notebooks import ATTENTION, FORWARD, IMPORTS, cell, notebook

WHOLE = notebook(cell("# Attention\n", "markdown"), IMPORTS, ATTENTION, cell("%%bash\nls (\n"), FORWARD)


def places(file: str, name: str = "a.ipynb") -> list[tuple[str, str]]:
    cells = read_document(file, name).cells
    assert cells is not None
    return [(one.code, str(cells.place(one.span.start))) for one in lint_document(file, name)]


def test_later_cells_know_earlier_ones_and_positions_count_by_cell() -> None:
    assert places(WHOLE) == [("MSA101", "cell 5:7:16")]
    assert places(notebook(IMPORTS, FORWARD)) == []


def test_order_is_that_of_the_cells() -> None:
    again = FORWARD.replace("context.view", "context.contiguous().view")
    assert places(notebook(IMPORTS, ATTENTION, FORWARD, again)) == []
    assert places(notebook(IMPORTS, ATTENTION, again, FORWARD)) == [("MSA101", "cell 4:7:16")]


@pytest.mark.parametrize(
    "extra",
    [
        "%load_ext autoreload\n",
        "!pip install torch > /dev/null && echo 'it\\'s\n",
        "x = %time f(\n",
        "nn.Linear?\n",
        "if True:\n    !ls \\\n      -l\n",
        "await fetch()\n",
        "%%time\nx = 1\n",
    ],
)
def test_what_is_ipythons_is_left_aside_where_it_stands(extra: str) -> None:
    assert places(notebook(IMPORTS, extra, ATTENTION, FORWARD)) == [("MSA101", "cell 4:7:16")]
    if not extra.startswith("%%"):
        moved = f"cell 3:{7 + extra.count(chr(10))}:16"
        assert places(notebook(IMPORTS, ATTENTION, extra + FORWARD)) == [("MSA101", moved)]


def test_cells_of_other_languages_are_left_out() -> None:
    html = cell("<b>softmax</b>", vscode={"languageId": "html"})
    assert places(notebook(IMPORTS, html, cell("%%html\n<b>"), cell("raw (", "raw"), ATTENTION, FORWARD)) == [
        ("MSA101", "cell 6:7:16")
    ]


def test_a_suppression_hides_in_its_cell() -> None:
    assert places(notebook(IMPORTS, ATTENTION, FORWARD + "  # noqa: MSA101")) == []
    assert places(notebook(IMPORTS, ATTENTION, FORWARD + "  # msalint: ignore[MSA101] -- one head")) == []
    idle = notebook(IMPORTS, ATTENTION + "    x = 1  # noqa: MSA101\n", FORWARD)
    assert places(idle) == [("MSA902", "cell 2:10:12"), ("MSA101", "cell 3:7:16")]


def test_a_broken_cell_is_told_and_the_others_are_checked() -> None:
    broken = notebook(IMPORTS, "def f(:\n    pass\n", ATTENTION, "x = (1,\n", FORWARD)
    found = places(broken)
    assert [code for code, _ in found] == ["MSA901", "MSA901", "MSA101"]
    assert found[0][1] == "cell 2:1:7" and found[1][1].startswith("cell 4:1:") and found[2][1] == "cell 5:7:16"


@pytest.mark.parametrize(
    ("text", "words", "line"),
    [
        ('{"cells": [\n', "not valid JSON", 2),
        ("", "not valid JSON", 1),
        ("[]", "no Jupyter notebook", 1),
        ('{"a": 1}', "no Jupyter notebook", 1),
        ('{"nbformat": 4}', "no list of cells", 1),
        ('{"nbformat": 3, "worksheets": []}', "notebooks of format 4 are read, and this one is of 3", 1),
        ('{"nbformat": 4, "cells": [{"cell_type": "code", "source": 3}]}', "cell 1 has no source", 1),
        ('{"nbformat": 4, "cells": [7]}', "cell 1 has no source", 1),
        ("[" * 100_000, "nested too deeply", 1),
    ],
)
def test_what_is_no_notebook_is_told(text: str, words: str, line: int) -> None:
    (found,) = lint_bytes(text.encode(), "a.ipynb")
    assert found.code == "MSA901" and words in found.message
    assert found.span.start.line == line


def test_a_notebook_of_another_language_holds_nothing() -> None:
    assert places(notebook("x <- softmax(", language="R")) == []
    assert foreign_language(notebook("x", language="julia")) == "julia"
    assert foreign_language(notebook("x")) is None and foreign_language(notebook("x", language=None)) is None
    assert places(notebook(IMPORTS, ATTENTION, FORWARD, language=None)) == [("MSA101", "cell 3:7:16")]


# Fixes


def mended(file: str) -> str:
    return fix_document(file, "a.ipynb", Settings()).text


@pytest.mark.parametrize("indent", [1, 4, None])
@pytest.mark.parametrize("as_lines", [True, False])
def test_a_fix_changes_its_line_and_no_other_byte(indent: int | None, as_lines: bool) -> None:
    file = notebook(
        cell("# é ☃", "markdown"), IMPORTS, ATTENTION, cell(FORWARD, as_lines=as_lines), "x = 1  \n\n", indent=indent
    )
    new = mended(file)
    assert new == file.replace("return context.view", "return context.contiguous().view") != file
    assert mended(new) == new
    assert places(new) == []


def test_odd_spellings_of_json_stay() -> None:
    file = WHOLE.replace("\n", "\r\n").replace('"nbformat": 4', '"nbformat":   4').replace("**", "\\u002a*")
    file = file.replace('"id": "a1"', '"id": "\\u0061\\/1", "id": "b"').rstrip()
    new = mended(file)
    assert new == file.replace("return context.view", "return context.contiguous().view") != file


def test_an_import_lands_in_the_cell_of_the_imports() -> None:
    from msalint.diagnostic import Edit, Fix, Level, Position, Safety, Span
    from msalint.fix import apply

    def with_import(text: str) -> str:
        place = Position(text[: text.index("y = 2")].count("\n") + 1, 5)
        fix = Fix("", (Edit(Span(place, place._replace(column=6)), "math.pi"),), Safety.SAFE, ("import math",))
        return apply(text, [Diagnostic("MSA999", "x", Level.NOTE, "", "a.ipynb", Span(place, place), fix=fix)]).text

    def sources(file: str) -> list[str]:
        return ["".join(one["source"]) for one in json.loads(file)["cells"]]

    file = notebook("%load_ext x\nimport torch", "y = 2\n")
    new, _ = rewritten(file, "a.ipynb", lambda piece: (with_import(piece.text), None))
    assert sources(new) == ["%load_ext x\nimport torch\nimport math", "y = math.pi\n"]
    timed = notebook("%%time\nx = 1", "y = 2\n")
    new, _ = rewritten(timed, "a.ipynb", lambda piece: (with_import(piece.text), None))
    assert sources(new) == ["%%time\nimport math\nx = 1", "y = math.pi\n"]
    unchanged, said = rewritten(timed, "a.ipynb", lambda piece: ("import math\n" + piece.text, None))
    assert (unchanged, said) == (timed, []), "a line above %%time would take the magic's meaning away"


def test_a_text_that_lost_what_was_hidden_is_refused() -> None:
    (piece,) = read_document(WHOLE, "a.ipynb").pieces
    lines = piece.text.split("\n")
    assert piece.rewritten(piece.text) == WHOLE
    assert piece.rewritten("\n".join(["    " + lines[0], *lines[1:]])) is None
    assert piece.rewritten("\n".join(lines[1:])) is None
    marks = [number for number, line in enumerate(lines) if line.startswith("#~") and not line[-1].isdigit()]
    assert piece.rewritten("\n".join(lines[: marks[0]] + lines[marks[0] + 1 :])) is None


def test_the_marks_are_no_line_that_a_notebook_holds() -> None:
    file = notebook(IMPORTS, "#~cell~\n#~cell~~0\n", ATTENTION, FORWARD).replace("#~cell~~", "#\\u007ecell~~")
    assert mended(file) == file.replace("return context.view", "return context.contiguous().view") != file


@pytest.mark.parametrize("indent", [1, None])
@pytest.mark.parametrize("as_lines", [True, False])
def test_which_line_of_the_file_a_line_is_on(indent: int | None, as_lines: bool) -> None:
    file = notebook(cell("x\ny", "markdown"), IMPORTS, cell(FORWARD, as_lines=as_lines), "", indent=indent)
    document = read_document(file, "a.ipynb")
    rows = file.split("\n")
    for number, line in enumerate(document.shown.split("\n"), 1):
        if line.strip() and not line.startswith("#~"):
            assert json.dumps(line)[1:-1] in rows[document.file_line(number) - 1]
    assert read_document("x = 1\n\ny = 2\n", "a.py").file_line(3) == 3


# The command line


def write(name: str, text: str) -> None:
    Path(name).write_bytes(text.encode())


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_notebooks_are_found_and_shown_by_cell(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write("sub/a.ipynb".replace("sub/", ""), WHOLE)
    Path(".ipynb_checkpoints").mkdir()
    write(".ipynb_checkpoints/a.ipynb", WHOLE)
    assert cli.run(["."]) == 1
    out = capsys.readouterr().out
    assert out.startswith("a.ipynb:cell 5:7:16: MSA101 [error]") and "1 error in 1 file" in out
    assert "7 |         return context.view(batch, length, dim)\n" in out
    assert "\n7 | +         return context.contiguous().view(batch, length, dim)\n" in out
    assert "#~cell" not in out


def test_frames_show_what_the_person_wrote(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = FORWARD.replace("        return", "        !ls\n        return")
    write("a.ipynb", notebook(IMPORTS, ATTENTION, text))
    assert cli.run(["a.ipynb"]) == 1
    assert "7 |         !ls\n" in capsys.readouterr().out


def test_a_notebook_on_stdin(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(WHOLE.encode())))
    assert cli.run(["-", "--stdin-filename", "b.ipynb", "--output-format", "json"]) == 1
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["cell"], found["location"]) == (5, {"row": 7, "column": 16})


def test_fixes_on_the_command_line(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write("a.ipynb", WHOLE)
    assert cli.run(["--diff", "."]) == 1
    assert capsys.readouterr().out.startswith(
        "--- a.ipynb:cell 5\n+++ a.ipynb:cell 5\n@@ -4,4 +4,4 @@\n         q, k, v = "
    )
    assert Path("a.ipynb").read_text(encoding="utf-8") == WHOLE
    assert cli.run(["--fix", "."]) == 0
    assert "1 fixed" in capsys.readouterr().out
    assert Path("a.ipynb").read_text(encoding="utf-8") == WHOLE.replace("context.view", "context.contiguous().view")
    assert cli.run(["--fix", "."]) == 0
    assert "fixed" not in capsys.readouterr().out


def test_a_fixed_notebook_goes_on_through_the_pipe(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(WHOLE.encode())))
    assert cli.run(["-", "--stdin-filename", "b.ipynb", "--fix"]) == 0
    assert capsys.readouterr().out == WHOLE.replace("context.view", "context.contiguous().view")


def test_comments_are_written_into_cells(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write("a.ipynb", WHOLE)
    assert cli.run(["--add-noqa", "."]) == 0
    line = "context.view(batch, length, dim)"
    assert Path("a.ipynb").read_text(encoding="utf-8") == WHOLE.replace(line, line + "  # noqa: MSA101")
    assert cli.run(["."]) == 0


def test_a_baseline_knows_lines_of_cells(here: Path) -> None:
    write("a.ipynb", WHOLE)
    assert cli.run(["--baseline", "b.json", "--update-baseline", "."]) == 0
    write("a.ipynb", notebook("import os\n", IMPORTS, ATTENTION, "# more\n" + FORWARD))
    assert cli.run(["--baseline", "b.json", "."]) == 0
    write("a.ipynb", notebook(IMPORTS, ATTENTION, FORWARD, FORWARD.replace("Whole", "Other")))
    assert cli.run(["--baseline", "b.json", "."]) == 1


def test_since_a_revision_counts_lines_of_the_file(here: Path) -> None:
    def git(*arguments: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        subprocess.run(["git", *who, *arguments], check=True, capture_output=True)

    write("a.ipynb", WHOLE)
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "first")
    assert cli.run(["--since", "HEAD", "."]) == 0
    write("a.ipynb", WHOLE.replace("# Attention", "# Attention, and more"))
    assert cli.run(["--since", "HEAD", "."]) == 0
    write("a.ipynb", WHOLE.replace('length, dim)"', 'length, dim )"'))
    assert cli.run(["--since", "HEAD", "."]) == 1


def test_a_cached_notebook_is_told_as_before(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write("a.ipynb", WHOLE)
    assert cli.run(["."]) == 1
    first = capsys.readouterr().out
    assert cli.run(["."]) == 1
    assert capsys.readouterr().out == first and "cell 5:7:16" in first


def test_a_broken_notebook_is_a_finding_in_its_json(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write("a.ipynb", '{\n "cells": [,\n')
    assert cli.run(["--output-format", "concise", "-q", "."]) == 1
    assert capsys.readouterr().out.startswith("a.ipynb:2:12: MSA901 [error] a notebook is a JSON file")


def test_a_notebook_of_r_is_told_when_it_was_asked_for(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write("r.ipynb", notebook("x <- 1", language="R"))
    assert cli.run(["r.ipynb"]) == 0
    assert capsys.readouterr().err == "warning: r.ipynb: left out: the code of this notebook is R, not Python\n"
    assert cli.run(["."]) == 0
    assert capsys.readouterr().err == ""


def test_helpers_of_the_project_are_known_in_a_notebook(here: Path) -> None:
    write("layers.py", "import torch\nfrom torch import nn\n\n\n" + ATTENTION)
    write("a.ipynb", notebook("import torch\nfrom layers import Attention\n", FORWARD))
    from msalint import lint_paths

    assert [(one.code, one.filename) for one in lint_paths(["."])] == [("MSA101", "a.ipynb")]


def test_every_notebook_reads_back(tmp_path: Path) -> None:
    odd: list[Any] = [
        "",
        "\n",
        "x",
        "x\n",
        "x\n\n",
        "a\r\nb\r\n",
        cell(""),
        cell("\n\n", as_lines=False),
        cell("a\rb"),
        cell("a\0b"),
    ]
    for number in range(len(odd)):
        file = notebook(*odd[number:])
        document = read_document(file, "a.ipynb")
        assert document.pieces[0].rewritten(document.pieces[0].text) == file


LINES = st.sampled_from(
    [
        *("%x", "!ls '", "x = !y", "x?", "%%time", "%%html", "x = (1,", ")", "'''", '"""a', "if x:", "    y = 1"),
        *("    !z", "", "#~cell~", "y = 'é' \\", "def f(q):", "    return torch.softmax(q, -1)", "import torch"),
        *("# noqa: MSA101", "\ud83d", "\t%a", "\x0c", "x = '\u2028'"),
    ]
)


@settings(deadline=None)
@given(st.lists(st.lists(LINES, max_size=6).map("\n".join), max_size=5), st.booleans())
def test_no_cell_breaks_the_others_or_is_lost(cells: list[str], dos: bool) -> None:
    codes = [one.replace("\n", "\r\n") if dos else one for one in cells]
    file = json.dumps({"nbformat": 4, "cells": [cell(one) for one in codes]})
    document = read_document(file, "a.ipynb")
    for piece in document.pieces:
        assert piece.text.count("\n") == document.shown.count("\n")
        assert piece.rewritten(piece.text) == file
    for one in lint_document(file, "a.ipynb"):
        assert document.cells is not None and 1 <= (document.cells.place(one.span.start).cell or 0) <= len(cells)


def test_a_cell_with_signs_that_python_has_not_is_never_rewritten() -> None:
    file = notebook(IMPORTS, cell(ATTENTION), cell("s = 'a\rb'\n" + FORWARD, as_lines=False))
    assert [code for code, _ in places(file)] == ["MSA101"]
    assert mended(file) == file


def test_a_notebook_without_metadata_or_cells_is_fine() -> None:
    assert lint_document('{"nbformat": 4, "cells": []}', "a.ipynb") == []
    with pytest.raises(SourceError):
        lint_document("x = 1\n", "a.ipynb")
