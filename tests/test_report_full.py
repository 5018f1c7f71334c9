"""The report for people, as they see it."""

from __future__ import annotations

from msalint.diagnostic import Diagnostic, Edit, Fix, Level, Position, Safety, Span, Step
from msalint.report import Report, render, statistics

SOURCE = """import torch

def forward(self, x):
    context = weights @ value
    context = context.transpose(1, 2)

    y = 1
    z = 2

    return self.out(context.view(B, L, D))
"""


def span(line: int, first: int, last: int, end: int | None = None) -> Span:
    return Span(Position(line, first), Position(end or line, last))


VIEW = Diagnostic(
    code="MSA101",
    name="view-needs-contiguous",
    level=Level.ERROR,
    message="`.view` merges H and d, which are not adjacent in memory: RuntimeError",
    filename="net.py",
    span=span(10, 21, 42),
    trail=(Step("net.py", span(5, 15, 38), "made non-contiguous by this transpose"),),
    help="insert `.contiguous()`",
    fix=Fix("insert `.contiguous()`", (Edit(span(10, 28, 28), ".contiguous()"),), Safety.SAFE),
)


def report(*diagnostics: Diagnostic, source: str = SOURCE) -> Report:
    return Report(diagnostics, text=lambda name: source if name == "net.py" else "")


def test_a_finding_with_its_trail_and_fix() -> None:
    assert render(report(VIEW), "full") == (
        """\
net.py:10:21: MSA101 [error] [*] `.view` merges H and d, which are not adjacent in memory: RuntimeError
   |
 5 |     context = context.transpose(1, 2)
   |               ----------------------- made non-contiguous by this transpose
...
10 |     return self.out(context.view(B, L, D))
   |                     ^^^^^^^^^^^^^^^^^^^^^ view-needs-contiguous
   |
   = help: insert `.contiguous()` (safe fix)
10 | -     return self.out(context.view(B, L, D))
10 | +     return self.out(context.contiguous().view(B, L, D))

"""
    )


def changed(**fields: object) -> Diagnostic:
    from dataclasses import replace

    return replace(VIEW, **{"fix": None, "help": None, "trail": (), **fields})  # type: ignore[arg-type]


def test_lines_close_together_are_shown_without_a_gap() -> None:
    one = changed(trail=(Step("net.py", span(8, 5, 10), "here"),))
    assert "...\n" not in render(report(one), "full")
    assert "\n 9 |\n10 |" in render(report(one), "full")


def test_steps_in_other_files_are_notes() -> None:
    one = changed(trail=(Step("helper.py", span(3, 5, 6), "moved here"),))
    assert "   = note: helper.py:3:5: moved here\n" in render(report(one), "full")


def test_a_stretch_of_several_lines_is_underlined_to_the_end_of_the_first() -> None:
    one = changed(span=span(3, 1, 5, end=5))
    assert "  | ^^^^^^^^^^^^^^^^^^^^^... view-needs-contiguous\n" in render(report(one), "full")


def test_carets_stand_below_wide_characters_and_tabs() -> None:
    source = '\tx = "漢字é"; context.view(1)\n'
    start = source.index("context") + 1
    text = render(report(changed(span=span(1, start, start + 7)), source=source), "full")
    _, line, carets = text.split("\n")[1:4]
    assert line.startswith('1 |     x = "漢字é"; context')
    assert carets.index("^") - len("1 | ") == len("    x = ") + 1 + 2 + 2 + 1 + 1 + len("; ")
    assert carets.count("^") == len("context")


def test_a_place_outside_of_the_text_has_no_frame() -> None:
    assert render(report(changed(span=span(99, 1, 2))), "full").count("\n") == 2
    assert render(report(changed(filename="gone.py")), "full").count("\n") == 2


def test_a_finding_at_the_end_of_an_empty_line_has_one_caret() -> None:
    assert "|^".replace("|", "| ") + " view" in render(report(changed(span=span(2, 1, 1))), "full")


def test_a_long_fix_is_named_and_not_shown() -> None:
    edits = (Edit(span(1, 1, 7), "import torch as t"), Edit(span(10, 12, 16), "me"))
    text = render(report(changed(help="rewrite", fix=Fix("rewrite", edits, Safety.UNSAFE))), "full")
    assert "= help: rewrite (changes what is computed)\n" in text and "| +" not in text


def test_a_fix_that_adds_an_import_shows_the_changed_lines() -> None:
    fix = Fix("f", (Edit(span(4, 15, 22), "torch.w"),), Safety.SAFE, ("import math",))
    text = render(report(changed(help="f", fix=fix)), "full")
    assert " 4 | -     context = weights @ value\n 4 | +     context = torch.w @ value\n" in text


def test_colour_only_when_asked_for() -> None:
    assert "\x1b[" not in render(report(VIEW), "full")
    painted = render(report(VIEW), "full", color=True)
    assert "\x1b[1;31mMSA101\x1b[0m" in painted


def test_concise_is_a_line_a_finding() -> None:
    line = "net.py:10:21: MSA101 [error] [*] `.view` merges H and d, which are not adjacent in memory: RuntimeError\n"
    assert render(report(VIEW, VIEW), "concise") == 2 * line


def test_statistics_count_each_rule_the_commonest_first() -> None:
    """The last rule has no fix, one finding of the middle one has none."""
    bare = changed(code="MSA211", name="softmax-wrong-axis", fix=None)
    other = changed(code="MSA201", name="missing-scale", fix=VIEW.fix)
    without = changed(code="MSA201", name="missing-scale", fix=None)
    told = "3  MSA101  [*] view-needs-contiguous\n2  MSA201  [-] missing-scale\n1  MSA211  [ ] softmax-wrong-axis\n"
    assert statistics(report(bare, other, without, VIEW, VIEW, VIEW)) == told
    assert statistics(report(bare)) == "1  MSA211  softmax-wrong-axis\n"
