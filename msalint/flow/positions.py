"""Tables of positions: what tells them, and a row of one where a cut was meant."""

from __future__ import annotations

from collections.abc import Iterable

from msalint.shapes.axes import Axis
from msalint.shapes.vocabulary import says
from msalint.state import State, is_axis_symbol
from msalint.syntax import nodes as n
from msalint.values import Int, Tensor, Value

_POSITIONS = ("pos", "pe", "wpe", "position", "positions", "positional", "posemb", "posenc")


def tells_positions(table: n.Expr, kept: bool, around: Iterable[str]) -> bool:
    """Whether a tensor is positions: called so, or a table that a module named for positions keeps."""
    if any(says(word, *_POSITIONS) for word in table.words().split()):
        return True
    return kept and any(says(name, *_POSITIONS) for name in around if " " not in name)


def length_of_its_own(state: State, index: Value, other: Tensor) -> bool:
    """Whether an index is the very length of an axis of what the picked row is added to: one past the last token."""
    if not isinstance(index, Int):
        return False
    size = state.relations.resolve(index.size)
    if size.symbol is None or not is_axis_symbol(size.symbol):
        return False
    other = state.resolve(other)
    fronts = state.fronts.get(other.lead, {}) if other.lead is not None else {}
    sizes = [*map(state.size_of, other.axes), *(state.relations.resolve(atom.size) for atom in fronts.values())]
    return any(state.relations.compare(size, one).certainly for one in sizes)


def axis_of_positions(state: State, table: Tensor, other: Tensor) -> Axis | None:
    """The axis of a tensor that a table, one row for each place, is laid on by a sum; of a table as wide as it."""
    table, other = state.resolve(table), state.resolve(other)
    if table.lead is not None or not 2 <= len(table.axes) <= 3 or not table.axes[-1]:
        return None
    counted = [place for place in range(-len(table.axes), -1) if table.axes[place]]
    if len(counted) != 1:
        return None
    other = state.with_trailing(other, -counted[0])
    axis = other.axes[counted[0]] if len(other.axes) >= -counted[0] else ()
    rows = state.size_of(table.axes[counted[0]])
    if len(axis) == 1 and rows.symbol is not None and is_axis_symbol(rows.symbol):
        state.unify(state.size_of(axis), rows)  # as many rows as the code counts places: each place has its own
    return axis if len(axis) == 1 else None


def place_in(table: n.Index) -> n.Expr | None:
    """The one place of a row, `pe[:, n]` or `pe[x.size(1)]`, where it is a name or asks for a size."""
    places = [item for item in table.items if not isinstance(item, (n.Slice, n.Const))]
    return places[0] if len(places) == 1 and _asks_for_size(places[0]) else None


def _asks_for_size(node: n.Expr) -> bool:
    if isinstance(node, n.Index):
        return isinstance(node.value, n.Attr) and node.value.name == "shape"
    if isinstance(node, n.Call):
        return isinstance(node.func, n.Attr) and node.func.name == "size"
    return isinstance(node, (n.Name, n.Attr))
