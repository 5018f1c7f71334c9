"""Every model of a torch operation says what torch does, over ranks, layouts, and sizes 0 and 1, or says nothing."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch

from msalint.ops.table import METHODS, PATHS
from tests.ops.cases import Calls
from tests.ops.oracle import compare_call, operation_of, torch_function
from tests.ops.tables import EXEMPT, METHOD_CASES, PATH_CASES, UNKNOWN_BY_DESIGN

torch.set_num_threads(1)

OTHER_PACKAGES = ("einops.", "flash_attn.", "xformers.", "math.", "numpy.", "cmath.", "builtins.")
"""Not torch's: tests of their own compare einops; the kernels need a GPU; numbers are no tensors."""


def real_function(name: str) -> object:
    """What torch has under a name of the tables, None if it has nothing."""
    return torch_function(name) if "." in name else getattr(torch.Tensor, name, None)


def calls_for(name: str) -> Calls | None:
    if name in PATH_CASES:
        return PATH_CASES[name]
    return METHOD_CASES.get(name.removeprefix("torch."))


TORCH_NAMES = sorted(name for name in (*METHODS, *PATHS) if not name.startswith(OTHER_PACKAGES))
COMPARED = [name for name in TORCH_NAMES if name not in EXEMPT and callable(real_function(name))]


def test_every_operation_is_compared_or_exempt_for_a_reason() -> None:
    nameless = [name for name in COMPARED if calls_for(name) is None]
    assert nameless == []


def test_every_name_of_the_tables_is_torchs() -> None:
    """One op is entered for functions and methods alike: torch has it as one of the two at least."""
    strangers = [
        name
        for name in TORCH_NAMES
        if name not in EXEMPT
        and not any(callable(real_function(twin)) for twin in twins(name))
        and not is_property(name)
    ]
    assert strangers == []


def twins(name: str) -> list[str]:
    last = name.rsplit(".", 1)[-1]
    return [name, last, f"torch.{last}", f"torch.nn.functional.{last}", f"torch.special.{last}"]


def is_property(name: str) -> bool:
    return hasattr(torch.Tensor, name.rsplit(".", 1)[-1])


def test_exemptions_name_operations() -> None:
    unknown = [name for name in (*EXEMPT, *UNKNOWN_BY_DESIGN) if name not in METHODS and name not in PATHS]
    assert unknown == []


@pytest.mark.parametrize("name", [name for name in COMPARED if calls_for(name) is not None])
def test_model_agrees_with_torch(name: str) -> None:
    real, calls = real_function(name), calls_for(name)
    assert callable(real) and calls is not None
    torch.manual_seed(0)
    last = name.rsplit(".", 1)[-1]
    outcomes = [compare_call(operation_of(name), last, real, call) for call in calls()]
    complaints = [line for outcome in outcomes for line in outcome.complaints]
    assert not complaints, "\n".join(["", *complaints[:12], f"{len(complaints)} in all"])
    assert any(outcome.ran for outcome in outcomes), "torch refused every call: the cases are wrong"
    if name not in UNKNOWN_BY_DESIGN:
        assert any(outcome.known for outcome in outcomes), "the model never knows the shape"
