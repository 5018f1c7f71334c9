"""Notation: what each way of writing axes down means, and what is refused or passed over as prose."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msalint.shapes.notation import (
    ANONYMOUS,
    ELLIPSIS,
    EinopsAxis,
    NotationError,
    Operation,
    TypedAxis,
    parse_einops,
    parse_einops_einsum,
    parse_einsum,
    parse_jaxtyping,
    parse_shape_claims,
    parse_shape_comment,
    parse_term,
)


def axis(*atoms: int | str) -> EinopsAxis:
    return EinopsAxis(atoms)


def group(*atoms: int | str) -> EinopsAxis:
    return EinopsAxis(atoms, grouped=True)


def test_einops_head_split_has_a_group_on_one_side() -> None:
    left, right = parse_einops("b n (h d) -> b h n d")
    assert left == (axis("b"), axis("n"), group("h", "d"))
    assert right == (axis("b"), axis("h"), axis("n"), axis("d"))


def test_einops_unit_axes_have_no_atoms_and_numbers_stay() -> None:
    assert parse_einops("b 1 () (n 2) ...") == [(axis("b"), axis(), group(), group("n", 2), axis(ELLIPSIS))]


def test_einops_ellipsis_may_stand_in_a_group() -> None:
    assert parse_einops("b ... c->(b ...) c")[1] == (group("b", ELLIPSIS), axis("c"))


@pytest.mark.parametrize(
    "pattern", ["b (h d", "b h) d", "b (h (d))", "b b -> b", "... ... -> b", "a -> b -> c", "a, b", "b 2h -> b", "a+b"]
)
def test_einops_refuses_what_einops_refuses(pattern: str) -> None:
    with pytest.raises(NotationError):
        parse_einops(pattern)


def test_einops_einsum_keeps_names_apart_by_spaces() -> None:
    inputs, output = parse_einops_einsum("b h i d, b h j d -> b h i j")
    assert [[a.atoms[0] for a in side] for side in inputs] == [["b", "h", "i", "d"], ["b", "h", "j", "d"]]
    assert [a.atoms[0] for a in output] == ["b", "h", "i", "j"]


def test_einops_einsum_needs_its_arrow() -> None:
    with pytest.raises(NotationError, match="arrow"):
        parse_einops_einsum("b i, b j")


@pytest.mark.parametrize(
    ("equation", "inputs", "output"),
    [
        ("bhid, bhjd -> bhij", ["bhid", "bhjd"], "bhij"),
        ("ij,jk", ["ij", "jk"], "ik"),
        ("ba", ["ba"], "ab"),
        ("bB", ["bB"], "Bb"),
        ("ii->i", ["ii"], "i"),
        ("ij->", ["ij"], ""),
    ],
)
def test_einsum_letters(equation: str, inputs: list[str], output: str) -> None:
    assert parse_einsum(equation) == ([tuple(operand) for operand in inputs], tuple(output))


def test_einsum_implicit_output_starts_with_the_ellipsis() -> None:
    assert parse_einsum("...ij, ...jk") == ([("...", "i", "j"), ("...", "j", "k")], ("...", "i", "k"))


@pytest.mark.parametrize("equation", ["bh1->b", "ab->abc", "ab->aa", "a->b->c", "......a->a"])
def test_einsum_refuses(equation: str) -> None:
    with pytest.raises(NotationError):
        parse_einsum(equation)


@given(st.lists(st.text("abcxyzAB", min_size=1, max_size=4), min_size=1, max_size=3))
def test_einsum_implicit_output_is_what_numpy_computes(operands: list[str]) -> None:
    np = pytest.importorskip("numpy")
    sizes = {letter: 2 + index for index, letter in enumerate("abcxyzAB")}
    arrays = [np.ones([sizes[letter] for letter in operand]) for operand in operands]
    _, output = parse_einsum(",".join(operands))
    assert np.einsum(",".join(operands), *arrays).shape == tuple(sizes[letter] for letter in output)


def test_jaxtyping_every_kind_of_axis() -> None:
    assert parse_jaxtyping("batch 3 #head *lead _ rows=4 d_model//h") == [
        TypedAxis("name", "batch"),
        TypedAxis("size", 3),
        TypedAxis("name", "head", broadcast=True),
        TypedAxis("variadic", "lead"),
        TypedAxis("anonymous", ANONYMOUS),
        TypedAxis("size", 4, label="rows"),
        TypedAxis("expression", Operation("//", "d_model", "h")),
    ]


def test_jaxtyping_scalar_anonymous_and_variadic_forms() -> None:
    assert parse_jaxtyping("") == []
    assert parse_jaxtyping("...") == parse_jaxtyping("*_") == [TypedAxis("variadic", ELLIPSIS)]
    assert parse_jaxtyping("_width") == [TypedAxis("anonymous", ANONYMOUS, label="width")]
    assert parse_jaxtyping("*#lead") == [TypedAxis("variadic", "lead", broadcast=True)]


@pytest.mark.parametrize("spec", ["*a ...", "*a *b", "b,h", "a**b", "f(x)", "*3"])
def test_jaxtyping_refuses(spec: str) -> None:
    with pytest.raises(NotationError):
        parse_jaxtyping(spec)


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("H*d", Operation("*", "H", "d")),
        ("L + 1", Operation("+", "L", 1)),
        ("2H", Operation("*", 2, "H")),
        ("D/H", Operation("//", "D", "H")),
        ("self.num_heads", "num_heads"),
        ("3*(H+1)", Operation("*", 3, Operation("+", "H", 1))),
    ],
)
def test_terms(text: str, term: object) -> None:
    assert parse_term(text) == term


def test_a_term_prints_the_parentheses_it_needs() -> None:
    assert str(parse_term("3*(H+1)")) == "3*(H+1)"


def claimed(text: str) -> str | None:
    axes = parse_shape_comment(text)
    return None if axes is None else " ".join(str(axis) for axis in axes)


@pytest.mark.parametrize(
    ("text", "axes"),
    [
        ("(B, H, L, d)", "B H L d"),
        ("# [batch, seq, 3 * num_heads * head_dim]", "batch seq 3*num_heads*head_dim"),
        ("q: (B, H, L, d)", "B H L d"),
        ("B x L x D", "B L D"),
        ("Time x Batch x Channel", "Time Batch Channel"),
        ("(N, S) -> (N, H, S, d)", "N H S d"),
        ("(B, nh, T, hs) x (B, nh, hs, T) -> (B, nh, T, T)", "B nh T T"),
        ("b n (h d) -> b h n d", "b h n d"),
        ("(b h) n d", "b*h n d"),
        ("B, H, L, d", "B H L d"),
        ("torch.Size([2, 5, 21])", "2 5 21"),
        ("output shape (B, -1, D)", "B _ D"),
        ("(..., L, L)", "... L L"),
        ("(*lead, seq, width)", "... seq width"),
        ("-> (B, self.num_heads, L, self.head_dim)", "B num_heads L head_dim"),
        ("(batch, num heads, seq len, d)", "batch num_heads seq_len d"),
        ("(B, T, n_embd)", "B T n_embd"),
        ("(B,)", "B"),
        ("[B*H, L+1, 2D]", "B*H L+1 2*D"),
        ("(B, L)", "B L"),
    ],
)
def test_shape_comments(text: str, axes: str) -> None:
    assert claimed(text) == axes


@pytest.mark.parametrize(
    "prose",
    [
        "",
        "batch first",
        "(q, k, v)",
        "(query, key, value)",
        "apply rotary (cos, sin)",
        "swap (head, seq)",
        "merge (head, d_k) into the width",
        "see Vaswani et al. (2017, p. 4)",
        "permute(0, 2, 1, 3)",
        "transpose (1, 2)",
        "x[b, t]",
        "keep the mask (if any, else none)",
        "keys (B, S, D) and values (B, S, E)",
        "to be or not",
        "x = x + y",
        "calculate query, key, values for all heads in batch and move head forward to be the batch dim",
        "re-assemble all head outputs side by side",
        "why is this (a bit, odd)",
        "[nope, rope]",
        "type: ignore[arg-type]",
        "noqa: E501",
        "(B, " + "L, " * 300 + "d)",
    ],
)
def test_prose_claims_no_shape(prose: str) -> None:
    assert parse_shape_comment(prose) is None


def test_a_claim_names_its_subject_and_whether_it_is_a_result() -> None:
    first, second = parse_shape_claims("q: (B, L, D) -> (B, H, L, d)")
    assert (first.subject, first.result) == ("q", False)
    assert second.result


@given(st.text(max_size=60))
def test_no_text_makes_the_comment_reader_fail(text: str) -> None:
    parse_shape_comment(text)
    try:
        parse_jaxtyping(text)
        parse_einops(text)
        parse_einsum(text)
    except NotationError:
        pass
