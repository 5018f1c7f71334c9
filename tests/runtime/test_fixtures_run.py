"""The fixtures, run as their proofs run them: no mended file breaks the contract, and the table names every fault."""

from __future__ import annotations

import contextlib
import io
import warnings
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("jaxtyping")

from msalint.runtime.probing import probe  # noqa: E402
from msalint.runtime.request import Request  # noqa: E402
from msalint.runtime.target import TargetError  # noqa: E402
from msalint.runtime.trace_target import trace_target  # noqa: E402
from msalint.testing import Fixture, collect  # noqa: E402
from tests.agreement.proof_calls import ProofCall, calls_of  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = [
    fixture
    for root in ("rules", "field")
    for fixture in collect(ROOT / "fixtures" / root)
    if fixture.proof is not None and fixture.faulty
]


def calls(fixture: Fixture) -> list[ProofCall]:
    assert fixture.proof is not None
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return calls_of(fixture.proof, fixture.sources)


@pytest.mark.parametrize("fixture", FOLDERS, ids=lambda fixture: fixture.folder.name)
def test_no_mended_file_breaks_the_contract(fixture: Fixture) -> None:
    mended = {path.with_name(path.name.replace("bad", "good", 1)).resolve() for path in fixture.faulty}
    complaints = []
    for call in calls(fixture):
        if call.file not in mended:
            continue
        try:
            flow = trace_target(call.target, Request(values=call.values)).flow
        except TargetError:
            continue
        complaints += [f"{call.file.name} {call.name}: {one.kind}, line {one.op.line}" for one in flow.problems]
        complaints += [f"{call.file.name}:{one.line}: {one.comment}: {one.reason}" for one in flow.comments]
    assert not complaints, "\n".join(complaints)


@pytest.mark.parametrize(
    ("folder", "stem", "name"),
    [
        ("MSA103-heads-merge-scrambles-tokens", "bad_folded_output", "axes in order"),
        ("MSA105-attention-over-head-axis", "bad_einops", "tokens meet"),
        ("MSA203-scale-without-root", "bad_torch_div", "scale"),
        ("MSA308-mask-inverted", "bad_keep_filled", "padding ids"),
        ("MSA310-causal-mask-shows-future", "bad_where_swapped", "causality"),
        ("MSA410-loop-overwrites-input", "bad_head_by_head", "heads side by side"),
        ("MSA107-view-reorders-axes", "bad_pixels_as_tokens", "axes in order"),
        ("MSA312-bool-mask-added", "bad_added_in_place", "memory lengths"),
        ("MSA411-parameter-moved", "bad_dtype_and_helper", "weights registered"),
        ("a014-video-frames-reshape", "bad", "axes in order"),
        ("a024-autograd-function-double-transpose", "bad", "backward"),
        ("b001-kv-notebook-no-scale", "bad", "scale"),
        ("b018-decode-step-is-causal-one-query", "bad", "cached decoding"),
        ("b039-causal-mask-cut-to-new-tokens", "bad", "cached parts"),
        ("MSA404-layers-in-plain-list", "bad_dict_by_comprehension", "gradient flow"),
        ("MSA501-mha-layout", "bad_positions", "batch order"),
        ("MSA603-dropout-before-softmax", "bad_masked_first", "dropped scores"),
        ("MSA707-positions-follow-batch", "bad_along_batch", "batch order"),
        ("MSA708-positions-not-a-buffer", "bad_positions", "device"),
        ("b040-learned-positions-restart-at-zero", "bad", "prefix"),
        ("b043-shared-cache-counts-in-layer-zero", "bad", "cached decoding"),
    ],
)
def test_probe_sees_the_fault_as_the_proof_calls_it(folder: str, stem: str, name: str) -> None:
    fixture = next(one for one in FOLDERS if one.folder.name == folder)
    found = set()
    for call in calls(fixture):
        if call.file.stem == stem:
            with contextlib.suppress(TargetError):
                found |= {finding.name for finding in probe(call.target, values=call.values).failures}
    assert name in found


def test_the_table_has_a_row_for_every_faulty_file() -> None:
    page = (ROOT / "docs" / "runtime_faults.md").read_text(encoding="utf-8")
    missing = [
        f"{path.parent.name}/{path.stem}"
        for fixture in FOLDERS
        for path in fixture.faulty
        if f"| {path.parent.name}/{path.stem} |" not in page
    ]
    assert not missing, "run python benchmarks/runtime_faults.py --write"


def test_what_probe_does_not_see_and_what_it_says_of_mended_files_has_its_reason() -> None:
    assert "No reason is known" not in (ROOT / "docs" / "runtime_faults.md").read_text(encoding="utf-8")
