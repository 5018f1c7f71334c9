"""What a program does with a plain list of layers, and whether a module list in its place would do the same.

Every place is looked at where the list is named: `self.blocks` in its class, the classes it extends and those that
extend it, `model.blocks` anywhere in the file, a local name that it has, the parameter of a helper it is handed to.
A use that is known to come out the same is YES, one that is known not to is NO, all others are PERHAPS.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from msalint.facts import PlainList
from msalint.flow.known_modules import DICT_NAMES, Answer, KnownModules, Scope
from msalint.flow.program import Program
from msalint.registered import Plain
from msalint.state import State
from msalint.syntax import nodes as n
from msalint.syntax.module import Module
from msalint.values import ClassValue, Function, Items, Library

YES, PERHAPS, NO = "yes", "perhaps", "no"
_ORDER = (YES, PERHAPS, NO)

_READING = frozenset("len enumerate zip list tuple iter sorted set frozenset any all map filter sum min max".split())
"""Builtins that do nothing with a list but go through it, or ask for its length."""

_READING_LIBRARY = frozenset(
    "itertools.chain itertools.islice itertools.cycle itertools.zip_longest itertools.product "
    "torch.nn.ModuleList".split()
)
_LIST_ONLY = frozenset("remove index count reverse sort clear copy".split())
_DICT_ONLY = frozenset("get setdefault popitem copy fromkeys".split())
_BY_NAME = frozenset("getattr setattr delattr".split())

Verdict = tuple[str, n.Node | None]
"""The answer, and the place that gave it."""


def plain_lists(program: Program, state: State) -> list[PlainList]:
    """The containers of a path whose layers stayed hidden from torch."""
    found = []
    for plain, layer in state.registry.unregistered(state.attributes):
        key = (id(plain.owner.node), plain.attribute, id(plain.at))
        if _is_held_back(program, plain):
            continue
        if key not in program.fits:
            program.fits[key] = _fit(program, plain)
        fits, lacking = program.fits[key]
        found.append(PlainList(plain.at, plain.attribute, plain.kind, layer, fits, lacking if fits == NO else None))
    return found


def _is_held_back(program: Program, plain: Plain) -> bool:
    """A list of one layer that is only ever asked for that one, `self.frozen = [encoder]` and `self.frozen[0](x)`.

    It is written to keep the layer from torch: another module trains or saves it, or nobody shall.
    """
    if not isinstance(plain.value, Items) or len(plain.value.items) != 1:
        return False
    named = [
        part for owner in program.lineage(plain.owner) for part in owner.node.walk() if _is_self(part, plain.attribute)
    ]
    up = {
        id(child): part
        for owner in program.lineage(plain.owner)
        for part in owner.node.walk()
        for child in part.children()
    }
    above = [up.get(id(part)) for part in named]
    asked = [part for part in above if isinstance(part, n.Index) and _is_first(part)]
    return bool(asked) and all(isinstance(part, n.Assign) or part in asked for part in above)


def _is_first(node: n.Index) -> bool:
    return len(node.items) == 1 and isinstance(node.items[0], n.Const) and node.items[0].value == 0


def _fit(program: Program, plain: Plain) -> Verdict:
    home = _home(program, plain)
    if home is None:
        return NO, None
    judge = _Uses(program, plain, home)
    return _worst([judge.made(), *judge.everywhere()])


@dataclass(frozen=True)
class _Home:
    """Where the list is made: the method of `owner`, the assignment, and the local name it has there, if any."""

    owner: ClassValue
    function: n.FunctionDef
    statement: n.Assign
    local: str | None


def _home(program: Program, plain: Plain) -> _Home | None:
    """None where the list is no value of an assignment, so that nothing could be put around it."""
    for owner in program.lineage(plain.owner):
        for function in owner.node.body:
            if isinstance(function, n.FunctionDef):
                for part in function.walk():
                    if isinstance(part, n.Assign):
                        targets = [target for target, value in _pairs(part) if _gives(value, plain.at)]
                        if any(_is_self(one, plain.attribute) or isinstance(one, n.Name) for one in targets):
                            local = next((one.id for one in targets if isinstance(one, n.Name)), None)
                            return _Home(owner, function, part, local)
    return None


def _gives(value: n.Expr, at: object) -> bool:
    """Whether a value is the list, or one of two of which it is one."""
    return value is at or (isinstance(value, n.IfExp) and (_gives(value.body, at) or _gives(value.orelse, at)))


def _is_self(node: n.Node, attribute: str) -> bool:
    """`self.attribute`."""
    if not isinstance(node, n.Attr) or node.name != attribute:
        return False
    return isinstance(node.value, n.Name) and node.value.id == "self"


def _pairs(statement: n.Assign) -> Iterator[tuple[n.Expr, n.Expr]]:
    """Each target with its value; `a, b = x, y` has two."""
    value = statement.value
    if value is None:
        return
    for target in statement.targets:
        items = target.items if isinstance(target, n.Sequence_) else ()
        values = value.items if isinstance(value, n.Sequence_) else ()
        if items and len(items) == len(values):
            yield from zip(items, values)
        else:
            yield target, value


def _worst(verdicts: Iterable[Verdict]) -> Verdict:
    return max(verdicts, key=lambda one: _ORDER.index(one[0]), default=(YES, None))


def _of(answer: Answer, at: n.Node) -> Verdict:
    return (YES if answer else PERHAPS if answer is None else NO), at


@dataclass
class _Tree:
    """A piece of a program in which a list is looked for, with the way up from each node."""

    module: Module
    root: n.Node
    up: dict[int, n.Node] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for node in self.root.walk():
            for child in node.children():
                self.up[id(child)] = node

    def above(self, node: n.Node) -> Iterator[n.Node]:
        while id(node) in self.up:
            node = self.up[id(node)]
            yield node

    def function(self, node: n.Node) -> n.FunctionDef | None:
        """The outermost function around a node: names of those inside it are looked for in it too."""
        return next((one for one in reversed(list(self.above(node))) if isinstance(one, n.FunctionDef)), None)

    def cls(self, node: n.Node) -> n.ClassDef | None:
        return next((one for one in self.above(node) if isinstance(one, n.ClassDef)), None)


class _Uses:
    """The uses of one list."""

    def __init__(self, program: Program, plain: Plain, home: _Home) -> None:
        self.program, self.plain, self.home = program, plain, home
        self.known = KnownModules(program)
        self.keyed = plain.kind == "dict"
        self.related = self._related()
        self.followed: set[tuple[int, str]] = set()
        self.trees = list(self._trees())

    def _related(self) -> dict[int, ClassValue]:
        """The class, those that it extends, those of the file that extend it, and what else these extend."""
        program, cls = self.program, self.plain.owner
        found = {id(one.node): one for one in program.lineage(cls)}
        for module in (program.main, cls.module):
            for name in module.names:
                value = program.value(module, name) if module.kind(name) == "class" else None
                if isinstance(value, ClassValue):
                    lineage = program.lineage(value)
                    if any(one.node is self.home.owner.node for one in lineage):
                        found |= {id(one.node): one for one in lineage}
        return found

    def _trees(self) -> Iterator[_Tree]:
        """The statements of the file, and of the files of the class's bases, that say the attribute's name."""
        modules = {id(one.module): one.module for one in self.related.values()} | {
            id(self.program.main): self.program.main
        }
        for module in modules.values():
            for stretch in module.outline.stretches:
                start, end = module.outline.slice(stretch)
                if stretch.kind != "import" and self._may_be_used(module.text[start:end], stretch.names):
                    yield from (_Tree(module, statement) for statement in module.read_stretch(stretch))

    def _may_be_used(self, text: str, names: Sequence[str]) -> bool:
        return self.plain.attribute in text or any(one.name in names for one in self.related.values())

    # --- where it is made -------------------------------------------------------------------------------------

    def made(self) -> Verdict:
        """What the list is made of, and whether a module may be assigned there."""
        at, scope = self.plain.at, Scope(self.home.owner.module, self.home.function, self.home.owner)
        assert isinstance(at, n.Expr)
        held = self.known.holds_modules(at, scope)
        if isinstance(at, n.Name):
            held = held and None  # What is added to the local list later on would not come into the module list.
        alone = YES if len(self.home.statement.targets) == 1 else PERHAPS
        return _worst([_of(held, at), self._keys(at), self._after_base_init(), (alone, at)])

    def _keys(self, at: n.Expr) -> Verdict:
        if not self.keyed:
            return YES, None
        keys = at.keys if isinstance(at, n.Dict) else (None,)
        return _worst(self._key(key) for key in keys)

    def _key(self, key: n.Expr | None) -> Verdict:
        """A name in a module dict is a string without a dot that nn.ModuleDict itself has no attribute of."""
        if not isinstance(key, n.Const):
            return PERHAPS, key
        name = key.value
        if not isinstance(name, str) or not name or "." in name or name in DICT_NAMES:
            return NO, key
        return (PERHAPS if name.startswith("_") else YES), key

    def _after_base_init(self) -> Verdict:
        """A module can't be assigned before nn.Module.__init__ ran; a list can."""
        if self.home.function.name != "__init__":
            return YES, None
        begun = assigned = None
        for place, part in enumerate(self.home.function.walk()):
            if isinstance(part, n.Call) and part.called == "__init__" and isinstance(part.func, n.Attr):
                begun = place if begun is None else begun
            elif isinstance(part, n.Assign) and any(self._is_mine(target) for target, _ in _pairs(part)):
                assigned = place if assigned is None else assigned
        if begun is None or assigned is None:
            return PERHAPS, self.home.statement
        return (YES if begun < assigned else NO), self.home.statement

    def _is_mine(self, node: n.Node) -> bool:
        return _is_self(node, self.plain.attribute)

    # --- where it is named ------------------------------------------------------------------------------------

    def everywhere(self) -> Iterator[Verdict]:
        for tree in self.trees:
            for node in tree.root.walk():
                if isinstance(node, n.Attr):
                    if node.name == self.plain.attribute and not self._of_another_class(node, tree):
                        yield self._use(node, tree)
                    elif node.name == "__dict__" and self._of_related(node, tree):
                        yield PERHAPS, node
                elif isinstance(node, n.Call) and isinstance(node.func, n.Name):
                    yield from self._by_name(node, tree)
        if self.home.local is not None:
            yield from self._named(self.home.local, self.home.function, self.home.owner.module)

    def _of_another_class(self, node: n.Attr, tree: _Tree) -> bool:
        """`self.blocks` in a class that has nothing to do with this one."""
        return self._is_mine(node) and not self._of_related(node, tree)

    def _of_related(self, node: n.Node, tree: _Tree) -> bool:
        cls = tree.cls(node)
        return cls is not None and id(cls) in self.related

    def _by_name(self, node: n.Call, tree: _Tree) -> Iterator[Verdict]:
        """`getattr(model, "blocks")`, and in these classes `getattr(self, name)` and `vars(self)`."""
        if node.called == "vars" and self._of_related(node, tree):
            yield PERHAPS, node
        if node.called not in _BY_NAME or len(node.args) < 2:
            return
        name = node.args[1].value
        if isinstance(name, n.Const):
            if name.value == self.plain.attribute:
                yield PERHAPS, node
        elif self._of_related(node, tree):
            yield PERHAPS, node

    def _named(self, name: str, function: n.FunctionDef, module: Module) -> Iterator[Verdict]:
        """The uses of a local name."""
        if (id(function), name) in self.followed:
            return
        self.followed.add((id(function), name))
        tree = next((one for one in self.trees if any(part is function for part in one.root.walk())), None)
        tree = tree or _Tree(module, function)
        for node in function.walk():
            if isinstance(node, n.Name) and node.id == name and not _is_binding(node, tree):
                yield self._use(node, tree)

    # --- one use ----------------------------------------------------------------------------------------------

    def _use(self, node: n.Expr, tree: _Tree) -> Verdict:
        above = tree.up.get(id(node))
        answer: str | Verdict = PERHAPS
        if isinstance(above, (n.For, n.For_)):
            answer = YES if node is above.iter or self._is_truth(node, tree) else PERHAPS
        elif isinstance(above, (n.Star, n.Delete, n.ExprStmt)):
            answer = YES
        elif isinstance(above, n.Arg):
            answer = self._handed(node, above, tree)
        elif isinstance(above, n.Attr):
            answer = self._method(above, tree)
        elif isinstance(above, n.Index):
            answer = self._indexed(node, above, tree)
        elif isinstance(above, n.Compare):
            answer = _compared(node, above)
        elif isinstance(above, (n.Binary, n.AugAssign)):
            answer = self._combined(node, above, tree)
        elif isinstance(above, n.IfExp) and node is not above.test:
            answer = self._use(above, tree)
        elif isinstance(above, n.Assign):
            answer = self._assigned(node, above, tree)
        elif isinstance(above, n.Sequence_):
            answer = self._assigned_among(node, above, tree)
        elif self._is_truth(node, tree):
            answer = YES
        return (answer, node) if isinstance(answer, str) else answer

    def _is_truth(self, node: n.Expr, tree: _Tree) -> bool:
        """Whether only the truth of a value counts: a module list that is empty is false, as a list is."""
        here: n.Node = node
        for above in tree.above(node):
            if isinstance(above, n.Unary):
                return above.op == "not"
            if isinstance(above, (n.If, n.While, n.Assert, n.IfExp)):
                return above.test is here
            if isinstance(above, n.For_):
                return any(here is one for one in above.conditions)
            if not isinstance(above, n.BoolOp):
                return False
            here = above
        return False

    def _handed(self, node: n.Expr, arg: n.Arg, tree: _Tree) -> str | Verdict:
        """An argument of a call."""
        call = tree.up[id(arg)]
        if arg.star:
            return YES
        if not isinstance(call, n.Call):
            return PERHAPS
        scope = self._scope(node, tree)
        name = self.known.builtin(call, scope)
        if name in _READING or (name == "reversed" and not self.keyed) or (name == "dict" and self.keyed):
            return YES
        if name == "hasattr":
            return PERHAPS
        callee = self.known.called(call, scope)
        if isinstance(callee, Library):
            return YES if callee.path in _READING_LIBRARY else PERHAPS
        if not isinstance(callee, Function):
            return PERHAPS
        return _worst(self._as_parameter(one, arg, call) for one in self._overridden(callee))

    def _overridden(self, callee: Function) -> Iterator[Function]:
        """A function, or a method with all that stand in its place in related classes."""
        yield callee
        if callee.owner is not None:
            for cls in self.related.values():
                found = self.program.member(cls, callee.node.name)
                if found is not None and isinstance(found[0], n.FunctionDef) and found[0] is not callee.node:
                    yield Function(found[0], found[1].module, None, found[1])

    def _as_parameter(self, callee: Function, arg: n.Arg, call: n.Call) -> Verdict:
        node = callee.node
        params = [param for param in node.params if param.kind == "pos"]
        if callee.owner is not None and not node.decorators:
            params = params[1:]
        if node.decorators or any(one.star for one in call.args):
            return PERHAPS, arg
        if arg.keyword is not None:
            name = next((param.name for param in node.params if param.name == arg.keyword), None)
        else:
            place = next(i for i, one in enumerate(call.args) if one is arg)
            name = params[place].name if place < len(params) else None
        if name is None:
            return PERHAPS, arg
        return _worst(self._named(name, node, callee.module))

    def _method(self, attr: n.Attr, tree: _Tree) -> str | Verdict:
        call = tree.up.get(id(attr))
        if not isinstance(call, n.Call) or call.func is not attr or any(arg.star for arg in call.args):
            return PERHAPS
        dropped = isinstance(tree.up.get(id(call)), n.ExprStmt)
        given, scope = [arg.value for arg in call.args], self._scope(attr, tree)
        if self.keyed:
            return _dict_method(attr.name, given)
        if attr.name in _LIST_ONLY or (attr.name == "pop" and not given):
            return NO
        if attr.name == "append" and len(given) == 1 and dropped:
            return _of(self.known.is_module(given[0], scope), given[0])
        if attr.name == "extend" and len(given) == 1 and dropped:
            return _of(self.known.holds_modules(given[0], scope), given[0])
        if attr.name == "insert" and len(given) == 2:
            held = _of(self.known.is_module(given[1], scope), given[1])
            # A module list puts what comes before its last place, or behind its end, elsewhere than a list does.
            return _worst([held, (YES if _is_zero(given[0]) else PERHAPS, attr)])
        return PERHAPS

    def _indexed(self, node: n.Expr, index: n.Index, tree: _Tree) -> str | Verdict:
        if node is not index.value:
            return PERHAPS
        above = tree.up.get(id(index))
        written = isinstance(above, n.Assign) and any(index is target for target in above.targets)
        if any(isinstance(item, n.Slice) for item in index.items):
            if isinstance(above, n.Delete):
                return YES
            return (
                NO if written or (isinstance(above, n.AugAssign) and above.target is index) else self._use(index, tree)
            )
        if isinstance(above, n.Assign) and written and above.value is not None:
            held = _of(self.known.is_module(above.value, self._scope(node, tree)), above)
            return _worst([held, self._key(index.items[0])]) if self.keyed else held
        return YES if len(index.items) == 1 else PERHAPS

    def _combined(self, node: n.Expr, above: n.Binary | n.AugAssign, tree: _Tree) -> str | Verdict:
        """`blocks + more`, `more + blocks`, `blocks += more`, `more += blocks`."""
        if isinstance(above, n.Binary):
            return PERHAPS if above.op == "+" and node is above.left and not self.keyed else NO
        if node is above.value:
            return YES if above.op == "+" and not self.keyed else PERHAPS
        if above.op != "+" or self.keyed:
            return NO
        return _of(self.known.holds_modules(above.value, self._scope(node, tree)), above)

    def _assigned(self, node: n.Expr, above: n.Assign, tree: _Tree) -> str | Verdict:
        if node is not above.value:
            return self._rebound(node, above.value)
        verdicts: list[Verdict] = []
        for target in above.targets:
            if isinstance(target, n.Name):
                function = tree.function(node)
                verdicts += [(PERHAPS, node)] if function is None else self._named(target.id, function, tree.module)
            elif not isinstance(target, n.Sequence_):
                verdicts.append((YES if self._is_mine(target) and len(above.targets) == 1 else PERHAPS, node))
        return _worst(verdicts)

    def _assigned_among(self, node: n.Expr, among: n.Sequence_, tree: _Tree) -> str | Verdict:
        """`self.queries, self.keys = [], []`; in any other display the list is an item of something else."""
        above = tree.up.get(id(among))
        if not isinstance(above, n.Assign) or not any(among is target for target in above.targets):
            return PERHAPS
        return self._rebound(node, next((value for target, value in _pairs(above) if target is node), None))

    def _rebound(self, node: n.Expr, value: n.Expr | None) -> str:
        """An assignment to the attribute: the one that makes it, or None; torch takes no other list in its place."""
        made_here = value is self.plain.at or (
            isinstance(value, n.Name) and value.id == self.home.local and self._is_mine(node)
        )
        nothing = isinstance(value, n.Const) and value.value is None
        return YES if made_here or nothing or value is None else PERHAPS

    def _scope(self, node: n.Node, tree: _Tree) -> Scope:
        cls = tree.cls(node)
        value = self.related.get(id(cls)) if cls is not None else None
        return Scope(tree.module, tree.function(node), value)


def _is_binding(node: n.Name, tree: _Tree) -> bool:
    """Whether a name stands on the left of an assignment, where it gets another value."""
    here: n.Node = node
    for above in tree.above(node):
        if not isinstance(above, (n.Sequence_, n.Star)):
            return isinstance(above, n.Assign) and any(here is target for target in above.targets)
        here = above
    return False


def _dict_method(name: str, given: Sequence[n.Expr]) -> str:
    if name in _DICT_ONLY or (name == "pop" and len(given) != 1):
        return NO
    return YES if name in {"keys", "values", "items", "clear", "pop"} else PERHAPS


def _compared(node: n.Expr, above: n.Compare) -> str:
    """`block in blocks` and `blocks is None` come out the same, `blocks == others` does not."""
    operands = [above.left, *above.rights]
    answers = []
    for op, left, right in zip(above.ops, operands, operands[1:]):
        if node is not left and node is not right:
            continue
        other = right if node is left else left
        if op in {"in", "not in"}:
            answers.append(YES if node is right else PERHAPS)
        elif op in {"is", "is not"}:
            answers.append(YES if isinstance(other, n.Const) and other.value is None else PERHAPS)
        else:
            answers.append(NO)
    return max(answers, key=_ORDER.index)


def _is_zero(node: n.Expr) -> bool:
    return isinstance(node, n.Const) and node.value == 0 and node.value is not False
