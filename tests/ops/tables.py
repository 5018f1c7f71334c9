"""Which calls show what an operation is worth, by its name in the tables; and why some are not compared with torch."""

from __future__ import annotations

import torch

from tests.ops import cases
from tests.ops.cases import Calls, first_dims, listed, on_grid, pairs, shaped, together
from tests.ops.oracle import Call, counted, grid

_PLAIN = on_grid()
_PAIR = pairs((0, 2, 3))
_DIMS = together(first_dims(), on_grid(((0, 1),), ((-1, -2),)), _PLAIN)
_KEPT = together(on_grid((0, True), (-1, True), (1, True), ((0, -1), True)), on_grid((1,), keepdim=True))
_REDUCED = together(_DIMS, _KEPT)
_ONE_AXIS = together(first_dims(), first_dims(True), _PLAIN)
_BOOL = listed(*(Call((tensor > 2,)) for tensor in grid(*range(5))))
_BOOL_PAIR = listed(
    *(Call((x > 2, y > 3)) for x in grid(2, 3) for y in grid(2, 3) if x.shape == y.shape or x.dim() != 3)
)
_BIT = together(_BOOL, listed(*(Call((x.long(),)) for x in grid(1, 2))))
_FILLED = shaped(lambda x: [(mask, 0.5) for mask in cases.masks(x)])
_INDEX = cases.ints_of(2)


def _named(names: str, calls: Calls) -> dict[str, Calls]:
    return dict.fromkeys(names.split(), calls)


METHOD_CASES: dict[str, Calls] = {
    # layout
    **_named("view reshape", shaped(cases.wanted_shapes)),
    **_named("view_as reshape_as", shaped(cases.others)),
    "flatten": on_grid((), (1,), (2,), (0, 1), (1, 2), (-2,), (-2, -1), (0, -2), (1, 1), (2, 1)),
    "unflatten": shaped(cases.unflattened),
    **_named(
        "transpose transpose_ swapaxes swapdims swapaxes_ swapdims_", on_grid((0, 1), (1, 2), (-1, -2), (0, -1), (1, 1))
    ),
    "permute": shaped(cases.orders),
    **_named("movedim moveaxis", on_grid((0, 1), (1, -1), (-1, 0), (2, 0), ((0, 1), (1, 0)))),
    **_named("t t_", on_grid(ranks=(0, 1, 2, 3))),
    **_named("unsqueeze unsqueeze_", on_grid((0,), (1,), (-1,), (-2,), (2,), (4,))),
    **_named("squeeze squeeze_", on_grid((), (0,), (1,), (-1,), (-2,), ((0, 1),))),
    **_named("expand broadcast_to", shaped(cases.expansions)),
    "expand_as": shaped(lambda x: [(counted(2, *(max(s, 2) for s in x.shape)),), (counted(*x.shape),), (counted(3),)]),
    **_named(
        "repeat tile",
        shaped(lambda x: [(2,) * x.dim(), (2, *(1 for _ in x.shape)), ((3, *(2 for _ in x.shape)),), (2,), (1, 3)]),
    ),
    "repeat_interleave": on_grid((2, 0), (3, -1), (1, 1), (2, -2), (2,)),
    "contiguous": _PLAIN,
    "clone": together(_PLAIN, on_grid(memory_format=torch.preserve_format)),
    **_named("chunk tensor_split", on_grid((2, -1), (3, 0), (2,), (3, 1), (4, 2))),
    "split": shaped(cases.pieces),
    "split_with_sizes": shaped(lambda x: [args for args in cases.pieces(x) if isinstance(args[0], list)]),
    "unbind": on_grid((), (0,), (1,), (-1,), (2,)),
    "select": on_grid((0, 0), (1, 0), (-1, -1), (2, 1)),
    "narrow": on_grid((0, 0, 1), (1, 0, 2), (-1, 1, 2), (2, 0, 3)),
    "index_select": on_grid((0, _INDEX), (1, _INDEX), (-1, _INDEX)),
    "gather": shaped(
        lambda x: [(0, torch.zeros(x.shape, dtype=torch.long)), (-1, torch.zeros(x.shape, dtype=torch.long))]
    ),
    "take_along_dim": shaped(lambda x: [(torch.zeros(x.shape, dtype=torch.long), -1)]),
    "flip": on_grid((0,), (1,), ((0, 1),), (-1,)),
    **_named("flipud fliplr", _PLAIN),
    "roll": on_grid((1, 0), (1, -1), (2,), ((1, 1), (0, 1))),
    "unfold": on_grid((0, 2, 1), (-1, 2, 2), (1, 3, 1)),
    # sizes
    "size": on_grid((), (0,), (1,), (-1,), (-2,), (3,)),
    **_named("dim ndimension numel nelement", _PLAIN),
    # products
    **_named("matmul __matmul__", listed(*cases.matrices())),
    "bmm": listed(*cases.batched()),
    "mm": listed(*(call for call in cases.matrices() if call.args[0].dim() == 2)),
    "mv": listed(
        Call((counted(2, 3), counted(3))), Call((counted(3, 2).t(), counted(3))), Call((counted(2, 3), counted(2)))
    ),
    **_named("baddbmm baddbmm_", listed(*cases.added_batched())),
    "addbmm": listed(*(Call((counted(2, 4), *call.args)) for call in cases.batched())),
    "addmm": listed(*cases.added_matrices()),
    **_named(
        "inner",
        listed(
            Call((counted(2, 3), counted(4, 3))), Call((counted(3), counted(3))), Call((counted(5, 2, 3), counted(3)))
        ),
    ),
    # reductions
    **_named("sum mean nansum nanmean amax amin", _REDUCED),
    **_named("prod argmax argmin mode", _ONE_AXIS),
    **_named("all any", together(_ONE_AXIS, listed(*(Call((x > 2, -1)) for x in grid(*range(5)))))),
    "count_nonzero": _DIMS,
    "logsumexp": together(first_dims(), first_dims(True)),
    "norm": together(on_grid((), (2,), (2, 0), (2, -1), (2, 1, True)), on_grid(dim=-1), on_grid(dim=-1, keepdim=True)),
    **_named("std var", together(first_dims(), on_grid(dim=-1, keepdim=True), _PLAIN)),
    **_named("max min median nanmedian", _ONE_AXIS),
    "kthvalue": on_grid((1,), (1, 0), (1, -1, True)),
    "topk": on_grid((1,), (2, -1), (1, 0)),
    "sort": on_grid((), (0,), (-1,), (1,)),
    **_named("cummax cummin", first_dims()),
    **_named("outer ger", listed(Call((counted(3), counted(4))), Call((counted(3), counted(2, 4))))),
    "adjoint": on_grid(ranks=(2, 3, 4)),
    **_named("cumsum cumprod logcumsumexp", first_dims()),
    "diff": on_grid((), (1,), (1, 0)),
    # elementwise
    **_named(
        "relu sigmoid sin cos tan reciprocal square erf floor ceil round sign logit sinh cosh expm1 log1p log2 log10 "
        "rsqrt relu_ sigmoid_ angle conj digamma lgamma trunc frac tanh tanh_ log log_ neg negative neg_ sqrt sqrt_ "
        "abs ceil_ cos_ erf_ exp2_ floor_ reciprocal_ round_ rsqrt_ sin_ square_ absolute "
        "isnan isinf isfinite isneginf nan_to_num nan_to_num_ exp exp_ exp2 real",
        _PLAIN,
    ),
    **_named("clamp clip clamp_ clip_", on_grid((0, 3), (2.0,))),
    **_named("clamp_min clamp_max clamp_min_ clamp_max_", on_grid((2,), (0.5,))),
    **_named(
        "add sub subtract mul multiply div divide true_divide pow floor_divide", together(_PAIR, on_grid((2,), (0.5,)))
    ),
    **_named(
        "add_ sub_ mul_ div_ pow_",
        together(on_grid((2,), (0.5,)), shaped(lambda x: [(counted(*x.shape),), (counted(1),)])),
    ),
    **_named(
        "eq ne lt le gt ge less greater less_equal greater_equal not_equal", together(_PAIR, on_grid((2,), (0.5,)))
    ),
    **_named("logical_and logical_or logical_xor", together(_PAIR, _BOOL_PAIR)),
    **_named("bitwise_and bitwise_or __and__ __or__", _BOOL_PAIR),
    **_named("logical_not logical_not_", together(_PLAIN, _BOOL)),
    **_named("bitwise_not bitwise_not_", _BIT),
    **_named("float half bfloat16 double bool int long short byte", together(_PLAIN, _BOOL)),
    **_named(
        "to type", together(*(on_grid((dtype,)) for dtype in (torch.float16, torch.bool, torch.float32, torch.long)))
    ),
    "type_as": shaped(lambda x: [(counted(2, dtype=torch.float64),), (counted(2, dtype=torch.bool),)]),
    **_named("detach cpu data", _PLAIN),
    # softmax
    **_named("softmax log_softmax", together(first_dims(), on_grid(dim=-1, dtype=torch.float64))),
    # masks
    **_named("tril triu tril_ triu_", on_grid((), (1,), (-1,))),
    **_named("masked_fill masked_fill_", cases.masked()),
    "where": listed(*cases.chosen_method()),
    **_named(
        "masked_scatter masked_scatter_", shaped(lambda x: [(mask, counted(*x.shape)) for mask in cases.masks(x)])
    ),
    **_named(
        "scatter scatter_ scatter_add scatter_add_",
        shaped(lambda x: [(-1, torch.zeros(x.shape, dtype=torch.long), counted(*x.shape))]),
    ),
    **_named("index_fill index_fill_", on_grid((-1, _INDEX, 2.0), (0, _INDEX, 2.0))),
    **_named("index_copy_ index_add_ index_add", shaped(lambda x: [(0, cases.ints_of(1), counted(1, *x.shape[1:]))])),
    # new tensors
    **_named("new_zeros new_ones new_empty", on_grid((2, 3), ((2, 1, 4),), (0,), ranks=(0, 2))),
    "new_full": on_grid(((2, 3), 1.5), ((), 2.0), ranks=(0, 2)),
    "new_tensor": on_grid(([1.0, 2.0],), (3.0,), ranks=(0, 2)),
    **_named("fill_", on_grid((1.0,))),
    "zero_": _PLAIN,
    "copy_": shaped(lambda x: [(counted(*x.shape),)]),
    "requires_grad_": _PLAIN,
}
"""By the name of a method; the same calls are made of the function of that name in torch, where there is one."""

_TRIPLE = listed(
    *(
        Call((q, k, v))
        for q in (counted(2, 3, 4, 5), counted(2, 4, 3, 5).transpose(1, 2), counted(3, 4, 5), counted(4, 5))
        for k, v in (
            (counted(2, 3, 6, 5), counted(2, 3, 6, 7)),
            (counted(3, 6, 5), counted(3, 6, 5)),
            (counted(6, 5), counted(6, 5)),
        )
        if q.dim() == k.dim()
    )
)
_LIKE = together(_PLAIN, on_grid(dtype=torch.bool))
_SIZES = listed(
    Call((2, 3)), Call(((2, 1, 4),)), Call((0,)), Call(((),)), Call((2, 3), {"dtype": torch.bool}), Call((3,))
)
_F = "torch.nn.functional."

PATH_CASES: dict[str, Calls] = {
    "torch.where": listed(*cases.chosen()),
    **_named("torch.cat torch.concat torch.concatenate torch.stack", listed(*cases.joined())),
    "torch.einsum": listed(*cases.letters()),
    "torch.tensordot": listed(
        *(Call((counted(2, 3, 4), counted(3, 4, 5)), {"dims": dims}) for dims in (2, ([1, 2], [0, 1]), ([1], [0]), 1)),
        Call((counted(2, 3, 4), counted(4, 5), 1)),
        Call((counted(2, 3), counted(4, 5), 0)),
        Call((counted(2, 3, 4), counted(4, 3, 5)), {"dims": ([2, 1], [0, 1])}),
        Call((counted(2, 3, 4), counted(4, 5)), {"dims": ([-1], [0])}),
    ),
    "torch.kron": listed(Call((counted(2, 3), counted(4, 5)))),
    "torch.cdist": listed(
        Call((counted(2, 3, 5), counted(2, 4, 5))),
        Call((counted(3, 5), counted(4, 5))),
        Call((counted(2, 3, 5), counted(4, 5))),
    ),
    "torch.meshgrid": listed(
        Call((counted(3), counted(4)), {"indexing": "ij"}),
        Call(([counted(3), counted(1)],), {"indexing": "ij"}),
        Call((counted(3), counted(4), counted(2)), {"indexing": "xy"}),
        Call((counted(3), counted(4), counted(2))),
    ),
    **_named("torch.zeros torch.ones torch.empty torch.rand torch.randn", _SIZES),
    "torch.full": listed(
        Call(((2, 3), 1.5)), Call(((), 2.0)), Call(((4,), True)), Call(((2, 3), 0), {"dtype": torch.bool})
    ),
    **_named("torch.zeros_like torch.ones_like torch.empty_like", _LIKE),
    **_named("torch.rand_like torch.randn_like", _PLAIN),
    "torch.full_like": on_grid((0.5,)),
    "torch.arange": listed(
        *(Call(args) for args in ((5,), (2, 7), (0, 8, 2), (7, 0, -1), (3, 9, 4), (0,), (0.0, 1.0, 0.25), (1, 10, 2)))
    ),
    "torch.range": listed(Call((1, 4))),
    **_named("torch.linspace torch.logspace", listed(Call((0.0, 1.0, 5)), Call((0.0, 1.0), {"steps": 4}))),
    "torch.hann_window": listed(Call((5,))),
    "torch.randperm": listed(Call((5,)), Call((0,))),
    "torch.eye": listed(Call((3,)), Call((3, 4)), Call((1,)), Call((3,), {"dtype": torch.bool})),
    **_named(
        "torch.tensor torch.as_tensor",
        listed(
            Call((3.0,)),
            Call(([1.0, 2.0],)),
            Call(([1, 2, 3],)),
            Call(([5.0],)),
            Call(([[1, 2], [3, 4]],)),
            Call((True,)),
            Call((3,), {"dtype": torch.float16}),
        ),
    ),
    "torch.scalar_tensor": listed(Call((3.0,))),
    **_named(
        "torch.FloatTensor torch.LongTensor torch.BoolTensor torch.HalfTensor",
        listed(Call(([1, 2],)), Call((2, 3)), Call((2,))),
    ),
    "torch.Tensor": listed(Call((2, 3)), Call((3,)), Call(([1.0, 2.0],))),
    "torch.randint": listed(Call((5, (2, 3))), Call((1, 5, (4,)))),
    "torch.normal": listed(Call((0.0, 1.0, (2, 3)))),
    "torch.special.logsumexp": together(first_dims(), first_dims(True)),
    **_named(
        "torch.linalg.norm torch.linalg.vector_norm",
        together(on_grid(dim=-1), on_grid(dim=-1, keepdim=True), on_grid((2, 0)), on_grid((2, -1, True))),
    ),
    "torch.bernoulli": on_grid(ranks=(0, 1)),
    "torch.nn.Transformer.generate_square_subsequent_mask": listed(Call((4,)), Call((1,))),
    "torch.nn.Parameter": _PLAIN,
    "torch.nn.Buffer": _PLAIN,
    "torch.nn.parameter.Parameter": _PLAIN,
    **{
        _F + name: _PLAIN
        for name in "relu gelu silu elu selu leaky_relu softplus sigmoid logsigmoid mish hardswish relu6 tanh".split()
    },
    **{f"torch.{name}": _PLAIN for name in "selu celu erf_".split()},
    **{
        f"{place}.{name}": together(first_dims(), on_grid(dim=-1, dtype=torch.float64))
        for place in ("torch.nn.functional", "torch.special")
        for name in ("softmax", "log_softmax")
    },
    _F + "softmin": together(first_dims(), on_grid(dim=-1)),
    _F + "gumbel_softmax": together(on_grid(), on_grid(dim=1)),
    _F + "normalize": together(_PLAIN, on_grid(dim=-1)),
    _F + "layer_norm": shaped(lambda x: [((x.shape[-1] if x.dim() else 1,),)]),
    _F + "rms_norm": shaped(lambda x: [((x.shape[-1] if x.dim() else 1,),)]),
    _F + "group_norm": listed(Call((counted(2, 6, 4), 3)), Call((counted(2, 4, 6).transpose(1, 2), 2))),
    _F + "linear": shaped(
        lambda x: [
            (counted(7, x.shape[-1] if x.dim() else 1),),
            (counted(7, x.shape[-1] if x.dim() else 1), counted(7)),
            (counted(7, 11),),
        ]
    ),
    _F + "pad": on_grid(((1, 0),), ((1, -1),), ((0, 0, 1, 2),), ((0, 0),)),
    _F + "one_hot": listed(Call((cases.ints_of(2, 3), 5)), Call((cases.ints_of(3), 4))),
    _F + "scaled_dot_product_attention": _TRIPLE,
    **{_F + name: on_grid((0.5, True), (0.0, False)) for name in "dropout dropout_ alpha_dropout".split()},
    _F + "dropout1d": on_grid((0.5, True), ranks=(2, 3)),
    _F + "dropout2d": on_grid((0.5, True), ranks=(3, 4)),
    _F + "feature_alpha_dropout": on_grid((0.5, True), ranks=(2, 3)),
    "torch.view_as_complex": listed(Call((counted(2, 3, 2),)), Call((counted(2),)), Call((counted(2, 3),))),
    "torch.view_as_real": listed(Call((counted(2, 3).to(torch.complex64),)), Call((counted().to(torch.complex64),))),
    "torch.dropout": on_grid((0.5, True), (0.5, False)),
    **{f"torch.{name}": listed(*(Call((x.exp(),)) for x in grid(1, 2))) for name in "poisson".split()},
    "torch.multinomial": listed(Call((counted(2, 5), 3)), Call((counted(5), 2))),
}
"""By full name, where the call differs from the method's or there is no method."""

UNKNOWN_BY_DESIGN: dict[str, str] = {
    "topk": "how many are kept is seldom known",
    "torch.topk": "how many are kept is seldom known",
    "gather": "the index decides the shape",
    "torch.gather": "the index decides the shape",
    "take_along_dim": "the index decides the shape",
    "torch.take_along_dim": "the index decides the shape",
    "torch.kron": "axes of a Kronecker product mean nothing here",
    "torch.normal": "its overloads take sizes in three places",
    "torch.multinomial": "no attention code is built on samples",
}
"""Models that never claim a whole shape, each for a reason."""

EXEMPT: dict[str, str] = {
    **dict.fromkeys(("is_contiguous", "item", "tolist"), "gives no tensor and no size"),
    **dict.fromkeys(
        ("numpy", "cuda", "xpu", "mps", "npu", "pin_memory", "share_memory_"),
        "moves to where there is no device to compare on",
    ),
    **dict.fromkeys(("retain_grad", "refine_names", "rename", "align_as", "set_"), "gives back the tensor or nothing"),
    **dict.fromkeys(
        ("normal_", "uniform_", "exponential_", "bernoulli_", "random_", "trunc_normal_"),
        "fills in place with random values: shape and strides stay",
    ),
    **dict.fromkeys(("torch.tril_indices", "torch.triu_indices"), "an index pair whose length depends on the triangle"),
    "astype": "numpy's, of an array made of a tensor",
    "torch.from_numpy": "takes an array, no tensor",
    "detach_": "torch refuses it for views",
    **dict.fromkeys(("torch.finfo", "torch.iinfo"), "gives no tensor"),
    "torch.amp.custom_fwd": "a decorator",
    "torch.utils.checkpoint.checkpoint": "calls what it is given",
    "torch.nn.attention.flex_attention.flex_attention": "needs a compiled kernel; goes by the rules of SDPA",
    "torch.nn.functional.feature_dropout": "torch has it under another name",
    "torch.nn.functional.unfold": "the number of its windows is left open",
}
"""Operations that are not compared with torch, each for a reason."""
