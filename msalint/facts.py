"""What happens in attention code, as the flow analysis tells it to rules, in the order it happens.

A fact says only what is known: every field that may be unknown has a value for that (None, an empty tuple, False for
"not known to"), and a rule that reads it stays silent then. `at` is the expression that the fact is about. Sites are
opaque to rules: they have a span and a text, nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from msalint.shapes.axes import Axis, Ident, axis_name, axis_size, shape_text
from msalint.shapes.reshape import Broken, Scramble
from msalint.shapes.size import Size
from msalint.values import Cells, Factor, MaskUse, Normalised, Product, Projection, Real, Region, Tensor, Value

if TYPE_CHECKING:
    from msalint.diagnostic import Site


@dataclass(frozen=True)
class Fact:
    """Something that happens at a place."""

    at: Site


def shape_of(tensor: Tensor) -> str:
    """The tensor's axes as a reader writes them: `(B, H, L, d)`."""
    return shape_text(tensor.axes, tensor.lead)


_BACKWARDS = re.compile(
    r"backward|revers|direction|two.?way|anti.?causal|right.?to.?left|\brtl\b|\bbw\b", re.IGNORECASE
)


def reads_backwards(purpose: Iterable[str]) -> bool:
    """Whether names and docstrings say that the future is meant to be seen, as by one of two opposite streams."""
    return any(map(_BACKWARDS.search, purpose))


# --- layout ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Viewed(Fact):
    """A view, reshape or flatten of a tensor.

    `receiver`: the tensor's expression. `op`: "view", "reshape", "flatten", "unflatten", "view_as", "rearrange".
    `broken`: the two atoms that it merges though memory order does not allow it (only for ops that cannot copy).
    `certain`: the memory order is documented; False where it is an implementation detail (SDPA, einsum).
    `scramble`: the target names the same atoms in another order; `kind` then says what it is: "split" (heads are
    split off before the sequence), "merge" (heads are merged without being next to d_k), or "other".
    `mismatch`: the element counts can never agree. `left_over`: the heads, where the target has room for every axis
    but them, so that it fits one head only. `named`: the code itself named every axis that changed places (unpacked,
    annotated, a parameter). `order`: the order of the source's axes that the target names, () where it takes one apart
    or merges two. `moved_at`/`moved_by`: the transposition before it.
    `source`: the axes before, as text; `target`: the axes asked for, as text. `arguments`: the sites of the sizes.
    """

    receiver: Site
    op: str
    source: str
    target: str
    broken: Broken | None = None
    certain: bool = True
    scramble: Scramble | None = None
    kind: str | None = None
    mismatch: bool = False
    left_over: str = ""
    named: bool = False
    order: tuple[int, ...] = ()
    moved_at: Site | None = None
    moved_by: str = ""
    arguments: tuple[Site, ...] = ()
    target_tensor: Tensor | None = None
    heads: str = ""
    """The name of the heads axis of a scramble."""
    seq: str = ""
    """The name of the axis that heads were mixed up with."""
    purpose: tuple[str, ...] = ()
    """Names and docstrings around, unfiltered."""


@dataclass(frozen=True)
class ReliesOnDivision(Fact):
    """A head split (or merge) that works only if `denominator` divides `numerator`.

    `at` is the division where there is one, else the split. `used_at`: the split. `proved`: a check on the way says so.
    """

    numerator: str
    denominator: str
    used_at: Site | None = None
    proved: bool = False


@dataclass(frozen=True)
class SizesDisagree(Fact):
    """Sizes that can't fit, whatever the inputs. `what`: the operation; `left` and `right`: the two sizes as text.

    `message`: the clash in words.
    """

    what: str
    left: str
    right: str
    message: str
    trail_at: Site | None = None


# --- scores, softmax, weights ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Multiplied(Fact):
    """A product of two tensors over one axis of each: `q @ k.transpose(-2, -1)`, bmm, einsum, matmul.

    `swapped`: the left's features meet a position axis of the right whose features have the same size, so that a
    transposed right operand was meant (`q @ k`).  `head_axis`: the product is between the heads of one token: rows and
    columns are both the head axis. `left_site`, `right_site`: the operands.
    """

    product: Product
    left_site: Site
    right_site: Site
    swapped: bool = False
    head_axis: str | None = None
    purpose: tuple[str, ...] = ()


@dataclass(frozen=True)
class Scaling:
    """All the scale factors that went into scores, on queries, keys or the scores themselves.

    `head_dim`: the size that the product contracts; `width`: the model width, where it is another size.
    `head_power`, `width_power`: the exponents of the two in the product of all factors (-1/2 each is right for
    head_dim). `unknown`: a factor is not known (a learned or configured temperature): nothing can be said.
    `constant`: the numeric part. `factors`: each with its place, in order.
    """

    factors: tuple[Factor, ...] = ()
    head_dim: Size | None = None
    width: Size | None = None
    head_power: Fraction = Fraction(0)
    width_power: Fraction = Fraction(0)
    unknown: bool = False
    constant: float = 1.0

    @property
    def none_at_all(self) -> bool:
        return not self.factors


@dataclass(frozen=True)
class Softmaxed(Fact):
    """A softmax (any spelling, by hand too).

    `scores`: what went in, with its traits; `product`: the product that formed the scores, None if not known.
    `axis`: name of the axis normalised; None if not known. `explicit`: a dim was given; `dim_site`: its place.
    `implicit_dim`: the dim that torch picks without one, None if not known. `by_hand`: exp divided by its sum.
    `scaling`: what the scores were scaled with.
    `attention`: the scores are known to be query times key: a product over a feature axis, of two projections or of
    parameters named query and key. `multi_head`: heads were split. `same_source`: queries and keys are projections of
    one input. `unit`: queries and keys are normalised (cosine, qk-norm); `bounded`: by tanh or a clamp. `biased`: with
    something added that is no mask. `pixels`: queries and keys are made of pixels, by convolutions.
    `context`: names and docstrings of the definitions around, for what code says of itself.
    """

    scores: Tensor
    product: Product | None
    axis: str | None
    explicit: bool
    scaling: Scaling
    attention: bool = False
    multi_head: bool = False
    same_source: bool = False
    unit: bool = False
    bounded: bool = False
    biased: bool = False
    pixels: bool = False
    scaled_late: bool = False
    """What was to scale the scores is put on the weights, or on the context."""
    by_hand: bool = False
    implicit_dim: int | None = None
    dim_site: Site | None = None
    receiver: Site | None = None
    context: tuple[str, ...] = ()
    built_at: Site | None = None
    """Where the softmax layer was built."""
    reached: bool = True
    """Read with the arguments of a real caller, or with parameters of a forward; False for a function on its own."""


@dataclass(frozen=True)
class MixedUp:
    """A query, key or value (`slot`) made by the layer `used` of another, `own` being its own, which nothing calls."""

    slot: str
    used: str
    own: str
    at: Site


@dataclass(frozen=True)
class Projected(Fact):
    """An attention whose queries, keys and values come out of projections: which (None: not known)."""

    query: Projection | None
    key: Projection | None
    value: Projection | None
    mixed_up: tuple[MixedUp, ...] = ()
    purpose: tuple[str, ...] = ()


@dataclass(frozen=True)
class HeadsTiled(Fact):
    """Key or value heads copied as a whole, (0 1 0 1), and paired with query heads one by one.

    `at`: the copying; `what`: "keys" or "values"; `heads` and `copies`: how many, as text. `used_at`: the attention.
    `purpose`: names and docstrings around, unfiltered.
    """

    what: str
    heads: str
    copies: str
    used_at: Site | None = None
    purpose: tuple[str, ...] = ()


@dataclass(frozen=True)
class Weighted(Fact):
    """Weights (something softmaxed) times values: the context.

    `softmax`: what was normalised. `contracted_normalised`: the axis contracted is the one normalised; None if not
    known. `contracted`, `normalised`: their names. `over`: the role of the axis attended over: "batch", "head", "seq"
    or None. `swapped`: softmax did normalise the keys, or the weights were turned after it: the product is at fault.
    `purpose`: names and docstrings around, unfiltered.
    """

    softmax: Normalised
    contracted: str
    normalised: str
    contracted_normalised: bool | None
    over: str | None
    over_name: str
    weights_site: Site
    values_site: Site
    transposed_after: Site | None = None
    """A transposition of the weights between softmax and this product."""
    swapped: bool = False
    exchanged: bool = False
    """The queries' axis is normalised and contracted, though the code calls the operands query and key."""
    renormalised: bool = False
    purpose: tuple[str, ...] = ()
    batch_strong: bool = False
    """`over == "batch"` is known from an API or the module's own output contract, not from a name alone."""
    tokens: bool = True
    """An axis of tokens stands beside the axis attended over and the features."""


@dataclass(frozen=True)
class WeightsKept(Fact):
    """Weights, or the largest of their scores (`peak`), are on the module when its forward ends, with their graph.

    `at`: the attribute or the append; `attribute`: as written, `self.attn`. `made_at`: the softmax, or the product of
    the scores. `stored`: the expression that is kept, None where forward goes on with it, or where it is one of several
    results. `weighed`: it is attention; values were summed with the weights.
    """

    attribute: str
    made_at: Site
    stored: Site | None = None
    peak: bool = False
    weighed: bool = False


@dataclass(frozen=True)
class ScaledAfterSoftmax(Fact):
    """Attention weights, or the context that they made, multiplied by a power of a size.

    `scaling`: that one factor, seen against the width of the heads. `on`: "weights" or "context". `scaled_before`: the
    scores were scaled as well.
    """

    factor: Real
    softmax: Normalised
    scaling: Scaling
    on: str = "weights"
    scaled_before: bool = False


@dataclass(frozen=True)
class PowerPrecedence(Fact):
    """`x ** 1 / 2`: the power binds first, so this is x / 2. `mended`: the expression with parentheses."""

    base: str
    value: str
    mended: str


# --- masks -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MaskFilled(Fact):
    """Scores filled (masked_fill, where, index assignment) where a mask says so, before softmax.

    `fill`: the number written, None if not known; `fill_site`: its place; `hidden`: the region that gets it.
    `softmaxed_at`: the softmax that follows. `empty_rows`: None if not known, True if some row may be hidden whole
    (padding from the left, a query-axis mask, a causal mask without its diagonal, a mask given from outside),
    False if each row keeps a key (a causal mask that keeps its diagonal and nothing combined with it).
    `guarded`: rows that are hidden whole are repaired afterwards (nan_to_num, masked_fill of isnan, a row guard).
    `half`: the scores may be half precision here (a cast, autocast, a half dtype in sight).
    `inverted`: True if a keep-true mask hides, or a hide-true mask keeps. `mask_name`: what it is called.
    `attention`: the filled tensor is a product of queries and keys, or its softmax weighs values. `bounded`: by tanh
    or a clamp. `fill_parameter`: the name of the fill's constant or parameter. `whole_rows`: the mask is one for all
    keys of a query. `scores_site`: the filled tensor. `mends`: a mask of this kind hid more of the scores before, so
    that this one gives rows that are hidden whole a number again. `purpose`: names and docstrings around.
    """

    fill: float | None
    fill_site: Site | None
    mask_site: Site
    hidden: Region | None
    mask_name: str
    how: str
    attention: bool = False
    empty_rows: bool | None = None
    guarded: bool = False
    half: bool = False
    inverted: bool = False
    made_at: Site | None = None
    taken_at: Site | None = None
    """The expression that the mask's name took its value from, for this fill alone."""
    softmaxed_at: Site | None = None
    scores_site: Site | None = None
    bounded: bool = False
    fill_parameter: str = ""
    in_place: bool = False
    whole_rows: bool = False
    mends: bool = False
    purpose: tuple[str, ...] = ()


@dataclass(frozen=True)
class MaskAdded(Fact):
    """An additive mask added to scores. `cells`: its two values where known; `hidden`: the region far below 0.
    `fill`: the lower of the two values.

    Other fields as in `MaskFilled`.
    """

    cells: Cells | None
    hidden: Region | None
    mask_site: Site
    mask_name: str
    attention: bool = False
    inverted: bool = False
    empty_rows: bool | None = None
    guarded: bool = False
    made_at: Site | None = None
    softmaxed_at: Site | None = None
    bounded: bool = False
    fill: float | None = None
    boolean: bool = False
    """The mask is boolean: it adds 1 where it is True."""
    said: bool = False
    """That it is boolean is only its annotation's word, or a docstring's."""
    purpose: tuple[str, ...] = ()


@dataclass(frozen=True)
class MaskMultiplied(Fact):
    """Scores multiplied by a 0/1 mask before softmax. `lowered`: another mask takes hidden scores far down as well."""

    mask_site: Site
    mask_name: str
    softmaxed_at: Site | None = None
    lowered: bool = False


@dataclass(frozen=True)
class MaskedAfterSoftmax(Fact):
    """Weights multiplied by, or filled with 0 under, a mask of keys after softmax, and then given to the values.

    `masked_before`: the scores were masked too. `weighted_at`: the product with the values; nothing between the mask
    and it divides the weights by their sum.
    """

    softmax: Normalised
    mask_site: Site
    masked_before: bool = False
    weighted_at: Site | None = None


@dataclass(frozen=True)
class MaskMisplaced(Fact):
    """A mask that lies on other axes than its own, once lined up from the right with what it is put on.

    `what`: "batch" (its batch axis lies on heads or positions) or "query" (padding lies on the queries alone).
    `mask` and `onto`: the two shapes as text; `axis`, `under`: the axis and what it lies on. `api`: "scores", or the
    call that takes the mask. `two_axes`: the mask is (batch, seq). `causal`: a causal mask is part of it. `made_at`:
    where the padding was told.
    """

    mask_site: Site
    what: str
    mask: str
    onto: str
    axis: str
    under: str
    api: str
    two_axes: bool = False
    made_at: Site | None = None
    causal: bool = False


@dataclass(frozen=True)
class MaskCleared(Fact):
    """An additive mask multiplied by a 0/1 mask of what is to be kept: where that is 0, nothing is hidden any more.

    `hidden_at`: where the additive mask was made; `kept_at`: where the other was. `infinite`: the additive mask is
    -inf, so that the product is NaN there. `said`: only a docstring says that it is additive, or what is kept.
    """

    hidden_at: Site | None = None
    kept_at: Site | None = None
    infinite: bool = False
    said: bool = False


@dataclass(frozen=True)
class NumbersAsMask(Fact):
    """A mask of numbers 0 and 1 handed to an API that takes truths, or numbers to be added to the scores.

    `parameter`: what it is handed to; `dtype`: "float32" and such (it is added: 0 and 1 hide nothing), or "int" and
    "uint8" (refused). `ones`: where it is 1. `keep_true`: the API attends where a boolean mask is True. `said`: only a
    docstring says what the mask holds.
    """

    mask_site: Site
    parameter: str
    dtype: str
    ones: Region
    keep_true: bool
    said: bool = False
    made_at: Site | None = None


@dataclass(frozen=True)
class OffDevice(Fact):
    """A mask made in forward on torch's default device, and put on scores that lie where the inputs do.

    `at`: where it was made. `used_at`: where the two meet. `made`: all that it was made of, each with the name of an
    input at hand there ("" for none).
    """

    used_at: Site | None = None
    made: tuple[tuple[Site, str], ...] = ()


@dataclass(frozen=True)
class SharedWritten(Fact):
    """A tensor whose copies along an axis share memory (`expand`), written in place with what differs along it.

    `at`: the write; `axis`: the name of the axis; `expanded_at`: where the copies were made; `part`: only some copies
    are written to, as in `mask[i, n:] = 0`, and not all under a mask of their own.
    """

    axis: str
    expanded_at: Site | None
    part: bool


@dataclass(frozen=True)
class LeftBehind(Fact):
    """A mask or a table of positions that a module keeps under a plain attribute, used beside its inputs.

    `at`: what the attribute was given in `__init__`; `used_at`: where it meets scores or inputs; `name`: of the table.
    """

    used_at: Site
    name: str


@dataclass(frozen=True)
class MaskTiled(Fact):
    """A mask of one sample after another copied as a whole, (0 1 0 1), for heads that come as (0 0 1 1).

    `at`: the copying. `order`: "heads" (as many copies as heads, but outside of the samples) or "folded" (as many as
    samples times heads, of a mask that has its samples already). `copies`, `samples`: how many, as text. `api`: what
    takes the mask, "scores" for one put on by hand; `used_at`: where.
    """

    order: str
    copies: str
    samples: str
    api: str
    used_at: Site | None = None


@dataclass(frozen=True)
class TruthsCalculatedWith(Fact):
    """Arithmetic that torch refuses to do with a boolean mask, or that does not negate a mask of integers.

    `how`: "subtracted" (`1 - mask`), "negated" (`-mask`) or "bits" (`~mask` of uint8 or integers). `dtype`: the mask's
    kind. `from_one`: the complement was meant, `1 - mask`. `said`: that it is boolean is only its annotation's word, or
    a docstring's.
    """

    how: str
    mask_site: Site
    mask_name: str = ""
    dtype: str = "bool"
    from_one: bool = False
    said: bool = False
    made_at: Site | None = None


@dataclass(frozen=True)
class ZeroTimesInfinity(Fact):
    """A tensor that holds zeros multiplied by infinity: NaN at every zero.

    `zeros`: where they are, in words. `made_at`: where the zeros were made.
    """

    made_at: Site | None = None
    zeros: str = ""


@dataclass(frozen=True)
class PositionRow(Fact):
    """A sum of a tensor and one row of a table of positions, picked by the length of an axis of that tensor.

    `at`: the row; `table`: the table as written; `place`: the index.
    """

    table: str
    place: Site


@dataclass(frozen=True)
class CacheJoined(Fact):
    """Keys or values joined with those of a cache along another axis than the sequence.

    `along`: "heads" or "samples"; `axis`: its name.
    """

    along: str
    axis: str


@dataclass(frozen=True)
class Discarded(Fact):
    """A result that is thrown away by an expression statement: `scores.masked_fill(mask, -1e9)`.

    `operation`: what was called. `target`: what it was called on, as text, where that can be assigned to, else "".
    `used_after`: that is read later on, without the operation. `harmless`: the weights were masked before their
    softmax. `masks`: the operation puts a mask on. `positions`: it adds position encodings.
    """

    operation: str
    target: str
    receiver: Site | None = None
    used_after: bool = False
    harmless: bool = False
    masks: bool = False
    positions: bool = False


# --- building the module -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class IndivisibleHeads(Fact):
    """Literal widths and heads that don't divide, or a width made by `/`.

    `kind`: "literals" (width and heads are numbers) or "float" (a float is used as a size). `width`, `heads`: text.
    """

    kind: str
    width: str
    heads: str
    made_at: Site | None = None


@dataclass(frozen=True)
class PlainList(Fact):
    """Layers kept in a python list, tuple or dict attribute of a module and used in its forward.

    `at`: the list; `attribute`: its name; `container`: "list", "tuple" or "dict"; `fits`: whether a ModuleList or
    ModuleDict in its place would do all that is done with it: "yes" for sure, "perhaps", or "no" because of what stands
    at `lacking`.
    """

    attribute: str
    container: str
    layers: str
    fits: str = "perhaps"
    lacking: Site | None = None


@dataclass(frozen=True)
class ParameterMoved(Fact):
    """A module keeps what `.to(...)` or its kin made of a new nn.Parameter: a copy wherever something moved.

    `at`: the move; `attribute`: what it is kept under; `parameter`: the nn.Parameter call, `data`: its first argument.
    """

    attribute: str
    parameter: Site
    data: Site | None = None


@dataclass(frozen=True)
class ParameterLeftRaw(Fact):
    """A module keeps an nn.Parameter of memory that nothing in sight writes to, by name or by any means.

    `at`: the nn.Parameter call; `attribute`: what it is kept under; `data`: `torch.empty(...)` or its kin.
    """

    attribute: str
    data: Site


@dataclass(frozen=True)
class SettingOverwritten(Fact):
    """A forward gives one of its module's settings another value, and only where `test` says so.

    `attribute`: as written, `self.dropout_p`; `value`: the new one as text; `mode`: the test is of `self.training`.
    """

    attribute: str
    value: str
    test: Site
    mode: bool = False


@dataclass(frozen=True)
class LoopCarries(Fact):
    """A loop that projects `name` into itself, with the layer of each round, and forms attention of that.

    `at`: the assignment; `rounds`: the loop's variables, as written; `used_at`: the attention.
    """

    name: str
    rounds: str
    used_at: Site


@dataclass(frozen=True)
class LayersShared(Fact):
    """An nn.ModuleList whose elements are all the one layer `layer` (`whole`), or were all given it.

    `at`: the list. `purpose`: names and docstrings around, unfiltered.
    """

    layer: str
    whole: bool
    purpose: tuple[str, ...] = ()


# --- torch's attention APIs --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Dropout(Fact):
    """A dropout. `functional`: F.dropout and its kin; `always_on`: it drops in eval mode too, whatever the module's
    mode (no training=, training=True). `rate`: the probability's text; `zero`: it is known to be 0.
    `in_module`: inside a method of an nn.Module. `on_weights`: what it drops is attention weights.
    `said_so`: a name or docstring says that it is on purpose (Monte Carlo, prenet). `switched_on`: `training=True` is
    written there. `module_name`: what the module around is called there ("self"), "" outside of its methods.
    `built_at`: where the layer was built, None for a function; one that is always on was built in the same call.
    """

    functional: bool
    always_on: bool
    rate: str
    zero: bool
    in_module: bool
    on_weights: bool
    said_so: bool = False
    on_scores: bool = False
    switched_on: bool = False
    module_name: str = ""
    built_at: Site | None = None


@dataclass(frozen=True)
class SdpaCalled(Fact):
    """F.scaled_dot_product_attention and kernels like it. `api`: "sdpa", "flash", "xformers", "flex".

    `dropout_always_on`: the probability comes from the module's rate and no test of `self.training` guards it;
    `dropout_site`: its place; `dropout_said_so`: it is said to stay on. `module_name`: as in `Dropout`.
    `mask_given`, `causal`: True, False, or None if not known; `mask_parameter`: the mask is a parameter handed
    straight on. `mask_hidden`: the region that the mask hides. `mask_inverted`. `scaling`: scale factors on q or k,
    though the call scales by default. `scale_given`. `head_axis`: the name of the head axis if it stands where the
    sequence belongs. `causal_site`, `mask_site`. `layout_wrong`: q, k, v are known to be in another layout than the
    API takes.
    """

    api: str
    query: Tensor | None
    key: Tensor | None
    value: Tensor | None
    mask_given: bool | None
    causal: bool | None
    mask_site: Site | None = None
    causal_site: Site | None = None
    mask_hidden: Region | None = None
    mask_inverted: bool = False
    """It hides what was to be attended."""
    mask_additive: bool = False
    """It is a float one, added to the scores."""
    mask_name: str = ""
    mask_made_at: Site | None = None
    mask_taken_at: Site | None = None
    """Of an inverted mask: the expression that its name took its value from, for this call alone."""
    scale_given: bool = False
    scaling: Scaling | None = None
    dropout_always_on: bool = False
    dropout_site: Site | None = None
    dropout_rate: str = ""
    dropout_said_so: bool = False
    module_name: str = ""
    mask_parameter: bool = False
    head_axis: str | None = None
    layout_wrong: bool = False
    layout: str = ""
    over: str | None = None
    over_name: str = ""
    batch_strong: bool = False
    tokens: bool = True
    """As in `Weighted`."""
    query_site: Site | None = None
    key_site: Site | None = None
    value_site: Site | None = None
    joined_at: Site | None = None
    """Where older keys were put in front of the keys of the queries' own tokens."""
    guards: tuple[str, ...] = ()
    """The tests, as text, that the call stands under and the joining of keys does not."""
    purpose: tuple[str, ...] = ()


@dataclass(frozen=True)
class MhaCalled(Fact):
    """nn.MultiheadAttention, nn.TransformerEncoder(Layer), nn.TransformerDecoder(Layer), nn.Transformer called.

    `kind`: the class. `batch_first`: True, False, None if not known. `built_at`: where the module was made
    that has this argument: of an nn.TransformerEncoder, the layer that it stacks.
    `input_layout`: "batch" or "seq": the first axis of the query as known by name, unpacking or annotation, None if
    not known; `batch_name`, `seq_name`. `masks`: each mask argument: (parameter, site, hidden region, inverted, name).
    `weights_used`: whether the second result is used; `need_weights`.
    """

    kind: str
    batch_first: bool | None
    input_layout: str | None
    built_at: Site | None = None
    batch_name: str = ""
    seq_name: str = ""
    masks: tuple[MaskArgument, ...] = ()
    need_weights: bool | None = None
    causal: bool | None = None
    query_site: Site | None = None
    layout_site: Site | None = None
    """Where the input's layout became known."""
    unbatched: bool = False
    hints_alone: tuple[tuple[str, Site], ...] = ()
    """Causal flags that are on though their mask is not given: (the mask's parameter, the flag's place)."""
    purpose: tuple[str, ...] = ()
    second_axis: Ident | None = None
    pooled_at: Site | None = None
    """Where the query's second axis is averaged, summed or cut to one place, as only a sequence is."""
    first_axis: Ident | None = None
    placed_at: Site | None = None
    """The positions that were added along one of the first two axes and not along the other."""
    placed_first: bool = False
    """They lie along the first."""


@dataclass(frozen=True)
class MaskArgument:
    """One mask handed to an attention API."""

    parameter: str
    site: Site
    hidden: Region | None
    inverted: bool
    name: str
    made_at: Site | None = None
    uses: tuple[MaskUse, ...] = ()
    additive: bool = False
    """A float mask, added to the scores."""
    taken_at: Site | None = None
    """Of an inverted mask: the expression that its name took its value from, for this call alone."""


@dataclass(frozen=True)
class AveragedWeightsIndexed(Fact):
    """Weights that nn.MultiheadAttention has averaged over the heads, indexed as if they had an axis of heads.

    `at`: the call; `used_at`: the index; `by`: the head's number, as text, "" where there is one part more than axes.
    """

    used_at: Site
    by: str = ""


@dataclass(frozen=True)
class TupleUsed(Fact):
    """The (output, weights) tuple of nn.MultiheadAttention used as a tensor. `call`: the call that returned it.

    `taken_apart`: the same pair is indexed or unpacked somewhere too.
    """

    call: Site
    how: str
    taken_apart: bool = False


# --- about the analysis ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AttentionSite(Fact):
    """A place where attention is formed, and how far it is understood.

    `understood`: axes, contraction and softmax axis are all known; `reason`: what is missing, "" if nothing is.
    """

    understood: bool
    reason: str
    api: str


@dataclass(frozen=True)
class Bound(Fact):
    """A name (or attribute) got a value: a line of `msalint shapes`."""

    name: str
    value: Value


@dataclass(frozen=True)
class Revealed(Fact):
    """`reveal_shape(x)` in a fixture: what the flow knows of x."""

    text: str


@dataclass(frozen=True)
class GaveUp(Fact):
    """A definition that outgrew the limits of the analysis, so that silence about it means nothing."""

    reason: str


__all__ = [
    "AttentionSite",
    "AveragedWeightsIndexed",
    "Axis",
    "Bound",
    "Broken",
    "Cells",
    "Discarded",
    "Dropout",
    "Fact",
    "Factor",
    "GaveUp",
    "HeadsTiled",
    "Ident",
    "IndivisibleHeads",
    "LayersShared",
    "LoopCarries",
    "MaskAdded",
    "MaskArgument",
    "MaskCleared",
    "MaskFilled",
    "MaskMisplaced",
    "MaskMultiplied",
    "MaskTiled",
    "MaskedAfterSoftmax",
    "MhaCalled",
    "MixedUp",
    "Multiplied",
    "NumbersAsMask",
    "OffDevice",
    "ParameterLeftRaw",
    "ParameterMoved",
    "PlainList",
    "PositionRow",
    "PowerPrecedence",
    "Projected",
    "Region",
    "ReliesOnDivision",
    "Revealed",
    "ScaledAfterSoftmax",
    "Scaling",
    "Scramble",
    "SdpaCalled",
    "SettingOverwritten",
    "SizesDisagree",
    "Softmaxed",
    "TruthsCalculatedWith",
    "TupleUsed",
    "Viewed",
    "Weighted",
    "WeightsKept",
    "ZeroTimesInfinity",
    "axis_name",
    "axis_size",
    "reads_backwards",
    "shape_of",
]
