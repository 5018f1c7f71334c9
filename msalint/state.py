"""What is known at a point of one path through the code: sizes, shapes, attributes, decisions, and the facts so far.

A path is one run of the interpreter with every open condition decided. Nothing is joined: a second answer to a
condition is a second run, which starts anew with the decisions it was given.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import count

from msalint.diagnostic import Site
from msalint.facts import Fact, IndivisibleHeads, ReliesOnDivision
from msalint.registered import Registry
from msalint.shapes.axes import Atom, Axis, Ident, Layout, ShapeVar, axis_size
from msalint.shapes.relations import Division, Relations
from msalint.shapes.size import Quotient, Size, Symbol
from msalint.shapes.vocabulary import (
    SEQ,
    mask_polarity,
    role_of_name,
    says,
    says_additive,
    says_boolean,
    stated_polarity,
)
from msalint.values import (
    NONE,
    Cells,
    Condition,
    Const,
    Instance,
    Int,
    Mod,
    Opaque,
    Real,
    Region,
    Tensor,
    Traits,
    Value,
    replace,
)

_axis_serials = count(1)
_ONE = Fraction(1)
_SAID_TO_HIDE = -1e4
"""What stands for the number, far below 0, of a mask that a docstring calls additive."""


def axis_symbol(name: str) -> Symbol:
    """A size that is born with an axis; it takes the name of the first variable that it is assigned to.

    One that nothing is known of, "?", may be 0.
    """
    return Symbol(f"axis:{next(_axis_serials):07d}", name, positive=name != "?")


def is_axis_symbol(symbol: Symbol | None) -> bool:
    return symbol is not None and symbol.key.startswith("axis:")


@dataclass
class Decisions:
    """The answers given to open conditions on this path. `asked` are the conditions in the order they came up."""

    given: dict[str, bool] = field(default_factory=dict)
    asked: dict[str, bool] = field(default_factory=dict)
    occurrences: list[tuple[str, object]] = field(default_factory=list)
    """Each time that a condition decided something: its key, and the statement or expression, opaque here."""
    closed: set[str] = field(default_factory=set)
    """Conditions whose other answer is not worth a run (it raises, or has been seen)."""

    def copied(self) -> Decisions:
        return Decisions(dict(self.given), dict(self.asked), list(self.occurrences), set(self.closed))

    def agrees(self, given: dict[str, bool]) -> bool:
        """Whether a run with these answers would have come here just the same."""
        return all(
            given[key] == answer if key in given else key not in self.given for key, answer in self.asked.items()
        )

    def known(self, key: str) -> bool | None:
        """The answer given to a condition, None if it has not come up."""
        return self.asked.get(key)

    def answer(self, key: str, default: bool, worth_both: bool = True) -> bool:
        """The answer to a condition on this path."""
        if key not in self.asked:
            self.asked[key] = self.given.get(key, default)
            if not worth_both:
                self.closed.add(key)
        return self.asked[key]

    def occurs(self, key: str, stake: object) -> None:
        """Note that a decided condition decides `stake`."""
        if key in self.asked and key not in self.closed:
            self.occurrences.append((key, stake))

    def settle(self, key: str, answer: bool) -> None:
        """Learn an answer from elsewhere (an assert)."""
        self.asked.setdefault(key, answer)
        self.closed.add(key)


_HOLDERS = frozenset({dict, list, set})
"""What a state holds that grows on a path."""


@dataclass
class State:
    """One path's knowledge. Ops read and extend it; rules never see it."""

    relations: Relations = field(default_factory=Relations)
    shapes: dict[ShapeVar, tuple[ShapeVar | None, tuple[Axis, ...]]] = field(default_factory=dict)
    fronts: dict[ShapeVar, dict[int, Atom]] = field(default_factory=dict)
    depths: dict[ShapeVar, int] = field(default_factory=dict)
    """How many trailing axes were split off a shape variable's first one."""
    tensors: dict[str, Tensor] = field(default_factory=dict)
    attributes: dict[tuple[str, str], Value] = field(default_factory=dict)
    decisions: Decisions = field(default_factory=Decisions)
    conventional: set[str | ShapeVar] = field(default_factory=set)
    """Keys and leading axes of inputs that are (batch, seq, width) by convention, if nothing says otherwise."""
    presumed: dict[Ident, int] = field(default_factory=dict)
    """Axes that a convention alone gave to an input, with their places from the left."""
    facts: list[Fact] = field(default_factory=list)
    division_sites: dict[Division, Site] = field(default_factory=dict)
    polarities: dict[str, str] = field(default_factory=dict)
    """What docstrings say that masks mark, "keep" or "hide", by the keys of parameters."""
    guarded: set[int] = field(default_factory=set)
    """Serial numbers of softmax sites whose NaN rows are repaired afterwards."""
    scaled_late: set[int] = field(default_factory=set)
    """Softmax sites (by id) whose weights or context get the scale that their scores lack."""
    guards: list[Site] = field(default_factory=list)
    """The tests that the statement being run stands under, or behind the early returns of."""
    joined: dict[Ident, tuple[Site, tuple[Site, ...]]] = field(default_factory=dict)
    """Axes that are several joined to one: where, and under which tests."""
    averaged: dict[int, Tensor] = field(default_factory=dict)
    """Weights averaged over the heads, as they came from their call (by its id)."""
    half_in_sight: bool = False
    said_bool: set[str] = field(default_factory=set)
    """Keys of parameters that an annotation calls boolean tensors."""
    dtype_asked: set[str] = field(default_factory=set)
    """Names of tensors whose dtype the code tests, so that what is said of it need not hold."""
    presets: dict[str, bool] = field(default_factory=dict)
    """The answers that conditions on switches of `__init__` have as these are left, by key."""
    defaults: dict[Symbol, Size] = field(default_factory=dict)
    """What a config's optional entry is worth where it is left out: head_dim is hidden_size // heads."""
    aliases: dict[str, str] = field(default_factory=dict)
    """The names that computed sizes were given, by the size's key: `d_model // heads` is called d_k."""
    spellings: dict[str, tuple[str, ...]] = field(default_factory=dict)
    registry: Registry = field(default_factory=Registry)
    context: tuple[str, ...] = ()
    """Names and docstrings of the definitions being read, innermost last."""
    in_module: bool = False
    module_name: str = ""
    """What the module is called in the body being read: "self" in its methods, "" in a function of its own."""
    taken_apart: set[int] = field(default_factory=set)
    """Calls (by id) whose (output, weights) pair was indexed or unpacked."""
    pooled: dict[Ident, Site] = field(default_factory=dict)
    """Axes that were averaged, summed or searched, or of which only the first or last place was kept."""

    placed: dict[Ident, Site] = field(default_factory=dict)
    """Axes along which a table of positions was added, one row for each place: the table, where it was."""
    copies: dict[Ident, Site] = field(default_factory=dict)
    """Atoms that count copies of what lies inside them, or in front of them: where the copies were made."""

    shared: dict[int, tuple[str, bool]] = field(default_factory=dict)
    """Lists (by the id of their place) whose elements are one layer, or were all given one: its text, and which."""
    weighed: set[int] = field(default_factory=set)
    """Softmax sites (by id) whose weights were summed over values."""
    cleared: set[int] = field(default_factory=set)
    """Softmax sites (by id) whose weights a mask made 0 in places."""
    counted: set[int] = field(default_factory=set)
    """Softmax sites (by id) whose weights were added up over another axis than they sum to 1 over."""
    without_graph: int = 0
    """How many `with torch.no_grad()` are around."""

    def copied(self) -> State:
        """A state that may go another way from here."""
        other = State.__new__(State)
        vars(other).update(
            {name: value.copy() if type(value) in _HOLDERS else value for name, value in vars(self).items()}
        )
        other.fronts = {var: dict(atoms) for var, atoms in self.fronts.items()}
        other.relations = self.relations.copy()
        other.decisions = self.decisions.copied()
        other.registry = self.registry.copied()
        return other

    def emit(self, fact: Fact) -> None:
        self.facts.append(fact)

    def purpose(self) -> tuple[str, ...]:
        """What the code around says of itself: names, docstrings, and the switches that are on here (`if mup:`)."""
        switches = (
            key.rsplit(".", 1)[-1] for key, on in self.decisions.asked.items() if on and key.startswith("true:")
        )
        return (*self.context, *switches)

    # --- coercions: what a value is when it is used as ... -----------------------------------------------------

    def as_size(self, value: Value | None) -> Size | None:
        """The integer that a value stands for."""
        if isinstance(value, Int):
            return self.relations.resolve(value.size)
        if isinstance(value, Opaque) and value.key and value.hint not in {"tensor", "bool", "str"}:
            return self.relations.resolve(Size.of(Symbol(value.key, value.name)))
        if isinstance(value, Real) and value.constant is not None and value.division is None:
            constant = value.constant
            return Size.of(int(constant)) if constant.is_integer() else None
        if isinstance(value, Tensor) and value.traits.number is not None:
            return self.as_size(value.traits.number)
        return None

    def as_real(self, value: Value | None) -> Real | None:
        """The number that a value stands for; an unknown one has no coefficient. None for what is no number."""
        if isinstance(value, Real):
            return value
        if isinstance(value, Int):
            size = self.relations.resolve(value.size)
            return size_as_real(size) if size.constant is None else Real(_as_float(size.constant))
        if isinstance(value, Const) and isinstance(value.value, bool):
            return Real(float(value.value))
        if isinstance(value, Opaque) and value.hint not in {"tensor", "str"}:
            if not value.key:
                return Real(None)
            return Real(1.0, ((Size.of(Symbol(value.key, value.name)), _ONE),), value.name, value.source)
        if isinstance(value, Tensor) and value.traits.number is not None:
            return value.traits.number
        return None

    def as_int(self, value: Value | None) -> int | None:
        """The known integer that a value is."""
        size = self.as_size(value)
        return size.constant if size is not None else None

    def as_tensor(self, value: Value | None) -> Tensor | None:
        """The tensor that a value stands for; an unknown value known by name is one whose shape is open."""
        if isinstance(value, Tensor):
            return self.resolve(value)
        if isinstance(value, Opaque) and value.hint not in {"int", "float", "bool", "str"}:
            if not value.key:
                return None
            if value.key not in self.tensors:
                self.tensors[value.key] = self._named_tensor(value)
            return self.resolve(self.tensors[value.key])
        return None

    def some_tensor(self, value: Value | None) -> Tensor | None:
        """The tensor that a value stands for where an operation takes nothing else: of no known shape, if need be."""
        tensor = self.as_tensor(value)
        if tensor is None and isinstance(value, Opaque) and not value.key and value.hint in {"", "tensor"}:
            return Tensor(ShapeVar(), (), None, None, Traits(name=value.name))
        return tensor

    def _named_tensor(self, value: Opaque) -> Tensor:
        var = ShapeVar(value.name)
        if value.key in self.conventional:
            self.conventional.add(var)
        traits = Traits(name=value.name)
        region = self._named_region(value)
        if any(says_additive(text, value.name) for text in self.context):
            hidden = Region(frozenset({"given"}), "hide", name=value.name, said=True)
            traits = replace(traits, cells=Cells(_SAID_TO_HIDE, 0.0, hidden))
        elif region is not None:
            traits = replace(traits, cells=Cells(1.0, 0.0, region))
        # What a helper is given may be a transposed view; a module's inputs are taken to be contiguous.
        boolean = value.key in self.said_bool or any(says_boolean(text, value.name) for text in self.context)
        dtype = "bool" if boolean else None
        return Tensor(var, (), Layout((var,)) if self.in_module else None, dtype, replace(traits, said_bool=boolean))

    def _named_region(self, value: Opaque) -> Region | None:
        """What a mask known by name only marks: by a docstring, by its name, or not known which way round."""
        stated = self.polarities.get(value.key) or self._stated(value.name)
        if stated is not None:
            return Region(frozenset({"given"}), stated, name=value.name, said=True)
        polarity = mask_polarity(value.name)
        if polarity is not None:
            return Region(frozenset({"padding"}), polarity, strong=False, name=value.name)
        if not says(value.name, "mask"):
            return None
        kind = "given" if value.source in {"parameter", ""} else "other"
        return Region(frozenset({kind}), None, strong=False, name=value.name)

    def _stated(self, name: str) -> str | None:
        for text in reversed(self.context):
            polarity = stated_polarity(text, name) if name and name in text and " " in text else None
            if polarity is not None:
                return polarity
        return None

    def is_none(self, value: Value | None) -> bool | None:
        """Whether a value is None, None if it is not known on this path."""
        if value is None or value == NONE:
            return True
        if isinstance(value, Opaque):
            return self.decisions.known(f"none:{value.key}") if value.key else None
        return False

    # --- conditions -------------------------------------------------------------------------------------------

    def truth(self, value: Value | None) -> bool | None:
        """Whether a value is true, None if it is not known on this path."""
        if isinstance(value, Const):
            return bool(value.value) if value.value is not Ellipsis else True
        if isinstance(value, Int):
            constant = self.relations.resolve(value.size).constant
            if constant is not None:
                return constant != 0
            symbol = value.size.symbol
            return True if is_axis_symbol(symbol) else None
        if isinstance(value, Real) and value.constant is not None:
            return value.constant != 0
        if isinstance(value, Mod):
            return False if self.relations.is_exact(value.numerator, value.denominator) else None
        if isinstance(value, Condition):
            known = self._condition(value)
            return None if known is None else known != value.negated
        if isinstance(value, Instance):
            return True
        if isinstance(value, Opaque):
            if value.key and self.decisions.known(f"none:{value.key}") is True:
                return False
            return self.decisions.known(f"true:{value.key}") if value.key else None
        return None

    def _condition(self, condition: Condition) -> bool | None:
        learn = condition.learn
        if learn and learn[0] == "equal":
            verdict = self.relations.compare(learn[1], learn[2]).equal
            if verdict is not None and not self.relations.compare(learn[1], learn[2]).relies:
                return verdict
        if learn and learn[0] == "exact" and self.relations.is_exact(learn[1], learn[2]):
            return True
        if learn and learn[0] == "rank":
            rank = self.resolve(learn[1]).rank
            if rank is not None:
                return bool(rank == learn[2])
        return self.decisions.known(condition.key)

    def learn(self, value: Value, answer: bool) -> None:
        """Take in what a decided condition teaches."""
        if isinstance(value, Mod):
            if not answer:
                self.relations.learn_exact(value.numerator, value.denominator)
            return
        if not isinstance(value, Condition) or not value.learn:
            return
        holds = answer != value.negated
        kind, *operands = value.learn
        if kind == "equal":
            self._learn_equal(operands[0], operands[1], holds)
        elif kind == "exact" and holds:
            self.relations.learn_exact(*operands)
        elif kind == "several" and not holds:
            self._learn_equal(operands[0], Size.of(1), True)
        elif kind == "rank" and holds:
            self.bind_rank(operands[0], operands[1])

    def _learn_equal(self, left: Size, right: Size, holds: bool) -> None:
        left, right = self.relations.resolve(left), self.relations.resolve(right)
        if not holds:
            self.relations.unequal.add((left, right))
            return
        for division in self.relations.compare(left, right).relies:
            self.relations.learn_exact(*division)
        for one, other in ((left, right), (right, left)):
            if one.symbol is not None and not isinstance(one.symbol, Quotient):
                self.relations.bind(one.symbol, other)
                return

    # --- shapes -----------------------------------------------------------------------------------------------

    def resolve(self, tensor: Tensor) -> Tensor:
        """The tensor with all that was learned of its leading axes put in."""
        while tensor.lead is not None and tensor.lead in self.shapes:
            lead, axes = self.shapes[tensor.lead]
            items: list[Ident | ShapeVar] = [] if lead is None else [lead]
            items += [atom.ident for axis in axes for atom in axis]
            layout = tensor.layout.expand_lead(tensor.lead, items) if tensor.layout else None
            tensor = replace(tensor, lead=lead, axes=axes + tensor.axes, layout=layout)
        return tensor

    def resolve_lead(self, lead: ShapeVar | None, axes: tuple[Axis, ...]) -> tuple[ShapeVar | None, tuple[Axis, ...]]:
        """Leading axes with all that was learned of them."""
        while lead is not None and lead in self.shapes:
            lead, front = self.shapes[lead]
            axes = front + axes
        return lead, axes

    def with_trailing(self, tensor: Tensor, number: int) -> Tensor:
        """The tensor with at least `number` axes known from the right; its rank is taken to be that much."""
        tensor = self.resolve(tensor)
        while tensor.lead is not None and len(tensor.axes) < number:
            var = tensor.lead
            rest = ShapeVar(var.hint)
            depth = self.depths.get(var, 0)
            self.depths[rest] = depth + 1
            if var in self.fronts:
                self.fronts[rest] = self.fronts[var]
            if var in self.conventional:
                self.conventional.add(rest)
            kind = _kind_of_born(var, depth == 0)
            symbol = axis_symbol(f"{var.hint or 'x'}.shape[-{depth + 1}]")
            axis = (Atom(Size.of(symbol), Ident(kind, relation=var.hint)),)
            self.shapes[var] = (rest, (axis,))
            tensor = self.resolve(tensor)
        return tensor

    def with_rank(self, tensor: Tensor) -> Tensor:
        """The tensor with its rank settled by convention, where there is one and nothing else told it."""
        tensor = self.resolve(tensor)
        if tensor.lead is not None and tensor.lead in self.conventional and not self.led_by_sequence(tensor.lead):
            missing = 3 - self.depths.get(tensor.lead, 0)
            if missing >= 0:
                self.bind_lead(tensor.lead, missing)
                tensor = self.resolve(tensor)
                self.presumed.update({atom.ident: i for i, axis in enumerate(tensor.axes) for atom in axis})
        return tensor

    def led_by_sequence(self, lead: ShapeVar) -> bool:
        """The code calls the first axis a length (`seq_len = x.shape[0]`): it is not (batch, seq, width)."""
        first = self.fronts.get(lead, {}).get(0)
        return first is not None and role_of_name(str(self.relations.resolve(first.size))) == SEQ

    def bind_rank(self, tensor: Tensor, rank: int, ones: frozenset[int] = frozenset()) -> Tensor:
        """Learn the rank of a tensor, and which of its axes are of size 1."""
        tensor = self.resolve(tensor)
        if tensor.lead is not None and rank >= len(tensor.axes):
            self.bind_lead(tensor.lead, rank - len(tensor.axes), ones)
        return self.resolve(tensor)

    def bind_lead(self, var: ShapeVar, number: int, ones: frozenset[int] = frozenset()) -> None:
        """Learn that a shape variable stands for `number` axes, some of them of size 1."""
        depth = self.depths.get(var, 0)
        fronts = self.fronts.get(var, {})
        axes: list[Axis] = []
        for i in range(number):
            if i in fronts and not fronts[i].size.is_one:
                axes.append((fronts[i],))
                continue
            if i in ones or i in fronts:
                axes.append(())
                continue
            last = depth == 0 and i == number - 1 and number > 1
            symbol = axis_symbol(f"{var.hint or 'x'}.shape[{i}]")
            axes.append((Atom(Size.of(symbol), Ident(_kind_of_born(var, last), relation=var.hint)),))
        self.shapes[var] = (None, tuple(axes))

    def front_axis(self, tensor: Tensor, index: int) -> Axis | None:
        """Axis `index` counted from the left, also where the rank is not known."""
        tensor = self.resolve(tensor)
        if tensor.lead is None:
            return tensor.axes[index] if index < len(tensor.axes) else None
        known = self.fronts.setdefault(tensor.lead, {})
        if index not in known:
            symbol = axis_symbol(f"{tensor.lead.hint or 'x'}.shape[{index}]")
            known[index] = Atom(Size.of(symbol), Ident(_kind_of_born(tensor.lead, False), relation=tensor.lead.hint))
        return (known[index],)

    def pool(self, tensor: Tensor, index: int, at: Site) -> None:
        """Note that axis `index` from the left was reduced to one place, while another still stands in front of it."""
        axis = self.front_axis(tensor, index) if index else None
        if axis is not None and len(axis) == 1 and not axis[0].size.is_one:
            self.pooled.setdefault(axis[0].ident, at)

    def unify(self, left: Size, right: Size) -> bool | None:
        """Learn that two sizes are equal, as the operation at hand needs; False if they never are."""
        left, right = self.relations.resolve(left), self.relations.resolve(right)
        verdict = self.relations.compare(left, right)
        if verdict.equal is not None:
            return verdict.equal
        for one, other in ((left, right), (right, left)):
            if is_axis_symbol(one.symbol) and one.symbol is not None:
                self.relations.bind(one.symbol, other)
                return True
        return None

    def call_it(self, size: Size, name: str) -> None:
        """Note the name that a computed size is given."""
        if size.constant is None and (size.symbol is None or isinstance(size.symbol, Quotient)):
            self.aliases.setdefault(size.key, name)
            self.spellings.setdefault(size.key, (str(size),))

    def size_of(self, axis: Axis) -> Size:
        return self.relations.resolve(axis_size(axis))

    def refuse_float(self, value: Value | None, at: Site) -> None:
        """Tell of a quotient made by `/` that is used as a size: torch takes no floats for sizes."""
        if isinstance(value, Real) and value.division is not None:
            width, heads = value.division
            self.emit(IndivisibleHeads(value.divided_at or at, "float", str(width), str(heads), at))

    # --- divisions --------------------------------------------------------------------------------------------

    def rely(self, divisions: Iterable[Division], at: Site, tensor: Tensor, sizes: Iterable[Size | None]) -> None:
        """Tell that a split of heads into `sizes` relies on divisions that nothing proved to be exact.

        Only of features, and only where the quotient is among the sizes: a `-1` in its place is no one's arithmetic.
        """
        if tensor.traits.projection is None and not tensor.traits.attended:
            return
        asked = {symbol for size in sizes if size is not None for symbol in self.relations.resolve(size).symbols()}
        quotients = {(s.numerator, s.denominator) for s in asked if isinstance(s, Quotient)}
        for numerator, denominator in quotients:
            if self.relations.is_exact(numerator, denominator):
                born = self.division_sites.get((numerator, denominator), at)
                self.emit(ReliesOnDivision(born, str(numerator), str(denominator), at, proved=True))
        places = [self.size_of(axis) for axis in tensor.axes if axis and axis[0].ident.kind == "place"]
        for numerator, denominator in divisions:
            if self.relations.is_exact(numerator, denominator) or denominator.constant is not None:
                continue
            if (numerator, denominator) not in quotients or numerator in places or "?" in str(numerator):
                continue
            if _NO_HEADS.search(str(denominator)) and "head" not in str(denominator):
                continue
            born = self.division_sites.get((numerator, denominator), at)
            self.emit(ReliesOnDivision(born, str(numerator), str(denominator), at))


_NO_HEADS = re.compile("frame|channel|group|window|patch|chunk|repeat|expert|segment|seqlen|token|freq")
"""What features or positions are divided by where no heads are split."""


def _kind_of_born(var: ShapeVar, last: bool) -> str:
    """What an axis of an open shape is: features come last. Of a shape that was lost track of nothing is known."""
    if not var.hint:
        return "new"
    return "feature" if last else "place"


def size_as_real(size: Size) -> Real:
    """A size as a number: `3 * d` is 3 times d to the 1."""
    parts = size.factors()
    if parts is None:
        return Real(1.0, ((size, _ONE),))
    symbols, coefficient = parts
    powers: dict[Size, object] = {}
    for symbol in symbols:
        powers[Size.of(symbol)] = powers.get(Size.of(symbol), 0) + _ONE  # type: ignore[operator]
    return Real(_as_float(coefficient), tuple(powers.items()))  # type: ignore[arg-type]


def _as_float(number: int) -> float | None:
    """An integer as a float, None for one too large to be."""
    try:
        return float(number)
    except OverflowError:
        return None


def dense(axes: Sequence[Axis], lead: ShapeVar | None = None, dtype: str | None = None, **traits: object) -> Tensor:
    """A contiguous tensor of these axes."""
    made = replace(Traits(), **traits) if traits else Traits()
    return Tensor(lead, tuple(axes), Layout.dense(axes, lead), dtype, made)
