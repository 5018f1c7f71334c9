"""With what each operation of the tables is called: data for the comparison with torch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import product

import torch

from tests.ops.oracle import Call, counted, grid

Calls = Callable[[], Iterable[Call]]


def on_grid(*given: tuple[object, ...], ranks: Iterable[int] = range(5), **kwargs: object) -> Calls:
    """Every tensor of the grid, with each of these tuples of further arguments."""

    def calls() -> Iterator[Call]:
        for tensor in grid(*ranks):
            for more in given or ((),):
                yield Call((tensor, *more), dict(kwargs))

    return calls


def shaped(make: Callable[[torch.Tensor], Iterable[tuple[object, ...]]], ranks: Iterable[int] = range(5)) -> Calls:
    """Every tensor of the grid, with arguments made for its shape."""

    def calls() -> Iterator[Call]:
        for tensor in grid(*ranks):
            for more in make(tensor):
                yield Call((tensor, *more))

    return calls


def listed(*calls: Call) -> Calls:
    return lambda: calls


def together(*makers: Calls) -> Calls:
    return lambda: (call for make in makers for call in make())


def first_dims(*more: object) -> Calls:
    return on_grid(*((dim, *more) for dim in (0, 1, -1, -2)))


def pairs(ranks: Iterable[int] = range(5)) -> Calls:
    """Two tensors that broadcast, in every mix of layouts; and some that don't."""

    def calls() -> Iterator[Call]:
        some = grid(*ranks)
        for left, right in product(some, some):
            if _fit(left, right) or (left.dim() == right.dim() == 2):
                yield Call((left, right))

    return calls


def _fit(left: torch.Tensor, right: torch.Tensor) -> bool:
    return all(a == b or 1 in (a, b) for a, b in zip(reversed(left.shape), reversed(right.shape)))


# --- arguments made for a shape ----------------------------------------------------------------------------------


def wanted_shapes(x: torch.Tensor) -> Iterator[tuple[object, ...]]:
    """Shapes to view `x` as: the same, flat, pairs merged, axes split, with -1, and some that cannot be."""
    sizes = tuple(x.shape)
    yield sizes
    yield (-1,)
    yield ((x.numel(),),)
    yield (*sizes, 1)
    yield (1, *sizes)
    yield (7, -1)
    yield (-1, 2)
    for i in range(len(sizes) - 1):
        merged = sizes[i] * sizes[i + 1]
        yield (*sizes[:i], merged, *sizes[i + 2 :])
        yield (*sizes[:i], -1, *sizes[i + 2 :])
    for i, size in enumerate(sizes):
        if size in (4, 6):
            yield (*sizes[:i], 2, size // 2, *sizes[i + 1 :])
            yield (*sizes[:i], -1, 2, *sizes[i + 1 :])
            yield (*sizes[:i], size // 2, -1, *sizes[i + 1 :])
    if len(sizes) > 2:
        yield (sizes[0], -1)
        yield (-1, sizes[-1])
        yield (sizes[1], sizes[0], *sizes[2:])
        yield (*sizes[:-2], sizes[-1], sizes[-2])


def orders(x: torch.Tensor) -> Iterator[tuple[object, ...]]:
    yield tuple(reversed(range(x.dim())))
    yield tuple(range(-1, x.dim() - 1))
    yield (tuple(range(x.dim())),)
    if x.dim() > 2:
        yield (0, 2, 1, *range(3, x.dim()))
    yield (0, 1)


def expansions(x: torch.Tensor) -> Iterator[tuple[object, ...]]:
    yield tuple(4 if size == 1 else -1 for size in x.shape) or (2,)
    yield (6, *(-1 for _ in x.shape))
    yield (2, 3, *x.shape)
    yield ((1, *x.shape),)
    yield (9, 9)


def unflattened(x: torch.Tensor) -> Iterator[tuple[object, ...]]:
    for dim in range(-1, x.dim()):
        yield (dim, (2, -1))
        yield (dim, (-1, 3))
        yield (dim, (1, x.shape[dim] if x.dim() else 1))
        yield (dim, [2, 2])


def others(x: torch.Tensor) -> Iterator[tuple[object, ...]]:
    """Tensors of the same number of elements, of another shape."""
    yield (counted(x.numel()),)
    yield (counted(*x.shape),)
    yield (counted(*reversed(x.shape)),)
    yield (counted(1, x.numel(), 1),)


def masks(x: torch.Tensor) -> Iterator[torch.Tensor]:
    yield torch.ones(x.shape, dtype=torch.bool)
    if x.dim() > 1:
        yield torch.ones(x.shape[-2:], dtype=torch.bool)
        yield torch.ones(x.shape[0], *(1 for _ in range(x.dim() - 2)), x.shape[-1], dtype=torch.bool)
    yield torch.ones(2, *x.shape, dtype=torch.bool)


def matrices() -> Iterator[Call]:
    """Matrix products: every mix of two layouts that fit, batched, broadcast, with vectors, and ones that don't fit."""
    lefts = [
        counted(2, 3),
        counted(3, 2).t(),
        counted(1, 3),
        counted(0, 3),
        counted(5, 2, 3),
        counted(2, 5, 3).transpose(0, 1),
        counted(4, 5, 2, 3),
        counted(4, 1, 2, 3),
        counted(5, 3, 2).mT,
        counted(3),
        counted(4, 2, 5, 3).transpose(1, 2),
    ]
    rights = [
        counted(3, 4),
        counted(4, 3).t(),
        counted(3, 1),
        counted(5, 3, 4),
        counted(5, 4, 3).mT,
        counted(1, 3, 4),
        counted(4, 5, 3, 4),
        counted(3),
        counted(4, 3),
        counted(4, 5, 4, 3).transpose(-2, -1),
        counted(2, 3, 4),
    ]
    for left, right in product(lefts, rights):
        yield Call((left, right))


def batched() -> Iterator[Call]:
    for left in (
        counted(5, 2, 3),
        counted(2, 5, 3).transpose(0, 1),
        counted(5, 3, 2).mT,
        counted(1, 2, 3),
        counted(2, 3),
    ):
        for right in (counted(5, 3, 4), counted(5, 4, 3).mT, counted(4, 3, 4)):
            yield Call((left, right))


def added_batched() -> Iterator[Call]:
    for call in batched():
        for added in (
            counted(5, 2, 4),
            counted(2, 4),
            counted(4),
            counted(1, 2, 1),
            counted(2, 5, 4).transpose(0, 1),
            counted(7),
        ):
            yield Call((added, *call.args))
            yield Call((added, *call.args), {"beta": 0.5, "alpha": 2.0})


def added_matrices() -> Iterator[Call]:
    for added in (counted(2, 4), counted(4), counted(1, 4), counted(4, 2).t(), counted(3)):
        yield Call((added, counted(2, 3), counted(3, 4)))
        yield Call((added, counted(3, 2).t(), counted(4, 3).t()))


def letters() -> Iterator[Call]:
    """Equations of two operands, of one, of three; layouts are not promised, sizes are."""
    a, b = counted(2, 3, 4, 5), counted(2, 3, 6, 5)
    for equation, operands in (
        ("bhid,bhjd->bhij", (a, b)),
        ("bhid,bhjd->bhji", (a, b)),
        ("bhid, bhjd -> bijh", (a, b)),
        ("...id,...jd->...ij", (a, b)),
        ("bhij,bhjd->bihd", (counted(2, 3, 4, 6), b)),
        ("bid,de->bie", (counted(2, 4, 5), counted(5, 7))),
        ("bihd,bjhd->bhij", (a.transpose(1, 2), b.transpose(1, 2))),
        ("id,jd->ij", (counted(1, 5), counted(6, 5))),
        ("bhid,bhjd", (a, b)),
        ("ij->ji", (counted(2, 3),)),
        ("ii->i", (counted(3, 3),)),
        ("bij->b", (counted(2, 3, 4),)),
        ("ij,jk,kl->il", (counted(2, 3), counted(3, 4), counted(4, 5))),
        ("bhid,bhjd->bhij", (a, counted(2, 3, 6, 4))),
        ("bid,bjd->bij", (a, b)),
        ("i,j->ij", (counted(3), counted(4))),
        ("bhid,bhid->bhi", (a, a)),
        ("bhid,hd->bhid", (a, counted(3, 5))),
    ):
        yield Call((equation, *operands))


def masked() -> Calls:
    def calls() -> Iterator[Call]:
        for tensor in grid(*range(5)):
            for mask in masks(tensor):
                yield Call((tensor, mask, 0.5))

    return calls


def chosen() -> Iterator[Call]:
    for tensor in grid(*range(5)):
        for mask in masks(tensor):
            yield Call((mask, tensor, 0.5))
            yield Call((mask, -1.0, tensor))
            yield Call((mask, tensor, counted(*tensor.shape)))


def chosen_method() -> Iterator[Call]:
    for tensor in grid(*range(5)):
        for mask in masks(tensor):
            yield Call((tensor, mask, 0.5))


def joined() -> Iterator[Call]:
    """Lists of tensors to join along each axis."""
    for tensor in grid(1, 2, 3, 4):
        for dim in (0, 1, -1, -2):
            yield Call(([tensor, tensor], dim))
            yield Call(((tensor, counted(*tensor.shape), tensor),), {"dim": dim})
        yield Call(([tensor, tensor],))
    yield Call(([counted(2, 3), counted(4, 3)], 0))
    yield Call(([counted(2, 3), counted(2, 5)], -1))
    yield Call(([counted(2, 3), counted(2, 5)], 0))
    yield Call(([counted(2, 1, 4), counted(2, 5, 4)], 1))
    yield Call(([counted(2, 4, 1).transpose(1, 2), counted(2, 4, 5).transpose(1, 2)], 1))


def pieces(x: torch.Tensor) -> Iterator[tuple[object, ...]]:
    for dim in (0, 1, -1, -2):
        for size in (1, 2, 3):
            yield (size, dim)
        if -x.dim() <= dim < x.dim() and x.shape[dim] > 1:
            yield ([1, x.shape[dim] - 1], dim)
    yield (2,)


def ints_of(*sizes: int) -> torch.Tensor:
    return torch.zeros(sizes, dtype=torch.long)
