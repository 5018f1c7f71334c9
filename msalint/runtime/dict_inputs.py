"""Takes apart what a module is handed in one dict of tensors, so that each of them can be changed by itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from torch import Tensor, nn

from msalint.runtime.inputs import is_data
from msalint.runtime.kept_state import state_of
from msalint.runtime.subject import Subject, settings_of


class OfOneDict(nn.Module):
    """A module, given the tensors of its dict one by one."""

    def __init__(self, inner: nn.Module, parameter: str) -> None:
        super().__init__()
        self.inner, self._parameter = inner, parameter
        self.train(inner.training)

    def forward(self, **values: Any) -> Any:
        return self.inner(**{self._parameter: values})


def taken_apart(subject: Subject) -> Subject:
    """The subject on the tensors of its dict; itself, unless a dict of tensors by name is all that it takes."""
    given = {name: value for name, value in subject.inputs.items() if value is not None}
    values = next(iter(given.values()), None)
    if subject.module is None or len(given) != 1 or not isinstance(values, dict):
        return subject
    if not all(isinstance(key, str) and isinstance(value, Tensor) for key, value in values.items()):
        return subject
    if not any(is_data(key, value) for key, value in values.items()):
        return subject
    subject.state.changed(subject.module).put_back(subject.module)
    target = OfOneDict(subject.module, next(iter(given)))
    return replace(
        subject,
        target=target,
        inputs=dict(values),
        call=lambda: target(**values),
        settings=settings_of(target),
        state=state_of(target),
        cls=None,
    )
