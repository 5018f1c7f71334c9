"""Softmax in its spellings, and what it tells of the scores that go in."""

from __future__ import annotations

from dataclasses import replace

from msalint.facts import MaskAdded, MaskFilled, MaskMultiplied, Softmaxed
from msalint.ops.attending import factors_of, is_attention, scaling_of
from msalint.ops.axes import elementwise_layout, forget_content, locate, vague
from msalint.ops.layout import is_head
from msalint.ops.table import Invocation, op
from msalint.facts import Scaling
from msalint.diagnostic import Site
from msalint.shapes.axes import Layout, axis_name
from msalint.shapes.vocabulary import says
from msalint.state import State
from msalint.values import Const, DType, MaskUse, Normalised, Opaque, Product, Region, Tensor, Value


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
    tell_masks(state, tensor, normalised)
    dtype = call.kwargs.get("dtype")
    kind = dtype.kind if isinstance(dtype, DType) else tensor.dtype
    content = replace(forget_content(tensor.traits), softmax=None if log else normalised, name=tensor.traits.name)
    layout = elementwise_layout(tensor)
    return replace(tensor, layout=layout, dtype=kind, traits=content)


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
            by_hand=by_hand,
            implicit_dim=implicit,
            dim_site=dim_site,
            receiver=call.receiver(),
            context=state.context,
            built_at=normalised.built_at,
            reached=state.in_module,
        )
    )


def _multi_head(product: Product) -> bool:
    """Heads were split off both sides, or fold into an axis of the product."""
    for tensor in (product.left, product.right):
        if not any(is_head(atom) for axis in tensor.axes[:-1] for atom in axis):
            return False
    return True


def _same_source(product: Product) -> bool:
    left, right = product.left.traits.projection, product.right.traits.projection
    return left is not None and right is not None and left.source == right.source and left.source != ""


# --- masks that were put on the scores ---------------------------------------------------------------------------


def tell_masks(state: State, scores: Tensor, normalised: Normalised) -> None:
    """Tell of each mask on the scores, now that it is known what they are and which rows they leave."""
    uses = scores.traits.masks
    attention = scores.traits.product is not None
    empty = rows_may_be_empty(uses)
    for use in uses:
        tensor = use.value if isinstance(use.value, Tensor) else None
        name = tensor.traits.name if tensor else use.value.name if isinstance(use.value, Opaque) else ""
        made_at = tensor.traits.cells.at if tensor and tensor.traits.cells else None
        site = use.mask_site or use.at
        if use.how == "multiplied":
            state.emit(MaskMultiplied(use.at, site, name, normalised.at))
        elif use.how == "added":
            state.emit(
                MaskAdded(
                    use.at,
                    cells=tensor.traits.cells if tensor else None,
                    hidden=use.hidden,
                    mask_site=site,
                    mask_name=name,
                    attention=attention,
                    inverted=is_inverted(use.hidden),
                    empty_rows=empty,
                    made_at=made_at,
                    softmaxed_at=normalised.at,
                    bounded=scores.traits.bounded,
                )
            )
        else:
            state.emit(
                MaskFilled(
                    use.at,
                    fill=use.fill,
                    fill_site=use.fill_site,
                    mask_site=site,
                    hidden=use.hidden,
                    mask_name=name,
                    how=use.how,
                    attention=attention,
                    empty_rows=empty,
                    half=state.half_in_sight or scores.dtype == "half",
                    inverted=is_inverted(use.hidden),
                    made_at=made_at,
                    softmaxed_at=normalised.at,
                    bounded=scores.traits.bounded,
                    in_place=use.in_place,
                    fill_parameter=use.fill_name,
                )
            )


def is_inverted(hidden: Region | None) -> bool:
    """What is hidden is known to be what was to be kept, by more than a name."""
    return hidden is not None and hidden.meaning == "keep" and hidden.strong and hidden.side is None


def rows_may_be_empty(uses: tuple[MaskUse, ...]) -> bool | None:
    """Whether a row may be hidden whole: not by one causal mask that keeps its diagonal; None if nothing is known."""
    hiding = [use for use in uses if use.how != "multiplied"]
    if not hiding:
        return None
    if len(hiding) == 1:
        region = hiding[0].hidden
        value = hiding[0].value
        name = value.traits.name if isinstance(value, Tensor) else ""
        if says(name, "causal", "tril", "triu", "future", "subsequent", "lower", "upper"):
            return False
        if region is None:
            return True if isinstance(value, Tensor) else None
        if region.kinds == {"causal"}:
            return hides_diagonal(region)
        if says(region.name, "causal", "tril", "triu", "future", "subsequent"):
            return False
        return True
    return True


def hides_diagonal(region: Region) -> bool:
    """Whether a causal region takes the diagonal with it."""
    if region.side == "upper" and region.offset is not None:
        return region.offset <= 0
    if region.side == "lower" and region.offset is not None:
        return region.offset >= 0
    return False


def dense_scores(tensor: Tensor) -> Tensor:
    return replace(tensor, layout=Layout.dense(tensor.axes, tensor.lead))


def without_shape(tensor: Tensor) -> Tensor:
    return vague(tensor)
