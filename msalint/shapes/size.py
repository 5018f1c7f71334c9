"""Symbolic sizes: sums of products of symbols with integer coefficients, in a normal form that compares.

    3 * H * d   is   {H d: 3}            L + past   is   {L: 1, past: 1}            8   is   {(): 8}

A floor division that can't be carried out exactly is a symbol of its own, a `Quotient`, which remembers what it
divides: `H * (d_model // H)` is `d_model` when the division is exact, and whoever uses that learns what it relied on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Union


class Symbol:
    """A size that is known by name only. Two symbols are the same if their keys are.

    `positive` says that the symbol stands for at least 1: true of axes and layer widths, unknown of a cache's length.
    """

    __slots__ = ("_hash", "key", "name", "positive")

    def __init__(self, key: str, name: str = "", positive: bool = True) -> None:
        self.key, self.name, self.positive = key, name or key, positive
        self._hash = hash(key)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Symbol) and self.key == other.key)

    def __hash__(self) -> int:
        return self._hash

    def __lt__(self, other: Symbol) -> bool:
        return self.key < other.key

    def __repr__(self) -> str:
        return self.name


class Quotient(Symbol):
    """`numerator // denominator`, where the normal form does not show that it divides."""

    __slots__ = ("denominator", "numerator")

    def __init__(self, numerator: Size, denominator: Size) -> None:
        self.numerator, self.denominator = numerator, denominator
        text = f"{numerator.grouped()} // {denominator.as_divisor()}"
        super().__init__(f"({numerator.key} // {denominator.key})", text)


MAX_TERMS = 400
"""A product of sums with more terms is a size of its own: nothing that code writes needs to be compared so far."""

Monomial = tuple[Symbol, ...]
IntoSize = Union["Size", Symbol, int]


class Size:
    """A symbolic integer. Immutable; equal and hashable by its normal form."""

    __slots__ = ("_hash", "_inner", "_key", "_symbols", "terms")
    terms: tuple[tuple[Monomial, int], ...]

    def __init__(self, terms: Mapping[Monomial, int]) -> None:
        kept = [term for term in terms.items() if term[1]]
        if len(kept) > 1:
            kept.sort(key=lambda term: (-len(term[0]), tuple([s.key for s in term[0]])))
        self._set(tuple(kept))

    def _set(self, terms: tuple[tuple[Monomial, int], ...]) -> Size:
        self.terms, self._hash = terms, hash(terms)
        self._key: str | None = None
        self._symbols: frozenset[Symbol] | None = None
        self._inner: frozenset[Symbol] | None = None
        return self

    @property
    def key(self) -> str:
        """The normal form as text: the same of two sizes if they are equal."""
        if self._key is None:
            self._key = " + ".join([f"{c} {' '.join([s.key for s in m])}" for m, c in self.terms])
        return self._key

    @staticmethod
    def of(value: IntoSize) -> Size:
        """The size of an integer, a symbol, or a size."""
        if isinstance(value, Size):
            return value
        if isinstance(value, Symbol):
            return Size.__new__(Size)._set((((value,), 1),))
        return _constant(value)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Size) and self._hash == other._hash and self.terms == other.terms)

    def __hash__(self) -> int:
        return self._hash

    @property
    def constant(self) -> int | None:
        """The integer that this size is, if it has no symbol."""
        if not self.terms:
            return 0
        monomial, coefficient = self.terms[0]
        return coefficient if len(self.terms) == 1 and not monomial else None

    @property
    def symbol(self) -> Symbol | None:
        """The symbol that this size is, if it is nothing else."""
        if len(self.terms) == 1:
            monomial, coefficient = self.terms[0]
            if coefficient == 1 and len(monomial) == 1:
                return monomial[0]
        return None

    @property
    def is_one(self) -> bool:
        return self.constant == 1

    def symbols(self) -> frozenset[Symbol]:
        if self._symbols is None:
            self._symbols = frozenset([symbol for monomial, _ in self.terms for symbol in monomial])
        return self._symbols

    def inner_symbols(self) -> frozenset[Symbol]:
        """The symbols, those that its quotients divide included."""
        if self._inner is None:
            found = set(self.symbols())
            for symbol in self.symbols():
                if isinstance(symbol, Quotient):
                    found |= symbol.numerator.inner_symbols() | symbol.denominator.inner_symbols()
            self._inner = frozenset(found)
        return self._inner

    @property
    def has_quotient(self) -> bool:
        """Whether a floor division that is not carried out stands in it."""
        return any(isinstance(symbol, Quotient) for symbol in self.symbols())

    def factors(self) -> tuple[tuple[Symbol, ...], int] | None:
        """The symbols and the coefficient of a single product, None for a sum."""
        if len(self.terms) != 1:
            return None
        return self.terms[0]

    def __add__(self, other: IntoSize) -> Size:
        terms = dict(self.terms)
        for monomial, coefficient in Size.of(other).terms:
            terms[monomial] = terms.get(monomial, 0) + coefficient
        return Size(terms)

    def __neg__(self) -> Size:
        return Size({m: -c for m, c in self.terms})

    def __sub__(self, other: IntoSize) -> Size:
        terms = dict(self.terms)
        for monomial, coefficient in Size.of(other).terms:
            terms[monomial] = terms.get(monomial, 0) - coefficient
        return Size(terms)

    def __mul__(self, other: IntoSize) -> Size:
        other = Size.of(other)
        if other.is_one:
            return self
        if self.is_one:
            return other
        if len(self.terms) * len(other.terms) > MAX_TERMS:
            return Size.of(Symbol(f"product:{self._hash}:{other._hash}", "?", positive=False))
        terms: dict[Monomial, int] = {}
        for left, a in self.terms:
            for right, b in other.terms:
                monomial = tuple(sorted(left + right)) if left and right else left or right
                terms[monomial] = terms.get(monomial, 0) + a * b
        return Size(terms)

    def exact_quotient(self, divisor: Size) -> Size | None:
        """`self / divisor` if the normal forms divide term by term, else None."""
        parts = divisor.factors()
        if parts is None:
            return Size.of(1) if self == divisor else None
        symbols, coefficient = parts
        terms: dict[Monomial, int] = {}
        for monomial, c in self.terms:
            rest = _without(monomial, symbols)
            if rest is None or c % coefficient:
                return None
            terms[rest] = c // coefficient
        return Size(terms)

    def __floordiv__(self, divisor: Size) -> Size:
        """`self // divisor`, a `Quotient` where it is not known to divide."""
        exact = self.exact_quotient(divisor)
        if exact is not None:
            return exact
        a, b = self.constant, divisor.constant
        if a is not None and b:
            return Size.of(a // b)
        return Size.of(Quotient(self, divisor))

    def substitute(self, bindings: Mapping[Symbol, Size]) -> Size:
        """This size with symbols replaced, also inside quotients, until nothing changes."""
        if not bindings or bindings.keys().isdisjoint(self.inner_symbols()):
            return self
        total = _constant(0)
        for monomial, coefficient in self.terms:
            product = _constant(coefficient)
            for symbol in monomial:
                product = product * _replaced(symbol, bindings)
            total = total + product
        return total

    def renamed(self, name_of: Callable[[Symbol], str]) -> Size:
        """The same size with its symbols, also those inside quotients, under other names."""
        terms = {tuple(_renamed(symbol, name_of) for symbol in m): c for m, c in self.terms}
        return Size(terms)

    def grouped(self) -> str:
        """The text, in parentheses if it is a sum."""
        return f"({self})" if len(self.terms) > 1 else str(self)

    def as_divisor(self) -> str:
        """The text, in parentheses unless it is one number or name."""
        text = self.grouped()
        return text if text.startswith("(") or text.replace(".", "").replace("_", "").isalnum() else f"({text})"

    def __str__(self) -> str:
        if not self.terms:
            return "0"
        texts = []
        for monomial, coefficient in self.terms:
            names = [f"({s.name})" if isinstance(s, Quotient) else s.name for s in monomial]
            if coefficient != 1 or not names:
                names.insert(0, str(coefficient))
            texts.append("*".join(names))
        only = self.symbol
        return only.name if only is not None else " + ".join(texts).replace("+ -", "- ")

    __repr__ = __str__


@lru_cache(maxsize=4096)
def _constant(value: int) -> Size:
    return Size({(): int(value)})


def product(sizes: Iterable[IntoSize]) -> Size:
    """The product of sizes, 1 for none."""
    total = _constant(1)
    for size in sizes:
        total = total * Size.of(size)
    return total


def _without(monomial: Monomial, symbols: Monomial) -> Monomial | None:
    """The monomial with these symbols taken out, None if one is not in it."""
    rest = list(monomial)
    for symbol in symbols:
        if symbol not in rest:
            return None
        rest.remove(symbol)
    return tuple(rest)


def _renamed(symbol: Symbol, name_of: Callable[[Symbol], str]) -> Symbol:
    name = name_of(symbol)
    if isinstance(symbol, Quotient) and name == symbol.name:
        return Quotient(symbol.numerator.renamed(name_of), symbol.denominator.renamed(name_of))
    return Symbol(symbol.key, name, symbol.positive)


def _replaced(symbol: Symbol, bindings: Mapping[Symbol, Size]) -> Size:
    if symbol in bindings:
        rest = {s: v for s, v in bindings.items() if s != symbol}
        return bindings[symbol].substitute(rest)
    if isinstance(symbol, Quotient):
        return symbol.numerator.substitute(bindings) // symbol.denominator.substitute(bindings)
    return Size.of(symbol)
