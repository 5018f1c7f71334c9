"""Recorded weights are the weights, whichever way attention is written; health and ablation tell what heads do."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("jaxtyping")

import attention_modules as modules  # type: ignore[import-not-found]  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch import Tensor, nn  # noqa: E402

from msalint.runtime import MultiHeadSelfAttention, record_attention  # noqa: E402
from msalint.runtime.ablation import ablate_heads  # noqa: E402
from msalint.runtime.health import head_health, health_table  # noqa: E402
from msalint.runtime.plots import draw_attention  # noqa: E402
from msalint.runtime.recorder import Attention  # noqa: E402


class ThreeWays(nn.Module):
    """The same attention by hand, by the fused kernel and by nn.MultiheadAttention, one after the other."""

    def __init__(self) -> None:
        super().__init__()
        self.manual = MultiHeadSelfAttention(24, 3, bias=True)
        self.packed = nn.MultiheadAttention(24, 3, batch_first=True)
        with torch.no_grad():
            layers = (self.manual.query, self.manual.key, self.manual.value)
            self.packed.in_proj_weight.copy_(torch.cat([layer.weight for layer in layers]))
            self.packed.out_proj.weight.copy_(self.manual.output.weight)

    def forward(self, x: Tensor, keep: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        m = self.manual
        q, k, v = (m.split_heads(layer(x)) for layer in (m.query, m.key, m.value))
        fused = F.scaled_dot_product_attention(q, k, v, attn_mask=keep[:, None, None])
        return m(x, keep=keep), m.output(m.merge_heads(fused)), self.packed(x, x, x, key_padding_mask=~keep)[0]


def recorded() -> tuple[list[Attention], Tensor]:
    torch.manual_seed(0)
    module, keep = ThreeWays().double().eval(), torch.tensor([[True] * 5, [True, True, True, False, False]])
    with torch.no_grad(), record_attention(module) as attentions:
        module(torch.randn(2, 5, 24, dtype=torch.float64), keep)
    return attentions, keep


def test_three_ways_of_writing_it_record_the_same_weights() -> None:
    attentions, _ = recorded()
    fused, manual, packed = (attention.by_head for attention in attentions)
    assert manual.shape == (2, 3, 5, 5)
    assert torch.allclose(manual, fused, atol=1e-12)
    assert torch.allclose(manual, packed, atol=1e-12)
    assert [attention.module for attention in attentions] == ["", "manual", "packed"]


def test_a_fused_encoder_layer_is_recorded_in_eval() -> None:
    layer = nn.TransformerEncoderLayer(24, 3, batch_first=True).eval()
    with torch.no_grad(), record_attention(layer) as attentions:
        layer(torch.randn(2, 5, 24))
    assert [attention.weights.shape for attention in attentions] == [(2, 3, 5, 5)]
    assert torch.backends.mha.get_fastpath_enabled()


def test_causal_kernel_weights_are_causal() -> None:
    module = modules.Fused(24, 3).eval()
    with record_attention(module) as attentions:
        module(torch.randn(2, 5, 24))
    assert attentions[0].weights.triu(1).abs().max() == 0
    assert not attentions[0].weights.requires_grad


def attention_of(weights: Tensor) -> Attention:
    attentions, _ = recorded()
    return Attention(weights, attentions[0].op, "made")


def test_health_tells_uniform_diagonal_and_twin_heads_apart() -> None:
    uniform = torch.full((6, 6), 1 / 6)
    diagonal = torch.eye(6)
    heads = head_health([attention_of(torch.stack([uniform, diagonal, diagonal])[None])])
    assert heads[0].evenness == pytest.approx(1.0)
    assert "near uniform" in heads[0].remarks
    assert heads[1].entropy == pytest.approx(0.0)
    assert heads[1].diagonality == pytest.approx(1.0)
    assert (heads[1].twin, heads[2].twin) == (2, 1)
    assert "same map as head 2" in heads[1].remarks
    assert "same map" not in " ".join(heads[0].remarks)


def test_health_measures_mass_on_padding_first_and_special_tokens() -> None:
    weights = torch.zeros(1, 1, 4, 4)
    weights[..., 0], weights[..., 3] = 0.75, 0.25
    keep = torch.tensor([[True, True, True, False]])
    (head,) = head_health([attention_of(weights)], keep, {"sep": [0, 2]})
    assert (head.padding, head.first, head.special["sep"]) == pytest.approx((0.25, 0.75, 0.75))
    assert "25.0% on padding" in health_table([head], ["layer"])


def test_an_ablated_head_is_worth_its_share_of_the_output() -> None:
    attentions, keep = recorded()
    torch.manual_seed(0)
    module = ThreeWays().double().eval()
    x = torch.randn(2, 5, 24, dtype=torch.float64)

    def total(which: int) -> float:
        with torch.no_grad():
            return float(module(x, keep)[which].sum())

    bias = float(module.manual.output.bias.detach().sum()) * 10
    for attention, which in ((0, 1), (1, 0), (2, 2)):
        effects = [e for e in ablate_heads(module, partial(total, which)) if e.attention == attention]
        assert len(effects) == 3
        # The output is linear in the heads: what they add up to is all of it but the bias.
        assert -sum(effect.change for effect in effects) == pytest.approx(total(which) - bias, abs=1e-9)
    assert len(attentions) == 3


def test_a_picture_has_a_map_a_head_and_one_colour_scale(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    attentions, _ = recorded()
    path = draw_attention(attentions, tmp_path / "a.png", tokens=["the", "cat", "sat", "down", "."])
    assert path.stat().st_size > 10_000
    with pytest.raises(ValueError, match="nothing to draw"):
        draw_attention([], tmp_path / "b.png")


def test_many_heads_are_drawn_on_several_lines(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    module = MultiHeadSelfAttention(24, 12)
    with record_attention(module) as attentions:
        module(torch.randn(1, 5, 24))
    header = draw_attention(attentions, tmp_path / "heads.png").read_bytes()[16:24]
    width, height = int.from_bytes(header[:4], "big"), int.from_bytes(header[4:], "big")
    assert width < 2 * height
