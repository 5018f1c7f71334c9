"""Products of tensors: matmul, bmm, einsum, linear maps. Scores and contexts are born here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msalint.diagnostic import Site
from msalint.facts import SizesDisagree, shape_of
from msalint.ops.attending import (
    is_attention,
    result_identities,
    same_ident,
    tell_product,
    weigh,
)
from msalint.ops.axes import distinct, new_axis, vague, weigh_hearsay
from msalint.ops.elementwise import broadcast
from msalint.ops.layout import is_head
from msalint.ops.table import Invocation, op
from msalint.shapes.axes import Atom, Axis, Ident, Layout, ShapeVar, axis_name
from msalint.shapes.notation import NotationError, parse_einsum
from msalint.shapes.size import Size
from msalint.state import State
from msalint.values import Const, Factor, Items, Product, Projection, Tensor, Traits, Value, replace


@op("matmul bmm __matmul__", on="torch method")
def matmul(call: Invocation) -> Value | None:
    left, right = call.tensor(0), call.tensor(1, "other")
    if left is None or right is None:
        return None
    sites = (call.site(0) or call.at, call.site(1, "other") or call.at)
    if call.name == "bmm":
        left, right = call.state.bind_rank(left, 3), call.state.bind_rank(right, 3)
    return multiply(call.state, left, right, call.at, sites)


@op("mm mv", on="torch method")
def mm(call: Invocation) -> Value | None:
    left, right = call.tensor(0), call.tensor(1)
    if left is None or right is None:
        return None
    if call.name == "mm":
        left, right = call.state.bind_rank(left, 2), call.state.bind_rank(right, 2)
    return multiply(call.state, left, right, call.at, (call.receiver(), call.site(1) or call.at))


@op("baddbmm addmm addbmm baddbmm_", on="torch method")
def baddbmm(call: Invocation) -> Value | None:
    """`beta * input + alpha * (left @ right)`; addbmm sums the products over the batch."""
    first, second = ("mat1", "mat2") if call.name == "addmm" else ("batch1", "batch2")
    left, right = call.tensor(1, first), call.tensor(2, second)
    if left is None or right is None:
        return None
    rank = 2 if call.name == "addmm" else 3
    left, right = call.state.bind_rank(left, rank), call.state.bind_rank(right, rank)
    if call.name == "addbmm":
        if left.rank != rank or right.rank != rank:
            return None
        axes = (left.axes[1], right.axes[2])
        return Tensor(None, axes, Layout.dense(axes), _product_dtype(left, right))
    result = multiply(call.state, left, right, call.at, (call.site(1) or call.at, call.site(2) or call.at))
    alpha = call.kwargs.get("alpha")
    if result is not None and alpha is not None:
        factor = Factor(call.state.as_real(alpha), call.keyword_sites.get("alpha"))
        return result.with_traits(scale=(*result.traits.scale, factor))
    return result


def multiply(state: State, left: Tensor, right: Tensor, at: Site, sites: tuple[Site, Site]) -> Tensor | None:
    """`left @ right`, contracting the left's last axis with the right's last but one."""
    if left.rank == 1 or right.rank == 1:
        return _with_vector(state, left, right)
    if right.lead is not None and not right.axes and right.traits.parameter:
        return None  # `x @ self.w`, where nothing tells whether w is a matrix or a vector
    left, right = state.with_trailing(left, 2), state.with_trailing(right, 2)
    if min(len(left.axes), len(right.axes)) < 2:
        return None
    inner, outer, free = left.axes[-1], right.axes[-2], right.axes[-1]
    meant = _meant_transposed(state, left, right)
    swapped = meant is not None
    if swapped and _is_a_matrix(state, right):
        return Tensor(ShapeVar(), (), None)
    if meant is not None:
        free = meant
    elif state.unify(state.size_of(inner), state.size_of(outer)) is False:
        _tell_clash(state, left, right, at)
    features = _over_features(left, right, inner, outer)
    rows, columns, row_ids, column_ids = result_identities(left.axes[-2], free, None, features)
    lead_axes, lead = (left.axes[:-2], left.lead) if swapped else _leading(state, left, right, at)
    axes = distinct((*lead_axes, rows, columns))
    _tell_weights(state, left, right, at, sites, lead_axes)
    product = Product(left, right, (inner, outer), row_ids, column_ids, at) if features else None
    if product is not None and (swapped or is_attention(product)):
        tell_product(state, product, at, sites, swapped, _between_heads(product, rows, columns))
    traits = _product_traits(left, right, product, at)
    return Tensor(lead, axes, Layout.dense(axes, lead), _product_dtype(left, right), traits)


def _with_vector(state: State, left: Tensor, right: Tensor) -> Tensor | None:
    main = left if right.rank == 1 else right
    if main.rank == 1:
        return Tensor(None, (), Layout(()))
    number = 1 if main is left else 2
    main = state.with_trailing(main, number)
    if len(main.axes) < number:
        return None
    axes = main.axes[:-1] if main is left else (*main.axes[:-2], main.axes[-1])
    return Tensor(main.lead, axes, Layout.dense(axes, main.lead))


def _leading(state: State, left: Tensor, right: Tensor, at: Site) -> tuple[tuple[Axis, ...], ShapeVar | None]:
    """The batch axes of a product."""
    a = replace(left, axes=left.axes[:-2])
    b = replace(right, axes=right.axes[:-2])
    if a.lead is None and b.lead is None:
        return broadcast(state, a, b, at, "matmul")[0], None
    if a.lead is b.lead:
        longer = a if len(a.axes) >= len(b.axes) else b
        return longer.axes, a.lead
    for one, other in ((a, b), (b, a)):
        if one.lead is None and not one.axes:
            return other.axes, other.lead
    if a.lead is None and a.traits.projection is not None:
        return a.axes, None
    if b.lead is None and not a.axes:
        return b.axes, None
    main = a if a.lead is not None and len(a.axes) >= len(b.axes) else b
    return (a.axes, None) if a.lead is None else (main.axes, main.lead)


def _over_features(left: Tensor, right: Tensor, inner: Axis, outer: Axis) -> bool:
    """The product is scores, as far as its axes tell: neither side is weights or a parameter."""
    a, b = left.traits, right.traits
    return a.softmax is None and b.softmax is None and not a.parameter and not b.parameter


def _meant_transposed(state: State, left: Tensor, right: Tensor) -> Axis | None:
    """`q @ k`, `q @ k.T`: the left's features meet positions or heads, while the right has its features elsewhere.

    The axis of the right that was meant to be the columns; None where nothing tells that another axis was meant.
    """
    inner, outer = left.axes[-1], right.axes[-2]
    for side in (left.traits, right.traits):
        if side.softmax is not None or side.parameter or side.projection is None:
            return None
    if not _head_width(inner) or not outer or any(_head_width((atom,)) for atom in outer):
        return None
    if any(atom.ident.kind not in {"place", "feature"} for atom in outer):
        return None
    size = state.size_of(inner)
    if state.relations.compare(size, state.size_of(outer)).certainly:
        return None
    fitting = [a for a in right.axes if _head_width(a) and state.relations.compare(size, state.size_of(a)).certainly]
    if len(fitting) != 1:
        return None
    batch = {atom.ident for axis in left.axes[:-2] for atom in axis}
    free = [a for a in right.axes if a and all(i.kind == "place" and i not in batch for i in _idents([a]))]
    return free[-1] if free else outer


def _is_a_matrix(state: State, right: Tensor) -> bool:
    """`k.transpose(1, 0)` of a key that only a convention gave a batch: the product says that it is (seq, width)."""
    places = [state.presumed.get(axis[0].ident) if len(axis) == 1 else None for axis in right.axes[:2]]
    return right.rank == 3 and places == [1, 0]


def _head_width(axis: Axis) -> bool:
    """The features of one head, or of all heads before they are split."""
    return bool(axis) and all(atom.ident.kind == "feature" and not is_head(atom) for atom in axis)


def _tell_clash(state: State, left: Tensor, right: Tensor, at: Site) -> None:
    a, b = state.size_of(left.axes[-1]), state.size_of(right.axes[-2])
    message = f"the product contracts {a} with {b}: {shape_of(left)} @ {shape_of(right)}"
    state.emit(SizesDisagree(at, "matmul", str(a), str(b), message))


def _between_heads(product: Product, rows: Axis, columns: Axis) -> str | None:
    """The heads axis, if the scores are formed between the heads of one token."""
    if len(rows) != 1 or len(columns) != 1:
        return None
    left, right = rows[0].ident.parent, columns[0].ident.parent
    if left is None or right is None:
        return None
    beside = (product.left.axes, product.right.axes)
    if is_head(Atom(rows[0].size, left), beside[0]) and is_head(Atom(columns[0].size, right), beside[1]):
        return axis_name(rows)
    return None


def _tell_weights(
    state: State, left: Tensor, right: Tensor, at: Site, sites: tuple[Site, Site], beside: Sequence[Axis]
) -> None:
    a, b = left.traits.softmax, right.traits.softmax
    if a is not None and b is None:
        weigh(state, at, left, left.axes[-1], right, sites[0], sites[1], beside)
    elif b is not None and a is None:
        weigh(state, at, right, right.axes[-2], left, sites[1], sites[0], beside)


def _product_traits(left: Tensor, right: Tensor, product: Product | None, at: Site) -> Traits:
    a, b = left.traits, right.traits
    if a.softmax is not None or b.softmax is not None:
        return Traits(attended=True, context_of=a.softmax or b.softmax)
    if b.parameter and not a.parameter:
        width = right.axes[-1][0].size if len(right.axes[-1]) == 1 else None
        source = a.name or (a.projection.source if a.projection else "")
        return Traits(projection=Projection(b.name, source, width, at), name="", scale=a.scale)
    if a.parameter and not b.parameter:
        return Traits(projection=Projection(a.name, b.name, None, at))
    return Traits(product=product, unit=a.unit and b.unit, bounded=False)


def _product_dtype(*factors: Tensor) -> str | None:
    """The dtype of a product: that of the factors known to have one. Truths only count here, one with another."""
    known = {factor.dtype for factor in factors if factor.dtype is not None}
    return known.pop() if len(known) == 1 and "bool" not in known else None


# --- linear maps -------------------------------------------------------------------------------------------------


def project(
    state: State,
    tensor: Tensor,
    in_features: Size | None,
    out_features: Size | None,
    at: Site,
    layer: str,
    serial: int = 0,
) -> Tensor:
    """A linear map of the last axis: a new feature axis, everything else as it was."""
    tensor = state.with_trailing(tensor, 1)
    if not tensor.axes:
        return vague(tensor)
    weigh_hearsay(tensor, in_features)
    before = state.size_of(tensor.axes[-1])
    if in_features is not None and state.unify(before, in_features) is False:
        message = f"{layer or 'the layer'} takes {in_features} features and gets {before}: {shape_of(tensor)}"
        state.emit(SizesDisagree(at, layer or "Linear", str(in_features), str(before), message))
    axis = new_axis(out_features, "feature")
    axes = (*tensor.axes[:-1], axis)
    traits = tensor.traits
    source = traits.name or (traits.projection.source if traits.projection else "") or _lead_name(tensor)
    made = Projection(layer, source, out_features, at, in_features or before, serial)
    result = Traits(projection=made, cached=traits.cached, attended=traits.attended)
    return Tensor(tensor.lead, axes, Layout.dense(axes, tensor.lead), tensor.dtype, result)


def _lead_name(tensor: Tensor) -> str:
    """What ties a tensor to the input it came from: the root of its first axis."""
    for axis in tensor.axes:
        for atom in axis:
            return f"#{atom.ident.root.serial}"
    return f"#{tensor.lead.serial}" if tensor.lead is not None else ""


@op("linear", on="F")
def linear(call: Invocation) -> Value | None:
    tensor, weight = call.tensor(0), call.tensor(1, "weight")
    if tensor is None:
        return None
    out = into = None
    if weight is not None and weight.rank == 2:
        out, into = (call.state.size_of(axis) for axis in weight.axes)
    return project(call.state, tensor, into, out, call.at, weight.traits.name if weight else "")


# --- einsum ------------------------------------------------------------------------------------------------------


@op("einsum", on="torch")
def einsum(call: Invocation) -> Value | None:
    equation = call.get(0)
    if not isinstance(equation, Const) or not isinstance(equation.value, str):
        return None
    operands: list[Value] = call.args[1:]
    if len(operands) == 1 and isinstance(operands[0], Items):
        operands = list(operands[0].items)
    return by_letters(call, equation.value, operands)


def by_letters(call: Invocation, equation: str, operands: Sequence[Value]) -> Tensor | None:
    """An einsum: each letter is one axis, wherever it stands."""
    try:
        inputs, output = parse_einsum(equation)
    except NotationError:
        return None
    return lettered_product(call, inputs, output, operands)


def lettered_product(
    call: Invocation, inputs: Sequence[Sequence[str]], output: Sequence[str], operands: Sequence[Value]
) -> Tensor | None:
    """The product that the letters of each operand and of the output describe."""
    some = [call.state.some_tensor(operand) for operand in operands]
    tensors = [tensor for tensor in some if tensor is not None]
    if len(inputs) != len(tensors):
        return None
    state = call.state
    tensors = _led_alike(state, inputs, tensors)
    lead = _common_lead(state, inputs, output, tensors)
    letters: dict[str, list[Axis]] = {}
    placed: list[dict[str, Axis]] = []
    for term, tensor in zip(inputs, tensors):
        axes = _lettered(call, term, tensor, lead is not None)
        if axes is None:
            return _shape_only(output)
        placed.append(axes)
        for letter, axis in axes.items():
            letters.setdefault(letter, []).append(axis)
    for letter, found in letters.items():
        _unify_letter(call, letter, found)
    sites = (call.site(1) or call.at, call.site(2) or call.at)
    if len(tensors) == 2:
        result = _pairwise(state, call.at, sites, tensors, placed, inputs, output)
        return result if lead is None else replace(result, lead=lead, layout=None)
    axes_out = tuple(_known(letters[letter]) for letter in output if letter in letters)
    return Tensor(lead, axes_out, None, _product_dtype(*tensors))


def _led_alike(state: State, inputs: Sequence[Sequence[str]], tensors: list[Tensor]) -> list[Tensor]:
    """Operands with `...` in front: where one's leading axes are known, the others have as many."""
    tensors = [state.with_rank(tensor) for tensor in tensors]
    rests = [
        len(tensor.axes) - len(term) + 1
        for term, tensor in zip(inputs, tensors)
        if "..." in term and tensor.lead is None
    ]
    if not rests:
        return tensors
    return [
        state.bind_rank(tensor, max(rests) + len(term) - 1) if "..." in term else tensor
        for term, tensor in zip(inputs, tensors)
    ]


def _common_lead(
    state: State, inputs: Sequence[Sequence[str]], output: Sequence[str], tensors: Sequence[Tensor]
) -> ShapeVar | None:
    """The leading axes of unknown number that `...` stands for, in front of every operand and of the output."""
    terms = [*inputs, output]
    if not all("..." not in term or term[0] == "..." for term in terms) or "..." not in output:
        return None
    leads = [state.with_trailing(tensor, len(term) - 1).lead for term, tensor in zip(inputs, tensors) if "..." in term]
    return next((lead for lead in leads if lead is not None), None)


def _known(found: Sequence[Axis]) -> Axis:
    return next((axis for axis in found if axis), ())


def _lettered(call: Invocation, term: Sequence[str], tensor: Tensor, led: bool) -> dict[str, Axis] | None:
    """The axes of an operand by letter; `...` stands for the leading axes that are left.

    `led`: leading axes of unknown number are the same in all operands, and left out.
    """
    state = call.state
    if "..." in term:
        place = list(term).index("...")
        after = len(term) - place - 1
        tensor = state.with_trailing(state.with_rank(tensor), after)
        if led and tensor.lead is not None and len(tensor.axes) == after:
            return dict(zip(term[1:], tensor.axes))
        if tensor.lead is not None or len(tensor.axes) < len(term) - 1:
            return None
        rest = len(tensor.axes) - (len(term) - 1)
        names = [*term[:place], *(f"...{i - rest}" for i in range(rest)), *term[place + 1 :]]
    else:
        tensor = state.bind_rank(tensor, len(term))
        names = list(term)
        if tensor.lead is None and len(tensor.axes) != len(names):
            return None  # a rank is often known by convention only, which the equation overrules
    if tensor.lead is not None:
        return None
    return dict(zip(names, tensor.axes))


def _unify_letter(call: Invocation, letter: str, found: Sequence[Axis]) -> None:
    sized = [axis for axis in found if axis]
    for first, second in zip(sized, sized[1:]):
        a, b = call.state.size_of(first), call.state.size_of(second)
        if call.state.unify(a, b) is False:
            message = f"the letter {letter} stands for {a} in one operand and {b} in another"
            call.state.emit(SizesDisagree(call.at, "einsum", str(a), str(b), message))
            return


def _shape_only(output: Sequence[str]) -> Tensor | None:
    if "..." in output:
        return None
    return Tensor(None, tuple(new_axis(None) for _ in output), None)


def _pairwise(
    state: State,
    at: Site,
    sites: tuple[Site, Site],
    tensors: list[Tensor],
    placed: list[dict[str, Axis]],
    inputs: Sequence[Sequence[str]],
    output: Sequence[str],
) -> Tensor:
    """Two operands: letters of both that are gone are contracted, letters of one are rows or columns."""
    left, right = placed
    kept = _expanded_output(output, left, right)
    contracted = [letter for letter in left if letter in right and letter not in kept]
    shared = [letter for letter in left if letter in right and letter in kept]
    row_letters = [letter for letter in left if letter not in right and letter in kept]
    column_letters = [letter for letter in right if letter not in left and letter in kept]
    axes = {letter: left.get(letter) or right.get(letter) or () for letter in kept}
    product = None
    weights = any(t.traits.softmax is not None for t in tensors)
    scores = len(contracted) == 1 and not weights and not any(t.traits.parameter for t in tensors)
    if scores and row_letters and column_letters:
        rows = {letter: _reborn(axes[letter], "rows") for letter in row_letters}
        columns = {letter: _reborn(axes[letter], "columns") for letter in column_letters}
        axes.update(rows)
        axes.update(columns)
        pair = (left[contracted[0]], right[contracted[0]])
        product = Product(tensors[0], tensors[1], pair, _idents(rows.values()), _idents(columns.values()), at)
        if is_attention(product):
            between = None
            if len(rows) == 1 and len(columns) == 1:
                between = _between_heads(product, next(iter(rows.values())), next(iter(columns.values())))
            tell_product(state, product, at, sites, False, between)
    elif weights:
        axes = {letter: _restored_axis(axis) for letter, axis in axes.items()}
    beside = [axes[letter] for letter in shared]
    _weigh_letters(state, at, sites, tensors, placed, contracted, beside)
    traits = _product_traits_of(tensors, product, at, kept, axes)
    result = distinct([axes[letter] for letter in kept])
    memory = _memory_order(row_letters, column_letters, shared, kept) if contracted else []
    layout = Layout.dense(axes[letter] for letter in memory) if memory else None
    return Tensor(
        None, result, layout, _product_dtype(*tensors), replace(traits, implementation_layout=True, moved=None)
    )


def _memory_order(left: list[str], right: list[str], shared: list[str], kept: list[str]) -> list[str]:
    """The letters as torch's einsum leaves them in memory today: those of both, the left's, the right's.

    The two free groups change places where the output names them just so. None of this is documented.
    """
    left, right, shared = ([c for c in kept if c in group] for group in (left, right, shared))
    free = [c for c in kept if c not in shared]
    return [*shared, *right, *left] if free == [*right, *left] else [*shared, *left, *right]


def _expanded_output(output: Sequence[str], left: dict[str, Axis], right: dict[str, Axis]) -> list[str]:
    """The output's letters with `...` written out."""
    result: list[str] = []
    for letter in output:
        if letter == "...":
            dots = sorted({name for name in (*left, *right) if name.startswith("...")}, key=lambda n: int(n[3:]))
            result += dots
        else:
            result.append(letter)
    return result


def _reborn(axis: Axis, relation: str) -> Axis:
    return tuple(
        Atom(a.size, Ident(a.ident.kind, parent=a.ident, relation=relation, names=list(a.ident.names))) for a in axis
    )


def _restored_axis(axis: Axis) -> Axis:
    return tuple(
        Atom(a.size, a.ident.parent) if a.ident.relation in {"rows", "columns"} and a.ident.parent else a for a in axis
    )


def _idents(axes: Iterable[Axis]) -> tuple[Ident, ...]:
    return tuple(atom.ident for axis in axes for atom in axis)


def _weigh_letters(
    state: State,
    at: Site,
    sites: tuple[Site, Site],
    tensors: list[Tensor],
    placed: list[dict[str, Axis]],
    contracted: list[str],
    beside: list[Axis],
) -> None:
    soft = [i for i, tensor in enumerate(tensors) if tensor.traits.softmax is not None]
    if len(soft) != 1 or not contracted:
        return
    i = soft[0]
    axis = tuple(atom for letter in contracted for atom in placed[i][letter])
    normalised = tensors[i].traits.softmax
    assert normalised is not None
    if len(contracted) > 1:
        # Values are summed over more than the keys (heads folded into the output, say): keys are the part normalised.
        mine = [a for a in axis if any(same_ident(a.ident, n) for n in normalised.axis)]
        axis = tuple(mine) if mine else axis
    weigh(state, at, tensors[i], axis, tensors[1 - i], sites[i], sites[1 - i], beside)


def _product_traits_of(
    tensors: list[Tensor], product: Product | None, at: Site, kept: list[str], axes: dict[str, Axis]
) -> Traits:
    parameters = [t for t in tensors if t.traits.parameter]
    if len(parameters) == 1:
        other = tensors[0] if parameters[0] is tensors[1] else tensors[1]
        source = other.traits.name or _lead_name(other)
        return Traits(projection=Projection(parameters[0].traits.name, source, None, at), scale=other.traits.scale)
    weights = [t.traits.softmax for t in tensors if t.traits.softmax is not None]
    if weights:
        return Traits(attended=True, context_of=weights[0])
    return Traits(product=product, unit=all(t.traits.unit for t in tensors))


@op("outer ger", on="torch method")
def outer(call: Invocation) -> Value | None:
    left, right = call.tensor(0), call.tensor(1, "vec2")
    if left is None or right is None:
        return None
    a, b = call.state.bind_rank(left, 1), call.state.bind_rank(right, 1)
    if a.rank != 1 or b.rank != 1:
        return None
    axes = (a.axes[0], b.axes[0])
    return Tensor(None, axes, Layout.dense(axes), _product_dtype(left, right))


@op("inner", on="torch method")
def inner(call: Invocation) -> Value | None:
    """The last axes contracted, all others kept: `q @ k.T` of two matrices."""
    left, right = call.tensor(0), call.tensor(1, "other")
    if left is None or right is None or not left.rank or not right.rank:
        return None
    return _over_places(call, left, right, [left.rank - 1], [right.rank - 1])


@op("tensordot", on="torch")
def tensordot(call: Invocation) -> Value | None:
    """`dims` axes contracted: the last of the left with the first of the right, or two lists of them."""
    left, right = call.tensor(0, "a"), call.tensor(1, "b")
    dims = call.get(2, "dims")
    if left is None or right is None or left.rank is None or right.rank is None:
        return None
    number = 2 if dims is None else call.state.as_int(dims)
    if number is not None:
        if not 0 <= number <= min(left.rank, right.rank):
            return None
        return _over_places(call, left, right, list(range(left.rank - number, left.rank)), list(range(number)))
    if not isinstance(dims, Items) or len(dims.items) != 2:
        return None
    places = []
    for side, tensor in zip(dims.items, (left, right)):
        listed = side.items if isinstance(side, Items) else (side,)
        known = [call.state.as_int(item) for item in listed]
        rank = len(tensor.axes)
        if any(k is None or not -rank <= k < rank for k in known):
            return None
        places.append([k % rank for k in known if k is not None])
    return _over_places(call, left, right, *places) if len(places[0]) == len(places[1]) else None


def _over_places(call: Invocation, left: Tensor, right: Tensor, mine: list[int], theirs: list[int]) -> Tensor | None:
    """The product of two tensors over axes given by place, as an einsum of made-up letters."""
    first = [f"l{i}" for i in range(len(left.axes))]
    second = [f"r{i}" for i in range(len(right.axes))]
    for a, b in zip(mine, theirs):
        second[b] = first[a]
    kept = [x for i, x in enumerate(first) if i not in mine] + [x for i, x in enumerate(second) if i not in theirs]
    sites = [call.at, *call.sites[:2]]
    return lettered_product(replace(call, sites=sites), [first, second], kept, [left, right])


@op("kron", on="torch")
def kron(call: Invocation) -> Value | None:
    return None


@op("cdist", on="torch")
def cdist(call: Invocation) -> Value | None:
    left, right = call.tensor(0), call.tensor(1)
    if left is None or right is None:
        return None
    left, right = call.state.with_trailing(left, 2), call.state.with_trailing(right, 2)
    if min(len(left.axes), len(right.axes)) < 2:
        return None
    rows, columns = _reborn(left.axes[-2], "rows"), _reborn(right.axes[-2], "columns")
    lead_axes, lead = _leading(call.state, left, right, call.at)
    axes = (*lead_axes, rows, columns)
    pair = (left.axes[-1], right.axes[-1])
    product = Product(left, right, pair, _idents([rows]), _idents([columns]), call.at)
    traits = Traits(product=product, additive=True, bounded=True)
    return Tensor(lead, axes, Layout.dense(axes, lead), _product_dtype(left, right), traits)
