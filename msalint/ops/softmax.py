"""Softmax in its spellings, and what it tells of the scores that go in."""

from __future__ import annotations

from msalint.diagnostic import Site
from msalint.facts import Scaling, Softmaxed
from msalint.ops.attending import factors_of, is_attention, scaling_of
from msalint.ops.axes import elementwise_layout, forget_content, locate, vague
from msalint.ops.hiding import tell_masks
from msalint.ops.layout import is_head
from msalint.ops.mask_place import tell_places
from msalint.ops.table import Invocation, op
from msalint.shapes.axes import Layout, axis_name
from msalint.shapes.size import Size
from msalint.state import State
from msalint.values import Const, DType, Int, Normalised, Product, Tensor, Total, Value, replace


@op("softmax log_softmax softmin gumbel_softmax")
@op("softmax log_softmax softmin gumbel_softmax", on="F special")
def softmax(call: Invocation) -> Value | None:
    tensor = call.tensor(0, "input")
    if tensor is None:
        return None
    dim = call.get(1, "dim")
    position = 1
    if call.name == "gumbel_softmax":
        dim, position = call.get(4, "dim") or call.kwargs.get("dim"), 4
    return normalise(call, tensor, dim, call.site(position, "dim"))


def normalise(
    call: Invocation,
    tensor: Tensor,
    dim: Value | None,
    dim_site: Site | None,
    by_hand: bool = False,
    built_at: Site | None = None,
) -> Tensor:
    """Scores made weights: over the axis that `dim` names, or the one that torch picks without it."""
    state = call.state
    explicit = dim is not None and dim != Const(None)
    implicit = None if explicit else _implicit_dim(state, tensor)
    wanted = state.as_int(dim) if explicit else implicit
    found = locate(state, tensor, wanted)
    log = call.name.startswith("log")
    tensor = found[0] if found else tensor
    axis = tensor.axes[found[1]] if found else None
    normalised = Normalised(
        tuple(atom.ident for atom in axis) if axis is not None else (),
        call.at,
        tensor,
        state.size_of(axis) if axis is not None else None,
        found[1] - len(tensor.axes) if found else None,
        built_at,
    )
    tell_softmax(call, tensor, normalised, explicit, implicit, dim_site, by_hand)
    if tensor.traits.product is not None:
        tell_masks(state, tensor, normalised)
        tell_places(state, tensor)
    dtype = call.kwargs.get("dtype")
    kind = dtype.kind if isinstance(dtype, DType) else tensor.dtype
    content = replace(forget_content(tensor.traits), name=tensor.traits.name)
    content = replace(content, logarithm=normalised) if log else replace(content, softmax=normalised)
    layout = Layout.dense(tensor.axes, tensor.lead)
    return replace(tensor, layout=layout, dtype=kind, traits=replace(content, moved=None, implementation_layout=False))


def divided_by_sum(state: State, exponential: Tensor, total: Total, at: Site, site: Site) -> Tensor:
    """`exp(scores) / exp(scores).sum(dim, keepdim=True)`: softmax by hand."""
    call = Invocation(state, at, "softmax", [exponential], sites=[site])
    weights = normalise(call, total.exponent, Int(Size.of(total.place)), None, by_hand=True)
    return replace(weights, dtype=exponential.dtype, layout=elementwise_layout(exponential))


def _implicit_dim(state: State, tensor: Tensor) -> int | None:
    """Without a dim torch takes 0 for 0, 1 and 3 axes, else 1."""
    rank = state.with_rank(tensor).rank
    if rank is None:
        return None
    return 0 if rank in {0, 1, 3} else 1


def tell_softmax(
    call: Invocation,
    tensor: Tensor,
    normalised: Normalised,
    explicit: bool,
    implicit: int | None,
    dim_site: Site | None,
    by_hand: bool,
) -> None:
    state = call.state
    product = tensor.traits.product
    axis = None
    if normalised.position is not None:
        axis = axis_name(tensor.axes[normalised.position]) if tensor.axes else None
    scaling = Scaling()
    attention = multi_head = same_source = unit = False
    if product is not None:
        factors = factors_of(product, tensor)
        scaling = scaling_of(state, factors, product.contracted[0], (product.left, product.right))
        attention = is_attention(product) and not tensor.traits.additive
        multi_head = _multi_head(product)
        same_source = _same_source(product)
        unit = product.left.traits.unit or product.right.traits.unit
    state.emit(
        Softmaxed(
            call.at,
            scores=tensor,
            product=product,
            axis=axis,
            explicit=explicit,
            scaling=scaling,
            attention=attention,
            multi_head=multi_head,
            same_source=same_source,
            unit=unit,
            bounded=tensor.traits.bounded,
            biased=tensor.traits.biased,
            pixels=product is not None and _of_pixels(product),
            by_hand=by_hand,
            implicit_dim=implicit,
            dim_site=dim_site,
            receiver=call.receiver(),
            context=state.purpose(),
            built_at=normalised.built_at,
            reached=state.in_module,
        )
    )


def _multi_head(product: Product) -> bool:
    """Heads were split off both sides, or fold into an axis of the product."""
    for tensor in (product.left, product.right):
        if not any(is_head(atom, tensor.axes) for axis in tensor.axes[:-1] for atom in axis):
            return False
    return True


def _of_pixels(product: Product) -> bool:
    made = (product.left.traits.projection, product.right.traits.projection)
    return all(projection is not None and projection.kind in {"Conv2d", "Conv3d"} for projection in made)


def _same_source(product: Product) -> bool:
    left, right = product.left.traits.projection, product.right.traits.projection
    return left is not None and right is not None and left.source == right.source and left.source != ""


def dense_scores(tensor: Tensor) -> Tensor:
    return replace(tensor, layout=Layout.dense(tensor.axes, tensor.lead))


def without_shape(tensor: Tensor) -> Tensor:
    return vague(tensor)
