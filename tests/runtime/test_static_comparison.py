"""What reading claims is put beside what a run had, line by line, and told where they differ."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("jaxtyping")

import attention_modules as modules  # type: ignore[import-not-found]  # noqa: E402

from msalint.cli import run  # noqa: E402
from msalint.runtime.request import Request  # noqa: E402
from msalint.runtime.static_comparison import StaticClaim, compare  # noqa: E402
from msalint.runtime.trace_target import trace_target  # noqa: E402

FILE = Path(modules.__file__)
LINE = next(n for n, text in enumerate(FILE.read_text().splitlines(), 1) if text.strip().startswith("out = F.scaled"))


def differences(*claims: StaticClaim) -> list[str | None]:
    call = trace_target(modules.Fused, Request()).subject.call
    return [one.reason for one in compare([claims], call, str(FILE))]


def test_claims_that_hold_agree() -> None:
    assert differences(
        StaticClaim(LINE - 2, "q", ("B", "H", "T", "d"), True),
        StaticClaim(LINE - 2, "x", ("...", "T", "H*d"), False),
        StaticClaim(LINE, "out", ("B", "H", "T", "dim // H")),
    ) == [None, None, None]


def test_claims_that_do_not_hold_say_how() -> None:
    wrong = differences(
        StaticClaim(LINE - 2, "q", ("B", "H", "T", "d")),
        StaticClaim(LINE - 2, "q", ("B", "H", "T", "d"), False),
        StaticClaim(LINE, "out", ("B", "T", "H", "d")),
        StaticClaim(LINE, "out", ("B", "T", "d")),
        StaticClaim(LINE, "x", ("B", "T", "H*d+1")),
        StaticClaim(LINE, "x", ("B", "T", "H*d"), True),
    )
    assert wrong == [
        None,
        "it is strided 0 2 1 3",
        "axis 1 is 3, not T = 5",
        "it has 4 axes, not 3",
        "axis 2 is 21, not H*d+1 = 22",
        "it is contiguous",
    ]


def test_a_value_made_in_a_helper_is_seen_where_it_is_bound() -> None:
    line = next(n for n, text in enumerate(FILE.read_text().splitlines(), 1) if "self.split(self.q(x))" in text)
    call = trace_target(modules.Choice, Request(settings={"fault": "none"})).subject.call
    (one,) = compare([[StaticClaim(line, "q", ("B", "H", "T", "d"), True)]], call, str(FILE))
    assert (one.shape, one.reason) == ((2, 3, 5, 7), None)


def test_a_line_that_did_not_run_claims_nothing() -> None:
    call = trace_target(modules.Fused, Request()).subject.call
    (one,) = compare([[StaticClaim(1, "x", ("B",), False)]], call, str(FILE))
    assert (one.shape, one.reason) == (None, None)


def test_the_path_that_was_run_is_the_one_compared() -> None:
    call = trace_target(modules.Fused, Request()).subject.call
    taken = [StaticClaim(LINE, "out", ("B", "H", "T", "d"))]
    other = [StaticClaim(LINE, "out", ("B", "T")), StaticClaim(1, "mask", ("B", "T"))]
    assert [one.claim for one in compare([other, taken], call, str(FILE))] == taken


def test_a_value_that_a_helper_has_in_turn_has_to_be_one_of_those_claimed() -> None:
    line = next(n for n, text in enumerate(FILE.read_text().splitlines(), 1) if text.strip().startswith("x = x.view("))
    call = trace_target(modules.Choice, Request(settings={"fault": "none"})).subject.call
    claims = [StaticClaim(line, "x", ("B", "L", "H", "d"))] * 3
    assert [one.reason for one in compare([claims], call, str(FILE))] == [None]


def test_the_command_shows_both(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["trace", f"{FILE}:Fused", "--against-static"]) == 0
    out = capsys.readouterr().out
    assert "read from the code, and run" in out
    assert "0 disagree" in out
    assert "not run" not in out
