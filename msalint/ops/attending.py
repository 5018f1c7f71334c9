"""What attention is made of, put together from its parts: how scores were scaled, and what weights are summed over."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from msalint.diagnostic import Site
from msalint.facts import AttentionSite, Multiplied, Projected, ScaledAfterSoftmax, Scaling, Weighted
from msalint.ops.grouping import tell_tiled
from msalint.ops.hiding import tell_cleared, tell_masks
from msalint.ops.layout import is_head
from msalint.ops.table import Invocation
from msalint.shapes.axes import Atom, Axis, Ident, axis_name
from msalint.shapes.size import Size
from msalint.shapes.vocabulary import BATCH, SEQ, role_of_name, says
from msalint.state import State, is_axis_symbol
from msalint.values import Factor, Normalised, Product, Tensor, replace


def scaling_of(state: State, factors: Sequence[Factor], contracted: Axis, tensors: Sequence[Tensor]) -> Scaling:
    """What a product over `contracted` was scaled with."""
    head_dim = state.size_of(contracted)
    widths = _widths(state, contracted, tensors, head_dim)
    width = widths[0] if widths else None
    head_power, width_power, constant, unknown = Fraction(0), Fraction(0), 1.0, False
    for factor in factors:
        if factor.value is None or factor.value.coefficient is None:
            unknown = True
            continue
        literal = _literal_power(factor.value.coefficient, head_dim) if not factor.value.powers else None
        if literal is not None:
            head_power += literal
            continue
        constant *= factor.value.coefficient
        for size, power in factor.value.powers:
            if state.relations.compare(size, head_dim).certainly:
                head_power += power
                continue
            met = next((one for one in widths if state.relations.compare(size, one).certainly), None)
            if met is None:
                unknown = True
            else:
                width, width_power = met, width_power + power
    return Scaling(tuple(factors), head_dim, width, head_power, width_power, unknown, constant)


def _literal_power(coefficient: float, size: Size) -> Fraction | None:
    """The power of a literal size that a number is: 0.125 is 64 to the -1/2."""
    number = size.constant
    if number is None or not 2 <= number < 2**53 or coefficient <= 0 or coefficient == 1:
        return None
    for power in (Fraction(-1, 2), Fraction(-1, 4), Fraction(-1), Fraction(1, 2)):
        if math.isclose(number ** float(power), coefficient, rel_tol=1e-6):
            return power
    return None


def _widths(state: State, contracted: Axis, tensors: Sequence[Tensor], head_dim: Size) -> list[Size]:
    """The sizes that people mistake for the head width: what heads were split from, and the model width."""
    found: list[Size] = []
    if any(is_axis_symbol(symbol) for symbol in head_dim.inner_symbols()):
        # A head width that nothing names may well be the model width.
        return []
    splits = [atom.ident for atom in contracted if atom.ident.relation == "split"]
    found += [state.relations.resolve(ident.whole) for ident in splits if ident.whole is not None]
    for tensor in tensors:
        projection = tensor.traits.projection
        if projection is not None:
            found += [w for w in (projection.width, projection.input_width) if w is not None]
    settled = []
    for width in found:
        verdict = state.relations.compare(width, head_dim)
        if not verdict.certainly and width not in settled:
            settled.append(width)
    return settled


def factors_of(product: Product, scores: Tensor | None = None) -> tuple[Factor, ...]:
    """Every factor on the two sides of a product and on its result."""
    mine = scores.traits.scale if scores is not None else ()
    return (*product.left.traits.scale, *product.right.traits.scale, *mine)


def tell_late_scale(state: State, softmax: Normalised, factor: Factor, on: str) -> None:
    """Tell of a factor on weights or context that looks like the scale of their scores."""
    product = softmax.scores.traits.product
    if product is None or factor.value is None or factor.at is None:
        return
    scaling = scaling_of(state, [factor], product.contracted[0], (product.left, product.right))
    if not scaling.unknown:
        before = bool(factors_of(product, softmax.scores))
        state.scaled_late.add(id(softmax.at))
        state.emit(ScaledAfterSoftmax(factor.at, factor.value, softmax, scaling, on, before))


def same_ident(one: Ident, other: Ident) -> bool:
    """Whether two atoms are the same axis, or one is a cut of the other."""
    if one is other:
        return True
    return any(_cut_of(a, b) for a, b in ((one, other), (other, one)))


def _cut_of(part: Ident, whole: Ident) -> bool:
    here: Ident | None = part
    while here is not None and here.relation in {"cut", "cat"}:
        here = here.parent
        if here is whole:
            return True
    return False


def role_of_axis(axis: Axis, beside: Sequence[Axis]) -> tuple[str | None, bool]:
    """The role of an axis that is attended over, and whether that is known by more than a name.

    Samples packed with their tokens into one axis are neither: what keeps them apart may be a mask.
    """
    roles = {role_of_axis((atom,), beside)[0] for atom in axis} if len(axis) > 1 else set()
    if BATCH in roles and len(roles) > 1:
        return None, False
    for atom in axis:
        origin = origin_of(atom.ident)
        if is_head(Atom(atom.size, origin), (axis, *beside)) and atom.ident.relation != "tile":
            return "head", True
        own = [*origin.names, *atom.ident.names]
        names = [str(atom.size), *own]
        called = {role_of_name(name) for name in own}
        # What the code calls a sequence is one, also where its length turns out to be that of the batch.
        if BATCH in called or (SEQ not in called and role_of_name(names[0]) == BATCH):
            heard = origin.hearsay | atom.ident.hearsay
            return BATCH, any(role_of_name(name) == BATCH and name not in heard for name in names)
        if _seq_first_batch(names, beside):
            return BATCH, True
        if any(role_of_name(name) == SEQ for name in names):
            return SEQ, False
    return None, False


def meets_tokens(attended: Axis, product: Product | None, values: Tensor, beside: Sequence[Axis]) -> bool:
    """Whether tokens stand beside the axis attended over: an axis that counts neither heads nor features.

    Without one, as in (samples, features), attention over the batch looks other samples up on purpose.
    """
    own = [origin_of(atom.ident) for atom in attended]
    features = values.axes[-1] if values.axes else ()
    axes = [axis for axis in (*beside, *values.axes[:-2]) if axis is not features]
    if any(
        origin_of(atom.ident) not in own and not is_head(Atom(atom.size, origin_of(atom.ident)), axes)
        for axis in axes
        for atom in axis
    ):
        return True
    # Scores that sum over the tokens, where the batch took their place: q and k are (batch, tokens).
    summed = [] if product is None else [atom.ident for atom in product.contracted[0]]
    shared = bool(summed) and summed == [atom.ident for atom in features]
    return shared and any(ident.kind == "place" for ident in summed)


def origin_of(ident: Ident) -> Ident:
    """The identity that a product's row or column was born from."""
    while ident.relation in {"rows", "columns"} and ident.parent is not None:
        ident = ident.parent
    return ident


def _seq_first_batch(names: Sequence[str], beside: Sequence[Axis]) -> bool:
    """(L, N, E) as torch's manual writes it: N is the batch where L or S stands beside it, unattended."""
    if not any(name in {"N"} for name in names):
        return False
    others = {name for axis in beside for atom in axis for name in (str(atom.size), *origin_of(atom.ident).names)}
    return bool(others & {"L", "S", "T"}) and not any(role_of_name(name) == BATCH for name in others)


def weigh(
    state: State,
    at: Site,
    weights: Tensor,
    axis: Axis,
    values: Tensor,
    weights_site: Site,
    values_site: Site,
    beside: Sequence[Axis],
) -> None:
    """Tell that weights meet values over an axis of the weights."""
    softmax = weights.traits.softmax
    assert softmax is not None
    state.weighed.add(id(softmax.at))
    idents = [atom.ident for atom in axis]
    known = bool(axis) or bool(softmax.axis)
    verdict: bool | None = None
    if softmax.position is not None and known:
        verdict = _covers(softmax.axis, idents)
    product = softmax.scores.traits.product
    contracted = weights_site is not values_site
    if not contracted and verdict is not True:
        verdict = _lined_up(state, softmax, axis, verdict)
    if product is None and contracted:
        tell_masks(state, softmax.scores, softmax)
    if contracted or (product is not None and is_attention(product)):
        # `(probs * log_probs).sum(-1)` is an entropy as often as a context.
        tell_cleared(state, weights, softmax, at)
    moved = weights.traits.moved
    scores = _unmixed(product) if product is not None else None
    if scores is not None and verdict is False and not _among(idents, (*scores.rows, *scores.columns)):
        return  # heads of the weights are mixed, or their samples: no values are summed
    mapped = values.traits.attended or any(_counts_positions(free) for free in values.axes[-2:] if free != axis)
    if verdict is False and contracted and mapped:
        return  # a map of positions on positions, as an inverse of the weights is: no values are summed
    rows = bool(idents) and all(ident.relation == "rows" for ident in idents)
    swapped = verdict is False and rows
    turned = moved is not None and moved != softmax.scores.traits.moved
    exchanged = verdict is True and turned and _called_queries(idents, product)
    role, strong = role_of_axis(axis, beside)
    state.emit(
        Weighted(
            at,
            softmax=softmax,
            contracted=axis_name(axis),
            normalised=_normalised_name(softmax),
            contracted_normalised=verdict,
            over=role,
            over_name=axis_name(axis),
            weights_site=weights_site,
            values_site=values_site,
            transposed_after=moved[0] if moved and (exchanged or verdict is False) else None,
            swapped=swapped,
            exchanged=exchanged,
            renormalised=weights.traits.reweighted,
            purpose=state.purpose(),
            batch_strong=strong,
            tokens=values.lead is not None or meets_tokens(axis, product, values, beside),
        )
    )
    if product is not None:
        tell_projections(state, at, product.left, product.right, values)
    _tell_site(state, softmax, weights, product, verdict)


def _unmixed(product: Product) -> Product:
    """The product that formed scores of which another one mixes heads: it sums over neither queries nor keys."""
    while (scores := product.left.traits.product) is not None:
        if _among([atom.ident for atom in product.contracted[0]], (*scores.rows, *scores.columns)):
            return product
        product = scores
    return product


def tell_projections(state: State, at: Site, query: Tensor | None, key: Tensor | None, value: Tensor | None) -> None:
    """Tell which layers made the queries, keys and values of an attention."""
    made = [tensor.traits.projection if tensor is not None else None for tensor in (query, key, value)]
    state.emit(Projected(at, made[0], made[1], made[2], purpose=state.purpose()))
    if query is not None:
        tell_tiled(state, at, query, (("keys", key), ("values", value)))


def _normalised_name(softmax: Normalised) -> str:
    axes = softmax.scores.axes
    known = softmax.position is not None and -len(axes) <= softmax.position < 0
    return axis_name(axes[softmax.position]) if known and softmax.position is not None else "an axis"


def _covers(normalised: Sequence[Ident], contracted: Sequence[Ident]) -> bool | None:
    """Whether the axis summed over is the axis normalised; None where one of the two is of unknown make."""
    paired = len(normalised) == len(contracted)
    if paired and all(any(same_ident(a, b) for b in contracted) for a in normalised):
        return True
    related = any(same_ident(a, b) for a in normalised for b in contracted)
    if related:
        return None
    both = (*normalised, *contracted)
    if normalised and any(ident.kind in {"new", "regrouped"} and ident.relation == "" for ident in both):
        return None
    return False


def _lined_up(state: State, softmax: Normalised, axis: Axis, verdict: bool | None) -> bool | None:
    """Whether weights times values are summed over the axis normalised, where that axis may be the values' own."""
    idents = [atom.ident for atom in axis]
    others = [atom.ident for other in softmax.scores.axes for atom in other if atom.ident not in softmax.axis]
    if _among(idents, others):
        return verdict
    equal = softmax.size is not None and state.relations.compare(softmax.size, state.size_of(axis)).certainly
    return True if equal else None


def _counts_positions(axis: Axis) -> bool:
    """Whether an axis counts the queries or the keys of some product of scores."""
    return bool(axis) and all(atom.ident.relation in {"rows", "columns"} for atom in axis)


def _among(idents: Sequence[Ident], others: Sequence[Ident]) -> bool:
    return bool(idents) and all(any(same_ident(i, other) for other in others) for i in idents)


def _called_queries(rows: Sequence[Ident], product: Product | None) -> bool:
    """These are the rows of a product, and the code calls them, or what they come from, queries (the columns keys)."""
    if not rows or any(ident.relation != "rows" for ident in rows):
        return False
    if all(any(says(name, "query", "queries") for name in ident.names) for ident in rows):
        return True
    if product is None:
        return False
    left, right = (
        {t.traits.name, t.traits.projection.layer if t.traits.projection else ""} for t in (product.left, product.right)
    )
    query = any(says(name, "q", "query", "queries") for name in left)
    return query and any(says(name, "k", "key", "keys") for name in right)


def _tell_site(
    state: State, softmax: Normalised, weights: Tensor, product: Product | None, verdict: bool | None
) -> None:
    """Tell how far an attention is understood. A layer may score the keys: then what it normalises must be summed."""
    reason = ""
    if product is None and verdict is not True:
        reason = "scores are not a product that was followed"
    elif weights.lead is not None:
        reason = "rank of the weights is not known"
    elif softmax.position is None:
        reason = "softmax axis is not known"
    state.emit(AttentionSite(softmax.at, not reason, reason, "softmax"))


def contract_weights(call: Invocation, tensor: Tensor, places: list[int]) -> None:
    """`(weights * values).sum(dim)`: the axis summed is the one contracted."""
    softmax = tensor.traits.softmax
    for place in places:
        if softmax is not None and softmax.position in {place, place - len(tensor.axes)}:
            continue  # values of the same axes, by whatever name: their sum is over the axis normalised
        if place < len(tensor.axes):
            beside = [axis for i, axis in enumerate(tensor.axes) if i != place]
            weigh(call.state, call.at, tensor, tensor.axes[place], tensor, call.receiver(), call.receiver(), beside)


def count_weights(state: State, tensor: Tensor, places: Sequence[int]) -> None:
    """`weights.sum(dim)` over another axis than softmax ran over: how much each key got, to divide by it later."""
    softmax = tensor.traits.softmax
    if softmax is None or softmax.position is None or tensor.lead is not None:
        return
    scores = softmax.scores.axes
    own = len(scores) == len(tensor.axes) and all(
        len(a) == len(b) and all(same_ident(x.ident, y.ident) for x, y in zip(a, b))
        for a, b in zip(scores, tensor.axes)
    )
    if own and softmax.position % len(scores) not in places:
        state.counted.add(id(softmax.at))


def is_attention(product: Product) -> bool:
    """Query times key: a product over features of two projections, or of things named so."""
    left, right = product.left.traits, product.right.traits
    if not all(_features(axis) for axis in product.contracted):
        return False
    if left.projection is not None and right.projection is not None:
        return True
    names = (left.name.lower(), right.name.lower())
    query = any(says(name, "q", "query", "queries") for name in names)
    key = any(says(name, "k", "key", "keys") for name in names)
    return query and key


def _features(axis: Axis) -> bool:
    return bool(axis) and all(atom.ident.kind != "place" for atom in axis)


def tell_product(
    state: State, product: Product, at: Site, sites: tuple[Site, Site], swapped: bool, head_axis: str | None
) -> None:
    state.emit(Multiplied(at, product, sites[0], sites[1], swapped, head_axis, state.context))


def result_identities(
    left: Axis, right: Axis, weights: Tensor | None, features: bool
) -> tuple[Axis, Axis, tuple[Ident, ...], tuple[Ident, ...]]:
    """The free axes of a product, born anew as rows and columns where both may go back to one axis."""
    if not features:
        return _restored(left), _restored(right), (), ()
    rows = tuple(_born(atom, "rows") for atom in left)
    columns = tuple(_born(atom, "columns") for atom in right)
    return rows, columns, tuple(a.ident for a in rows), tuple(a.ident for a in columns)


def _born(atom: Atom, relation: str) -> Atom:
    ident = Ident(atom.ident.kind, parent=atom.ident, relation=relation, names=list(atom.ident.names))
    return replace(atom, ident=ident)


def _restored(axis: Axis) -> Axis:
    """A context's rows are the queries' places again."""
    return tuple(
        replace(atom, ident=atom.ident.parent)
        if atom.ident.relation in {"rows", "columns"} and atom.ident.parent is not None
        else atom
        for atom in axis
    )
