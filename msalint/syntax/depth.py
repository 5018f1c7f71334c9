"""Keeps code that nests beyond reason away from parsers that recurse, libcst's above all: it takes the process down."""

from __future__ import annotations

import ast
import re
import warnings

MAX_DEPTH = 600
"""Levels of nesting, a long sum or an elif chain counted a level a term. libcst needs about 1 kB of stack for each."""

_LONG_LINE = re.compile(r"[^\r\n]{1200}")
_LINKED = re.compile(
    r"^[ \t]*(?:elif\b|and\b|or\b|[-+*/|&^%@.])|(?:\band|\bor|\belse|[-+*/|&^%@\\])[ \t]*(?:#.*)?$", re.MULTILINE
)
"""A line that carries on an expression or an elif chain. A chain of that many terms has long lines or many of these."""

_BRACKET = re.compile(r"[()\[\]{}]")


class TooDeep(RecursionError):
    """A stretch nested deeper than it can be read: `line` is where it begins."""

    def __init__(self, line: int) -> None:
        super().__init__("nested too deeply to be read")
        self.line = line


def nests_too_deeply(text: str) -> bool:
    """Whether libcst should not be given a text. Two searches, and a closer look at the few texts they stop."""
    if _LONG_LINE.search(text) is None and len(_LINKED.findall(text)) < MAX_DEPTH:
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (RecursionError, MemoryError):
        return True
    except (SyntaxError, ValueError):
        # Newer syntax than the host's: only the brackets can be counted.
        return bracket_depth(text) > MAX_DEPTH or len(_LINKED.findall(text)) >= MAX_DEPTH
    return _depth(tree) > MAX_DEPTH


def bracket_depth(text: str) -> int:
    """The deepest nesting of brackets; those in strings and comments are taken for brackets."""
    depth = deepest = 0
    for match in _BRACKET.finditer(text):
        depth = depth + 1 if match.group() in "([{" else max(depth - 1, 0)
        deepest = max(deepest, depth)
    return deepest


def _depth(tree: ast.AST) -> int:
    """The levels of a tree; `a and b and c` is one node to Python, and a level a term to libcst."""
    deepest = 0
    waiting = [(tree, 0)]
    while waiting:
        node, depth = waiting.pop()
        if isinstance(node, ast.BoolOp):
            depth += len(node.values)
        deepest = max(deepest, depth)
        waiting.extend((child, depth + 1) for child in ast.iter_child_nodes(node))
    return deepest
