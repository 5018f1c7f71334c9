"""Which lines have changed since a revision of git: asks git, reads its diff, changes nothing."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass, field

from msalint.diagnostic import Diagnostic

HUNK = re.compile(r"@@ -\d+(?:,\d+)? \+(?P<first>\d+)(?:,(?P<count>\d+))? @@")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "v": "\v", "f": "\f", "\\": "\\", '"': '"'}


class GitError(Exception):
    """Git can't tell: no repository, no such revision, no git; the message says what to do."""


@dataclass(frozen=True)
class Changes:
    """The changed lines of a repository by file; `tracked` are the files that git knows, others are new as a whole."""

    revision: str
    """As it was asked for."""
    top: str
    lines: dict[str, list[range]] = field(default_factory=dict)
    tracked: frozenset[str] = frozenset()

    def touch(self, one: Diagnostic) -> bool:
        """Whether a finding stands on a line that has changed."""
        name = self._name(one.filename)
        if name not in self.tracked:
            return True
        first, last = one.span.start.line, max(one.span.start.line, one.span.end.line)
        return any(lines.start <= last and first < lines.stop for lines in self.lines.get(name, ()))

    def _name(self, file: str) -> str:
        """A file as git names it; its folder may be reached through links, the file itself is what git tracks."""
        folder, name = os.path.split(os.path.abspath(file))
        return os.path.relpath(os.path.join(os.path.realpath(folder), name), self.top).replace(os.sep, "/")


def changes_since(revision: str) -> Changes:
    """What differs between a revision and the files as they are now. Raises GitError.

    `main...` stands for the commit at which this branch left main.
    """
    top = os.path.realpath(_top())
    commit = _commit(revision.removesuffix("..."))
    if revision.endswith("..."):
        commit = _git("merge-base", commit, "HEAD", complaint=f"{revision}: no commit is common to both").strip()
    options = "--no-color --no-ext-diff --no-textconv --no-relative --unified=0 --inter-hunk-context=0 --find-renames"
    prefixes = ("--src-prefix=a/", "--dst-prefix=b/", "--ignore-submodules")
    diff = _git("diff", *options.split(), *prefixes, commit, "--", complaint="git can't compare", folder=top)
    tracked = _git("ls-files", "-z", complaint="git can't list its files", folder=top).split("\0")
    return Changes(revision, top, changed_lines(diff), frozenset(filter(None, tracked)))


def changed_lines(diff: str) -> dict[str, list[range]]:
    """The new lines of each file in a diff without context; lines that only went away are none."""
    found: dict[str, list[range]] = {}
    name, left = "", 0
    for line in diff.split("\n"):
        if left > 0 and line[:1] in "+-\\":
            left -= line.startswith("+") + line.startswith("-")
            continue
        hunk = HUNK.match(line)
        if hunk:
            first, count = int(hunk["first"]), int(hunk["count"] or 1)
            left = count + _count_before(line)
            if count:
                found.setdefault(name, []).append(range(first, first + count))
        elif line.startswith("+++ "):
            name = _unquoted(line[4:].rstrip("\t")).removeprefix("b/")
    return found


def _count_before(hunk: str) -> int:
    """How many lines a hunk takes away."""
    counted = re.match(r"@@ -\d+(?:,(\d+))?", hunk)
    return int(counted.group(1) or 1) if counted else 0


def _unquoted(name: str) -> str:
    """A file name as git writes it: names with odd characters stand in quotes, with escapes as in C."""
    if not name.startswith('"'):
        return name
    raw = re.sub(
        rb"\\([0-7]{3}|.)",
        lambda match: bytes([int(match[1], 8)]) if len(match[1]) == 3 else _ESCAPES[match[1].decode()].encode(),
        os.fsencode(name[1:-1]),
    )
    return os.fsdecode(raw)


def _top() -> str:
    complaint = "--since needs a git repository, and this folder is in none"
    return _git("rev-parse", "--show-toplevel", complaint=complaint).rstrip("\n")


def _commit(revision: str) -> str:
    complaint = f"--since: `{revision}` names no commit of this repository"
    if not revision or revision.startswith("-"):
        raise GitError(complaint)
    return _git("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}", complaint=complaint).strip()


def _git(*arguments: str, complaint: str, folder: str | None = None) -> str:
    try:
        done = subprocess.run(["git", *arguments], capture_output=True, cwd=folder, stdin=subprocess.DEVNULL)
    except OSError as error:
        raise GitError(f"--since needs git, which can't be run: {error.strerror or error}") from error
    if done.returncode:
        said = os.fsdecode(done.stderr).strip().removeprefix("fatal: ")
        raise GitError(f"{complaint} ({said})" if said else complaint)
    return os.fsdecode(done.stdout)
