"""Abstract values: what an expression may stand for, as far as reading the code can tell.

Each value stands for all concrete ones that agree with what it says; `Opaque` says least. Values are immutable: what
is learned later about an unknown shape or size is kept by the state (`Relations`, shape variables), not in them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeVar

from msalint.shapes.axes import Axis, Ident, Layout, ShapeVar
from msalint.shapes.size import Size, Symbol

if TYPE_CHECKING:
    from msalint.diagnostic import Site


Frozen = TypeVar("Frozen")


def replace(value: Frozen, **changes: Any) -> Frozen:
    """`dataclasses.replace` for the frozen data of this file, which has no field to check: several times as fast."""
    other = object.__new__(type(value))
    other.__dict__.update(value.__dict__)
    other.__dict__.update(changes)
    return other


class Value:
    """Anything an expression may evaluate to."""

    __slots__ = ()


@dataclass(frozen=True)
class Opaque(Value):
    """A value known by name only, such as a parameter or an attribute of a config object.

    `key` is unique to the thing (two reads of `config.hidden_size` have one key), "" where nothing ties two reads
    together. `name` is what people call it. `hint` is what an annotation says: "tensor", "int", "bool", "float", "".
    """

    key: str = ""
    name: str = ""
    hint: str = ""
    source: str = ""
    """Where the name comes from: "parameter", "attribute", "config" or ""."""

    def member(self, name: str) -> Opaque:
        """The attribute of this name."""
        return Opaque(f"{self.key}.{name}" if self.key else "", name, source="config" if self.key else "")


UNKNOWN = Opaque()


@dataclass(frozen=True)
class Const(Value):
    """A known str, bool, None, Ellipsis or bytes."""

    value: Any


NONE = Const(None)
TRUE = Const(True)
FALSE = Const(False)


@dataclass(frozen=True)
class Int(Value):
    """An integer: a symbolic size, with the place of the division that made it (MSA401 points there)."""

    size: Size


@dataclass(frozen=True)
class Mod(Value):
    """`numerator % denominator`, 0 where it divides."""

    numerator: Size
    denominator: Size


@dataclass(frozen=True)
class Real(Value):
    """A real number: a coefficient times powers of sizes, as in `d_k ** -0.5`.

    `coefficient` is None where a factor is not known; `name` says what that factor is called. `source` is the value
    that it was read from, where it was ("attribute", "parameter").
    """

    coefficient: float | None = 1.0
    powers: tuple[tuple[Size, Fraction], ...] = ()
    name: str = ""
    source: str = ""
    division: tuple[Size, Size] | None = None
    """The two integers that `/` made it of: not an integer, whatever its value."""
    divided_at: Site | None = field(default=None, compare=False)
    at: Site | None = field(default=None, compare=False)
    """The expression that made it, where it is kept under an attribute."""

    @property
    def constant(self) -> float | None:
        """The number itself, if it has no symbol."""
        return self.coefficient if not self.powers else None

    def __mul__(self, other: Real) -> Real:
        unknown = self.coefficient is None or other.coefficient is None
        powers = dict(self.powers)
        for size, power in other.powers:
            powers[size] = powers.get(size, Fraction(0)) + power
        kept = tuple((s, p) for s, p in powers.items() if p)
        coefficient = None if unknown else _multiply(self.coefficient, other.coefficient)
        return Real(coefficient, kept, self.name or other.name)

    def power(self, exponent: Fraction) -> Real:
        """This number to a rational power."""
        coefficient: float | None = None
        if self.coefficient is not None:
            try:
                raised = self.coefficient ** float(exponent)
                coefficient = raised if isinstance(raised, (int, float)) else None
            except (OverflowError, ZeroDivisionError):
                coefficient = None
        return Real(coefficient, tuple((s, p * exponent) for s, p in self.powers), self.name)

    def inverse(self) -> Real:
        return self.power(Fraction(-1))

    def power_of(self, size: Size) -> Fraction | None:
        """The exponent that a size has in this number."""
        return dict(self.powers).get(size)

    def __str__(self) -> str:
        parts = [] if self.coefficient in (1.0, None) else [f"{self.coefficient:g}"]
        parts += [f"{size.grouped()}**{float(power):g}" for size, power in self.powers]
        return " * ".join(parts) or self.name or "1"


def _multiply(left: float | None, right: float | None) -> float | None:
    """A product that keeps IEEE's 0 * inf = nan instead of raising."""
    if left is None or right is None:
        return None
    try:
        return left * right
    except OverflowError:
        return math.inf


@dataclass(frozen=True)
class DType(Value):
    """A torch dtype by name; `of` is the key of the tensor whose dtype it is, where it has no name."""

    name: str | None
    of: str = ""

    @property
    def kind(self) -> str | None:
        return dtype_kind(self.name)


_KINDS = {
    "bool": "bool",
    "half": "half",
    "float16": "half",
    "bfloat16": "bfloat16",
    "float": "float32",
    "float32": "float32",
    "double": "float64",
    "float64": "float64",
    "uint8": "uint8",
}


def dtype_kind(name: str | None) -> str | None:
    """ "bool", "int", "uint8", "half", "bfloat16", "float32" or "float64"."""
    if name is None:
        return None
    if name in {"int", "long", "short", "int8", "int16", "int32", "int64"}:
        return "int"
    return _KINDS.get(name)


@dataclass(frozen=True)
class Items(Value):
    """A tuple or list of known items; `kind` is "tuple", "list" or "set"."""

    items: tuple[Value, ...]
    kind: str = "tuple"
    at: Site | None = field(default=None, compare=False)
    """Where it is written."""


@dataclass(frozen=True)
class ShapeValue(Value):
    """A tensor's shape as a value, or the front of one: leading axes of unknown number, then sizes.

    `axes` keep their identities, so that `x.view(*y.shape[:-1], H, d)` knows what it names.
    """

    lead: ShapeVar | None
    axes: tuple[Axis, ...]


@dataclass(frozen=True)
class Many(Value):
    """A list, tuple or module list of unknown length whose elements are all like `element`."""

    element: Value
    length: Size | None = None
    kind: str = "list"
    at: Site | None = field(default=None, compare=False)
    """Where it is written."""
    same: bool = False
    """Every element is one and the same thing: `[k] * groups`."""


@dataclass(frozen=True)
class Mapping_(Value):
    """A dict of known string keys; `open` when it may hold others. `kind`: "dict", or "modules" of an nn.ModuleDict."""

    entries: tuple[tuple[str, Value], ...] = ()
    open: bool = True
    at: Site | None = field(default=None, compare=False)
    """Where it is written."""
    other: Value | None = None
    """What any key that is not named leads to, where all are alike."""
    kind: str = "dict"

    def get(self, key: str) -> Value | None:
        return dict(self.entries).get(key, self.other)

    def with_entry(self, key: str, value: Value) -> Mapping_:
        return replace(self, entries=(*((k, v) for k, v in self.entries if k != key), (key, value)))


@dataclass(frozen=True)
class Condition(Value):
    """A truth value that is not known but can be remembered: two tests with one key have one answer.

    `learn` names what the answer teaches: ("equal", a, b), ("exact", n, d), ("none", key), ("rank", tensor, n).
    """

    key: str
    negated: bool = False
    learn: tuple[Any, ...] = ()

    def inverted(self) -> Condition:
        return replace(self, negated=not self.negated)


@dataclass(frozen=True, eq=False)
class Rank(Value):
    """The number of axes of a tensor whose rank is not known."""

    tensor: Tensor


# --- callables and modules ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Library(Value):
    """A name from an import: `torch.nn.functional.softmax`, or a module such as `torch`."""

    path: str


@dataclass(frozen=True, eq=False)
class Function(Value):
    """A function of the project, with the variables it closes over."""

    node: Any
    module: Any
    closure: Any = None
    owner: ClassValue | None = None


@dataclass(frozen=True, eq=False)
class ClassValue(Value):
    """A class of the project."""

    node: Any
    module: Any
    bases: tuple[Value, ...] = ()

    @property
    def name(self) -> str:
        return str(self.node.name)


@dataclass(frozen=True)
class Method(Value):
    """A bound method: of an instance (a project function) or of a tensor or list (a name)."""

    receiver: Value
    name: str
    function: Function | None = None


@dataclass(frozen=True)
class Partial(Value):
    """`functools.partial(function, *args, **kwargs)`."""

    function: Value
    args: tuple[Value, ...]
    kwargs: tuple[tuple[str, Value], ...]
    sites: tuple[tuple[str, Site], ...] = field(default=(), compare=False)
    """The places of `kwargs`."""
    body: Any = field(default=None, compare=False)
    """The function that it is made in."""


@dataclass(frozen=True, eq=False)
class Instance(Value):
    """An object of a project class. Its attributes are kept by the state under `key`."""

    cls: ClassValue
    key: str


@dataclass(frozen=True)
class Layer(Value):
    """A torch.nn module by its class name, with the arguments that matter and the attribute it is kept under.

    `args` hold what `__init__` was given, by parameter name. `serial` tells two layers apart; a copy made by a
    comprehension shares it, which is right for shapes.
    """

    kind: str
    args: tuple[tuple[str, Value], ...] = ()
    children: tuple[Value, ...] = ()
    serial: int = 0
    name: str = ""
    built_at: Site | None = None
    built_in_call: bool = False
    """Built anew in each forward, and kept under no attribute."""

    def get(self, parameter: str) -> Value | None:
        return dict(self.args).get(parameter)


# --- tensors -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Factor:
    """A scalar that a tensor was multiplied with: its value (None: not known), and where."""

    value: Real | None
    at: Site | None
    made_at: Site | None = None
    """The expression that made the number, where it was kept under an attribute."""


@dataclass(frozen=True)
class Projection:
    """What made a feature axis: a Linear (or a weight) applied to something. `source` is what it was applied to."""

    layer: str
    source: str
    width: Size | None
    at: Site | None
    input_width: Size | None = None
    serial: int = 0
    kind: str = "Linear"
    """The layer's class: Linear, Conv2d, ..."""


@dataclass(frozen=True)
class Region:
    """Where a two-valued tensor has its first value.

    `kinds`: of "causal", "padding", "window", "diagonal", "row" (whole rows), "given", "other". `meaning`: "keep" or
    "hide" where the region is known to be what may, or may not, be attended. A triangle has `side` and `offset`:
    "upper" k is key - query >= k, "lower" k is key - query <= k, both of the last two axes. `strong` is False where
    only a name says so; `said` where a docstring does and nothing else. `fed`: of "inside" and "outside", the sides
    that are known to have a cell in every row. `made_at`: the expression that drew it.
    """

    kinds: frozenset[str] = frozenset()
    meaning: str | None = None
    side: str | None = None
    offset: int | None = None
    strong: bool = True
    name: str = ""
    axis: Ident | None = None
    fed: frozenset[str] = frozenset()
    made_at: Site | None = field(default=None, compare=False)
    said: bool = False
    diagonal: str | None = None
    """On which side the diagonal lies, "inside" or "outside", where that is known and no triangle tells it."""

    def complement(self) -> Region:
        """Everything else."""
        swap = {"keep": "hide", "hide": "keep", None: None}
        other = {"inside": "outside", "outside": "inside"}
        fed = frozenset(other[side] for side in self.fed)
        diagonal = other[self.diagonal] if self.diagonal is not None else None
        if self.side is not None and self.offset is not None:
            upper = self.side == "upper"
            offset = self.offset - 1 if upper else self.offset + 1
            side = "lower" if upper else "upper"
            return replace(self, side=side, offset=offset, meaning=swap[self.meaning], fed=fed, diagonal=diagonal)
        return replace(self, side=None, offset=None, meaning=swap[self.meaning], fed=fed, diagonal=diagonal)

    def joined(self, other: Region, union: bool) -> Region:
        """The union, or the intersection, with another, as far as it matters: one meaning if both have it."""
        meaning = self.meaning_or_triangle() if self.meaning_or_triangle() == other.meaning_or_triangle() else None
        side = "inside" if union else "outside"
        rows = "row" in self.kinds | other.kinds
        fed = frozenset({side} if rows or self.feeds(side) or other.feeds(side) else ())
        made_at = self.made_at if self.side is None else other.made_at
        strong = self.strong and other.strong
        said = self.said or other.said
        diagonals = {self.diagonal_side(), other.diagonal_side()}
        one, both = ("inside", "outside") if union else ("outside", "inside")
        diagonal = one if one in diagonals else both if diagonals == {both} else None
        return Region(
            self.kinds | other.kinds,
            meaning,
            strong=strong,
            fed=fed,
            made_at=made_at,
            said=said,
            diagonal=diagonal,
        )

    def transposed(self) -> Region:
        """The region once the last two axes have changed places."""
        if self.side is None or self.offset is None:
            return self.aside()
        return replace(self, side="lower" if self.side == "upper" else "upper", offset=-self.offset)

    def aside(self) -> Region:
        """The region of a tensor whose last two axes are others now: a triangle keeps its meaning only."""
        return replace(self, side=None, offset=None, meaning=self.meaning_or_triangle(), diagonal=None)

    def feeds(self, side: str) -> bool:
        """Whether every row is known to have a cell inside (or outside)."""
        return side in self.fed or self.diagonal_side() == side

    def diagonal_side(self) -> str | None:
        """Whether the diagonal, a cell of every row, lies inside or outside."""
        if self.side is None or self.offset is None:
            return self.diagonal
        inside = self.offset >= 0 if self.side == "lower" else self.offset <= 0
        return "inside" if inside else "outside"

    def meaning_or_triangle(self) -> str | None:
        """The meaning, for a triangle as it is usually meant: tril keeps, a strict triu hides."""
        if self.meaning is not None:
            return self.meaning
        if self.side == "lower":
            return "keep"
        if self.side == "upper" and self.offset is not None and self.offset >= 1:
            return "hide"
        return None

    @property
    def hides_past(self) -> bool:
        """Of a hidden region: the triangle of what came before, with or without the token itself."""
        return self.side == "lower" and self.offset in {-1, 0}

    @property
    def hides_itself(self) -> bool:
        """Of a hidden region: the future and the token itself, so that the first row is empty."""
        return self.side == "upper" and self.offset == 0


@dataclass(frozen=True)
class Cells:
    """A tensor of at most two values: `inside` where the region holds, `outside` elsewhere (None: not known).

    A constant tensor has no region. Every elementwise function of one number maps both values, so that
    `triu(ones, 1) * -inf` comes out as -inf inside and nan outside by plain arithmetic.
    """

    inside: float | None
    outside: float | None
    region: Region | None = None
    at: Site | None = None

    @property
    def constant(self) -> float | None:
        return self.inside if self.region is None else None

    def map(self, function: Callable[[float], float]) -> Cells:
        def one(value: float | None) -> float | None:
            if value is None:
                return None
            try:
                return float(function(value))
            except (OverflowError, ZeroDivisionError, ValueError, TypeError):
                return None

        return replace(self, inside=one(self.inside), outside=one(self.outside))

    def where(self, holds: Callable[[float], bool]) -> Region | None:
        """The region in which a predicate of the value holds, None if it holds everywhere, nowhere, or is unknown."""
        if self.region is None or self.inside is None or self.outside is None:
            return None
        inside, outside = holds(self.inside), holds(self.outside)
        if inside == outside:
            return None
        return self.region if inside else self.region.complement()


@dataclass(frozen=True)
class Product:
    """A matrix product that may be scores: who was multiplied, what was contracted, and the result's two free sides.

    `rows` are the identities born from the left operand's free axis, `columns` from the right's.
    """

    left: Tensor
    right: Tensor
    contracted: tuple[Axis, Axis]
    rows: tuple[Ident, ...]
    columns: tuple[Ident, ...]
    at: Site


@dataclass(frozen=True)
class MaskUse:
    """A mask put on scores: where, how, and the region that it hides (None: not known)."""

    at: Site
    how: str
    hidden: Region | None
    fill: float | None
    value: Value
    mask_site: Site | None = None
    fill_site: Site | None = None
    in_place: bool = False
    fill_name: str = ""
    scores_site: Site | None = None
    taken_at: Site | None = field(default=None, compare=False)
    """Of a mask that fills what it is to keep: the expression that its name took its value from, for this use alone."""
    onto: tuple[Axis, ...] = field(default=(), compare=False)
    """The axes that it was put on, which may have changed places since; () where their number is not known."""


@dataclass(frozen=True)
class Normalised:
    """A softmax: over which identities, where, and what went in."""

    axis: tuple[Ident, ...]
    at: Site
    scores: Tensor
    size: Size | None = None
    position: int | None = None
    built_at: Site | None = None
    """Where the softmax layer was built."""


@dataclass(frozen=True)
class Total:
    """The sum of an exponential over one axis: what exp divides by when softmax is written by hand.

    `place` counts from the right, in the tensor that was summed.
    """

    exponent: Tensor
    place: int


@dataclass(frozen=True)
class Made:
    """A tensor made with no `device=`: where, and what an input at hand there is called ("" for none)."""

    at: Site
    beside: str


@dataclass(frozen=True)
class Dropped:
    """A dropout that was applied."""

    at: Site
    rate: Value


@dataclass(frozen=True)
class Wrapped:
    """An nn.Parameter that no module has taken in yet: where it was made, of what, and what moved it since.

    `raw`: it was made of memory that nobody wrote to, in one expression.
    """

    at: Site
    data: Site | None
    moved: Site | None = None
    raw: bool = False


@dataclass(frozen=True)
class Traits:
    """What a tensor carries beside its axes. Operations add, keep or drop them; None or empty is "not known to"."""

    name: str = ""
    scale: tuple[Factor, ...] = ()
    unit: bool = False
    """Normalised over its features: cosine attention, or a norm on queries and keys."""
    bounded: bool = False
    projection: Projection | None = None
    product: Product | None = None
    masks: tuple[MaskUse, ...] = ()
    softmax: Normalised | None = None
    peak_of: Product | None = None
    """The largest of these scores, for each head or over all."""
    reweighted: bool = False
    """Changed after softmax by something other than dropout or a cast."""
    dropped: Dropped | None = None
    cells: Cells | None = None
    number: Real | None = None
    """The number that a tensor of one element holds."""
    moved: tuple[Site, str] | None = None
    """The last operation that made memory order differ from axis order, and its name."""
    implementation_layout: bool = False
    """Memory order is an implementation detail of the operation (einsum, scaled_dot_product_attention)."""
    cached: bool = False
    parameter: bool = False
    wrapped: Wrapped | None = None
    detached: bool = False
    """Cut off from the graph that made it."""
    buffer: bool = False
    attended: bool = False
    """Went through attention already."""
    context_of: Normalised | None = None
    """The softmax whose weights summed these values up."""
    rotated: bool = False
    biased: bool = False
    """Scores that something was added to which is no mask: a learned bias, or one by position."""
    additive: bool = False
    """Scores formed by a sum of queries and keys, not by a product."""
    ramp: bool = False
    """Counts up by 1 along its one axis of size other than 1: a position index."""
    ramp_from: Size | None = None
    """Where the count begins; None if that is not known."""
    distance: str = ""
    """"key - query", "query - key" or "absolute": how far apart the positions of the last two axes are."""
    triangle: Region | None = None
    """These are the row or column numbers of a region, as triu_indices gives them."""
    cleared: tuple[MaskUse, ...] = ()
    """Masks that were put on weights after softmax and not made up for by a division."""
    weighted: bool = False
    """Weights times values, element by element, not summed yet."""
    averaged: Site | None = None
    """Weights that nn.MultiheadAttention averaged over the heads: the call."""
    made_by_default: tuple[Made, ...] = ()
    """Made in forward on torch's default device, of these."""
    plain: Site | None = None
    """Kept by a module's `__init__` under a plain attribute, which `.to(device)` does not move: what was assigned."""
    device_given: bool = False
    """Made with a `device=`."""
    said_bool: bool = False
    """Boolean by its annotation or docstring only."""
    finite_check: bool = False
    """Made by isnan, isinf or isfinite."""
    exponent: Tensor | None = None
    """exp of this tensor."""
    total: Total | None = None
    logarithm: Normalised | None = None
    """The logarithm of these weights (log_softmax)."""


PLAIN = Traits()


@dataclass(frozen=True)
class Tensor(Value):
    """A tensor: axes behind leading axes of unknown number, memory order, dtype, and traits."""

    lead: ShapeVar | None
    axes: tuple[Axis, ...]
    layout: Layout | None = None
    dtype: str | None = None
    traits: Traits = field(default=PLAIN)

    @property
    def rank(self) -> int | None:
        return None if self.lead is not None else len(self.axes)

    def with_traits(self, **changes: Any) -> Tensor:
        return replace(self, traits=replace(self.traits, **changes))

    def named(self, name: str) -> Tensor:
        return self if self.traits.name else self.with_traits(name=name)


@dataclass(frozen=True)
class AttentionTuple(Value):
    """What nn.MultiheadAttention returns, (output, weights), before anyone takes it apart."""

    output: Value
    weights: Value
    at: Site
    call: Any = None


def named_symbol(value: Opaque) -> Symbol | None:
    """The size that a value known by name stands for."""
    return Symbol(value.key, value.name) if value.key else None
