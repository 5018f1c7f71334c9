"""Whatever shape and memory order the flow claims at a line of a fixture, torch has there when the proof runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

pytest.importorskip("torch")

from msalint.testing import Fixture, collect, run_proof
from tests.agreement.claims import Path_, contradiction, paths_of
from tests.agreement.watch import Outermost, enclosing_functions, watching

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
RUN = [fixture for fixture in collect(FIXTURES) if fixture.proof is not None]
CALLS_PER_FUNCTION = 4


@dataclass
class Tally:
    """How much of what ran was compared."""

    calls: int = 0
    compared: int = 0
    seen: int = 0


TALLY = Tally()


@pytest.mark.parametrize("fixture", RUN, ids=lambda fixture: str(fixture.folder.relative_to(FIXTURES)))
def test_claims_hold_in_the_run(fixture: Fixture) -> None:
    assert fixture.proof is not None
    files = [path.resolve() for path in fixture.sources]
    with watching(files) as watcher:
        run_proof(fixture.proof)
    complaints = []
    for file in files:
        calls = some_of(watcher.calls[str(file)])
        if calls:
            paths, functions = paths_of(file), enclosing_functions(file.read_text(encoding="utf-8"))
            complaints += [f"{file.name} {line}" for call in calls if (line := judged(paths, call, functions))]
    assert not complaints, "\n".join(["", *complaints])


def some_of(calls: list[Outermost]) -> list[Outermost]:
    """The first few calls of each function that saw other shapes than those before."""
    kept: dict[tuple[str, int], list[Outermost]] = {}
    for call in calls:
        alike = kept.setdefault((call.function, call.line), [])
        if len(alike) < CALLS_PER_FUNCTION and all(other.seen != call.seen for other in alike):
            alike.append(call)
    return [call for alike in kept.values() for call in alike]


def judged(paths: list[Path_], call: Outermost, functions: dict[int, int]) -> str:
    """ "" if a path that goes by what the call went by agrees with it; else what is wrong with the closest one."""
    paths = [path for path in paths if not by_another_way(path, call, functions)]
    places = {(seen.line, seen.name) for seen in call.seen}
    claimed = places & {place for path in paths for place in path.claims}
    if not claimed:
        return ""
    whole = [path for path in paths if claimed <= set(path.claims)]
    TALLY.calls += 1
    TALLY.seen += len(places)
    if not whole:
        return ""
    TALLY.compared += len(claimed)
    # A path may know a name as nothing yet (a given argument) where another claims a tensor for it.
    nearly = [path for path in paths if len(claimed - set(path.claims)) <= len(claimed) // 4 and path not in whole]
    problems = [contradiction(path, call) for path in (*whole, *nearly)]
    return "" if "" in problems else f"{call.function}: {problems[0]}"


def by_another_way(path: Path_, call: Outermost, functions: dict[int, int]) -> bool:
    """Whether a path binds a tensor in a function of the call where the call bound none: another branch was taken."""
    entered = {functions.get(seen.line) for seen in call.seen}
    places = {(seen.line, seen.name) for seen in call.seen}
    return any(functions.get(line) in entered and (line, name) not in places for line, name in path.claims)


def test_much_was_compared() -> None:
    """Runs behind all others: a comparison that never takes place proves nothing."""
    if TALLY.calls:
        assert TALLY.compared > 0.5 * TALLY.seen, f"{TALLY.compared} of {TALLY.seen} names in {TALLY.calls} calls"
