"""The bytes of a file, or of a pipe that somebody writes to; nothing that is neither is waited for."""

from __future__ import annotations

import errno
import os
import stat
import time

PATIENCE = 5.0
"""Seconds that a named pipe may take to get somebody who writes to it."""

_OF_THIS_PROCESS = ("/dev/", "/proc/")
_CAME: dict[tuple[str, int, int], bytes] = {}
"""What came through each pipe: it can be read only once, and a report may want to show it."""


def is_handed_down(path: str) -> bool:
    """Whether a path is a pipe of this process alone, as `<(...)` of a shell is: another can't open it."""
    return path.startswith(_OF_THIS_PROCESS) and _pipe(path) is not None


def is_gone(path: str) -> bool:
    """Whether a path is a pipe that this process has not read: what came through it can't be had again."""
    pipe = _pipe(path)
    return pipe is not None and pipe not in _CAME


def _pipe(path: str) -> tuple[str, int, int] | None:
    """What tells a pipe from others; None for all that is no pipe."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return (os.path.abspath(path), found.st_dev, found.st_ino) if stat.S_ISFIFO(found.st_mode) else None


def bytes_of(path: str) -> bytes:
    """What a file holds. Raises OSError, also for a device, a socket, and a pipe that nobody writes to."""
    mode = os.stat(path).st_mode
    pipe = _pipe(path)
    if pipe is not None:
        if pipe not in _CAME:
            _CAME[pipe] = _through_pipe(path)
        return _CAME[pipe]
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):  # a folder has a message of its own
        raise OSError(errno.EINVAL, "neither a file nor a pipe", path)
    with open(path, "rb") as file:
        return file.read()


def _through_pipe(path: str) -> bytes:
    end = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    try:
        first = _first(end, path)
        os.set_blocking(end, True)
        parts = [first]
        while parts[-1]:
            parts.append(os.read(end, 1 << 16))
        return b"".join(parts)
    finally:
        os.close(end)


def _first(end: int, path: str) -> bytes:
    """The first bytes, waited for as long as somebody has the other end; b"" for a shell's `<(...)` that wrote none."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            found = os.read(end, 1 << 16)
        except BlockingIOError:
            os.set_blocking(end, True)
            return os.read(end, 1 << 16)
        if found or path.startswith(_OF_THIS_PROCESS):
            return found
        if time.monotonic() > until:
            raise OSError(errno.EPIPE, "a pipe that nobody writes to", path)
        time.sleep(0.01)
