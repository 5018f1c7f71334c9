"""Runs definitions on abstract values, one path at a time, the way a reader follows the code.

There is no control-flow graph and no join: a condition that is not known is decided, its answer remembered under a
key that later tests of the same thing share, and the other answer gets a run of its own (`paths.py`).

    if mask is not None:            decides none:mask, once
        scores = scores + mask
    ...
    if mask is not None:            the same answer
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from msalint.diagnostic import Site
from msalint.facts import (
    Bound,
    Discarded,
    IndivisibleHeads,
    PositionRow,
    PowerPrecedence,
    ReliesOnDivision,
    Revealed,
    SettingOverwritten,
    TupleUsed,
    WeightsKept,
    shape_of,
)
from msalint.flow import discarded, kept, overwritten, positions, tests, texts
from msalint.flow.calls import Calls
from msalint.flow.carried import carried_inputs
from msalint.flow.frame import Frame, GivenUp, Left
from msalint.flow.head_index import tell_averaged
from msalint.flow.program import Program, decorator_names
from msalint.flow.targets import Targets, annotation_hint
from msalint.ops import indexing, scalars, truths
from msalint.ops.attending import is_attention
from msalint.ops.devices import tell_left_behind
from msalint.ops.elementwise import binary, compare, inverted, logic, negated_tensor
from msalint.ops.indexing import Range
from msalint.ops.table import METHODS, text_of
from msalint.state import State
from msalint.syntax import nodes as n
from msalint.syntax.module import Module
from msalint.values import (
    FALSE,
    NONE,
    TRUE,
    UNKNOWN,
    AttentionTuple,
    ClassValue,
    Condition,
    Const,
    Function,
    Instance,
    Int,
    Items,
    Layer,
    Library,
    Many,
    Mapping_,
    Mod,
    Opaque,
    Product,
    Rank,
    Real,
    ShapeValue,
    Tensor,
    Value,
    replace,
)

MAX_STEPS = 16_000
"""Expressions and statements evaluated on one path."""


class Interpreter(Calls, Targets):
    """One path through the program. `state` is what is known; `frames` are the calls under way, outermost first."""

    def __init__(self, program: Program, state: State, trace: bool = False) -> None:
        self.program = program
        self.state = state
        self.trace = trace
        self.frames: list[Frame] = []
        self.globals: dict[tuple[int, str], Value] = {}
        self.steps = 0
        self.reached: set[int] = set()
        self.passed: set[int] = set()
        """The expressions that this path evaluated, names and literals left out."""
        self.objects: dict[str, ClassValue] = {}
        self.building: list[n.Node] = []
        self.outgrown = False
        self.limit = MAX_STEPS
        self.instances = 0

    def resumed(self, given: dict[str, bool]) -> Interpreter:
        """A path of its own from here on, with other answers to come."""
        state = self.state.copied()
        state.decisions.given = dict(given)
        other = Interpreter(self.program, state, self.trace)
        other.globals, other.objects = dict(self.globals), dict(self.objects)
        other.reached, other.passed = set(self.reached), set(self.passed)
        other.frames = [replace(frame, variables=dict(frame.variables)) for frame in self.frames]
        other.instances = self.instances
        return other

    @property
    def frame(self) -> Frame:
        return self.frames[-1]

    # --- expressions ------------------------------------------------------------------------------------------

    def eval(self, node: n.Expr) -> Value:
        """The value of an expression; unknown where nothing is known."""
        self.steps += 1
        if self.steps > self.limit:
            raise GivenUp
        if node.fields:
            self.passed.add(id(node))
        return _EVALUATORS[type(node)](self, node)

    def _name(self, node: n.Name) -> Value:
        frame = self.frames[-1]
        value = frame.find(node.id)
        if value is None:
            value = self.global_value(frame.module, node.id)
        return self.refined(value) if type(value) is Opaque else value

    def refined(self, value: Value) -> Value:
        """The value, or None where this path decided that it is None."""
        if isinstance(value, Opaque) and value.key and self.state.decisions.known(f"none:{value.key}") is True:
            return NONE
        return value

    def _const(self, node: n.Const) -> Value:
        return scalars.number(node.value)

    def _attr(self, node: n.Attr) -> Value:
        return self.refined(self.attribute(self.eval(node.value), node.name, node))

    def _index(self, node: n.Index) -> Value:
        value = self.eval(node.value)
        items = [self.index_item(item) for item in node.items]
        if isinstance(value, Tensor) and value.traits.averaged is not None:
            tell_averaged(self.state, value, value.traits.averaged, node, self.frame.node)
        return self.indexed(value, items, node)

    def index_item(self, node: n.Expr) -> indexing.Item:
        if isinstance(node, n.Slice):
            parts = [None if part is None else self.eval(part) for part in (node.lower, node.upper, node.step)]
            return Range(*(None if part == NONE else part for part in parts))
        return self.eval(node)

    def indexed(self, value: Value, items: list[indexing.Item], node: n.Expr) -> Value:
        if isinstance(value, AttentionTuple):
            self.state.taken_apart.add(id(value.at))
            index = self.state.as_int(items[0]) if len(items) == 1 and not isinstance(items[0], Range) else None
            return {0: value.output, 1: value.weights, -1: value.weights, -2: value.output}.get(index or 0, UNKNOWN)
        if isinstance(value, Mapping_) and len(items) == 1:
            key = items[0]
            found = value.get(key.value) if isinstance(key, Const) and isinstance(key.value, str) else value.other
            return found or UNKNOWN
        if isinstance(value, (Items, Many, ShapeValue)):
            return indexing.of_sequence(self.state, value, items) or UNKNOWN
        if isinstance(value, Const) and isinstance(value.value, str):
            taken = indexing.of_sequence(self.state, texts.letters_of(value), items) or UNKNOWN
            return texts.method(self.state, "", "join", [taken]) if isinstance(taken, Items) else taken
        if isinstance(value, Instance):
            return self.item_of_object(value, items, node)
        if isinstance(value, Layer) and value.kind == "Sequential":
            if any(isinstance(child, Many) for child in value.children):
                return value.children[0].element if isinstance(value.children[0], Many) else UNKNOWN
            return indexing.of_sequence(self.state, Items(value.children), items) or UNKNOWN
        if isinstance(value, Opaque):
            return self._opaque_item(value, items)
        tensor = self.state.as_tensor(value)
        return self._read(tensor, items, node) if tensor is not None else UNKNOWN

    def _read(self, tensor: Tensor, items: list[indexing.Item], node: n.Node) -> Value:
        """`tensor[items]`; `tensor[:, 0]` keeps one place of its second axis."""
        second = items[1] if len(items) > 1 and indexing.is_full(items[0]) else None
        if second is not None and not isinstance(second, Range) and self.state.as_int(second) in {0, -1}:
            self.state.pool(tensor, 1, node)
        return indexing.read(self.state, tensor, items)

    def _opaque_item(self, value: Opaque, items: list[indexing.Item]) -> Value:
        """An index into a value known by name: a tensor's if it looks so, else an element by name."""
        only = items[0] if len(items) == 1 else None
        if isinstance(only, Const) and isinstance(only.value, str):
            return value.member(only.value) if value.key else UNKNOWN
        plain = isinstance(only, (Int, Opaque)) and value.hint != "tensor"
        if value.key and value.key in self.state.tensors:
            plain = False
        if plain and isinstance(only, Int):
            return Opaque(f"{value.key}[{only.size}]" if value.key else "", value.name, source=value.source)
        if plain:
            return UNKNOWN
        tensor = self.state.as_tensor(value)
        return indexing.read(self.state, tensor, items) if tensor is not None else UNKNOWN

    def _binary(self, node: n.Binary) -> Value:
        self._tell_precedence(node)
        left, right = self.eval(node.left), self.eval(node.right)
        return self.combine(node.op, left, right, node, node.left, node.right)

    def combine(self, sign: str, left: Value, right: Value, at: n.Node, a: n.Node, b: n.Node) -> Value:
        """`left sign right` for any two values."""
        for operand, side in ((left, a), (right, b)):
            if isinstance(operand, AttentionTuple) and sign in {"+", "-", "*", "/", "@"}:
                self.state.emit(TupleUsed(side, operand.at, sign))
        left, right = self._untupled(left), self._untupled(right)
        if sign == "+":
            self._tell_row(b, right, left)
            self._tell_row(a, left, right)
            self._note_positions(b, right, left)
            self._note_positions(a, left, right)
        if sign == "-":
            truths.subtracted(self.state, left, right, at, (a, b), self.mixes_numpy())
        if sign == "@":
            return self.matmul(left, right, at, a, b)
        if sign in {"&", "|", "^"}:
            return logic(self.state, sign, left, right, at) or UNKNOWN
        if isinstance(left, Const) and isinstance(left.value, str):
            return texts.combined(self.state, sign, left.value, right)
        if sign == "+" and isinstance(left, (Items, ShapeValue)) and isinstance(right, (Items, ShapeValue)):
            return self.concatenated(left, right)
        if sign == "*" and isinstance(left, Items):
            times = self.state.as_int(right)
            self.note_repeated(left, a, at)
            if times is not None and 0 <= times <= 64:
                return Items(left.items * times, left.kind, at)
            if len(left.items) == 1:
                return Many(left.items[0], self.state.as_size(right), left.kind, at, same=True)
            return Many(left.items[0], self.state.as_size(right), left.kind) if left.items else UNKNOWN
        value = binary(self.state, sign, left, right, at, a, b)
        if sign in {"//", "/"} and not isinstance(left, (Tensor, Real)) and not isinstance(right, Real):
            self.remember_division(left, right, at)
        if isinstance(value, Real) and value.division is not None:
            return replace(value, divided_at=at)
        return value if value is not None else UNKNOWN

    def mixes_numpy(self) -> bool:
        """Whether what looks like a tensor here may be an array of numpy, which has other rules for truths."""
        return not self.state.in_module and "numpy" in self.frame.module.imports.values()

    def _untupled(self, value: Value) -> Value:
        return value.output if isinstance(value, AttentionTuple) else value

    def remember_division(self, left: Value, right: Value, at: n.Node) -> None:
        """Where a division stands: a missing check is reported there."""
        numerator, denominator = self.state.as_size(left), self.state.as_size(right)
        if numerator is not None and denominator is not None:
            self.state.division_sites.setdefault((numerator, denominator), at)
            if denominator.constant is None and numerator.exact_quotient(denominator) is not None:
                # `heads * d_k // heads` on this path: it divides by construction.
                self.state.emit(ReliesOnDivision(at, str(numerator), str(denominator), at, proved=True))

    def concatenated(self, left: Items | ShapeValue, right: Items | ShapeValue) -> Value:
        """`x.shape[:-1] + (heads, d)` and tuples of values."""
        parts = [part for side in (left, right) for part in (side.items if isinstance(side, Items) else (side,))]
        return Items(tuple(parts), left.kind if isinstance(left, Items) else "tuple")

    def _tell_precedence(self, node: n.Binary) -> None:
        """`d ** 1 / 2` and `x / d ** 1 / 2`: the power binds first."""
        divisor = node.right
        if node.op != "/" or not isinstance(divisor, n.Const) or divisor.value not in (2, 3, 4):
            return
        outer = node.left if isinstance(node.left, n.Binary) and node.left.op in {"*", "/"} else None
        power = outer.right if outer is not None else node.left
        if not isinstance(power, n.Binary) or power.op != "**" or node.left.text.endswith(")"):
            return
        exponent, sign = power.right, ""
        if isinstance(exponent, n.Unary) and exponent.op == "-":
            exponent, sign = exponent.operand, "-"
        if not isinstance(exponent, n.Const) or exponent.value != 1:
            return
        base = power.left.text
        before = f"{outer.left.text} {outer.op} " if outer is not None else ""
        mended = f"{before}{base} ** ({sign}{exponent.text} / {divisor.text})"
        if not node.text.endswith(divisor.text):
            mended = f"({mended})"
        above = (sign == "") != (outer is not None and outer.op == "/")
        top = outer.left.text if outer is not None and outer.left.text.isidentifier() else "..." if outer else ""
        if above:
            value = f"{top} * {base} / {divisor.value}" if top else f"{base} / {divisor.value}"
        else:
            value = f"{top or 1} / ({divisor.value} * {base})"
        self.state.emit(PowerPrecedence(node, base, value, mended))

    def _unary(self, node: n.Unary) -> Value:
        if node.op == "not":
            truth = self.state.truth(value := self.eval(node.operand))
            if truth is not None:
                return FALSE if truth else TRUE
            if isinstance(value, Condition):
                return value.inverted()
            return Condition(tests.key_of(value, node.operand), negated=True)
        value = self.eval(node.operand)
        if node.op == "-":
            tensor = value if isinstance(value, Tensor) else None
            truths.negated(self.state, value, node, node.operand, self.mixes_numpy())
            return negated_tensor(tensor) if tensor is not None else scalars.negated(value) or self._minus(value)
        if node.op == "~":
            tensor = self.state.as_tensor(value)
            truths.inverted_bits(self.state, value, node, node.operand)
            return inverted(tensor) if tensor is not None else UNKNOWN
        return value

    def _minus(self, value: Value) -> Value:
        real = self.state.as_real(value)
        return Real(-1.0) * real if real is not None and isinstance(value, Opaque) and value.key else UNKNOWN

    def _compare(self, node: n.Compare) -> Value:
        left, right = self.eval(node.left), self.eval(node.rights[0])
        if len(node.ops) > 1:
            for more in node.rights[1:]:
                self.eval(more)
            return Condition(f"node:{id(node)}")
        sign = node.ops[0]
        if isinstance(left, Library) and right == NONE and self._may_be_missing(node.left):
            return Condition(f"missing:{node.left.text}", negated=sign in {"is not", "!="})
        if sign in {"==", "!=", "<", "<=", ">", ">="}:
            a, b = self._as_compared(left, right), self._as_compared(right, left)
            tensor = compare(self.state, sign, a, b, node)
            if tensor is not None:
                return tensor
        return tests.comparison(self.state, sign, left, right, node)

    def _may_be_missing(self, written: n.Expr) -> bool:
        """`try: from package import name`, with `name = None` where the package is not installed."""
        if not isinstance(written, n.Name):
            return False
        others = self.frame.module.alternatives(written.id)
        return any(isinstance(one.value, n.Const) and one.value.value is None for one in others)

    def _as_compared(self, value: Value, other: Value) -> Value:
        """A value known by name that is compared like a tensor (`ids != pad_id`, `mask == 0`) is one."""
        if isinstance(value, Opaque) and value.key:
            shaped = value.key in self.state.tensors and self.state.resolve(self.state.tensors[value.key]).rank
            if shaped or tests.compared_as_tensor(value, other):
                return self.state.as_tensor(value) or value
        return value

    def _bool_op(self, node: n.BoolOp) -> Value:
        left = self.eval(node.left)
        truth = self.state.truth(left)
        if truth is None:
            truth = self.decide(left, node.left, default=True)
        if truth == (node.op == "or"):
            return left
        return self.eval(node.right)

    def _if_exp(self, node: n.IfExp) -> Value:
        taken = self.test(node.test, stake=node)
        depth = len(self.state.guards)
        self.state.guards.append(node.test)
        value = self.eval(node.body if taken else node.orelse)
        del self.state.guards[depth:]
        return value

    def _sequence(self, node: n.Sequence_) -> Value:
        items: list[Value] = []
        for item in node.items:
            value = self.eval(item.value if isinstance(item, n.Star) else item)
            if not isinstance(item, n.Star):
                items.append(value)
            elif isinstance(value, Items):
                items += value.items
            elif isinstance(value, ShapeValue):
                items.append(value)
            else:
                return Many(UNKNOWN, kind=node.kind)
        return Items(tuple(items), node.kind, node)

    def _star(self, node: n.Star) -> Value:
        return self.eval(node.value)

    def _dict(self, node: n.Dict) -> Value:
        entries: list[tuple[str, Value]] = []
        open_ = False
        for key, item in zip(node.keys, node.values):
            value = self.eval(item)
            if key is None:
                if isinstance(value, Mapping_):
                    entries += value.entries
                open_ = open_ or not isinstance(value, Mapping_) or value.open
                continue
            name = self.eval(key)
            if isinstance(name, Const) and isinstance(name.value, str):
                entries.append((name.value, value))
            else:
                open_ = True
        return Mapping_(tuple(entries), open_, node)

    def _lambda(self, node: n.Expr) -> Value:
        self.frame.closed_over = True
        return Function(node, self.frame.module, self.frame)

    def _comprehension(self, node: n.Comprehension) -> Value:
        return self.comprehended(node, 0)

    def _walrus(self, node: n.Walrus) -> Value:
        value = self.eval(node.value)
        self.bind(node.target, value, node.value)
        return value

    def _fstring(self, node: n.Expr) -> Value:
        assert isinstance(node, n.FString)
        return texts.folded(self.state, node, [self.eval(part) for part in node.parts])

    def _opaque(self, node: n.Expr) -> Value:
        for part in node.children():
            if isinstance(part, n.Expr):
                self.eval(part)
        return UNKNOWN

    # --- conditions -------------------------------------------------------------------------------------------

    def test(self, node: n.Expr, prefer: bool = True, both: bool = True, stake: n.Node | None = None) -> bool:
        """The answer to a condition on this path.

        `prefer` is the one taken first, `both` whether the other counts, `stake` what the answer decides.
        """
        if isinstance(node, n.Unary) and node.op == "not":
            return not self.test(node.operand, not prefer, both, stake)
        if isinstance(node, n.BoolOp):
            first = self.test(node.left, prefer, both, stake)
            if first == (node.op == "or"):
                return first
            return self.test(node.right, prefer, both, stake)
        value = self.eval(node)
        truth = self.state.truth(value)
        if truth is None:
            return self.decide(value, node, prefer, both, stake)
        self.state.decisions.occurs(tests.key_of(value, node), stake or node)
        return truth

    def decide(self, value: Value, node: n.Expr, default: bool, both: bool = True, stake: n.Node | None = None) -> bool:
        """Decide an open condition, remember the answer, and learn what it teaches."""
        key = tests.key_of(value, node)
        negated = isinstance(value, Condition) and value.negated
        first = default != negated
        if both and key.startswith("none:"):
            # A mask is given as a rule, a setting of `__init__` left out.
            first = ".__init__." in key
        if both and key in self.state.presets:
            first = self.state.presets[key]
        if both and key.startswith("eq:"):
            first = first and not key.endswith(":None") and not tests.is_special_size(value)
        decisions = self.state.decisions
        answer = decisions.answer(key, first, both) != negated
        decisions.occurs(key, stake or node)
        self.state.learn(value, answer)
        return answer

    # --- statements -------------------------------------------------------------------------------------------

    def run(self, body: Sequence[n.Stmt]) -> Left | None:
        """Run statements in order; how they were left, None if to the end."""
        for statement in body:
            self.steps += 1
            left = _EXECUTORS[type(statement)](self, statement)
            if left is not None:
                return left
        return None

    def _nothing(self, node: n.Stmt) -> Left | None:
        return None

    def _assign(self, node: n.Assign) -> Left | None:
        if node.value is None:
            return None
        value = self.eval(node.value)
        value = self.commented(value, node)
        if value == NONE and node.annotation is not None and isinstance(node.targets[0], n.Attr):
            # `self.cache: KVCache | None = None`: somebody sets it later.
            value = Opaque(name=node.targets[0].name, hint=annotation_hint(node.annotation))
        for target in node.targets:
            if isinstance(target, n.Attr):
                self._tell_overwritten(node, target, value)
            self.bind(target, value, node.value)
            self._tell_kept_under(target, node)
            if self.trace:
                self._tell_bound(target)
        return None

    def _tell_kept_under(self, target: n.Expr, node: n.Assign) -> None:
        """Attention weights that an assignment puts on the module."""
        if isinstance(target, n.Name):
            return
        for part in target.items if isinstance(target, n.Sequence_) else (target,):
            if not isinstance(part, n.Attr) or not isinstance(part.value, n.Name):
                continue
            holder = self.frame.find(part.value.id)
            if isinstance(holder, Instance):
                value = self.state.attributes.get((holder.key, part.name), UNKNOWN)
                self.tell_kept(part, value, part, node.value if part is target else None)

    def tell_kept(self, target: n.Attr, value: Value, at: n.Node, stored: Site | None) -> None:
        """What stays on the module behind `target` when forward ends, weights or a peak of scores, with its graph."""
        body = self.frame.node
        made = value.traits.softmax or value.traits.peak_of if isinstance(value, Tensor) else None
        if not isinstance(value, Tensor) or made is None or not isinstance(body, n.FunctionDef):
            return
        holder = self.eval(target.value) if _is_path(target.value) else UNKNOWN
        if not isinstance(holder, Instance) or not self.program.is_module(holder.cls) or not self._in_forward():
            return
        if value.traits.detached or self._graph_is_off() or kept.needs_graph(self.program, holder.cls, target.name):
            return
        used = kept.reads(body, target) > 0
        peak = isinstance(made, Product)
        if not isinstance(made, Product) or is_attention(made):
            self.state.emit(WeightsKept(at, target.text, made.at, None if used else stored, peak, weighed=peak))

    def _graph_is_off(self) -> bool:
        """`torch.no_grad()` around, or a path that only evaluation takes."""
        decorated = any(
            decorator_names(frame.node) & {"no_grad", "inference_mode"}
            for frame in self.frames
            if isinstance(frame.node, n.FunctionDef)
        )
        evaluates = any(key.endswith(".training") and not on for key, on in self.state.decisions.asked.items())
        return decorated or evaluates or self.state.without_graph > 0

    def _tell_overwritten(self, node: n.Assign, target: n.Attr, value: Value) -> None:
        """A forward that assigns one of the module's settings on some way through."""
        body = self.frame.node
        if not isinstance(body, n.FunctionDef) or not overwritten.is_fixed(value) or not self._in_forward():
            return
        holder = self.eval(target.value) if _is_path(target.value) else UNKNOWN
        stored = self.state.attributes.get((holder.key, target.name)) if isinstance(holder, Instance) else None
        if not overwritten.is_setting(target.name, stored) or stored == value:
            return
        test = overwritten.condition_of(body.body, node, target)
        if test is not None:
            self.state.emit(SettingOverwritten(node, target.text, text_of(value), test, "training" in test.words()))

    def _tell_bound(self, target: n.Expr) -> None:
        if isinstance(target, n.Sequence_):
            for item in target.items:
                self._tell_bound(item)
        elif isinstance(target, n.Name):
            value = self.frame.find(target.id)
            if value is not None and len(self.frames) > 0:
                self.state.emit(Bound(target, target.id, value))

    def _aug_assign(self, node: n.AugAssign) -> Left | None:
        old = self.eval(node.target)
        right = self.eval(node.value)
        if node.op == "+" and isinstance(old, Items) and isinstance(right, Items):
            value: Value = replace(old, items=old.items + right.items)
        else:
            value = self.combine(node.op, old, right, node, node.target, node.value)
        self.bind(node.target, value, node.value)
        return None

    def _expr_stmt(self, node: n.ExprStmt) -> Left | None:
        expression = node.value
        if isinstance(expression, n.Const):
            return None
        lost = self._lost(expression)
        value = self.eval(expression)
        if lost is not None and isinstance(value, Tensor):
            self._tell_discarded(lost[0], lost[1], lost[2], value, node)
        return None

    def _lost(self, expression: n.Expr) -> tuple[str, n.Expr, Tensor] | None:
        """What a statement does to a tensor and to which, where the result is lost; asked before it is run."""
        if not discarded.named_operation(expression):
            return None
        callee = self.eval(expression.func) if isinstance(expression, n.Call) and _is_path(expression.func) else UNKNOWN
        found = discarded.lost_operation(expression, callee)
        if found is None or not _is_path(found[1]):
            return None
        value = self.eval(found[1])
        known = isinstance(value, Tensor) or isinstance(callee, (Library, Layer))
        if isinstance(value, Opaque):
            # What a sum with a table is is a tensor, as its result will tell.
            known = known or isinstance(expression, n.Binary)
            known = known or value.hint == "tensor" or self._taken_for_tensor(value)
        tensor = self.state.as_tensor(value) if known else None
        return (*found, tensor) if tensor is not None else None

    def _taken_for_tensor(self, value: Opaque) -> bool:
        """A parameter whose axes the code has spoken of; a method of a tensor's name proves nothing."""
        tensor = self.state.as_tensor(value) if value.key in self.state.tensors else None
        return tensor is not None and value.source == "parameter" and (bool(tensor.axes) or tensor.lead is None)

    def _tell_discarded(
        self, operation: str, receiver: n.Expr, before: Tensor, after: Tensor, node: n.ExprStmt
    ) -> None:
        """A result that nobody takes."""
        target, body = discarded.assignable(receiver), self.frame.node
        self.state.emit(
            Discarded(
                node,
                operation,
                target,
                receiver,
                used_after=bool(target) and isinstance(body, n.Node) and discarded.read_after(body, node, target),
                harmless=discarded.masked_before(before),
                masks=len(after.traits.masks) > len(before.traits.masks),
                positions=self._adds_positions(node.value, target),
            )
        )

    def _adds_positions(self, expression: n.Expr, target: str) -> bool:
        table = discarded.table_in(expression, target)
        if table is None:
            return False
        value = self.eval(table) if _is_path(table) else UNKNOWN
        held = isinstance(value, Tensor) and (value.traits.buffer or value.traits.parameter)
        return positions.tells_positions(table, held, self.state.context)

    def _tell_row(self, written: n.Node, value: Value, other: Value) -> None:
        """`x + pe[:, x.size(1)]`: a row of positions in a sum, picked by the length of what it is added to."""
        place = positions.place_in(written) if isinstance(written, n.Index) and _is_path(written.value) else None
        if not isinstance(written, n.Index) or place is None or not isinstance(value, Tensor):
            return
        tensor = self.state.as_tensor(other)
        if tensor is None or not positions.length_of_its_own(self.state, self.eval(place), tensor):
            return
        if positions.tells_positions(written.value, isinstance(written.value, n.Attr), self.state.context):
            self.state.emit(PositionRow(written, written.value.text, place))

    def _note_positions(self, written: n.Node, value: Value, other: Value) -> None:
        """`x + self.pe[:n]`: which axis of x the places are counted along."""
        if not isinstance(value, Tensor) or value.lead is not None or not 2 <= len(value.axes) <= 3:
            return
        table = written.value if isinstance(written, n.Index) else written
        if not isinstance(table, n.Expr) or not positions.tells_positions(table, value.traits.buffer, ()):
            return
        tensor = self.state.as_tensor(other)
        axis = positions.axis_of_positions(self.state, value, tensor) if tensor is not None else None
        if axis is not None:
            self.state.placed.setdefault(axis[0].ident, written)
            tell_left_behind(self.state, value, written)

    def _return(self, node: n.Return) -> Left | None:
        self.frame.returned = self.eval(node.value) if node.value is not None else NONE
        return Left.RETURN

    def _if(self, node: n.If) -> Left | None:
        if _raises(node.body):
            taken = self.test(node.test, prefer=False, both=False)
        elif node.orelse and _raises(node.orelse):
            taken = self.test(node.test, prefer=True, both=False)
        else:
            taken = self.test(node.test, prefer=not _returns_early(node), stake=node)
        body, other = (node.body, node.orelse) if taken else (node.orelse, node.body)
        guards = self.state.guards
        depth = len(guards)
        guards.append(node.test)
        left = self.run(body)
        if left is None and not (other and isinstance(other[-1], n.Return)):
            del guards[depth:]
        return left

    def _while(self, node: n.While) -> Left | None:
        if self.test(node.test, both=False):
            left = self.run(node.body)
            if left in {Left.RETURN, Left.RAISE}:
                return left
        return None

    def _for(self, node: n.For) -> Left | None:
        iterable = self.eval(node.iter)
        values, length, exact = self.iterated(iterable, node.iter)
        kept: dict[tuple[str, str], Value] = {}
        if not exact:
            self._forget_counters(node)
            kept = {key: held for key, held in self.state.attributes.items() if isinstance(held, Items)}
        before, told = dict(self.frame.variables), len(self.state.facts)
        for value in values:
            self.bind(node.target, value, node.iter)
            left = self.run(node.body)
            if left in {Left.RETURN, Left.RAISE}:
                return left if exact else None
            if left is Left.BREAK:
                break
        else:
            self.run(node.orelse)
        if len(values) > 1 or not exact:
            self.state.facts += list(carried_inputs(node, self.state.facts[told:]))
        if not exact:
            self.widen(self.frame.variables, before, length)
            self.widen(self.state.attributes, kept, length)
            for (owner, name), held in kept.items():
                if self.state.attributes[(owner, name)] is not held:
                    self.state.registry.regard(owner, name, self.state.attributes[(owner, name)])
        return None

    def _forget_counters(self, node: n.For) -> None:
        """Numbers that the rounds of a loop change: one round stands for all, and finds another number each time."""
        for part in (inner for statement in node.body for inner in statement.walk()):
            targets = (
                part.targets if isinstance(part, n.Assign) else (part.target,) if isinstance(part, n.AugAssign) else ()
            )
            for whole in targets:
                for target in whole.items if isinstance(whole, n.Sequence_) else (whole,):
                    if isinstance(target, n.Name) and isinstance(self.frame.variables.get(target.id), Int):
                        self.frame.variables[target.id] = UNKNOWN
                    elif isinstance(target, n.Attr) and _is_path(target) and isinstance(self.eval(target), Int):
                        self.bind(target, UNKNOWN, node)

    def _with(self, node: n.With) -> Left | None:
        for item, target in zip(node.items, node.targets):
            value = self.eval(item)
            self.enter(item, value)
            if target is not None:
                self.bind(target, UNKNOWN, item)
        before = len(self.state.facts)
        graphless = any({"no_grad", "inference_mode"} & set(item.words().split()) for item in node.items)
        self.state.without_graph += graphless
        left = self.run(node.body)
        self.state.without_graph -= graphless
        if any("raises" in item.words().lower() or "suppress" in item.words() for item in node.items):
            # `with pytest.raises(...)`, `contextlib.suppress(...)`: what happens in here is meant to.
            del self.state.facts[before:]
        return left

    def _try(self, node: n.Try) -> Left | None:
        before = len(self.state.facts)
        left = self.run(node.body)
        if node.handlers:
            # Sizes that are turned down here are caught.
            told = [fact for fact in self.state.facts[before:] if not isinstance(fact, (IndivisibleHeads, Discarded))]
            self.state.facts[before:] = told
        if left is Left.RAISE and node.handlers:
            left = self.run(node.handlers[0].body)
        elif left is None:
            left = self.run(node.orelse)
        final = self.run(node.final)
        return final or left

    def _match(self, node: n.Match) -> Left | None:
        self.eval(node.subject)
        for case in node.cases:
            key = f"node:{id(case)}"
            if self.state.decisions.answer(key, True):
                for name in case.names:
                    self.frame.variables[name] = UNKNOWN
                return self.run(case.body)
        return None

    def _raise(self, node: n.Raise) -> Left | None:
        return Left.RAISE

    def _assert(self, node: n.Assert) -> Left | None:
        if not self.test(node.test, prefer=True, both=False):
            self._tell_refused(node.test)
        return None

    def _tell_refused(self, test: n.Expr) -> None:
        """A module's own check, `if width % heads: raise`, turns down the numbers that it is built with."""
        if not self.building:
            return
        for part in test.walk():
            if isinstance(part, n.Binary) and part.op == "%" and "head" in part.words().lower():
                width, heads = (self.state.as_int(self.eval(side)) for side in (part.left, part.right))
                if width is not None and heads and width % heads:
                    self.state.emit(IndivisibleHeads(self.building[0], "literals", str(width), str(heads)))

    def _function_def(self, node: n.FunctionDef) -> Left | None:
        self.frame.closed_over = True
        self.frame.variables[node.name] = Function(node, self.frame.module, self.frame, self.frame.owner)
        return None

    def _class_def(self, node: n.ClassDef) -> Left | None:
        self.frame.variables[node.name] = ClassValue(node, self.frame.module)
        return None

    def _import(self, node: n.Import) -> Left | None:
        for local, dotted in node.names:
            if local != "*":
                self.frame.variables[local] = self.program.dotted(dotted, self.frame.module)
        return None

    def _flow(self, node: n.Flow) -> Left | None:
        return {"break": Left.BREAK, "continue": Left.CONTINUE}.get(node.kind)

    # --- modules ----------------------------------------------------------------------------------------------

    def global_value(self, module: Module, name: str) -> Value:
        """What a name of a module stands for on this path; assignments are evaluated when first asked for."""
        found = self.program.value(module, name)
        if found is not None:
            return found
        key = (id(module), name)
        if key in self.globals:
            return self.globals[key]
        self.globals[key] = UNKNOWN
        statement = module.definition(name) if name in module.names else None
        if isinstance(statement, n.Assign):
            if _is_switch(module.alternatives(name)):
                self.globals[key] = Opaque(f"{module.filename}:{name}", name, "bool")
                return self.globals[key]
            self.frames.append(Frame(module))
            try:
                self._assign(statement)
                self.globals[key] = self.frame.variables.get(name, UNKNOWN)
            finally:
                self.frames.pop()
            return self.globals[key]
        if name not in module.names:
            self.globals[key] = tests.builtin(name)
        return self.globals[key]

    def reveal(self, call: n.Call) -> Value:
        """`reveal_shape(x)`: what is known of x, told to the fixtures that test the flow."""
        value = self.eval(call.args[0].value)
        tensor = self.state.as_tensor(value)
        self.state.emit(Revealed(call, shape_of(tensor) if tensor is not None else "unknown"))
        return value


# Tables of plain functions: methods bound to a path would tie it into a knot that only the garbage collector undoes.
_EVALUATORS: dict[type, Callable[[Interpreter, Any], Value]] = {
    n.Name: Interpreter._name,
    n.Const: Interpreter._const,
    n.Attr: Interpreter._attr,
    n.Call: Interpreter.call_node,
    n.Index: Interpreter._index,
    n.Binary: Interpreter._binary,
    n.Unary: Interpreter._unary,
    n.Compare: Interpreter._compare,
    n.BoolOp: Interpreter._bool_op,
    n.IfExp: Interpreter._if_exp,
    n.Sequence_: Interpreter._sequence,
    n.Dict: Interpreter._dict,
    n.Lambda: Interpreter._lambda,
    n.Comprehension: Interpreter._comprehension,
    n.Walrus: Interpreter._walrus,
    n.FString: Interpreter._fstring,
    n.Opaque: Interpreter._opaque,
    n.Star: Interpreter._star,
    n.Slice: Interpreter._opaque,
}
_EXECUTORS: dict[type, Callable[[Interpreter, Any], Left | None]] = {
    n.Assign: Interpreter._assign,
    n.AugAssign: Interpreter._aug_assign,
    n.ExprStmt: Interpreter._expr_stmt,
    n.Return: Interpreter._return,
    n.If: Interpreter._if,
    n.For: Interpreter._for,
    n.While: Interpreter._while,
    n.With: Interpreter._with,
    n.Try: Interpreter._try,
    n.Match: Interpreter._match,
    n.Raise: Interpreter._raise,
    n.Assert: Interpreter._assert,
    n.FunctionDef: Interpreter._function_def,
    n.ClassDef: Interpreter._class_def,
    n.Import: Interpreter._import,
    n.Flow: Interpreter._flow,
    n.Delete: Interpreter._nothing,
}


def _assigned(body: Iterable[n.Stmt]) -> Iterator[n.Expr]:
    """What statements assign to, also those inside them."""
    for part in (inner for statement in body for inner in statement.walk()):
        if isinstance(part, n.Assign):
            for whole in part.targets:
                yield from whole.items if isinstance(whole, n.Sequence_) else (whole,)
        elif isinstance(part, n.AugAssign):
            yield part.target


def _is_switch(assignments: Sequence[n.Assign]) -> bool:
    """`HAS_KERNEL = True` where an import works, `= False` where it doesn't: either may be."""
    written = [one.value.value for one in assignments if isinstance(one.value, n.Const)]
    return any(value is True for value in written) and any(value is False for value in written)


def _is_path(node: n.Expr) -> bool:
    """A name or an attribute of one, so that asking for its value runs nothing."""
    return isinstance(node, n.Name) or (isinstance(node, n.Attr) and _is_path(node.value))


def _raises(body: Sequence[n.Stmt]) -> bool:
    return bool(body) and isinstance(body[-1], n.Raise)


def _returns_early(node: n.If) -> bool:
    """An `if` that only leaves: the code behind it is the main path."""
    return not node.orelse and bool(node.body) and isinstance(node.body[-1], n.Return)


def method_names() -> frozenset[str]:
    return frozenset(METHODS)


def rank_text(value: Value) -> str:
    return "rank" if isinstance(value, (Rank, Mod)) else ""


def named(value: Value, name: str) -> Value:
    return replace(value, name=name) if isinstance(value, Opaque) and not value.name else value
