"""Where `--output-file` goes: a report is written whole or not at all."""

from __future__ import annotations

import os
import stat

import click


def write(path: str, text: str) -> None:
    """Write a report, with the folders above it; into a pipe or a device as it comes. Raises ClickException."""
    from msalint.rewrite import RewriteError, replace_file

    data = text.encode("utf-8", "backslashreplace")
    try:
        if _is_stream(path):
            with open(path, "wb") as stream:
                stream.write(data)
            return
        folder = os.path.dirname(path)
        if folder:
            os.makedirs(folder, exist_ok=True)
        replace_file(path, data)
    except RewriteError as error:
        raise click.ClickException(f"{path}: {error}") from error
    except OSError as error:
        raise click.ClickException(f"{path}: can't write the report: {error.strerror or error}") from error


def _is_stream(path: str) -> bool:
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode) or stat.S_ISSOCK(mode)
