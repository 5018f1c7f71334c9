"""Arithmetic of plain numbers: sizes, scales and what math and numpy make of them."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from msalint.ops.table import Invocation, op
from msalint.shapes.size import Size
from msalint.state import State
from msalint.values import Const, DType, Int, Items, Library, Mod, Opaque, Real, ShapeValue, Tensor, Value, replace


def integer(number: int) -> Int:
    return Int(Size.of(number))


@lru_cache(maxsize=4096, typed=True)
def number(value: object) -> Value:
    """The value of a literal."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return Const(value)
    if isinstance(value, int):
        return integer(value)
    return Real(value)


def arithmetic(state: State, operator: str, left: Value, right: Value) -> Value | None:
    """`left operator right` of two numbers; None if they are no numbers, or nothing is known of the result."""
    if isinstance(left, Const) and isinstance(right, Const) and operator == "+":
        if isinstance(left.value, str) and isinstance(right.value, str):
            return Const(left.value + right.value)
        return None
    a, b = state.as_size(left), state.as_size(right)
    if a is not None and b is not None and not isinstance(left, Real) and not isinstance(right, Real):
        whole = _of_integers(operator, a, b)
        if whole is not None:
            return whole
    x, y = state.as_real(left), state.as_real(right)
    if x is None or y is None:
        return None
    value = _of_reals(operator, x, y)
    if operator == "/" and isinstance(value, Real) and a is not None and b is not None:
        return replace(value, division=(a, b))
    return value


def _of_integers(operator: str, a: Size, b: Size) -> Value | None:
    if operator == "+":
        return Int(a + b)
    if operator == "-":
        return Int(a - b)
    if operator == "*":
        return Int(a * b)
    if operator == "//" and b.constant != 0:
        return Int(a // b)
    if operator == "%" and b.constant != 0:
        if a.constant is not None and b.constant is not None:
            return integer(a.constant % b.constant)
        return Mod(a, b)
    if operator == "**" and b.constant is not None and 0 <= b.constant <= 4:
        power = Size.of(1)
        for _ in range(b.constant):
            power = power * a
        return Int(power)
    return None


def _of_reals(operator: str, x: Real, y: Real) -> Value | None:
    if operator == "*":
        return x * y
    if operator == "/":
        return None if y.constant == 0 else x * y.inverse()
    if operator == "**":
        exponent = y.constant
        if exponent is None or not math.isfinite(exponent):
            return Real(None, name=y.name)
        return x.power(Fraction(exponent).limit_denominator(64))
    a, b = x.constant, y.constant
    if a is None or b is None:
        return Real(None)
    try:
        return Real({"+": a + b, "-": a - b, "//": a // b if b else math.nan, "%": a % b if b else math.nan}[operator])
    except KeyError:
        return None


def negated(value: Value) -> Value | None:
    if isinstance(value, Int):
        return Int(-value.size)
    if isinstance(value, Real):
        return Real(-1.0) * value
    return None


def _unary(call: Invocation, exponent: Fraction) -> Value | None:
    value = call.get(0)
    if isinstance(value, Tensor) and value.traits.number is None:
        return None
    real = call.state.as_real(value)
    if real is None:
        return None
    powered = real.power(exponent)
    if isinstance(value, Tensor):
        return value.with_traits(number=powered)
    return powered


@op("", on="math.sqrt numpy.sqrt cmath.sqrt math.isqrt")
def sqrt(call: Invocation) -> Value | None:
    return _unary(call, Fraction(1, 2))


@op("", on="math.pow numpy.power builtins.pow numpy.float_power")
def power(call: Invocation) -> Value | None:
    if len(call.args) < 2:
        return None
    return arithmetic(call.state, "**", call.args[0], call.args[1])


@op("", on="builtins.float numpy.float32 numpy.float64 numpy.float16")
def to_float(call: Invocation) -> Value | None:
    value = call.get(0)
    if isinstance(value, Const) and isinstance(value.value, str):
        try:
            return Real(float(value.value))
        except ValueError:
            return None
    if isinstance(value, Tensor):
        return value.traits.number or Real(None)
    return call.state.as_real(value)


@op("", on="builtins.int math.floor math.trunc numpy.int64 builtins.round math.ceil")
def to_int(call: Invocation) -> Value | None:
    value = call.get(0)
    if isinstance(value, (Int, Opaque)):
        return value
    real = call.state.as_real(value)
    if real is None:
        return None
    if real.constant is not None and math.isfinite(real.constant):
        return integer(int(real.constant))
    if real.coefficient is None or not math.isfinite(real.coefficient) or call.name == "ceil":
        return None
    top, bottom = Size.of(1), Size.of(1)
    for size, exponent in real.powers:
        if exponent.denominator != 1:
            return None
        for _ in range(abs(exponent.numerator)):
            top, bottom = (top * size, bottom) if exponent > 0 else (top, bottom * size)
    if real.coefficient == int(real.coefficient):
        return Int(top * Size.of(int(real.coefficient)) // bottom)
    inverse = 1 / real.coefficient
    return Int(top // (bottom * Size.of(int(inverse)))) if inverse == int(inverse) else None


@op("", on="math.exp math.log math.tanh math.sin math.cos math.log2 numpy.log numpy.exp")
def other_function(call: Invocation) -> Value | None:
    return Real(None)


@op("", on="builtins.abs builtins.max builtins.min builtins.sum")
def of_several(call: Invocation) -> Value | None:
    values = [call.state.as_int(value) for value in call.args]
    if call.name in {"max", "min"} and len(values) > 1 and all(v is not None for v in values):
        known = [v for v in values if v is not None]
        return integer(max(known) if call.name == "max" else min(known))
    return Real(None) if call.name == "abs" else None


@op("", on="math.prod numpy.prod")
def prod(call: Invocation) -> Value | None:
    value = call.get(0)
    if not isinstance(value, (Items, ShapeValue)):
        return None
    sizes = call.sizes(0)
    if sizes is None or any(size is None for size in sizes):
        return None
    total = Size.of(1)
    for size in sizes:
        total = total * (size or 1)
    return Int(total)


CONSTANTS: dict[str, Value] = {
    "math.inf": Real(math.inf),
    "torch.inf": Real(math.inf),
    "numpy.inf": Real(math.inf),
    "numpy.Inf": Real(math.inf),
    "numpy.NINF": Real(-math.inf),
    "numpy.newaxis": Const(None),
    "math.nan": Real(math.nan),
    "torch.nan": Real(math.nan),
    "numpy.nan": Real(math.nan),
    "math.pi": Real(math.pi),
    "torch.pi": Real(math.pi),
    "numpy.pi": Real(math.pi),
    "math.e": Real(math.e),
    "string.ascii_lowercase": Const("abcdefghijklmnopqrstuvwxyz"),
    "string.ascii_uppercase": Const("ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
    "string.ascii_letters": Const("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"),
}
"""Names that stand for a number, None, or a text."""


def float_info(dtype: Value | None, field: str) -> Value | None:
    """`torch.finfo(dtype).min`: its number for a named dtype, else about the least float32 holds."""
    kind = dtype.kind if isinstance(dtype, DType) else None
    greatest = {"half": 65504.0, "float64": 1.7976931348623157e308}.get(kind or "", 3.4028234663852886e38)
    tiny = {"half": 6.1e-5, "float64": 2.2e-308}.get(kind or "", 1.1754944e-38)
    eps = {"half": 9.8e-4, "bfloat16": 7.8e-3, "float64": 2.2e-16}.get(kind or "", 1.19e-7)
    values = {"min": -greatest, "max": greatest, "tiny": tiny, "smallest_normal": tiny, "eps": eps}
    return Real(values[field], name=f"finfo.{field}") if field in values else None


@op("", on="torch.finfo numpy.finfo torch.iinfo")
def finfo(call: Invocation) -> Value | None:
    return Library("finfo:" + (call.args[0].kind or "" if call.args and isinstance(call.args[0], DType) else ""))
