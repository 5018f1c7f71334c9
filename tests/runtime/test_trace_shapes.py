"""The flow of a run: axes by name, and each way of breaking the contract of attention is told at its line."""

# A call of a module is Any to the type checker.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import inspect
import json
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("jaxtyping")

import attention_modules as modules  # type: ignore[import-not-found]  # noqa: E402
from torch import Tensor, nn  # noqa: E402

from msalint.cli import run  # noqa: E402
from msalint.runtime import MultiHeadSelfAttention, trace_shapes  # noqa: E402
from msalint.runtime.request import Request  # noqa: E402
from msalint.runtime.trace_target import TargetTrace, trace_target  # noqa: E402

FILE = Path(modules.__file__)


def traced(target: object, **asked: object) -> TargetTrace:
    return trace_target(target, Request(**asked))  # type: ignore[arg-type]


def rules_of(trace: TargetTrace) -> list[str | None]:
    return [problem.rule for problem in trace.flow.problems]


@pytest.mark.parametrize(
    ("fault", "kind", "rule"),
    [
        ("scrambled_split", "heads not split in order", "MSA102"),
        ("merged_without_transpose", "heads not merged in order", "MSA103"),
        ("over_batch", "softmax not over keys", "MSA104"),
        ("heads_not_moved", "softmax not over keys", "MSA105"),
        ("softmax_over_queries", "softmax not over keys", "MSA211"),
        ("weights_transposed", "softmax not over keys", "MSA211"),
    ],
)
def test_a_broken_contract_is_told(fault: str, kind: str, rule: str) -> None:
    trace = traced(modules.Choice, settings={"fault": fault})
    assert (trace.flow.problems[0].kind, trace.flow.problems[0].rule) == (kind, rule)
    assert trace.flow.problems[0].op.filename == str(FILE)


@pytest.mark.parametrize("target", [modules.Choice, modules.Fused, MultiHeadSelfAttention, modules.attend])
def test_sound_attention_is_sound(target: object) -> None:
    trace = traced(target, settings={} if target is not modules.Choice else {"fault": "none"})
    assert trace.failure is None
    assert trace.flow.sound
    assert trace.flow.sites == 1


def test_the_axes_are_named_step_by_step() -> None:
    rows = traced(modules.Choice, settings={"fault": "none"}).flow.rows
    named = {row.op.name.rpartition(".")[2]: row.axes for row in rows}
    assert named["linear"] == ("batch", "seq", "d_model")
    assert named["softmax"] == ("batch", "head", "seq", "keys")
    assert named["reshape"] == ("batch", "seq", "d_model")
    views = [row.axes for row in rows if row.op.name == "Tensor.view"]
    assert views == [("batch", "seq", "head", "d_k")] * 3


def test_fused_projections_are_told_from_heads_of_the_same_number() -> None:
    rows = traced(modules.Fused).flow.rows
    (axes,) = [row.axes for row in rows if row.op.name == "Tensor.unflatten"]
    assert axes == ("batch", "seq", "3", "head", "d_k")


def test_a_layout_that_nothing_states_is_the_one_that_fits() -> None:
    trace = traced(modules.SeqFirst)
    assert trace.flow.sound
    assert trace.layout == "(seq, batch, d_model)"


def test_a_layout_that_is_stated_is_held_to() -> None:
    assert rules_of(traced(modules.SeqFirstFedBatchFirst)) == ["MSA501"]


def test_a_wrong_shape_comment_is_told_and_the_right_ones_are_not() -> None:
    (comment,) = traced(modules.Commented).flow.comments
    source = FILE.read_text().splitlines()[comment.line - 1]
    assert source.strip() == "q = q.transpose(1, 2)  # (B, L, H, d)"
    assert "not H = 3" in comment.reason


def test_trace_shapes_reads_a_module_that_is_already_built() -> None:
    module = nn.TransformerEncoderLayer(32, 4, batch_first=True)
    with trace_shapes(module) as recording:
        module(torch.zeros(3, 6, 32))
    flow = recording.flow()
    assert (flow.sizes.batch, flow.sizes.seq, flow.sites) == (3, 6, 1)
    assert flow.sound
    with trace_shapes(module) as recording:
        module(torch.zeros(3, 6, 32))
        with pytest.raises(AssertionError):
            module(torch.zeros(3, 6, 31))
    assert recording.flow().rows


def test_trace_shapes_sees_a_fault_of_a_built_module() -> None:
    module = modules.Choice(32, 4, fault="merged_without_transpose")
    with trace_shapes(module) as recording:
        module(torch.zeros(3, 6, 32))
    assert [problem.rule for problem in recording.flow().problems] == ["MSA103"]


def test_a_large_configuration_runs_on_meta() -> None:
    trace = traced(
        MultiHeadSelfAttention,
        settings={"d_model": 8192, "num_heads": 64},
        device="meta",
        inputs={"x": (1, 4096, 8192)},
    )
    assert trace.failure is None
    assert trace.flow.rows[-1].op.result.device.type == "meta"


class LaidOut(nn.Module):
    """Takes (seq, batch, width), gives (batch, seq, width), and writes both out."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.inner = nn.MultiheadAttention(width, heads, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        seq, batch, width = x.shape
        x = x.transpose(0, 1)
        return self.inner(x, x, x)[0].view(batch, seq, width)


class TransposeForgotten(LaidOut):
    def forward(self, x: Tensor) -> Tensor:
        seq, batch, width = x.shape
        x = x.transpose(0, 1)
        assert x.shape == (batch, seq, width)
        out = self.inner(x, x, x)[0]
        out.transpose(0, 1)  # msalint: ignore[MSA305]
        return out


class GivesNoSelf(modules.Fused):  # type: ignore[misc]
    """A `train` that returns nothing, so that `eval()` does not either."""

    def train(self, mode: bool = True) -> None:
        super().train(mode)


class Windows(nn.Module):
    """Attention with a bias for windows of 16 places."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.qkv, self.bias = nn.Linear(dim, 3 * dim), nn.Parameter(torch.zeros(16, 16))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).chunk(3, -1)
        return (q @ k.mT * q.shape[-1] ** -0.5 + self.bias).softmax(-1) @ v


def test_an_output_may_stand_otherwise_where_its_axes_are_written_out() -> None:
    assert traced(LaidOut).flow.sound
    (problem,) = traced(TransposeForgotten).flow.problems
    assert problem.kind == "output shape"


def test_a_train_method_that_gives_nothing_back_is_no_hindrance() -> None:
    assert traced(GivesNoSelf).flow.sound


def test_a_length_that_the_module_insists_on_is_taken_from_its_error() -> None:
    trace = traced(Windows)
    assert trace.failure is None
    assert trace.flow.sizes.seq == 16


def test_ids_of_a_sequence_first_model_are_read_as_such() -> None:
    class Words(nn.Module):
        def __init__(self, vocab_size: int, d_model: int, num_heads: int) -> None:
            super().__init__()
            self.embed = nn.Embedding(vocab_size, d_model)
            self.inner = nn.MultiheadAttention(d_model, num_heads)

        def forward(self, src: Tensor) -> Tensor:
            x = self.embed(src)
            out: Tensor = self.inner(x, x, x, need_weights=False)[0]
            return out

    trace = traced(Words)
    assert trace.flow.sound
    assert trace.layout == "(seq, batch)"


@pytest.mark.parametrize("mask", ["none", "causal", "padding", "both"])
def test_every_mask_can_be_passed_to_the_reference(mask: str) -> None:
    trace = traced(MultiHeadSelfAttention, mask=mask)
    assert trace.failure is None
    assert trace.flow.sound


# --- the command ------------------------------------------------------------------------------------------------------


def test_the_command_prints_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["trace", f"{FILE}:Fused"]) == 0
    out = capsys.readouterr().out
    assert "Fused.forward" in out
    assert "(batch, head, seq, d_k)" in out
    assert "1 attention site, no problem" in out


def test_the_command_fails_on_a_broken_contract(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["trace", f"{FILE}:Choice", "--set", "fault='scrambled_split'"]) == 1
    assert "heads not split in order" in capsys.readouterr().out


def test_the_command_writes_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["trace", f"{FILE}:Choice", "--set", "fault='over_batch'", "--output-format", "json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["problems"][0]["rule"] == "MSA104"
    operation = next(row for row in document["operations"] if row["operation"] == "Tensor.softmax")
    assert operation["shape"] == [5, 3, 2, 2]
    assert operation["line"] in range(*_lines_of(modules.Choice))


def test_sizes_masks_and_inputs_can_be_given(capsys: pytest.CaptureFixture[str]) -> None:
    options = [
        "--set",
        "d_model=40",
        "--set",
        "num_heads=5",
        "--batch",
        "3",
        "--mask",
        "padding",
        "--mask-true",
        "keep",
    ]
    assert run(["trace", f"{FILE}:Choice", *options]) == 0
    out = capsys.readouterr().out
    assert "3 6 5 8" in out
    assert "masked_fi" in out
    assert run(["trace", f"{FILE}:Fused", "--input", "x=4,6,21"]) == 0
    assert "4 6 21" in capsys.readouterr().out


def _lines_of(target: object) -> tuple[int, int]:
    lines, first = inspect.getsourcelines(target)  # type: ignore[arg-type]
    return first, first + len(lines)
