"""Wait until a file changes that matters to a check. Uses watchfiles, which the extra `watch` installs."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable

MATTER = (".py", ".ipynb", ".md", ".markdown", ".mdx", ".rst")
MATTER_BY_NAME = ("pyproject.toml", "msalint.toml", ".gitignore")
GLANCE = 200
"""Milliseconds between two looks at what the system has reported."""


class WatchError(Exception):
    """Changes can't be watched; the message says what to do."""


def next_change(paths: Iterable[str], others: Iterable[str]) -> Generator[frozenset[str], None, None]:
    """An empty set once the watch has begun, then the files that changed since: below `paths`, or among `others`.

    A watch is good for one change: a file that an editor replaces is another file to the system. Raises WatchError.
    """
    try:
        from watchfiles import watch
    except ImportError as error:
        raise WatchError('--watch needs watchfiles: pip install "msalint[watch]"') from error
    asked = [os.path.abspath(path) for path in paths]
    beside = [os.path.abspath(path) for path in others if os.path.exists(path)]
    exactly = {path for path in (*asked, *beside) if not os.path.isdir(path)}

    def matters(change: object, path: str) -> bool:
        return path in exactly or concerns(path)

    begun = False
    try:
        for found in watch(
            *dict.fromkeys((*asked, *beside)), watch_filter=matters, rust_timeout=GLANCE, yield_on_timeout=True
        ):
            if found and not begun:
                yield frozenset()
            if found or not begun:
                begun = True
                yield frozenset(path for _, path in found)
    except OSError as error:
        raise WatchError(f"can't watch these files: {error.strerror or error}") from error


def concerns(path: str) -> bool:
    """Whether a changed file may change what a check of its folder finds; what a check puts into its cache does not."""
    folder, name = os.path.split(path)
    if name == ".gitignore" and os.path.exists(os.path.join(folder, "CACHEDIR.TAG")):
        return False
    return path.endswith(MATTER) or name in MATTER_BY_NAME
