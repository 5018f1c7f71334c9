"""Options that belong together, handed to a command as one value: `@options_of(Fixing, click.option(...), ...)`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def options_of(make: type, *options: Callable[[Any], Any]) -> Callable[[F], F]:
    """A decorator that adds some options and passes their values on as one `make(...)`.

    The command takes it as a keyword argument named as the class is, in lower case; the options are the class's
    fields by name.
    """

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def with_group(*args: Any, **kwargs: Any) -> Any:
            kwargs[make.__name__.lower()] = make(**{name: kwargs.pop(name) for name in names})
            return function(*args, **kwargs)

        before = list(getattr(function, "__click_params__", ()))
        for option in reversed(options):
            option(with_group)
        names = [str(one.name) for one in getattr(with_group, "__click_params__", ()) if one not in before]
        return with_group  # type: ignore[return-value]

    return decorate
