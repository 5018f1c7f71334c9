"""What is known between sizes: equalities, exact divisions, and three-valued comparison under them."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import gcd
from typing import NamedTuple

from msalint.shapes.size import Quotient, Size, Symbol

Division = tuple[Size, Size]
"""A numerator and a denominator that is taken to divide it."""


class Verdict(NamedTuple):
    """Whether two sizes are equal (None: not known) and the exact divisions that this relies on without a proof."""

    equal: bool | None
    relies: frozenset[Division] = frozenset()

    @property
    def certainly(self) -> bool:
        """Equal, given that every division relied on is exact (else the code would not run)."""
        return self.equal is True

    @property
    def never(self) -> bool:
        return self.equal is False


UNKNOWN = Verdict(None)
EQUAL = Verdict(True)
UNEQUAL = Verdict(False)


@dataclass
class Relations:
    """The equalities and exact divisions that hold at a point of the code.

    A branch copies its relations and a join keeps what both sides know.
    """

    bindings: dict[Symbol, Size] = field(default_factory=dict)
    exact: set[Division] = field(default_factory=set)
    unequal: set[tuple[Size, Size]] = field(default_factory=set)
    _resolved: dict[Size, Size] = field(default_factory=dict, compare=False, repr=False)
    """What sizes came to under the bindings there are."""
    _compared: dict[tuple[Size, Size, int, int], Verdict] = field(default_factory=dict, compare=False, repr=False)
    """Answers under the bindings there are, and so many exact divisions and inequalities."""

    def copy(self) -> Relations:
        return Relations(dict(self.bindings), set(self.exact), set(self.unequal))

    def meet(self, other: Relations) -> Relations:
        """What holds on both of two paths."""
        same = {s: v for s, v in self.bindings.items() if other.bindings.get(s) == v}
        return Relations(same, self.exact & other.exact, self.unequal & other.unequal)

    def bind(self, symbol: Symbol, size: Size) -> None:
        """Learn `symbol == size`. A binding that would define a symbol by itself is not taken."""
        size = self.resolve(size)
        if symbol not in self.bindings and not _mentions(size, symbol):
            self.bindings[symbol] = size
            self._resolved.clear()
            self._compared.clear()

    def learn_exact(self, numerator: Size, denominator: Size) -> None:
        """Learn that `denominator` divides `numerator` (an assert or a raise says so)."""
        self.exact.add((self.resolve(numerator), self.resolve(denominator)))

    def resolve(self, size: Size) -> Size:
        """The size with all known equalities put in."""
        if not self.bindings:
            return size
        found = self._resolved.get(size)
        if found is None:
            found = self._resolved[size] = size.substitute(self.bindings)
        return found

    def divide(self, dividend: Size, divisor: Size) -> tuple[Size, frozenset[Division]] | None:
        """`dividend / divisor` where it comes out even, with the divisions it relies on; None if it is not known to.

        `d_model / (d_model // H)` is `H` if H divides d_model.
        """
        dividend, divisor = self.resolve(dividend), self.resolve(divisor)
        exact = dividend.exact_quotient(divisor)
        if exact is not None:
            return exact, frozenset()
        folded, relies = _fold_quotients(dividend)
        rest, more = _fold_quotients(divisor)
        relies = relies | more
        exact = folded.exact_quotient(rest)
        if exact is not None:
            return exact, self._unproved(relies)
        if rest.has_quotient and self.is_exact(dividend, divisor):
            return _in_lowest_terms(dividend, divisor), frozenset()
        parts = rest.factors()
        for symbol in parts[0] if parts else ():
            if isinstance(symbol, Quotient):
                # n / (n // m) is m
                whole = folded.exact_quotient(symbol.numerator)
                others = rest.exact_quotient(Size.of(symbol))
                if whole is not None and others is not None:
                    answer = self.divide(whole * symbol.denominator, others)
                    if answer is not None:
                        relied = self._unproved(relies | {(symbol.numerator, symbol.denominator)})
                        return answer[0], answer[1] | relied
        return None

    def compare(self, left: Size, right: Size) -> Verdict:
        """Whether two sizes are equal, never, or not known to be either."""
        left, right = self.resolve(left), self.resolve(right)
        if left == right:
            return EQUAL
        a, b = left.constant, right.constant
        if a is not None and b is not None:
            return UNEQUAL
        key = (left, right, len(self.exact), len(self.unequal))
        found = self._compared.get(key)
        if found is None:
            found = self._compared[key] = self._compare(left, right)
        return found

    def _compare(self, left: Size, right: Size) -> Verdict:
        difference = left - right
        folded, relies = _fold_quotients(left)
        other, more = _fold_quotients(right)
        plain = folded is left and other is right
        folded_difference = difference if plain else folded - other
        if not folded_difference.terms:
            return Verdict(True, self._unproved(relies | more))
        if (left, right) in self.unequal or (right, left) in self.unequal or _never_zero(difference):
            return Verdict(False)
        # n // h * h is taken to be n, but (n + 1) // 2 * 2 rounds up as a rule, and n // 64 * 64 rounds down.
        unproved = self._unproved(relies | more)
        exact = all(len(n.terms) == 1 and d.constant is None for n, d in unproved)
        if exact and _never_zero(folded_difference):
            return Verdict(False)
        return UNKNOWN

    def is_exact(self, numerator: Size, denominator: Size) -> bool:
        """Whether `denominator` is proved to divide `numerator`."""
        numerator, denominator = self.resolve(numerator), self.resolve(denominator)
        if numerator.exact_quotient(denominator) is not None:
            return True
        a, b = numerator.constant, denominator.constant
        if a is not None and b:
            return a % b == 0
        known = {(self.resolve(n), self.resolve(d)) for n, d in self.exact}
        if (numerator, denominator) in known:
            return True
        return any(_follows(numerator, denominator, n, d) for n, d in known)

    def _unproved(self, relies: frozenset[Division]) -> frozenset[Division]:
        return frozenset(d for d in relies if not self.is_exact(*d))


def _in_lowest_terms(numerator: Size, denominator: Size) -> Size:
    """`3 * d // (3 * h)` as `d // h`, which is the same."""
    above, below = numerator.factors(), denominator.factors()
    if above is None or below is None:
        return numerator // denominator
    common = Size.of(gcd(above[1], below[1]))
    for symbol in below[0]:
        rest = numerator.exact_quotient(common * Size.of(symbol))
        if rest is not None and denominator.exact_quotient(common * Size.of(symbol)) is not None:
            common = common * Size.of(symbol)
    a, b = numerator.exact_quotient(common), denominator.exact_quotient(common)
    return numerator // denominator if a is None or b is None else a // b


def _follows(numerator: Size, denominator: Size, known: Size, divisor: Size) -> bool:
    """Whether one exact division follows from another: `d % h == 0` tells of 3 * d and 3 * h, and the other way."""
    more = denominator.exact_quotient(divisor)
    if more is not None:
        return numerator.exact_quotient(known * more) is not None
    less = divisor.exact_quotient(denominator)
    return less is not None and numerator * less == known


def _fold_quotients(size: Size) -> tuple[Size, frozenset[Division]]:
    """`H * (d // H)` to `d`, in every product, with the divisions that this takes to be exact."""
    if not size.has_quotient:
        return size, frozenset()
    relies: set[Division] = set()
    changed = True
    while changed:
        changed = False
        for monomial, coefficient in size.terms:
            for symbol in monomial:
                if not isinstance(symbol, Quotient):
                    continue
                whole = Size({monomial: coefficient})
                rest = whole.exact_quotient(Size.of(symbol) * symbol.denominator)
                if rest is not None:
                    size = size - whole + rest * symbol.numerator
                    relies.add((symbol.numerator, symbol.denominator))
                    changed = True
                    break
            if changed:
                break
    return size, frozenset(relies)


def _never_zero(difference: Size) -> bool:
    """A sum of like-signed products of positive symbols is not zero."""
    signs = {coefficient > 0 for _, coefficient in difference.terms}
    sure = all(symbol.positive and not isinstance(symbol, Quotient) for symbol in difference.symbols())
    return len(signs) == 1 and sure


def _mentions(size: Size, symbol: Symbol) -> bool:
    for part in size.symbols():
        if part == symbol:
            return True
        if isinstance(part, Quotient) and (_mentions(part.numerator, symbol) or _mentions(part.denominator, symbol)):
            return True
    return False
