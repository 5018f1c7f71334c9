"""Reads the ways people write axes down: einops patterns, einsum equations, jaxtyping strings and shape comments."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

ELLIPSIS = "..."
"""Stands for any number of axes, in every notation."""

ANONYMOUS = "_"
"""Stands for one axis of which nothing is said."""


class NotationError(ValueError):
    """The text is not a sentence of the notation; the message says why."""


@dataclass(frozen=True)
class Operation:
    """`left op right`, with op one of + - * //."""

    op: str
    left: Term
    right: Term

    def __str__(self) -> str:
        return f"{_operand(self.left)}{self.op}{_operand(self.right)}"


Term: TypeAlias = "int | str | Operation"
"""A size as written: a number, a name (or `ELLIPSIS`, `ANONYMOUS`), or arithmetic on them."""


def _operand(term: Term) -> str:
    return f"({term})" if isinstance(term, Operation) and term.op in "+-" else str(term)


# --- einops -----------------------------------------------------------------------------------------------------------

Atom: TypeAlias = "int | str"


@dataclass(frozen=True)
class EinopsAxis:
    """One axis of a side, outermost atom first: `(h d)` has two atoms, `b` has one, `()` and `1` have none.

    An atom is a name, a number, or `ELLIPSIS`; `*` of pack and unpack reads as `ELLIPSIS` too.
    """

    atoms: tuple[Atom, ...]
    grouped: bool = False


EinopsSide = tuple[EinopsAxis, ...]

_EINOPS_TOKEN = re.compile(r"\s*(?:(?P<dots>\.\.\.|…|\*)|(?P<word>\w+)|(?P<mark>[()]))")


def parse_einops(pattern: str) -> list[EinopsSide]:
    """The sides of `rearrange`, `reduce` and `repeat` patterns, left to right; a pattern with no arrow has one side.

    Raises `NotationError` for unbalanced parentheses, nesting, two ellipses on a side, or a name twice on a side.
    """
    sides = pattern.split("->")
    if len(sides) > 2:
        raise NotationError(f"more than one arrow in {pattern!r}")
    return [_einops_side(side) for side in sides]


def parse_einops_einsum(pattern: str) -> tuple[list[EinopsSide], EinopsSide]:
    """The inputs and the output of an `einops.einsum` pattern such as "b h i d, b h j d -> b h i j"."""
    if pattern.count("->") != 1:
        raise NotationError(f"{pattern!r} needs exactly one arrow")
    left, right = pattern.split("->")
    return [_einops_side(operand, repeats=True) for operand in left.split(",")], _einops_side(right)


def _einops_side(text: str, repeats: bool = False) -> EinopsSide:
    axes: list[EinopsAxis] = []
    group: list[Atom] | None = None
    for kind, token in _einops_tokens(text):
        if token == "(":
            if group is not None:
                raise NotationError(f"nested parentheses in {text.strip()!r}")
            group = []
        elif token == ")":
            if group is None:
                raise NotationError(f"unbalanced parentheses in {text.strip()!r}")
            axes.append(EinopsAxis(tuple(group), grouped=True))
            group = None
        else:
            atoms = _einops_atoms(kind, token)
            if group is None:
                axes.append(EinopsAxis(atoms))
            else:
                group.extend(atoms)
    if group is not None:
        raise NotationError(f"unbalanced parentheses in {text.strip()!r}")
    names = [atom for axis in axes for atom in axis.atoms if isinstance(atom, str)]
    twice = sorted({name for name in names if names.count(name) > 1 and name != ANONYMOUS})
    if twice and (ELLIPSIS in twice or not repeats):
        raise NotationError(f"{twice[0]!r} stands twice in {text.strip()!r}")
    return tuple(axes)


def _einops_tokens(text: str) -> Iterator[tuple[str, str]]:
    place = 0
    text = text.rstrip()
    while place < len(text):
        match = _EINOPS_TOKEN.match(text, place)
        if match is None:
            raise NotationError(f"unexpected {text[place:].strip()[:1]!r} in {text.strip()!r}")
        place = match.end()
        yield str(match.lastgroup), str(match.group(str(match.lastgroup)))


def _einops_atoms(kind: str, token: str) -> tuple[Atom, ...]:
    if kind == "dots":
        return (ELLIPSIS,)
    if token.isdecimal():
        return () if int(token) == 1 else (int(token),)
    if not token.isidentifier():
        raise NotationError(f"{token!r} is no axis name")
    return (token,)


# --- einsum -----------------------------------------------------------------------------------------------------------

Subscripts = tuple[str, ...]
"""One letter an axis, `ELLIPSIS` for the axes in between."""


def parse_einsum(equation: str) -> tuple[list[Subscripts], Subscripts]:
    """The inputs and the output of an einsum equation; without an arrow the output is the letters used once, sorted.

    An implicit output starts with the ellipsis when any input has one: "...ij,...jk" gives ("...", "i", "k").
    Raises `NotationError` for anything that is no letter, or an output letter that no input has.
    """
    text = re.sub(r"\s+", "", equation)
    if text.count("->") > 1:
        raise NotationError(f"more than one arrow in {equation!r}")
    left, arrow, right = text.partition("->")
    inputs = [_subscripts(operand, equation) for operand in left.split(",")]
    if not arrow:
        return inputs, _implicit_output(inputs)
    output = _subscripts(right, equation)
    known = {letter for operand in inputs for letter in operand} | {ELLIPSIS}
    for letter in output:
        if letter not in known or output.count(letter) > 1:
            raise NotationError(f"output {letter!r} of {equation!r} must stand in an input, and once in the output")
    return inputs, output


def _subscripts(text: str, equation: str) -> Subscripts:
    letters: list[str] = []
    for part in re.findall(r"\.\.\.|.", text):
        if part != ELLIPSIS and not (part.isascii() and part.isalpha()):
            raise NotationError(f"unexpected {part!r} in {equation!r}")
        letters.append(part)
    if letters.count(ELLIPSIS) > 1:
        raise NotationError(f"two ellipses in one operand of {equation!r}")
    return tuple(letters)


def _implicit_output(inputs: list[Subscripts]) -> Subscripts:
    letters = [letter for operand in inputs for letter in operand]
    once = sorted(letter for letter in set(letters) if letter != ELLIPSIS and letters.count(letter) == 1)
    return ((ELLIPSIS,) if ELLIPSIS in letters else ()) + tuple(once)


# --- jaxtyping --------------------------------------------------------------------------------------------------------

AxisKind = Literal["name", "size", "anonymous", "variadic", "expression"]


@dataclass(frozen=True)
class TypedAxis:
    """One axis of a jaxtyping string. `term` is its size: `ELLIPSIS` where a variadic axis has no name.

    `broadcast`: written with `#`, so 1 fits as well. `label` is the left side of `rows=4`, which jaxtyping ignores.
    """

    kind: AxisKind
    term: Term
    broadcast: bool = False
    label: str | None = None

    def __str__(self) -> str:
        star = "*" if self.kind == "variadic" and self.term != ELLIPSIS else ""
        return f"{'#' if self.broadcast else ''}{star}{self.term}"


def parse_jaxtyping(spec: str) -> list[TypedAxis]:
    """The axes of a string such as "batch #head *lead seq d_model//h"; "" is a scalar.

    Raises `NotationError` for more than one variadic axis, or an axis that is no name, number or arithmetic.
    """
    axes = [_typed_axis(item) for item in spec.split()]
    if sum(axis.kind == "variadic" for axis in axes) > 1:
        raise NotationError(f"more than one variadic axis in {spec!r}")
    return axes


def _typed_axis(item: str) -> TypedAxis:
    if item == ELLIPSIS:
        return TypedAxis("variadic", ELLIPSIS)
    match = re.match(r"[#*?]*", item)
    marks = match.group() if match else ""
    body, label = item[len(marks) :], None
    if "=" in body:
        label, body = body.split("=", 1)
    elif body.startswith("_"):
        # "_" and "_name" bind nothing, whatever stands behind the underscore.
        body, label = ANONYMOUS, body.lstrip("_") or None
    broadcast = "#" in marks
    if "*" in marks:
        return TypedAxis("variadic", ELLIPSIS if body == ANONYMOUS else _name(body), broadcast, label)
    if body == ANONYMOUS:
        return TypedAxis("anonymous", ANONYMOUS, broadcast, label)
    term = parse_term(body.replace("{", "").replace("}", ""))
    kind: AxisKind = "size" if isinstance(term, int) else "name" if isinstance(term, str) else "expression"
    return TypedAxis(kind, term, broadcast, label)


def _name(text: str) -> str:
    if not text.isidentifier():
        raise NotationError(f"{text!r} is no axis name")
    return text


# --- sizes ------------------------------------------------------------------------------------------------------------

_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.FloorDiv: "//",
    ast.Div: "//",
}


def parse_term(text: str) -> Term:
    """Arithmetic on names and numbers: "H*d", "L + 1", "d_model//h", "2H", "self.num_heads"; "/" reads as "//".

    Raises `NotationError` for anything else.
    """
    spelled = re.sub(r"(?<![\w.])(\d+)(?=[A-Za-z_(])", r"\1*", text.strip())
    try:
        tree = ast.parse(spelled, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise NotationError(f"{text!r} is no size") from error
    return _term(tree, text)


def _term(tree: ast.expr, text: str) -> Term:
    if isinstance(tree, ast.Constant) and type(tree.value) is int:
        return tree.value
    if isinstance(tree, ast.Name):
        return tree.id
    if isinstance(tree, ast.Attribute):
        return tree.attr
    if isinstance(tree, ast.BinOp) and type(tree.op) in _OPERATORS:
        return Operation(_OPERATORS[type(tree.op)], _term(tree.left, text), _term(tree.right, text))
    raise NotationError(f"{text!r} is no size")


# --- shape comments ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ShapeClaim:
    """A shape that a comment or a docstring states. `subject` is the name in front, as in "q: (B, H, L, d)"."""

    axes: tuple[Term, ...]
    subject: str | None = None
    result: bool = False
    """The claim stands behind an arrow: it is what the line makes, not what it takes."""


_WORDS_OF_AXES = """
    batch batches bsz bs bz head heads nhead nheads seq seqs sequence token tokens time times timestep timesteps frame
    frames patch patches pixel pixels position positions pos step steps query queries key keys value values source
    target src tgt kv qkv q k v group groups block blocks chunk chunks window windows layer layers expert experts
    channel channels feature features feat feats hidden embed embd embedding embeddings emb model width height dim dims
    dimension depth rank vocab class classes label labels memory mem context ctx past prefix latent latents slot slots
    node nodes edge edges neighbor neighbors sample samples beam beams row rows col cols dk dv dq hs nh hd lead
    size sizes len lens length lengths num number count total max in out inner outer per
"""
AXIS_WORDS = frozenset(_WORDS_OF_AXES.split())
"""Words that name an axis by themselves or joined by underscores, as in `num_heads`, `src_len`, `batch_size`."""

_WORDS_OF_VALUES = """
    q k v qs ks vs query key value queries keys values x y z cos sin w weights attn attention scores mask masks out
    output context a b i j
"""
_TENSORS = frozenset(_WORDS_OF_VALUES.split())
"""Names of tensors and loop variables: a bracket that holds nothing else lists values, as in "(q, k, v)"."""

_WORDS_OF_PROSE = """
    a an as at be by do go he if in is it me my no of on or so to up us we and the for not are but can may has had was
    you all any one two too see use etc via yes nan inf now new old add set get run let end eg ie cf ok vs id int str
    list bool none true false opt fig eq sec sum mul div max min abs exp log sin cos tan
"""
_PROSE = frozenset(_WORDS_OF_PROSE.split())

_ARROW = re.compile(r"-+>|=+>|→|⟶|➔|➜|↦")
_BRACKET = re.compile(r"\(([^()\[\]]*(?:\([^()\[\]]*\)[^()\[\]]*)*)\)|\[([^()\[\]]*(?:\([^()\[\]]*\)[^()\[\]]*)*)\]")
_CROSS = re.compile(r"\s+[xX]\s+|\s*×\s*")
_SUBJECT = re.compile(
    r"(?:^|[,;(]\s*)([A-Za-z_][\w.]*?)(?:\.shape|\.size\(\))?\s*(?::|=|\bis\b|has shape|of shape)\s*$"
)
_SHAPE_WORD = re.compile(r"\b(?:shapes?|size|dims?|dimensions?|torch\.Size)\b", re.IGNORECASE)
_LEADS_IN = re.compile(
    r"(?:^|[:=,;>→.|-]|\b(?:shapes?|size|sizes|to|is|are|now|becomes?|as|out|outputs?|input|inputs|returns?|gives?|get|"
    r"gets|have|has|of|into|tensor|dims?|torch\.Size\())\s*$",
    re.IGNORECASE,
)
_CALLED = re.compile(r"[\w\])]$")
_SHAPE_CALL = re.compile(r"(?:torch\.)?(?:Size|Tensor|shape|size|FloatTensor|LongTensor|BoolTensor)$", re.IGNORECASE)


@lru_cache(maxsize=2048)
def parse_shape_comment(text: str) -> list[Term] | None:
    """The axes that a trailing comment claims for its line, or None where it claims none or may mean another value.

    "(B, H, L, d)", "q: [batch, seq, 3*d]", "T x B x C" and "(N, S) -> (N, H, S, d)" do (the last one names the result);
    "(q, k, v)", "swap (head, seq)" and "see Vaswani (2017, p. 4)" don't.
    """
    claims = parse_shape_claims(text)
    if not claims or (len(claims) > 1 and not claims[-1].result):
        return None
    return list(claims[-1].axes)


@lru_cache(maxsize=2048)
def parse_shape_claims(text: str) -> list[ShapeClaim]:
    """Every shape that one line of prose states, left to right."""
    text = text.strip().lstrip("#").strip()
    if not text or len(text) > 400:
        return []
    return _einops_claims(text) or _bracketed_claims(text) or _bare_claims(text)


def _einops_claims(text: str) -> list[ShapeClaim]:
    """A comment written as einops writes axes, products in parentheses: "b n (h d) -> b h n d"."""
    parts = _ARROW.split(text)
    if not any(re.search(r"\([^(),]+\)", part) and re.sub(r"\([^()]*\)", "", part).strip() for part in parts):
        return []
    claims: list[ShapeClaim] = []
    for index, part in enumerate(parts):
        try:
            side = parse_einops(part)[0]
        except NotationError:
            return []
        names = [atom for axis in side for atom in axis.atoms if isinstance(atom, str) and atom != ELLIPSIS]
        if not side or not all(_is_axis_name(name) for name in names):
            return []
        claims.append(ShapeClaim(tuple(_product(axis.atoms) for axis in side), result=index > 0))
    return claims


def _product(atoms: tuple[Atom, ...]) -> Term:
    if not atoms:
        return 1
    term: Term = atoms[0]
    for atom in atoms[1:]:
        term = Operation("*", term, atom)
    return term


def _bracketed_claims(text: str) -> list[ShapeClaim]:
    claims: list[ShapeClaim] = []
    behind = 0
    for match in _BRACKET.finditer(text):
        before, after = text[: match.start()], text[match.end() :]
        inner = match.group()[1:-1]
        axes = _axes(inner)
        if axes is None or not _is_stated(axes, before, after, inner.rstrip().endswith(",")):
            continue
        subject = _SUBJECT.search(before)
        claims.append(
            ShapeClaim(
                axes,
                subject=subject.group(1) if subject and not _SHAPE_WORD.fullmatch(subject.group(1)) else None,
                result=bool(_ARROW.search(text[behind : match.start()]) or re.search(r"\bto\s*$", before)),
            )
        )
        behind = match.end()
    return claims


def _is_stated(axes: tuple[Term, ...], before: str, after: str, trailing_comma: bool) -> bool:
    """Whether the words around a bracket let it be a shape, rather than arguments, a year, or an aside."""
    named_so = bool(_SHAPE_WORD.search(before))
    if _CALLED.search(before):
        # "permute(0, 2, 1)" are arguments, "x[b, t]" is an index, "torch.Size([2, 5])" and "shape(B, L)" are shapes.
        return bool(_SHAPE_CALL.search(before))
    if all(isinstance(axis, int) for axis in axes):
        return named_so and len(axes) > 1
    if len(axes) == 1:
        return named_so or trailing_comma
    if _LEADS_IN.search(before):
        return True
    closes = re.match(r"\s*(?:$|[,.;:|]|-+>|=+>|→|[@*×x+]\s|and\b)", after) is not None
    return named_so or (closes and (len(axes) > 2 or bool(re.search(r"[@*×x+]\s*$", before))))


def _bare_claims(text: str) -> list[ShapeClaim]:
    """A comment that is nothing but axes, with no brackets: "B, H, L, d", "B x L x D", "b n d -> b h n d"."""
    subject = None
    label = re.match(r"([A-Za-z_][\w.]*)\s*[:=]\s+", text)
    if label:
        subject, text = label.group(1), text[label.end() :]
    named_so = subject is not None and _SHAPE_WORD.fullmatch(subject) is not None
    claims: list[ShapeClaim] = []
    for index, part in enumerate(_ARROW.split(text)):
        if not part.strip() and index == 0:
            continue
        axes = _axes(part.strip().rstrip(".")) if not _BRACKET.search(part) or "*" in part else None
        if axes is None or not (len(axes) > 2 or (len(axes) == 2 and _CROSS.search(part))):
            return []
        if all(isinstance(axis, int) for axis in axes) or not (_CROSS.search(part) or _all_letters(axes)):
            return []
        claims.append(ShapeClaim(axes, None if named_so else subject, result=index > 0))
    return claims


def _all_letters(axes: tuple[Term, ...]) -> bool:
    """Whether bare words are surely axes: one or two letters each, which prose seldom is."""
    return all(not isinstance(axis, str) or len(axis.rstrip("0123456789_")) <= 2 or axis == ELLIPSIS for axis in axes)


def _axes(inner: str) -> tuple[Term, ...] | None:
    inner = inner.strip().rstrip(",")
    if not inner:
        return None
    if _CROSS.search(inner):
        items = _CROSS.split(inner)
    elif "," in inner:
        items = _split_commas(inner)
    else:
        items = inner.split()
        if len(items) > 1 and not all(re.fullmatch(r"\w{1,3}|\.\.\.|\w+[*/]\w+", item) for item in items):
            return None
    axes = [_axis(item.strip()) for item in items]
    known = [axis for axis in axes if axis is not None]
    if len(known) != len(axes) or len(axes) > 8:
        return None
    if all(isinstance(axis, str) and axis.lower() == axis and axis in _TENSORS for axis in known):
        return None
    return tuple(known)


def _split_commas(text: str) -> list[str]:
    """Split at the commas outside parentheses: "B, (H*d), L" has three items."""
    return re.split(r",(?![^(]*\))", text)


def _axis(item: str) -> Term | None:
    if item in (ELLIPSIS, "…", "*") or re.fullmatch(r"\*[A-Za-z_]\w*", item):
        return ELLIPSIS
    if item in ("?", ANONYMOUS, "-1", ":"):
        return ANONYMOUS
    item = item.strip("`'\"")
    if re.fullmatch(r"[A-Za-z]+(?: [A-Za-z]+){1,2}", item):
        item = item.replace(" ", "_")
    try:
        term = parse_term(item)
    except NotationError:
        return None
    return term if all(_is_axis_name(name) for name in _names(term)) and _sane(term) else None


def _names(term: Term) -> Iterator[str]:
    if isinstance(term, str):
        yield term
    elif isinstance(term, Operation):
        yield from _names(term.left)
        yield from _names(term.right)


def _sane(term: Term) -> bool:
    return not isinstance(term, int) or 0 <= term < 10**7


def _is_axis_name(name: str) -> bool:
    """One or two letters with an index ("B", "nh", "T_q", "d_k", "L1"), or words that count axes ("num_heads")."""
    if re.fullmatch(r"[A-Za-z]{1,2}\d?(?:_[A-Za-z0-9]{1,3})?|[A-Z][a-z]{2}", name) and name.lower() not in _PROSE:
        return True
    words = [word for word in re.split(r"[_\d]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()) if word]
    return bool(words) and all(word in AXIS_WORDS or len(word) == 1 for word in words)
