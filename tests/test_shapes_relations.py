"""What is concluded from equalities and exact divisions holds for every assignment that satisfies them."""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st

from msalint.shapes.relations import Relations
from msalint.shapes.size import Quotient, Size, Symbol
from tests.test_shapes_size import SYMBOLS, assignments, sizes, worth

B, L, H, D = (Size.of(symbol) for symbol in SYMBOLS)
bindings = st.dictionaries(st.sampled_from(SYMBOLS), sizes, max_size=2)


def satisfied(relations: Relations, values: dict[Symbol, int]) -> bool:
    """Whether an assignment agrees with all that is known."""
    equal = all(worth(Size.of(symbol), values) == worth(size, values) for symbol, size in relations.bindings.items())
    return equal and all(divides(pair, values) for pair in relations.exact)


def divides(pair: tuple[Size, Size], values: dict[Symbol, int]) -> bool:
    numerator, denominator = worth(pair[0], values), worth(pair[1], values)
    return denominator != 0 and numerator % denominator == 0


@given(sizes, sizes, bindings, assignments)
def test_equal_is_equal_and_never_is_never(
    a: Size, b: Size, known: dict[Symbol, Size], values: dict[Symbol, int]
) -> None:
    relations = Relations()
    for symbol, size in known.items():
        relations.bind(symbol, size)
    assume(satisfied(relations, values))
    verdict = relations.compare(a, b)
    if verdict.equal and all(divides(pair, values) for pair in verdict.relies):
        assert worth(a, values) == worth(b, values)
    if verdict.never:
        assert worth(a, values) != worth(b, values)


@given(sizes, sizes, assignments)
def test_a_quotient_that_comes_out_even_is_even(a: Size, b: Size, values: dict[Symbol, int]) -> None:
    relations = Relations()
    answer = relations.divide(a, b)
    if answer is None or not all(divides(pair, values) for pair in answer[1]) or worth(b, values) == 0:
        return
    assert worth(answer[0], values) * worth(b, values) == worth(a, values)


@given(sizes, sizes)
def test_compare_is_symmetric(a: Size, b: Size) -> None:
    relations = Relations()
    assert relations.compare(a, b).equal == relations.compare(b, a).equal
    assert relations.compare(a, a).equal is True


@given(sizes, st.integers(1, 5))
def test_sizes_a_positive_step_apart_are_never_equal(a: Size, step: int) -> None:
    assert Relations().compare(a, a + step).equal is False


def test_heads_times_head_width_is_the_width_if_it_divides() -> None:
    relations = Relations()
    d_k = D // H
    verdict = relations.compare(H * d_k, D)
    assert verdict.certainly and verdict.relies == {(D, H)}
    relations.learn_exact(D, H)
    assert relations.compare(H * d_k, D) == (True, frozenset())


def test_the_width_over_its_quotient_is_the_heads() -> None:
    relations = Relations()
    assert relations.divide(D, D // H) == (H, frozenset({(D, H)}))
    assert relations.divide(D * B, (D // H) * B) == (H, frozenset({(D, H)}))
    assert relations.divide(D * 3, D // H) == (H * 3, frozenset({(D, H)}))


def test_bindings_are_followed_and_never_circular() -> None:
    relations = Relations()
    relations.bind(SYMBOLS[0], L * H)
    relations.bind(SYMBOLS[1], Size.of(SYMBOLS[0]))
    assert SYMBOLS[1] not in relations.bindings
    assert relations.resolve(B) == L * H
    assert relations.compare(B, H * L).certainly


def test_inner_width_by_construction_relies_on_nothing() -> None:
    relations = Relations()
    relations.bind(SYMBOLS[3], H * L)
    assert relations.compare(H * (D // H), D) == (True, frozenset())
    assert relations.is_exact(D, H) and relations.is_exact(D * 3, H)


def test_cases_nobody_knows_stay_open() -> None:
    relations = Relations()
    past = Size.of(Symbol("past", positive=False))
    assert relations.compare(L + past, L).equal is None
    assert relations.compare(L, H).equal is None
    assert relations.compare(D // H, D).equal is None
    assert relations.divide(L + 1, H) is None


def test_what_was_told_to_differ_differs() -> None:
    relations = Relations()
    relations.unequal.add((L, H))
    assert relations.compare(L, H).never and relations.compare(H, L).never


@given(bindings, bindings, assignments)
def test_a_meet_knows_only_what_both_know(
    first: dict[Symbol, Size], second: dict[Symbol, Size], values: dict[Symbol, int]
) -> None:
    one, other = Relations(), Relations()
    for relations, known in ((one, first), (other, second)):
        for symbol, size in known.items():
            relations.bind(symbol, size)
    both = one.meet(other)
    if satisfied(one, values) or satisfied(other, values):
        assert satisfied(both, values)


def test_a_quotient_is_a_symbol_that_knows_its_parts() -> None:
    symbol = (D // H).symbol
    assert isinstance(symbol, Quotient) and symbol.numerator == D and symbol.denominator == H
    assert (D // H) == (D // H) and (D // H) != (D // L)
