"""Arithmetic on masks of truths: what torch refuses with a boolean one, and `~` of one that is made of integers."""

from __future__ import annotations

from msalint.diagnostic import Site
from msalint.facts import TruthsCalculatedWith
from msalint.shapes.vocabulary import says
from msalint.state import State
from msalint.values import Opaque, Tensor, Value


def subtracted(state: State, left: Value, right: Value, at: Site, sites: tuple[Site, Site], numpy: bool) -> None:
    """`left - right`: torch has no difference with a boolean tensor, on either side."""
    for value, site in ((right, sites[1]), (left, sites[0])):
        tensor = _known(state, value)
        if tensor is not None and tensor.dtype == "bool" and not numpy and _believed(state, tensor):
            one = state.as_real(left) if value is right else None
            complement = one is not None and one.constant == 1.0
            _tell(state, "subtracted", tensor, at, site, from_one=complement)
            return


def negated(state: State, value: Value, at: Site, site: Site, numpy: bool) -> None:
    """`-mask`: torch has no negative of truths."""
    tensor = _known(state, value)
    if tensor is not None and tensor.dtype == "bool" and not numpy and _believed(state, tensor):
        _tell(state, "negated", tensor, at, site)


def inverted_bits(state: State, value: Value, at: Site, site: Site) -> None:
    """`~mask` of a 0/1 mask that is kept as integers: every cell stays true."""
    tensor = _known(state, value)
    if tensor is None or tensor.dtype not in {"uint8", "int"}:
        return
    cells = tensor.traits.cells
    if cells is not None and cells.region is not None and {cells.inside, cells.outside} == {0.0, 1.0}:
        _tell(state, "bits", tensor, at, site)


def _known(state: State, value: Value) -> Tensor | None:
    """A tensor, or a parameter that was used as one or is called a mask."""
    if isinstance(value, Opaque) and value.key not in state.tensors and not says(value.name, "mask"):
        return None
    return state.as_tensor(value) if isinstance(value, (Tensor, Opaque)) else None


def _believed(state: State, tensor: Tensor) -> bool:
    """What is only said of a dtype does not hold where the code asks for it."""
    return not tensor.traits.said_bool or tensor.traits.name not in state.dtype_asked


def _tell(state: State, how: str, tensor: Tensor, at: Site, site: Site, from_one: bool = False) -> None:
    traits = tensor.traits
    state.emit(
        TruthsCalculatedWith(
            at,
            how,
            site,
            traits.name,
            tensor.dtype or "",
            from_one,
            said=traits.said_bool,
            made_at=traits.cells.at if traits.cells is not None else None,
        )
    )
