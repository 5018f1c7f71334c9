"""The half that runs code: reference attention, shape checks, trace, probe; nothing else here imports torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from msalint.runtime.attention import KeyValueCache, MultiHeadSelfAttention
    from msalint.runtime.checked import ShapeError, shape_checked
    from msalint.runtime.import_hook import check_package
    from msalint.runtime.probing import probe
    from msalint.runtime.recorder import record_attention
    from msalint.runtime.shape_tracing import trace_shapes

_HOMES = {
    "KeyValueCache": "attention",
    "MultiHeadSelfAttention": "attention",
    "ShapeError": "checked",
    "check_package": "import_hook",
    "probe": "probing",
    "record_attention": "recorder",
    "shape_checked": "checked",
    "trace_shapes": "shape_tracing",
}

__all__ = [
    "KeyValueCache",
    "MultiHeadSelfAttention",
    "ShapeError",
    "check_package",
    "probe",
    "record_attention",
    "shape_checked",
    "trace_shapes",
]


# No module in here has the name of something in `__all__`: importing it would put the module in its place.
def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'msalint.runtime' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"msalint.runtime.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
