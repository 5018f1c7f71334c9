"""Sizes obey the laws of integers, whatever integers their symbols stand for."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from msalint.shapes.size import Quotient, Size, Symbol, product

NAMES = "B L H d"
SYMBOLS = [Symbol(name) for name in NAMES.split()]

integers = st.integers(-6, 6)
atoms = st.one_of(st.sampled_from(SYMBOLS).map(Size.of), integers.map(Size.of))


def _combined(inner: st.SearchStrategy[Size]) -> st.SearchStrategy[Size]:
    pair = st.tuples(inner, inner)
    divisors = st.one_of(st.sampled_from(SYMBOLS).map(Size.of), st.integers(1, 5).map(Size.of))
    return st.one_of(
        pair.map(lambda two: two[0] + two[1]),
        pair.map(lambda two: two[0] - two[1]),
        pair.map(lambda two: two[0] * two[1]),
        st.tuples(inner, divisors).map(lambda two: two[0] // two[1]),
    )


sizes = st.recursive(atoms, _combined, max_leaves=6)
assignments = st.fixed_dictionaries({symbol: st.integers(1, 9) for symbol in SYMBOLS})


def worth(size: Size, values: Mapping[Symbol, int]) -> int:
    """The integer that a size is under an assignment."""
    total = 0
    for monomial, coefficient in size.terms:
        here = coefficient
        for symbol in monomial:
            if isinstance(symbol, Quotient):
                here *= worth(symbol.numerator, values) // worth(symbol.denominator, values)
            else:
                here *= values[symbol]
        total += here
    return total


@given(sizes, sizes, assignments)
def test_sums_differences_and_products_are_those_of_integers(a: Size, b: Size, values: Mapping[Symbol, int]) -> None:
    x, y = worth(a, values), worth(b, values)
    assert worth(a + b, values) == x + y
    assert worth(a - b, values) == x - y
    assert worth(a * b, values) == x * y
    assert worth(-a, values) == -x
    assert worth(product([a, b, 3]), values) == 3 * x * y


@given(sizes, sizes, sizes)
def test_sizes_form_a_ring(a: Size, b: Size, c: Size) -> None:
    zero, one = Size.of(0), Size.of(1)
    assert a + b == b + a and a * b == b * a
    assert (a + b) + c == a + (b + c) and (a * b) * c == a * (b * c)
    assert a * (b + c) == a * b + a * c
    assert a + zero == a and a * one == a and a * zero == zero and a - a == zero


@given(sizes, sizes)
def test_equal_sizes_hash_alike_and_print_alike(a: Size, b: Size) -> None:
    left, right = a * b - b, b * (a - 1)
    assert left == right and hash(left) == hash(right) and str(left) == str(right)


@given(sizes, st.one_of(st.sampled_from(SYMBOLS).map(Size.of), st.integers(1, 6).map(Size.of)), assignments)
def test_floor_division_is_that_of_integers(a: Size, b: Size, values: Mapping[Symbol, int]) -> None:
    assert worth(a // b, values) == worth(a, values) // worth(b, values)


@given(sizes, sizes, assignments)
def test_an_exact_quotient_times_the_divisor_is_the_dividend(a: Size, b: Size, values: Mapping[Symbol, int]) -> None:
    quotient = a.exact_quotient(b)
    if quotient is not None and b.terms:
        assert quotient * b == a
    whole = (a * b).exact_quotient(b)
    if len(b.terms) == 1:
        assert whole == a, "a product of one term divides what it was multiplied into"


@given(sizes, st.sampled_from(SYMBOLS), sizes, assignments)
def test_substitution_puts_the_value_in(a: Size, symbol: Symbol, b: Size, values: Mapping[Symbol, int]) -> None:
    if symbol in b.symbols() or any(isinstance(s, Quotient) for s in b.symbols() | a.symbols()):
        return
    filled = a.substitute({symbol: b})
    assert symbol not in filled.symbols()
    assert worth(filled, values) == worth(a, {**values, symbol: worth(b, values)})


def test_substitution_reaches_into_quotients() -> None:
    width, heads = SYMBOLS[0], SYMBOLS[2]
    d_k = Size.of(width) // Size.of(heads)
    assert isinstance(d_k.symbol, Quotient)
    assert d_k.substitute({width: Size.of(heads) * 64}) == Size.of(64)
    assert d_k.substitute({width: Size.of(512), heads: Size.of(8)}) == Size.of(64)


def test_constants_and_symbols_are_known_for_what_they_are() -> None:
    assert Size.of(0).constant == 0 and Size.of(7).constant == 7 and Size.of(SYMBOLS[0]).constant is None
    assert (Size.of(SYMBOLS[0]) * 2).symbol is None and Size.of(SYMBOLS[0]).symbol == SYMBOLS[0]
    assert Size.of(1).is_one and not Size.of(0).is_one


def test_texts_read_as_people_write_them() -> None:
    b, length, heads, d = (Size.of(symbol) for symbol in SYMBOLS)
    assert str(heads * d * 3) == "3*H*d"
    assert str(length + 1) == "L + 1" and str(length - 1) == "L - 1"
    assert str(d // heads) == "d // H" and str((b + length) // Size.of(2)) == "(B + L) // 2"
