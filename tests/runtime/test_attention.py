"""The reference module equals torch's own attention, and keeps its promises about masks, caches and positions."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("jaxtyping")

import torch.nn.functional as F  # noqa: E402
from torch import Tensor, nn  # noqa: E402

from msalint.runtime import KeyValueCache, MultiHeadSelfAttention  # noqa: E402


def made(d_model: int = 24, num_heads: int = 3, **options: object) -> MultiHeadSelfAttention:
    torch.manual_seed(0)
    module = MultiHeadSelfAttention(d_model, num_heads, **options).double()  # type: ignore[arg-type]
    assert isinstance(module, MultiHeadSelfAttention)
    module.eval()
    return module


def tokens(batch: int = 2, seq: int = 5, width: int = 24) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    made: Tensor = torch.randn(batch, seq, width, generator=generator, dtype=torch.float64)
    return made


def keep_mask() -> Tensor:
    """The second sample ends in two padded tokens."""
    keep: Tensor = torch.arange(5) < torch.tensor([[5], [3]])
    return keep


def test_three_tokens_by_hand() -> None:
    module = MultiHeadSelfAttention(4, 1, bias=False)
    with torch.no_grad():
        for layer in (module.query, module.key, module.value, module.output):
            layer.weight.copy_(torch.eye(4))
    x = torch.tensor([[[1.0, 0, 1, 0], [0, 1, 0, 1], [1, 1, 0, 0]]])
    _, weights = module.forward_with_weights(x)
    assert weights[0, 0, 0].tolist() == pytest.approx([0.506, 0.186, 0.307], abs=6e-4)


@pytest.mark.parametrize("causal", [False, True])
def test_equals_the_fused_kernel(causal: bool) -> None:
    module, x = made(), tokens()
    q, k, v = (module.split_heads(layer(x)) for layer in (module.query, module.key, module.value))
    expected = module.output(module.merge_heads(F.scaled_dot_product_attention(q, k, v, is_causal=causal)))
    assert torch.allclose(module(x, causal=causal), expected, atol=1e-12)


def test_equals_the_fused_kernel_on_a_row_that_sees_nothing() -> None:
    module, x = made(), tokens()
    keep = keep_mask()
    keep[1] = False
    q, k, v = (module.split_heads(layer(x)) for layer in (module.query, module.key, module.value))
    fused = F.scaled_dot_product_attention(q, k, v, attn_mask=keep[:, None, None, :])
    assert torch.allclose(module(x, keep=keep), module.output(module.merge_heads(fused)), atol=1e-12)


def test_equals_torch_multihead_attention() -> None:
    module, x = made(), tokens()
    other = nn.MultiheadAttention(24, 3, batch_first=True).double().eval()
    with torch.no_grad():
        other.in_proj_weight.copy_(torch.cat([module.query.weight, module.key.weight, module.value.weight]))
        other.out_proj.weight.copy_(module.output.weight)
        other.in_proj_bias.zero_()
        other.out_proj.bias.zero_()
    expected, weights = other(x, x, x, key_padding_mask=~keep_mask(), average_attn_weights=False)
    out, mine = module.forward_with_weights(x, keep=keep_mask())
    assert torch.allclose(out, expected, atol=1e-12)
    assert torch.allclose(mine, weights, atol=1e-12)


def test_both_polarities_say_the_same() -> None:
    module, x = made(), tokens()
    assert torch.equal(module(x, keep=keep_mask()), module(x, hide=~keep_mask()))
    both = module(x, keep=keep_mask(), hide=torch.zeros(2, 1, 1, 5, dtype=torch.bool))
    assert torch.equal(both, module(x, keep=keep_mask()))


def test_hidden_keys_have_no_weight_at_all() -> None:
    _, weights = made().forward_with_weights(tokens(), keep=keep_mask(), causal=True)
    assert weights[1, :, :, 3:].abs().max() == 0
    assert weights.triu(1).abs().max() == 0
    assert torch.allclose(weights.sum(-1), torch.ones(2, 3, 5, dtype=torch.float64))


@pytest.mark.parametrize("rotary", [False, True])
def test_decoding_with_a_cache_equals_the_whole(rotary: bool) -> None:
    module, x = made(rotary=rotary), tokens()
    cache = KeyValueCache()
    parts = [module(part, causal=True, cache=cache) for part in (x[:, :2], x[:, 2:3], x[:, 3:])]
    assert torch.allclose(torch.cat(parts, 1), module(x, causal=True), atol=1e-12)
    assert cache.length == 5


def test_rotary_scores_depend_on_distance_alone() -> None:
    module = made(rotary=True)
    q, k = torch.randn(2, 1, 3, 1, 8, dtype=torch.float64)

    def score(at: int, to: int) -> Tensor:
        product: Tensor = (module.rotate(q, at) * module.rotate(k, to)).sum(-1)
        return product

    assert torch.allclose(score(7, 4), score(13, 10), atol=1e-12)
    assert not torch.allclose(score(7, 4), score(7, 5), atol=1e-3)


def test_half_stays_finite_with_masks() -> None:
    module = MultiHeadSelfAttention(24, 3).half().eval()
    out = module(tokens().half() * 30, keep=keep_mask(), causal=True)
    assert out.isfinite().all()


def test_dropout_falls_on_the_weights_in_training_only() -> None:
    module, x = made(dropout=0.5), tokens()
    assert torch.equal(module(x), module(x))
    module.train()
    assert not torch.equal(module(x), module(x))


def test_starts_from_zero_bias() -> None:
    module = made()
    assert all(layer.bias.abs().max() == 0 for layer in (module.query, module.key, module.value, module.output))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [((20, 3), "d_model = 20 can't be split"), ((21, 0), "num_heads = 0"), ((21, 3), "d_k = 7 has to be even")],
)
def test_refuses_sizes_that_do_not_fit(arguments: tuple[int, int], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        MultiHeadSelfAttention(*arguments, rotary=True)
