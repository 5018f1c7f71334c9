"""Replace what a file holds, whole or not at all: written beside, then put in its place."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile


class RewriteError(Exception):
    """A file that was left as it was; the message says why."""


class ChangedMeanwhileError(RewriteError):
    """A file that no longer holds what its new content was made from."""


def replace_file(
    path: str | os.PathLike[str], data: bytes, expected: bytes | None = None, *, durable: bool = True
) -> None:
    """Make `data` the content of a file, or of a new one. Raises RewriteError, and then the old file is untouched.

    Permissions, owner and extended attributes stay; of a link, what it leads to is written. With `expected`, a file
    that no longer holds just that is left alone. `durable`: wait until the disk has it; False for what can be made
    again.
    """
    target = os.path.realpath(path)
    try:
        before = os.stat(target) if os.path.lexists(target) else None
        _refuse_unwritable(target, before)
        beside = _written_beside(target, data, before, durable)
        try:
            if expected is not None:
                _refuse_changed(target, expected)
            os.replace(beside, target)
        except BaseException:
            _remove(beside)
            raise
    except OSError as error:
        raise RewriteError(f"can't write this file: {error.strerror or error}") from error
    if durable:
        _settle(os.path.dirname(target))


def _refuse_unwritable(target: str, before: os.stat_result | None) -> None:
    """A folder's permissions would allow to replace even a read-only file, which is not what its owner means."""
    if before is None:
        return
    if not stat.S_ISREG(before.st_mode):
        raise RewriteError("can't write this file: it is no regular file")
    if not os.access(target, os.W_OK):
        raise RewriteError("can't write this file: it is read-only")


def _refuse_changed(target: str, expected: bytes) -> None:
    with open(target, "rb") as file:
        if file.read() != expected:
            raise ChangedMeanwhileError("this file was changed by someone else in the meantime, so it was left alone")


def _written_beside(target: str, data: bytes, before: os.stat_result | None, durable: bool) -> str:
    """A finished file in the same folder, so on the same disk, with the old one's permissions."""
    handle, beside = tempfile.mkstemp(prefix=".msalint-", suffix=".tmp", dir=os.path.dirname(target))
    try:
        with open(handle, "wb") as file:
            file.write(data)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        _dress(beside, target, before)
    except BaseException:
        _remove(beside)
        raise
    return beside


def _dress(beside: str, target: str, before: os.stat_result | None) -> None:
    if before is None:
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(beside, 0o666 & ~mask)
        return
    if hasattr(os, "chown"):
        # Only the superuser may give a file away; the group at least can often be kept.
        for owner in (before.st_uid, -1):
            with contextlib.suppress(OSError):
                os.chown(beside, owner, before.st_gid)
                break
    if hasattr(os, "listxattr"):
        with contextlib.suppress(OSError):
            for name in os.listxattr(target):
                os.setxattr(beside, name, os.getxattr(target, name))
    os.chmod(beside, stat.S_IMODE(before.st_mode))


def _remove(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)


def _settle(folder: str) -> None:
    """The new name outlives a crash of the machine too, where the system can promise that."""
    if os.name != "posix":
        return
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
