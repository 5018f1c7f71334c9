"""The tracer writes down each operation where the user wrote it, with what came out."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

from msalint.runtime.tracer import Tracer, trace  # noqa: E402

LINES = Path(__file__).read_text().splitlines()


def test_each_way_of_calling_is_named_alike() -> None:
    x = torch.zeros(2, 3)
    ops = trace(lambda: [x @ x.mT, x.matmul(x.T), torch.matmul(x, x.t()), F.relu(x), x + 1, x.view(6), x.shape])
    names = [op.name for op in ops if op.name.split(".")[1] not in ("mT", "T", "t")]
    assert names == ["Tensor.matmul", "Tensor.matmul", "torch.matmul", "F.relu", "Tensor.add", "Tensor.view"]


def test_an_operation_stands_at_the_user_line_not_in_torch() -> None:
    layer = nn.Linear(3, 4)
    x = torch.zeros(2, 3)
    (op,) = trace(lambda: layer(x))
    assert op.filename == __file__
    assert "layer(x)" in LINES[op.line - 1]
    assert op.shape == (2, 4)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="columns came with Python 3.11")
def test_an_operation_knows_its_columns() -> None:
    x = torch.zeros(2, 3)
    ops = trace(lambda: x.transpose(0, 1).contiguous())
    texts = [LINES[op.line - 1][op.place.column : op.place.end_column] for op in ops]
    assert texts == ["x.transpose(0, 1)", "x.transpose(0, 1).contiguous()"]


def test_stride_order_says_how_memory_runs() -> None:
    x = torch.zeros(2, 5, 3, 7)
    permuted, merged, single = (
        trace(lambda: (x.permute(0, 2, 1, 3), x.permute(0, 2, 1, 3).contiguous(), x[:, :1].transpose(1, 2)))[::1][0:1]
        + trace(lambda: (x.permute(0, 2, 1, 3).contiguous(), x[:, :1].transpose(1, 2)))[1::2]
    )
    assert permuted.stride_order == (0, 2, 1, 3)
    assert not permuted.result.contiguous
    assert merged.stride_order == (0, 1, 2, 3)
    assert single.result.shape == (2, 3, 1, 7)


def test_several_results_and_numbers_that_follow_a_tensor() -> None:
    x = torch.zeros(2, 6)
    chunk, add = trace(lambda: x.chunk(3, dim=1)[0] + 1)
    assert [tensor.shape for tensor in chunk.results] == [(2, 2)] * 3
    assert add.inputs[0].number == chunk.results[0].number
    assert chunk.keywords == {"dim": 1}


def test_an_operation_in_place_keeps_the_number() -> None:
    x = torch.zeros(2, 2)
    (op,) = trace(lambda: x.masked_fill_(x == 0, 1.0))[1:]
    assert op.result.number == op.inputs[0].number


def test_what_ran_before_an_error_stays() -> None:
    tracer = Tracer()
    with pytest.raises(RuntimeError), tracer:
        torch.zeros(2, 3).transpose(0, 1).view(6)
    assert [op.name for op in tracer.ops] == ["torch.zeros", "Tensor.transpose"]


def test_meta_tensors_trace_as_others_do() -> None:
    with torch.device("meta"):
        layer, x = nn.Linear(8192, 8192), torch.zeros(1, 5, 8192)
    (op,) = trace(lambda: layer(x))
    assert (op.shape, op.result.device.type) == ((1, 5, 8192), "meta")
