"""Attention sites in sound modules are understood: their axes, what is contracted, and what softmax normalises."""

from __future__ import annotations

from pathlib import Path

import pytest

from msalint.flow.tallying import tally

CLEAN = Path(__file__).resolve().parents[1] / "fixtures" / "clean"
WITHOUT_SITES = {"cross_attention_masks.py", "mha_batch_first.py", "sequence_first_mha.py", "transformer_encoder.py"}
"""Modules whose attention is a layer of torch's."""
NOT_YET = {"pooling_and_additive.py"}
"""Scores that a layer makes, with no product of queries and keys."""


@pytest.mark.parametrize("name", sorted(path.name for path in CLEAN.glob("*.py") if path.name != "prove.py"))
def test_sites_are_understood(name: str) -> None:
    found = tally((CLEAN / name).read_text(encoding="utf-8"), name)
    assert (found.understood == found.sites) == (name not in NOT_YET), dict(found.reasons)
    assert found.sites > 0 or name in WITHOUT_SITES
