"""Dropout and the module's mode: what drops in eval, which tests of the mode stand before it, and who says so."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from msalint.state import State
from msalint.values import Const, Int, Opaque, Real, Value

_TRAINING = re.compile(r"(?<![a-z])(?:is_)?train(?:ing)?(?:_mode)?(?![a-z])|grad_enabled", re.IGNORECASE)
_EVAL = re.compile(
    r"(?<![a-z])(?:is_)?(?:eval|evaluating|infer|inference|deterministic|testing)(?:_mode)?(?![a-z])", re.IGNORECASE
)

_ON_PURPOSE = re.compile(
    r"monte[\s_-]*carlo|(?<![A-Za-z])mc(?![a-z])|(?<![a-z])MC(?=[A-Z])|pre_?net|bayes|uncertaint"
    r"|(?:always|stays?|kept|keep)[\s_-]*(?:it[\s_-]*)?(?:on|active|alive)(?![a-z])"
    r"|(?:at|in|during)[\s_-]+(?:test|inference|eval)(?:uation)?(?:[\s_-]+(?:time|mode))?[\s_-]+too|test[\s_-]*time[\s_-]*dropout",
    re.IGNORECASE,
)


def only_in_training(state: State) -> bool:
    """This path was told that the module is in training: `if self.training:`, or not `if deterministic:`."""
    return any(_tells_training(key.rsplit(".", 1)[-1], answer) for key, answer in state.decisions.asked.items())


@lru_cache(maxsize=4096)
def _tells_training(word: str, answer: bool) -> bool:
    return (_TRAINING if answer else _EVAL).search(word) is not None


@lru_cache(maxsize=4096)
def speaks_of_mode(text: str) -> bool:
    """Whether a test asks for training or eval mode, in any words."""
    return bool(_TRAINING.search(text) or _EVAL.search(text))


def said_to_drop(purpose: Iterable[str]) -> bool:
    """Names, docstrings or switches say that dropout stays on in eval: Monte Carlo dropout, a prenet."""
    return any(map(_says_on_purpose, purpose))


@lru_cache(maxsize=4096)
def _says_on_purpose(words: str) -> bool:
    return _ON_PURPOSE.search(words) is not None


def is_zero(state: State, rate: Value | None) -> bool:
    real = state.as_real(rate)
    return real is not None and real.constant == 0


def is_gated_number(rate: Value) -> bool:
    """A rate that is multiplied with the mode: `self.rate * self.training`."""
    return isinstance(rate, Real) and any(
        _TRAINING.search(symbol.name) for size, _ in rate.powers for symbol in size.symbols()
    )


def is_callers_business(rate: Value) -> bool:
    """A rate that the method being read is called with, as F.scaled_dot_product_attention is: it may be 0 in eval."""
    return isinstance(rate, Opaque) and rate.source == "parameter"


def drops_in_eval(state: State, rate: Value | None) -> bool:
    """A rate that comes from the module (or is a number above 0), with no test of the mode on the way."""
    if rate is None or not state.in_module or only_in_training(state) or is_zero(state, rate):
        return False
    if isinstance(rate, Real):
        if rate.constant is not None:
            return rate.constant > 0
        keys = [symbol.key for size, _ in rate.powers for symbol in size.symbols()]
        return rate.coefficient is not None and bool(keys) and all(map(_from_init, keys))
    if isinstance(rate, Int):
        constant = rate.size.constant
        return constant > 0 if constant is not None else all(_from_init(s.key) for s in rate.size.symbols())
    return isinstance(rate, Opaque) and _from_init(rate.key)


def _from_init(key: str) -> bool:
    """The name of an argument of `__init__`, or of what such an argument holds: `Attention.__init__.config.dropout`."""
    return ".__init__." in key and not _TRAINING.search(key.rsplit(".", 1)[-1])


def literally_true(value: Value | None) -> bool:
    return value == Const(True)
