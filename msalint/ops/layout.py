"""Operations that move axes, take them apart, merge, cut and join them: no value of an element changes."""

from __future__ import annotations

from collections.abc import Sequence

from msalint.diagnostic import Site
from msalint.facts import CacheJoined, IndivisibleHeads, SizesDisagree, Viewed, shape_of
from msalint.ops.axes import (
    copied_layout,
    cut_axis,
    dense_like,
    drop_axis,
    elementwise_layout,
    insert_axis,
    locate,
    new_axis,
    set_aside,
    transposed,
    vague,
    with_axes,
)
from msalint.ops.table import Invocation, op
from msalint.shapes.axes import Atom, Axis, Ident, Layout, ShapeVar, axis_name, axis_size, fresh
from msalint.shapes.reshape import Broken, Reshaped, Scramble, first_broken_merge, reshape
from msalint.shapes.size import Quotient, Size, product
from msalint.shapes.vocabulary import BATCH, HEAD, SEQ, is_input_name, role_of_name, says
from msalint.state import State, is_axis_symbol
from msalint.values import DType, Int, Items, Many, Opaque, Rank, ShapeValue, Tensor, Traits, Value, replace

Target = tuple[ShapeVar | None, list[Size | None]]


# --- view and its kin --------------------------------------------------------------------------------------------


def target_of(call: Invocation, start: int, *keywords: str) -> Target | None:
    """A wanted shape: leading axes of unknown number, then sizes (None for -1)."""
    state = call.state
    given: list[Value] = call.args[start:]
    for keyword in keywords:
        if keyword in call.kwargs:
            given = [call.kwargs[keyword]]
    if call.unknown_arguments or not given:
        return None
    if len(given) == 1 and isinstance(given[0], Items):
        given = list(given[0].items)
    lead: ShapeVar | None = None
    sizes: list[Size | None] = []
    for i, value in enumerate(given):
        if isinstance(value, ShapeValue):
            front, axes = state.resolve_lead(value.lead, value.axes)
            if front is not None and i > 0:
                return None
            lead = front
            sizes.extend(state.size_of(axis) for axis in axes)
            continue
        size = state.as_size(value)
        if size is None:
            state.refuse_float(value, call.at)
            return None
        sizes.append(None if size.constant == -1 else size)
    return lead, sizes


@op("view")
def view(call: Invocation) -> Value | None:
    if len(call.args) > 1 and isinstance(call.args[1], DType):
        tensor = call.tensor()
        return vague(tensor) if tensor else None
    return _reshaped(call, target_of(call, 1, "size", "shape"), copies=False)


@op("reshape")
def reshape_op(call: Invocation) -> Value | None:
    return _reshaped(call, target_of(call, 1, "shape"), copies=True)


@op("view_as")
def view_as(call: Invocation) -> Value | None:
    return _reshaped(call, _shape_of_other(call), copies=False)


@op("reshape_as")
def reshape_as(call: Invocation) -> Value | None:
    return _reshaped(call, _shape_of_other(call), copies=True)


def _shape_of_other(call: Invocation) -> Target | None:
    other = call.tensor(1, "other")
    return None if other is None else (other.lead, [call.state.size_of(axis) for axis in other.axes])


def _reshaped(call: Invocation, target: Target | None, copies: bool) -> Value | None:
    tensor = call.tensor()
    if tensor is None:
        return None
    if target is None:
        return vague(tensor)
    state = call.state
    lead, sizes = target
    if tensor.traits.number is not None and any(size is not None and not size.is_one for size in sizes):
        # What was taken for one number is a list of them: `torch.tensor(config.means).view(1, 4, 1, 1)`.
        return _unknown_front(tensor.with_traits(number=None, cells=None), lead, sizes)
    tensor = _settle_rank(state, tensor, lead, sizes)
    _share_front(state, tensor, sizes)
    if tensor.lead is not None and tensor.lead is not lead:
        return _unknown_front(tensor, lead, sizes)
    if tensor.lead is None and lead is not None:
        return _unknown_front(tensor, lead, sizes)
    outcome = reshape(tensor.axes, sizes, state.relations)
    _learn_from(state, tensor, outcome)
    state.rely(outcome.relies, call.at, tensor, sizes)
    return _finished(call, tensor, sizes, outcome, copies)


def _names_product(sizes: list[Size | None]) -> bool:
    """`bsz * heads` in a wanted shape: there is a batch beside the sequence."""
    parts = [size.factors() for size in sizes if size is not None]
    return any(part is not None and len(part[0]) > 1 for part in parts)


def _settle_rank(state: State, tensor: Tensor, lead: ShapeVar | None, sizes: list[Size | None]) -> Tensor:
    """A view tells the rank of what it is applied to, when its last sizes make up the last known axes."""
    if tensor.lead is None or tensor.lead is lead:
        return tensor
    tensor = state.with_rank(tensor)
    if tensor.lead is None or lead is not None or not tensor.axes:
        return tensor
    packed = state.led_by_sequence(tensor.lead) and not _names_product(sizes)
    if len(sizes) > 1 and _projected_input(tensor) and not packed:
        return state.bind_rank(tensor, 3)
    width = product(state.size_of(axis) for axis in tensor.axes)
    for start in range(len(sizes) - 1, 0, -1):
        tail = sizes[start:]
        if None in tail:
            continue
        if state.relations.compare(product(size for size in tail if size is not None), width).certainly:
            front = sizes[:start]
            plain = all(size is None or size.symbol is not None or size.constant is not None for size in front)
            if plain and front.count(None) <= 1:
                tensor = state.bind_rank(tensor, start + len(tensor.axes))
                for axis, size in zip(tensor.axes, front):
                    if size is not None:
                        state.unify(state.size_of(axis), size)
            return tensor
    return tensor


def _projected_input(tensor: Tensor) -> bool:
    """A projection of what is called an input, with nothing else done to it: (batch, seq, width) by convention."""
    projection = tensor.traits.projection
    return projection is not None and len(tensor.axes) == 1 and is_input_name(tensor.lead.hint if tensor.lead else "")


def _share_front(state: State, tensor: Tensor, sizes: list[Size | None]) -> None:
    """`v.view(bsz, src_len, ...)`, `v.view(-1, bsz * heads, d)`: a nameless axis there is bsz, or src_len."""
    if tensor.lead is not None or tensor.traits.projection is None:
        return
    for axis, size in zip(tensor.axes[:2], sizes):
        own = state.size_of(axis).symbol
        factors = size.factors() if size is not None else None
        front = [s for s in factors[0] if role_of_name(s.name) in {BATCH, SEQ}] if factors else []
        if own is not None and is_axis_symbol(own) and "[" in own.name and len(front) == 1:
            state.unify(Size.of(own), Size.of(front[0]))
        if size is not None and state.relations.compare(size, state.size_of(axis)).equal is not True:
            return


def _unknown_front(tensor: Tensor, lead: ShapeVar | None, sizes: list[Size | None]) -> Tensor:
    """The result's sizes are known, what they are made of is not."""
    axes = tuple(new_axis(size, "regrouped") for size in sizes)
    return replace(tensor, lead=lead, axes=axes, layout=None)


def _learn_from(state: State, tensor: Tensor, outcome: Reshaped) -> None:
    """A view that takes an input's axis apart tells its size."""
    for axis in tensor.axes:
        for atom in axis:
            parts = outcome.splits.get(atom.ident)
            if parts:
                sizes = [a.size for target in outcome.axes for a in target if a.ident in parts]
                if len(sizes) == len(parts):
                    state.unify(atom.size, product(sizes))


def _finished(call: Invocation, tensor: Tensor, sizes: list[Size | None], outcome: Reshaped, copies: bool) -> Tensor:
    ones = [a.ident for axis in tensor.axes for a in axis if call.state.size_of((a,)).is_one]
    layout = tensor.layout.squeezed(ones).splits(outcome.splits) if tensor.layout else None
    broken = None
    empty = any(axis_size(axis).constant == 0 for axis in tensor.axes)
    if outcome.aligned and layout is not None and not empty:
        broken = first_broken_merge(outcome.axes, layout)
        if broken is not None and _may_be_the_one(broken, tensor, sizes):
            broken, layout = None, None
    elif not outcome.aligned and layout is not None:
        layout = Layout.dense(outcome.axes) if is_dense(tensor) else None
    traits = tensor.traits
    moved = traits.moved
    floored = _floored(call, tensor, sizes) if outcome.mismatch else None
    if floored is not None:
        call.state.emit(floored)
    elif outcome.scramble or outcome.mismatch or (broken and not copies) or _heads_left_over(outcome):
        kind, heads, seq = _scramble_kind(call.state, outcome.scramble, tensor)
        call.state.emit(
            Viewed(
                call.at,
                receiver=call.receiver(),
                op=call.name,
                source=shape_of(tensor),
                target=f"({', '.join('-1' if size is None else str(size) for size in sizes)})",
                broken=None if copies else broken,
                certain=not tensor.traits.implementation_layout,
                scramble=outcome.scramble,
                kind=kind,
                mismatch=outcome.mismatch,
                left_over=axis_name(outcome.left_over) if _heads_left_over(outcome) else "",
                moved_at=moved[0] if moved else None,
                moved_by=moved[1] if moved else "",
                arguments=tuple(call.sites[1:]),
                heads=heads,
                seq=seq,
                named=outcome.scramble is not None and not _is_store(traits) and _named_by_code(outcome.scramble),
                order=_order_meant(tensor, outcome.scramble) if outcome.scramble else (),
                purpose=call.state.purpose(),
            )
        )
    if broken is not None:
        # Whether what a kernel left is copied here depends on the kernel too: that trait stays.
        layout = Layout.dense(outcome.axes, tensor.lead)
        traits = replace(traits, moved=None)
    if not outcome.aligned:
        traits = replace(traits, product=None, softmax=None, masks=(), cells=traits.cells)
    return replace(tensor, axes=outcome.axes, layout=layout, traits=traits)


def _may_be_the_one(broken: Broken, tensor: Tensor, sizes: list[Size | None]) -> bool:
    """Whether a 1 asked for may be the axis of unknown size in its place: the view keeps that, and merges nothing.

    `(batch, steps, width).view(-1, 1, out, n)` for one step; a latent's number from a config is no such axis.
    """
    places = [i for i, size in enumerate(sizes) if size is not None and size.is_one and i < len(tensor.axes)]
    kept = [atom for i in places for atom in tensor.axes[i] if is_axis_symbol(atom.size.symbol)]
    return any(atom.ident is part.ident for atom in kept for part in (broken.outer, broken.inner))


def is_dense(tensor: Tensor) -> bool:
    """Whether a tensor is known to be contiguous."""
    order = tuple(atom.ident for axis in tensor.axes for atom in axis)
    return tensor.lead is None and tensor.layout is not None and tensor.layout == Layout(order)


def _floored(call: Invocation, tensor: Tensor, sizes: list[Size | None]) -> IndivisibleHeads | None:
    """The division of two numbers that left a remainder, if one of the sizes came out of it: 300 // 8 is 37."""
    used = {size.constant for size in sizes if size is not None}
    used |= {atom.size.constant for axis in tensor.axes for atom in axis}
    for (numerator, denominator), site in call.state.division_sites.items():
        a, b = numerator.constant, denominator.constant
        if a is not None and b and a % b and a // b in used:
            return IndivisibleHeads(site, "literals", str(a), str(b), call.at)
    return None


def _heads_left_over(outcome: Reshaped) -> bool:
    """The target has room for all axes but the heads: it fits one head only."""
    left = outcome.left_over
    return len(left) == 1 and left[0].ident.relation == "split" and is_head(left[0]) and left[0].size.constant is None


def is_head(atom: Atom, beside: Sequence[Axis] = ()) -> bool:
    """An atom that is the heads: named so, or the outer part of features that were taken apart in two.

    A lone h is a height as often: it counts only where it is no axis of an input, and has no w beside it.
    """
    names = [str(atom.size), *atom.ident.names]
    if any(role_of_name(name) == HEAD for name in names):
        if not {"h", "H"} & set(names):
            return True
        around = {name for axis in beside for a in axis for name in (str(a.size), *a.ident.names)}
        if atom.ident.kind != "place" and not {"w", "W"} & around:
            return True
    if atom.ident.names:
        return False  # `b c (n p) -> b n (p c)`: people called it something else
    place, parts = atom.ident.part
    return atom.ident.kind == "feature" and atom.ident.relation == "split" and place < parts - 1


def _scramble_kind(state: State, scramble: Scramble | None, tensor: Tensor) -> tuple[str | None, str, str]:
    """Whether heads were split off, or merged, in the wrong order, with the names of the two axes mixed up."""
    if scramble is None:
        return None, "", ""
    old = {atom.ident for axis in tensor.axes for atom in axis}
    heads = [atom for atom in scramble.before if is_head(atom, tensor.axes)]
    if not heads:
        return "other", "", ""
    head = heads[0]
    order = [atom for axis in scramble.after for atom in axis]
    before, after = list(scramble.before), order
    outer, inner = set(before[: before.index(head)]), set(after[: after.index(head)])
    crossed = [a for a in before if a in outer ^ inner and not _same_feature(a, head)]
    if not crossed:
        return "other", "", ""
    seq = axis_name((crossed[0],))
    name = axis_name((head,))
    if head.ident not in old:
        # `x.reshape(B, groups, -1)` leaves no place for positions: there is one, or they are meant to be swallowed.
        swallowed = crossed[0] in scramble.inferred and len(scramble.inferred) > 1
        return ("other" if swallowed else "split"), name, seq
    merged = any(head in axis and any(_inner(state, a, head) for a in axis) for axis in scramble.after)
    return ("merge" if merged else "other"), name, seq


def _is_store(traits: Traits) -> bool:
    """Weights and caches: memory that its writer may have laid out as this view reads it."""
    return traits.parameter or traits.buffer or says(traits.name, "cache", "buffer", "pool", "ssm")


def _named_by_code(scramble: Scramble) -> bool:
    """Whether the code gave a name to every axis that changed places; a sum such as `klen + 1` is no name."""
    before, after = list(scramble.before), [atom for axis in scramble.after for atom in axis]
    crossed = [(a, b) for i, a in enumerate(before) for b in before[i + 1 :] if after.index(a) > after.index(b)]
    moved = list(dict.fromkeys(atom for pair in crossed for atom in pair))
    places = [before.index(atom) for atom in scramble.inferred]
    together = not places or places[-1] - places[0] == len(places) - 1
    return together and all(map(_has_name, moved)) and len({atom.name for atom in moved}) == len(moved)


def _has_name(atom: Atom) -> bool:
    symbol = atom.size.symbol
    if atom.ident.relation == "cat" or (symbol is None and atom.size.constant is None):
        return False
    given = symbol is not None and symbol.name.replace(".", "").replace("_", "").isalnum()
    return given or bool(atom.ident.names)


def _order_meant(tensor: Tensor, scramble: Scramble) -> tuple[int, ...]:
    """The permutation that brings the source's axes into the order of a scramble's target."""
    place = {axis[0].ident: i for i, axis in enumerate(tensor.axes) if len(axis) == 1}
    before = [place.get(atom.ident) for atom in scramble.before]
    after = [place.get(atom.ident) for axis in scramble.after for atom in axis]
    if tensor.lead is not None or None in before or sorted(place.values()) != list(range(len(tensor.axes))):
        return ()
    moved = iter(i for i in after if i is not None)
    return tuple(next(moved) if i in before else i for i in range(len(tensor.axes)))


def _same_feature(atom: Atom, head: Atom) -> bool:
    return atom.ident.parent is not None and atom.ident.parent is head.ident.parent


def _inner(state: State, atom: Atom, head: Atom) -> bool:
    """Whether an atom is the head width that belongs to a heads atom: by birth, by name, or `width // heads` itself."""
    if atom is head:
        return False
    if _same_feature(atom, head) or role_of_name(str(atom.size)) == "d_k" or atom.ident.kind == "feature":
        return True
    symbol = state.relations.resolve(atom.size).symbol
    return isinstance(symbol, Quotient) and state.relations.compare(symbol.denominator, head.size).certainly


@op("flatten")
def flatten(call: Invocation) -> Value | None:
    tensor = call.tensor()
    if tensor is None:
        return None
    start = call.integer(1, "start_dim") if call.get(1, "start_dim") is not None else 0
    end = call.integer(2, "end_dim") if call.get(2, "end_dim") is not None else -1
    tensor = call.state.with_rank(tensor)
    if start is None or end is None:
        return vague(tensor)
    if tensor.lead is not None and (start >= 0 or end >= 0):
        return vague(tensor)
    if start < 0:
        tensor = call.state.with_trailing(tensor, -start)
    rank = len(tensor.axes)
    first, last = start % rank if rank else 0, end % rank if rank else 0
    if last < first or rank == 0:
        return vague(tensor)
    merged = tuple(atom for axis in tensor.axes[first : last + 1] for atom in axis)
    axes = (*tensor.axes[:first], merged, *tensor.axes[last + 1 :])
    layout = tensor.layout
    if layout is not None and first_broken_merge(axes, layout) is not None:
        return dense_like(tensor, axes, tensor.lead)
    return with_axes(tensor, axes, layout)


@op("unflatten")
def unflatten(call: Invocation) -> Value | None:
    tensor = call.tensor()
    sizes = call.sizes(2, "sizes")
    if tensor is None or sizes is None:
        return vague(tensor) if tensor else None
    found = locate(call.state, tensor, call.integer(1, "dim"))
    if found is None:
        return vague(tensor)
    tensor, place = found
    outcome = reshape([tensor.axes[place]], sizes, call.state.relations)
    call.state.rely(outcome.relies, call.at, tensor, sizes)
    _learn_from(call.state, with_axes(tensor, [tensor.axes[place]], None), outcome)
    layout = tensor.layout.splits(outcome.splits) if tensor.layout and outcome.aligned else None
    return with_axes(tensor, (*tensor.axes[:place], *outcome.axes, *tensor.axes[place + 1 :]), layout)


# --- moving axes -------------------------------------------------------------------------------------------------


def moved(call: Invocation, tensor: Tensor, axes: tuple[Axis, ...]) -> Tensor:
    """The tensor with its axes in another order, which memory does not follow."""
    if axes == tensor.axes:
        return tensor
    result = with_axes(tensor, axes, tensor.layout)
    before, after = tensor.axes[-2:], axes[-2:]
    if after != before:
        turned = transposed if after == before[::-1] else set_aside
        result = replace(result, traits=turned(result.traits))
    return result.with_traits(moved=(call.at, call.name))


def _rank_of_heads(state: State, tensor: Tensor) -> Tensor:
    """`x.view(*x.shape[:-1], -1, d_k)`: in front of heads and d_k there are batch and seq, by convention."""
    tensor = state.with_rank(tensor)
    heads = tensor.axes[0] if tensor.lead is not None and len(tensor.axes) == 2 else ()
    return state.bind_rank(tensor, 4) if len(heads) == 1 and is_head(heads[0]) else tensor


def _lost_order(tensor: Tensor) -> Tensor:
    """The tensor with its axes in an order that is not known: a triangle may lie the other way round."""
    return replace(vague(tensor), traits=set_aside(tensor.traits))


@op("transpose transpose_ swapaxes swapdims swapaxes_")
def transpose(call: Invocation) -> Value | None:
    tensor = call.tensor()
    if tensor is None:
        return None
    first, second = call.integer(1, "dim0"), call.integer(2, "dim1")
    if first is None or second is None:
        return _lost_order(tensor)
    if first >= 0 and second >= 0:
        tensor = _rank_of_heads(call.state, tensor)
    for dim in (first, second):
        found = locate(call.state, tensor, dim)
        if found is None:
            return _lost_order(tensor)
        tensor = found[0]
    a, b = locate(call.state, tensor, first), locate(call.state, tensor, second)
    if a is None or b is None:
        return _lost_order(tensor)
    axes = list(tensor.axes)
    axes[a[1]], axes[b[1]] = axes[b[1]], axes[a[1]]
    return moved(call, tensor, tuple(axes))


@op("permute")
def permute(call: Invocation) -> Value | None:
    tensor = call.tensor()
    dims = call.integers(1, "dims")
    if tensor is None or dims is None:
        return _lost_order(tensor) if tensor else None
    tensor = call.state.bind_rank(tensor, len(dims))
    rank = len(tensor.axes)
    if tensor.lead is not None or rank != len(dims) or sorted(d % rank for d in dims) != list(range(rank)):
        return _lost_order(tensor)
    return moved(call, tensor, tuple(tensor.axes[d % rank] for d in dims))


@op("movedim moveaxis")
def movedim(call: Invocation) -> Value | None:
    tensor = call.tensor()
    if tensor is None:
        return None
    source, target = call.integer(1, "source"), call.integer(2, "destination")
    a = locate(call.state, tensor, source)
    b = locate(call.state, a[0], target) if a else None
    if a is None or b is None:
        return _lost_order(tensor)
    tensor = b[0]
    first = locate(call.state, tensor, source)
    assert first is not None
    axes = list(tensor.axes)
    axes.insert(b[1], axes.pop(first[1]))
    return moved(call, tensor, tuple(axes))


@op("mT adjoint mH")
def matrix_transpose(call: Invocation) -> Value | None:
    tensor = call.tensor()
    if tensor is None:
        return None
    tensor = call.state.with_trailing(tensor, 2)
    if len(tensor.axes) < 2:
        return _lost_order(tensor)
    return moved(call, tensor, (*tensor.axes[:-2], tensor.axes[-1], tensor.axes[-2]))


@op("T t t_")
def reverse_axes(call: Invocation) -> Value | None:
    tensor = call.tensor()
    if tensor is None:
        return None
    # torch means both for matrices: `.T` of another rank is deprecated, and no product would take it.
    tensor = call.state.bind_rank(call.state.with_rank(tensor) if call.name == "T" else tensor, 2)
    if tensor.lead is not None:
        return _lost_order(tensor)
    return moved(call, tensor, tuple(reversed(tensor.axes)))


# --- size-1 axes, expansion, repetition --------------------------------------------------------------------------


@op("unsqueeze unsqueeze_")
def unsqueeze(call: Invocation) -> Value | None:
    tensor = call.tensor()
    if tensor is None:
        return None
    dim = call.integer(1, "dim")
    if dim is not None and dim >= 0 and tensor.lead is not None:
        tensor = _rank_of_mask(call.state, tensor)
    open_ = tensor.lead is not None and dim is not None and dim >= 0 and len(tensor.axes) <= 1
    # Where nothing tells the rank, a new axis in the middle speaks against the usual (batch, seq, width).
    found = None if open_ else locate(call.state, tensor, dim, extra=1)
    if found is None:
        return _with_one_in_front(call.state, vague(tensor), dim)
    return insert_axis(found[0], found[1])


def _with_one_in_front(state: State, tensor: Tensor, dim: int | None) -> Tensor:
    """The tensor of open rank whose axis `dim` from the left was just put in, of size 1."""
    if dim is not None and dim >= 0 and tensor.lead is not None and not tensor.axes:
        state.fronts.setdefault(tensor.lead, {})[dim] = Atom(Size.of(1), Ident())
    return tensor


def _rank_of_mask(state: State, tensor: Tensor) -> Tensor:
    """A padding mask that is unsqueezed is (batch, key) by convention."""
    name = tensor.traits.name.lower()
    if "padding_mask" in name or "pad_mask" in name:
        tensor = state.bind_rank(tensor, 2)
        if "key_padding_mask" in name and len(tensor.axes) == 2 and len(tensor.axes[0]) == 1:
            tensor.axes[0][0].ident.learn("batch")
    return tensor


@op("squeeze squeeze_")
def squeeze(call: Invocation) -> Value | None:
    tensor = call.tensor()
    if tensor is None:
        return None
    if call.get(1, "dim") is None:
        if tensor.lead is not None or any(axis and call.state.size_of(axis).constant is None for axis in tensor.axes):
            return vague(tensor)
        return with_axes(tensor, [axis for axis in tensor.axes if axis], tensor.layout)
    found = locate(call.state, tensor, call.integer(1, "dim"))
    if found is None:
        return vague(tensor)
    tensor, place = found
    axis = tensor.axes[place]
    if not axis:
        return with_axes(tensor, tensor.axes[:place] + tensor.axes[place + 1 :], tensor.layout)
    if call.state.size_of(axis).constant is not None:
        return tensor
    return vague(tensor)


@op("expand broadcast_to")
def expand(call: Invocation) -> Value | None:
    tensor = call.tensor()
    target = target_of(call, 1, "size")
    if tensor is None:
        return None
    if target is None or target[0] is not None:
        return vague(tensor)
    # A parameter that is expanded over a batch is learned tokens, no weight.
    return _expanded(call, tensor.with_traits(parameter=False), target[1])


@op("expand_as")
def expand_as(call: Invocation) -> Value | None:
    tensor, other = call.tensor(), call.tensor(1, "other")
    if tensor is None or other is None:
        return tensor
    tensor = call.state.bind_rank(tensor, len(other.axes)) if other.lead is None else tensor
    if tensor.lead is not None or other.lead is not None or len(tensor.axes) > len(other.axes):
        return vague(tensor)
    axes = list(other.axes[: len(other.axes) - len(tensor.axes)])
    for mine, theirs in zip(tensor.axes, other.axes[len(axes) :]):
        axes.append(mine or _expanded_axis(call.state.size_of(theirs)))
    return with_axes(tensor, axes, tensor.layout)


def _may_be_one(state: State, axis: Axis, wanted: Size) -> bool:
    """An axis of which nothing is known: it may be the wanted size already, or 1."""
    size = state.size_of(axis)
    nameless = is_axis_symbol(size.symbol) and "[" in str(size)
    return nameless and not state.relations.compare(size, wanted).certainly


def _expanded_axis(size: Size) -> Axis:
    return () if size.is_one else (fresh(size, "new", relation="expanded"),)


def _expanded(call: Invocation, tensor: Tensor, sizes: list[Size | None]) -> Tensor:
    if tensor.lead is not None:
        tensor = call.state.with_trailing(tensor, len(sizes))
        if tensor.lead is not None:
            tensor = call.state.bind_rank(tensor, len(sizes))
    extra = len(sizes) - len(tensor.axes)
    if extra < 0:
        return vague(tensor)
    axes: list[Axis] = []
    for i, size in enumerate(sizes):
        old: Axis = tensor.axes[i - extra] if i >= extra else ()
        if old or size is None:
            if old and size is not None and _may_be_one(call.state, old, size):
                axes.append(_expanded_axis(size))
                tensor = replace(tensor, layout=None)
                continue
            axes.append(old)
            if old and size is not None and _never_expands(call.state, call.state.size_of(old), size):
                call.state.emit(
                    SizesDisagree(
                        call.at,
                        call.name,
                        axis_name(old),
                        str(size),
                        f"expand asks for {size} on an axis of size {call.state.size_of(old)}",
                    )
                )
        else:
            axes.append(_expanded_axis(size))
            call.state.copies.update({atom.ident: call.at for atom in axes[-1]})
    return with_axes(tensor, axes, tensor.layout)


def _never_expands(state: State, size: Size, wanted: Size) -> bool:
    """Whether an axis is known to be neither of the size that it is expanded to nor of size 1."""
    if size.constant is None and state.relations.compare(size, wanted).never:
        # Known by name only, and found unequal, it can only be 1: `if a.size(0) != b.size(0): a.expand(b.size(0), -1)`.
        return False
    return state.unify(size, wanted) is False


@op("repeat tile", on="method torch")
def repeat(call: Invocation) -> Value | None:
    """Tiling: the new outer atom counts the copies, the old atoms lie inside it."""
    tensor = call.tensor()
    counts = call.sizes(1, "repeats")
    if tensor is None or counts is None:
        return vague(tensor) if tensor else None
    tensor = call.state.with_rank(tensor)
    if tensor.lead is not None:
        tensor = call.state.bind_rank(tensor, len(counts))
    extra = len(counts) - len(tensor.axes)
    if extra < 0:
        return vague(tensor)
    axes: list[Axis] = []
    for i, times in enumerate(counts):
        old: Axis = tensor.axes[i - extra] if i >= extra else ()
        if times is None:
            return vague(tensor)
        if times.is_one:
            axes.append(old)
            continue
        copies = fresh(times, "new", relation="tile")
        call.state.copies[copies.ident] = call.at
        axes.append((copies, *old))
    return dense_like(tensor, axes, parameter=False)


@op("repeat_interleave")
def repeat_interleave(call: Invocation) -> Value | None:
    """Each element repeated: the old atoms stay outside, the new one counts copies inside."""
    tensor = call.tensor()
    if tensor is None:
        return None
    found = locate(call.state, tensor, call.integer(2, "dim"))
    times = call.state.as_size(call.get(1, "repeats"))
    if found is None:
        return vague(tensor)
    tensor, place = found
    if times is None:
        axes = (*tensor.axes[:place], new_axis(None), *tensor.axes[place + 1 :])
        return dense_like(tensor, axes, tensor.lead)
    axis = tensor.axes[place] if times.is_one else (*tensor.axes[place], fresh(times, "new", relation="interleave"))
    return dense_like(tensor, (*tensor.axes[:place], axis, *tensor.axes[place + 1 :]), tensor.lead)


# --- memory ------------------------------------------------------------------------------------------------------


@op("contiguous")
def contiguous(call: Invocation) -> Value | None:
    tensor = call.tensor()
    return None if tensor is None else dense_like(tensor, tensor.axes, tensor.lead)


@op("clone")
def clone(call: Invocation) -> Value | None:
    tensor = call.tensor()
    if tensor is None:
        return None
    wanted = call.get(1, "memory_format")
    if "contiguous_format" in getattr(wanted, "path", ""):
        return dense_like(tensor, tensor.axes, tensor.lead)
    return replace(tensor, layout=elementwise_layout(tensor))


# --- taking apart and joining ------------------------------------------------------------------------------------


def pieces(state: State, tensor: Tensor, place: int, sizes: list[Size]) -> Items:
    """The tensor cut along an axis into parts of these sizes."""
    axis = tensor.axes[place]
    count = len(sizes)
    outer = axis[0] if len(axis) > 1 else None
    if outer is not None and outer.size.constant == count:
        rest = with_axes(tensor, (*tensor.axes[:place], axis[1:], *tensor.axes[place + 1 :]), None)
        layout = tensor.layout.without(outer.ident) if tensor.layout else None
        return Items(tuple(replace(rest, layout=layout) for _ in range(count)))
    return Items(tuple(cut_axis(tensor, place, size, part=(i, count)) for i, size in enumerate(sizes)))


def _ending_in(state: State, tensor: Tensor, dim: int | None, divisor: Size) -> Tensor:
    """A projection of unknown rank cut evenly along `dim`: what is cut is its features, so `dim` is its last axis."""
    if not dim or dim < 0:
        return tensor
    tensor = state.with_rank(tensor)
    if tensor.lead is None or tensor.traits.projection is None or len(tensor.axes) != 1:
        return tensor
    whole = state.size_of(tensor.axes[0])
    even = not is_axis_symbol(whole.symbol) and state.relations.divide(whole, divisor) is not None
    return state.bind_rank(tensor, dim + 1) if even else tensor


@op("chunk tensor_split")
def chunk(call: Invocation) -> Value | None:
    tensor = call.tensor()
    if tensor is None:
        return None
    number = call.integer(1, "chunks")
    dim = call.integer(2, "dim") if call.get(2, "dim") is not None else 0
    if number is not None:
        tensor = _ending_in(call.state, tensor, dim, Size.of(number))
    found = locate(call.state, tensor, dim)
    if number is None or number < 1 or number > 64:
        return Many(vague(tensor), kind="tuple")
    if found is None:
        return Items(tuple(vague(tensor) for _ in range(number)))
    tensor, place = found
    size = call.state.size_of(tensor.axes[place])
    if size.constant is not None:
        return pieces(call.state, tensor, place, [Size.of(n) for n in _chunks(size.constant, number, call.name)])
    division = call.state.relations.divide(size, Size.of(number))
    part = division[0] if division else size // Size.of(number)
    return pieces(call.state, tensor, place, [part] * number)


def _chunks(size: int, number: int, name: str) -> list[int]:
    """How long the parts are: chunk fills all but the last (and may give fewer), tensor_split spreads the rest."""
    if name == "tensor_split":
        return [size // number + (i < size % number) for i in range(number)]
    whole = -(-size // number)
    if whole == 0:
        return [0] * number
    return [min(whole, size - start) for start in range(0, size, whole)]


@op("split split_with_sizes")
def split(call: Invocation) -> Value | None:
    tensor = call.tensor()
    if tensor is None:
        return None
    given = call.get(1, "split_size_or_sections") or call.kwargs.get("split_size")
    dim = call.integer(2, "dim") if call.get(2, "dim") is not None else 0
    part = call.state.as_size(given)
    if part is not None:
        tensor = _ending_in(call.state, tensor, dim, part)
    found = locate(call.state, tensor, dim)
    if isinstance(given, Items):
        if found is None:
            return Items(tuple(vague(tensor) for _ in given.items))
        tensor, place = found
        wanted = [call.state.as_size(item) for item in given.items]
        known = [size if size is not None else call.state.size_of(new_axis(None)) for size in wanted]
        return pieces(call.state, tensor, place, known)
    size = call.state.as_size(given)
    if size is None or found is None:
        return Many(vague(tensor), kind="tuple")
    tensor, place = found
    total, part_size = call.state.size_of(tensor.axes[place]).constant, size.constant
    if total is not None and part_size:
        lengths = [min(part_size, total - start) for start in range(0, max(total, 1), part_size)]
        return pieces(call.state, tensor, place, [Size.of(length) for length in lengths])
    division = call.state.relations.divide(call.state.size_of(tensor.axes[place]), size)
    number = division[0].constant if division else None
    if division is not None:
        call.state.rely(division[1], call.at, tensor, [size])
    if number is None or not 1 <= number <= 64:
        count = division[0] if division else None
        return Many(cut_axis(tensor, place, size), count, kind="tuple")
    return pieces(call.state, tensor, place, [size] * number)


@op("unbind")
def unbind(call: Invocation) -> Value | None:
    tensor = call.tensor()
    if tensor is None:
        return None
    dim = call.integer(1, "dim") if call.get(1, "dim") is not None else 0
    found = locate(call.state, tensor, dim)
    if found is None:
        return Many(vague(tensor), kind="tuple")
    return unbound(call.state, *found)


def unbound(state: State, tensor: Tensor, place: int) -> Value:
    """The tensor as a tuple along an axis, as `unbind` and unpacking give it."""
    number = state.size_of(tensor.axes[place]).constant
    one = drop_axis(tensor, place)
    if number is None or number > 64:
        return Many(one, state.size_of(tensor.axes[place]), kind="tuple")
    return Items(tuple(one for _ in range(number)))


@op("select")
def select(call: Invocation) -> Value | None:
    tensor = call.tensor()
    found = locate(call.state, tensor, call.integer(1, "dim")) if tensor else None
    return drop_axis(*found) if found else (vague(tensor) if tensor else None)


@op("narrow")
def narrow(call: Invocation) -> Value | None:
    tensor = call.tensor()
    found = locate(call.state, tensor, call.integer(1, "dim")) if tensor else None
    length = call.state.as_size(call.get(3, "length"))
    if found is None or length is None:
        return vague(tensor) if tensor else None
    return cut_axis(*found, length)


@op("index_select gather take_along_dim")
def index_select(call: Invocation) -> Value | None:
    tensor = call.tensor()
    found = locate(call.state, tensor, call.integer(1, "dim")) if tensor else None
    if found is None or call.name != "index_select":
        return vague(tensor) if tensor else None
    tensor, place = found
    index = call.tensor(2, "index")
    size = call.state.size_of(index.axes[0]) if index is not None and index.rank == 1 else None
    return dense_like(tensor, (*tensor.axes[:place], new_axis(size), *tensor.axes[place + 1 :]), tensor.lead)


@op("flip roll flipud fliplr")
def rearranged_inside(call: Invocation) -> Value | None:
    tensor = call.tensor()
    if tensor is None:
        return None
    if call.name == "roll":
        return replace(
            dense_like(tensor, tensor.axes, tensor.lead), layout=copied_layout(tensor.axes, tensor.lead, [tensor])
        )
    return replace(tensor, layout=elementwise_layout(tensor))


@op("unfold", on="method")
def unfold(call: Invocation) -> Value | None:
    tensor = call.tensor()
    found = locate(call.state, tensor, call.integer(1, "dimension")) if tensor else None
    size = call.state.as_size(call.get(2, "size"))
    if found is None:
        return vague(tensor) if tensor else None
    tensor, place = found
    whole, step = call.state.size_of(tensor.axes[place]), call.state.as_int(call.get(3, "step"))
    windows = (whole - size) // Size.of(step) + 1 if size is not None and step else None
    axes = (*tensor.axes[:place], new_axis(windows, "place"), *tensor.axes[place + 1 :], new_axis(size, "place"))
    return with_axes(tensor, axes, None)


@op("view_as_complex view_as_real", on="torch")
def paired(call: Invocation) -> Value | None:
    """Pairs of reals as complex numbers, or the reverse: the last axis of 2 goes or comes."""
    tensor = call.tensor()
    if tensor is None:
        return None
    if call.name == "view_as_real":
        return with_axes(tensor, (*tensor.axes, new_axis(Size.of(2))), None)
    tensor = call.state.with_trailing(tensor, 1)
    return replace(tensor, axes=tensor.axes[:-1], layout=None, dtype=None) if tensor.axes else vague(tensor)


def tensors_of(call: Invocation, value: Value | None) -> list[Tensor] | None:
    """The tensors of a list or tuple argument; None where they can't be told one by one."""
    if not isinstance(value, Items):
        return None
    found = [call.state.as_tensor(item) for item in value.items]
    return None if any(t is None for t in found) else [t for t in found if t is not None]


def _same_rank(state: State, tensors: list[Tensor]) -> list[Tensor]:
    """What is joined has one rank: one whose rank is known tells the others'."""
    ranks = [t.rank for t in tensors if t.rank is not None]
    if not ranks:
        return tensors
    return [state.bind_rank(t, ranks[0]) for t in tensors]


@op("cat concat concatenate", on="torch")
def cat(call: Invocation) -> Value | None:
    listed = call.get(0, "tensors")
    dim = call.integer(1, "dim") if call.get(1, "dim") is not None else 0
    if isinstance(listed, Many):
        return _cat_many(call, listed, dim)
    tensors = tensors_of(call, listed)
    if not tensors:
        return None
    tensors = _same_rank(call.state, tensors)
    located = [locate(call.state, tensor, dim) for tensor in tensors]
    best = _best_known(tensors)
    if any(found is None for found in located):
        return _joined_traits(vague(best), tensors)
    known = [found for found in located if found is not None]
    if len({len(tensor.axes) for tensor, _ in known if tensor.lead is None}) > 1:
        # torch joins only what has the same rank: one of these is not as it was taken to be.
        return _joined_traits(vague(best), tensors)
    first, place = known[tensors.index(best)]
    sizes = [call.state.size_of(t.axes[p]) for t, p in known]
    total = sizes[0]
    for size in sizes[1:]:
        total = total + size
    old = [t.axes[p] for t, p in known]
    kinds = {axis[0].ident.kind for axis in old if axis}
    kind = kinds.pop() if len(kinds) == 1 else "new"
    ident = Ident(kind, relation="cat", parent=next((a[0].ident for a in reversed(old) if a), None))
    axis = () if total.is_one else (Atom(total, ident),)
    call.state.joined[ident] = (call.at, tuple(call.state.guards))
    assert isinstance(listed, Items)
    _tell_cache_axis(call, listed.items, tensors, first, place)
    axes = (*first.axes[:place], axis, *first.axes[place + 1 :])
    result = replace(dense_like(first, axes, first.lead), layout=copied_layout(axes, first.lead, tensors))
    return _joined_traits(result, tensors)


def _best_known(tensors: list[Tensor]) -> Tensor:
    """The tensor whose axes are known best: names and projections say more than a cache does."""
    return max(tensors, key=lambda t: (t.lead is None, len(t.axes), t.traits.projection is not None))


def _joined_traits(result: Tensor, tensors: list[Tensor]) -> Tensor:
    traits = [t.traits for t in tensors]
    cached = any(t.cached or t.buffer or _names_cache(t.name) for t in traits)
    projection = next((t.projection for t in traits if t.projection is not None), None)
    if any(t.dtype != result.dtype for t in tensors):
        result = replace(result, dtype=None)
    if not all(t.made_by_default for t in traits):
        result = result.with_traits(made_by_default=())
    factors = [t.scale for t in traits]
    scale = factors[0] if all(f == factors[0] for f in factors) else max(factors, key=len)
    return result.with_traits(
        cached=cached, projection=projection, cells=None, scale=scale, softmax=None, product=None, masks=(), number=None
    )


def _tell_cache_axis(call: Invocation, values: Sequence[Value], tensors: list[Tensor], new: Tensor, place: int) -> None:
    """Tell of keys or values joined with those of a cache along their heads or their samples."""
    held = [_is_cache(value, tensor) for value, tensor in zip(values, tensors)]
    if len(tensors) != 2 or sum(held) != 1 or new.rank != 4 or new.traits.projection is None or not new.axes[place]:
        return
    if new is not tensors[held.index(False)]:
        return
    beside = [axis for i, axis in enumerate(new.axes) if i != place]
    heads = any(is_head(atom, beside) for axis in beside for atom in axis)
    if is_head(new.axes[place][0], new.axes) and not heads:
        call.state.emit(CacheJoined(call.at, "heads", axis_name(new.axes[place])))
    elif place == 0 and heads and role_of_name(axis_name(new.axes[0])) == BATCH:
        call.state.emit(CacheJoined(call.at, "samples", axis_name(new.axes[0])))


def _is_cache(value: Value, tensor: Tensor) -> bool:
    if tensor.traits.cached or tensor.traits.buffer or _names_cache(tensor.traits.name):
        return True
    # `cache.k` of `cache["k"]`: what is kept in a thing that is called a cache.
    return isinstance(value, Opaque) and any(part[:1].islower() and _names_cache(part) for part in value.key.split("."))


def _names_cache(name: str) -> bool:
    return any(word in name.lower() for word in ("past", "cache", "prev_"))


def _cat_many(call: Invocation, listed: Many, dim: int | None) -> Value | None:
    """Many alike joined: the new outer atom counts them, the old atoms of the axis lie inside it."""
    tensor = call.state.as_tensor(listed.element)
    found = locate(call.state, tensor, dim) if tensor else None
    if tensor is None or found is None or listed.length is None:
        return vague(tensor) if tensor else None
    tensor, place = found
    rounds = fresh(listed.length, "new", relation="cat")
    if listed.same:
        call.state.copies[rounds.ident] = call.at
    axis = (rounds, *tensor.axes[place])
    return dense_like(tensor, (*tensor.axes[:place], axis, *tensor.axes[place + 1 :]), tensor.lead)


@op("stack", on="torch")
def stack(call: Invocation) -> Value | None:
    listed = call.get(0, "tensors")
    dim = call.integer(1, "dim") if call.get(1, "dim") is not None else 0
    if isinstance(listed, Many):
        tensor, length = call.state.as_tensor(listed.element), listed.length
    else:
        tensors = tensors_of(call, listed)
        if not tensors:
            return None
        tensor, length = _best_known(tensors), Size.of(len(tensors))
    found = locate(call.state, tensor, dim, extra=1) if tensor else None
    if tensor is None or found is None:
        return vague(tensor) if tensor else None
    tensor, place = found
    axes = (*tensor.axes[:place], new_axis(length), *tensor.axes[place:])
    return replace(dense_like(tensor, axes, tensor.lead), layout=copied_layout(axes, tensor.lead, [tensor]))


# --- asking for a shape ------------------------------------------------------------------------------------------


def shape_value(tensor: Tensor) -> ShapeValue:
    return ShapeValue(tensor.lead, tensor.axes)


@op("size", on="method")
def size(call: Invocation) -> Value | None:
    tensor = call.tensor()
    if tensor is None:
        return None
    if call.get(1, "dim") is None:
        return shape_value(tensor)
    return size_at(call.state, tensor, call.integer(1, "dim"))


def size_at(state: State, tensor: Tensor, dim: int | None) -> Value | None:
    """The size of one axis; asking for it tells that the tensor has it."""
    if dim is None:
        return None
    if dim < 0:
        tensor = state.with_trailing(tensor, -dim)
        return Int(state.size_of(tensor.axes[dim])) if len(tensor.axes) >= -dim else None
    axis = state.front_axis(tensor, dim)
    return Int(state.size_of(axis)) if axis is not None else None


@op("dim ndimension", on="method")
def dim(call: Invocation) -> Value | None:
    tensor = call.tensor()
    if tensor is None:
        return None
    return Rank(tensor) if tensor.rank is None else Int(Size.of(tensor.rank))


@op("numel nelement", on="method torch")
def numel(call: Invocation) -> Value | None:
    tensor = call.tensor()
    if tensor is None or tensor.lead is not None:
        return None
    return Int(product(call.state.size_of(axis) for axis in tensor.axes))


@op("is_contiguous", on="method")
def is_contiguous(call: Invocation) -> Value | None:
    return Opaque()


def site_name(site: Site | None) -> str:
    return site.text if site is not None else ""
