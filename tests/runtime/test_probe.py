"""`probe`: sound modules pass, and each fault fails the property that speaks of it, with the rule that explains it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("jaxtyping")

import attention_modules as modules  # type: ignore[import-not-found]  # noqa: E402
from torch import nn  # noqa: E402

from msalint.cli import run  # noqa: E402
from msalint.runtime import MultiHeadSelfAttention, probe  # noqa: E402
from msalint.runtime.probing import Report  # noqa: E402

FILE = Path(modules.__file__)


def failed(report: Report) -> dict[str, str]:
    return {finding.name: finding.rule for finding in report.failures}


def status(report: Report, name: str) -> str:
    return next(finding.status for finding in report.findings if finding.name == name)


NOT_OF_THE_REFERENCE = (
    "padding ids",
    "marked tokens",
    "memory lengths",
    "key heads in order",
    "dtype argument",
    "dropped scores",
    "kernel arguments",
    "backward",
    "layers apart",
    "heads side by side",
)
"""It takes no ids, lengths, dtype or layers, drops no scores, shares no heads and calls no fused kernel."""


def test_the_reference_has_every_property() -> None:
    report = probe(MultiHeadSelfAttention)
    others = {finding.name: finding.status for finding in report.findings if finding.status != "pass"}
    assert others == dict.fromkeys(NOT_OF_THE_REFERENCE, "not applicable")
    assert report.dtype == "float64"


@pytest.mark.parametrize("target", [modules.Choice, modules.Fused])
def test_sound_modules_have_no_failure(target: object) -> None:
    report = probe(target, settings={"fault": "none"} if target is modules.Choice else {})
    assert failed(report) == {}


def test_causality_by_itself_is_recognised() -> None:
    report = probe(modules.Fused)
    assert status(report, "causality") == "pass"
    assert status(report, "permutation") == "not applicable"
    assert status(report, "dropout in training") == "pass"


@pytest.mark.parametrize(
    ("fault", "name", "rule"),
    [
        ("scrambled_split", "heads apart", "MSA102"),
        ("merged_without_transpose", "permutation", "MSA103"),
        ("over_batch", "samples apart", "MSA104"),
        ("over_batch", "batch of one", "MSA104"),
        ("softmax_over_queries", "weights sum to 1", "MSA211"),
        ("weights_transposed", "weights sum to 1", "MSA211"),
        ("unscaled", "scale", "MSA201"),
        ("scaled_by_model", "scale", "MSA202"),
        ("scaled_without_root", "scale", "MSA203"),
        ("scale_inverted", "scale", "MSA204"),
        ("infinite_fill", "fully masked row", "MSA301"),
        ("weak_fill", "right padding", "MSA304"),
        ("mask_ignored", "right padding", "MSA313"),
        ("mask_ignored", "causality", "MSA313"),
        ("dropout_alive", "deterministic eval", "MSA601"),
        ("unregistered", "gradient flow", "MSA404"),
        ("projection_mixed_up", "gradient flow", "MSA406"),
    ],
)
def test_a_fault_fails_its_property(fault: str, name: str, rule: str) -> None:
    found = failed(probe(modules.Choice, settings={"fault": fault}))
    assert found.get(name) == rule


def test_an_inverted_mask_fails_where_its_polarity_is_said() -> None:
    found = failed(probe(modules.Choice, settings={"fault": "inverted_mask"}, mask_true="keep"))
    assert found["right padding"] == "MSA308"
    assert "right padding" not in failed(probe(modules.Choice, settings={"fault": "inverted_mask"}, mask_true="hide"))


def test_a_call_of_ones_own_reaches_any_signature() -> None:
    module = nn.MultiheadAttention(24, 3, batch_first=True)
    report = probe(module, call="m(x, x, x, key_padding_mask=~keep)[0]")
    assert status(report, "right padding") == "pass"
    # A padding mask that hides all keys: its softmax has nothing left.
    assert failed(report) == {"fully masked row": "MSA301"}
    report = probe(module, call="m(x, x, x, attn_mask=~causal)[0]")
    assert status(report, "causality") == "pass"
    report = probe(module, call="m(x, x, x, attn_mask=causal)[0]")
    assert "causality" in failed(report)


def test_the_layout_that_nothing_states_is_found() -> None:
    assert failed(probe(modules.SeqFirst)) == {}
    assert failed(probe(nn.TransformerEncoderLayer)) == {}


def test_a_stated_layout_that_torch_does_not_have_mixes_samples() -> None:
    assert failed(probe(modules.SeqFirstFedBatchFirst))["samples apart"] == "MSA104"


def test_the_module_given_stays_as_it_was() -> None:
    module = MultiHeadSelfAttention(24, 3, dropout=0.1).train()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    probe(module)
    assert module.training
    assert all(torch.equal(before[name], value) for name, value in module.state_dict().items())
    assert all(parameter.grad is None for parameter in module.parameters())


def test_results_do_not_hang_on_the_seed_of_the_caller() -> None:
    torch.manual_seed(5)
    first = probe(modules.Choice, settings={"fault": "unscaled"})
    torch.manual_seed(6)
    assert probe(modules.Choice, settings={"fault": "unscaled"}).as_json() == first.as_json()


# --- the command ------------------------------------------------------------------------------------------------------


def test_the_command_says_what_fails_and_which_rule_explains_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["probe", f"{FILE}:Choice", "--set", "fault='unscaled'"]) == 1
    out = capsys.readouterr().out
    assert "scale                FAIL" in out
    assert "[MSA201]" in out


def test_the_command_writes_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["probe", "msalint.runtime.attention:MultiHeadSelfAttention", "--output-format", "json"]) == 0
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert {finding["status"] for finding in findings} == {"pass", "not applicable"}
    assert findings[0]["seeds"] == [0, 1, 2]


def test_the_command_draws_and_tells_the_health(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "weights.png"
    assert run(["probe", f"{FILE}:Fused", "--plot", str(picture), "--health"]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "evenness" in capsys.readouterr().out
