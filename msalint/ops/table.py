"""The tables of operations, and what an operation is called with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from msalint.diagnostic import Site
from msalint.shapes.axes import Layout, MemoryItem
from msalint.shapes.size import Size
from msalint.state import State
from msalint.values import NONE, Const, DType, Int, Items, Opaque, Real, ShapeValue, Tensor, Value

Operation = Callable[["Invocation"], Value | None]

PATHS: dict[str, Operation] = {}
"""Functions by their full name, as in `torch.nn.functional.softmax`."""

METHODS: dict[str, Operation] = {}
"""Methods of a tensor by name; the tensor is the first argument."""

_PLACES = {"torch": "torch.", "F": "torch.nn.functional.", "special": "torch.special.", "linalg": "torch.linalg."}


def op(names: str, *, on: str = "torch method") -> Callable[[Operation], Operation]:
    """Enter an operation under each of `names` (parted by spaces) in the tables that `on` lists.

    `on` holds "torch", "F", "special", "linalg", "method", or full names such as "einops.rearrange" (then `names` is
    empty).
    A method gets its tensor as the first argument, so one function serves `torch.softmax(x, 1)` and `x.softmax(1)`.
    A name that ends in `_` works in place: the result is the tensor, with the memory and the dtype that it has.
    """

    def enter(operation: Operation) -> Operation:
        for place in on.split():
            if "." in place:
                PATHS[place] = operation
                continue
            for name in names.split():
                entered = in_place(operation) if name.endswith("_") and not name.endswith("__") else operation
                if place == "method":
                    METHODS[name] = entered
                else:
                    PATHS[_PLACES[place] + name] = entered
        return operation

    return enter


def in_place(operation: Operation) -> Operation:
    """The operation writing into its first argument: a new value in the old memory."""

    def written(call: Invocation) -> Value | None:
        result = operation(call)
        before = call.tensor()
        if before is None or not isinstance(result, Tensor):
            return result
        return replace(result, layout=_renamed(before, result), dtype=before.dtype)

    return written


def _renamed(before: Tensor, after: Tensor) -> Layout | None:
    """The memory order of a tensor whose axes an operation in place may have given other identities."""
    old = [atom.ident for axis in before.axes for atom in axis]
    new = [atom.ident for axis in after.axes for atom in axis]
    if before.layout is None or before.lead is not after.lead or len(old) != len(new):
        return None
    if set(old) == set(new):
        return before.layout
    names: dict[MemoryItem, MemoryItem] = dict(zip(old, new))
    return before.layout.renamed(names)


_NUMPY_WORDS = (("axis", "dim"), ("keepdims", "keepdim"))


@dataclass
class Invocation:
    """One call: what it is called on and with, where it stands, and the state that it may extend.

    `at` is the call; `sites` are the arguments' places in step with `args`, `keyword_sites` those of `kwargs`.
    `name` is the name that it was called by. `call` runs a callable value (for `map` and such).
    """

    state: State
    at: Site
    name: str
    args: list[Value]
    kwargs: dict[str, Value] = field(default_factory=dict)
    sites: list[Site] = field(default_factory=list)
    keyword_sites: dict[str, Site] = field(default_factory=dict)
    call: Callable[..., Value] | None = None
    unknown_arguments: bool = False
    """A `*args` or `**kwargs` whose contents are not known was passed."""
    beside: Callable[[], str] | None = None
    """Asks for the name of an input, or of what was made of one, that is at hand where the call stands."""
    taken: Callable[[Site | None], Site | None] | None = None
    """Asks for the expression that a name, used as an argument, took its value from for this call alone."""

    def use_torch_keywords(self) -> None:
        """Give arguments in numpy's words, which torch understands too, under its own: `axis=`, `keepdims=`."""
        for numpy_word, word in _NUMPY_WORDS:
            if numpy_word in self.kwargs and word not in self.kwargs:
                self.kwargs[word] = self.kwargs.pop(numpy_word)
                if numpy_word in self.keyword_sites:
                    self.keyword_sites[word] = self.keyword_sites.pop(numpy_word)

    def get(self, position: int, keyword: str = "") -> Value | None:
        """An argument by position or keyword, None if it was not given."""
        if keyword and keyword in self.kwargs:
            return self.kwargs[keyword]
        return self.args[position] if 0 <= position < len(self.args) else None

    def site(self, position: int, keyword: str = "") -> Site | None:
        """The place of an argument."""
        if keyword and keyword in self.keyword_sites:
            return self.keyword_sites[keyword]
        return self.sites[position] if 0 <= position < len(self.sites) else None

    def tensor(self, position: int = 0, keyword: str = "") -> Tensor | None:
        """An argument as a tensor."""
        return self.state.as_tensor(self.get(position, keyword))

    def taken_at(self, site: Site | None) -> Site | None:
        """Where the value of a name that stands at `site` was taken for this use alone."""
        return self.taken(site) if self.taken is not None else None

    def receiver(self) -> Site:
        """The place of the first argument, or of the call."""
        return self.sites[0] if self.sites else self.at

    def integer(self, position: int, keyword: str = "") -> int | None:
        """An argument as a known integer."""
        return self.state.as_int(self.get(position, keyword))

    def flag(self, position: int, keyword: str, default: bool) -> bool | None:
        """A boolean argument: True, False, or None where it is not known."""
        value = self.get(position, keyword)
        return default if value is None else self.state.truth(value)

    def dtype(self, default: str | None = None) -> str | None:
        """The `dtype=` argument by name; `default` where it is not given, None where it is not known."""
        value = self.kwargs.get("dtype")
        if value is None or value == NONE:
            return default
        return value.kind if isinstance(value, DType) else None

    def integers(self, start: int, keyword: str = "") -> list[int] | None:
        """Several integers, given one by one or as one tuple or list; None where one is not known."""
        values = self.spread(start, keyword)
        if values is None:
            return None
        known = [self.state.as_int(value) for value in values]
        return None if any(k is None for k in known) else [k for k in known if k is not None]

    def spread(self, start: int, keyword: str = "") -> list[Value] | None:
        """Arguments given one by one or as one tuple, list or shape, as a list; None where they are not known."""
        if keyword and keyword in self.kwargs:
            given: list[Value] = [self.kwargs[keyword]]
        else:
            given = self.args[start:]
        if self.unknown_arguments:
            return None
        if len(given) == 1:
            only = given[0]
            if isinstance(only, Items):
                return list(only.items)
            if isinstance(only, ShapeValue):
                lead, axes = self.state.resolve_lead(only.lead, only.axes)
                return None if lead is not None else [Int(self.state.size_of(axis)) for axis in axes]
        return given

    def sizes(self, start: int, keyword: str = "") -> list[Size | None] | None:
        """A shape argument as sizes, None inside for -1; None where one is not known."""
        values = self.spread(start, keyword)
        if values is None:
            return None
        result: list[Size | None] = []
        for value in values:
            size = self.state.as_size(value)
            if size is None:
                self.state.refuse_float(value, self.at)
                return None
            result.append(None if size.constant == -1 else size)
        return result


def text_of(value: Value | None) -> str:
    """A short text of a value for messages."""
    if isinstance(value, Const):
        return str(value.value)
    if isinstance(value, (Int, Real)):
        return str(value.size) if isinstance(value, Int) else str(value)
    if isinstance(value, Opaque):
        return value.name
    return ""


def keyword_names(call: Invocation) -> dict[str, Any]:
    return dict(call.kwargs)
