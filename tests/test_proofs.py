"""Each proof runs under torch: the bad modules show the failure that is claimed, the good ones do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from msalint.testing import Fixture, collect, run_proof

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
PROVEN = [fixture for fixture in collect(FIXTURES) if fixture.proof is not None]


@pytest.mark.parametrize("fixture", PROVEN, ids=lambda fixture: str(fixture.folder.relative_to(FIXTURES)))
def test_proof_holds(fixture: Fixture) -> None:
    pytest.importorskip("torch")
    assert fixture.proof is not None
    run_proof(fixture.proof)


@pytest.mark.parametrize("family", ["rules", "field", "articles", "clean"])
def test_every_fixture_has_a_proof(family: str) -> None:
    unproven = [
        fixture.folder.name
        for fixture in collect(FIXTURES / family)
        if fixture.proof is None and not fixture.folder.name.startswith("MSA90")
    ]
    assert unproven == []
