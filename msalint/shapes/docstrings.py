"""How many axes the entries of a docstring give each parameter, in the styles of Google, NumPy and Sphinx.

    x (Tensor): queries of shape (batch, seq, width).        :param torch.Tensor x: encoder states (B x T x D)

Their number only: entries are copied from module to module, and the order that they state is often another's.
"""

from __future__ import annotations

import re
from functools import lru_cache

_ENTRY = re.compile(
    r"""^(?P<indent>[ \t]*)(?:
        :param[ ](?:[^:\n]*[ ])?(?P<sphinx>\w+):
        |[*-]?[ ]?`*(?P<google>\w+)`*[ ]*\([^()\n]*(?:\([^()\n]*\)[^()\n]*)*\)[ ]*:
        |(?P<numpy>\w+)[ ]:[ ][^\n]*$
    )""",
    re.VERBOSE | re.MULTILINE,
)
_SHAPE = re.compile(r"[(\[]\s*(#?[A-Za-z_]\w*|\d+)((?:\s*(?:,|[x×*])\s*(?:#?[A-Za-z_]\w*|\d+))+)\s*,?\s*[)\]]")
_TYPE_WORDS = frozenset({"optional", "Tensor", "Optional", "None"})
_AXIS = re.compile(r"#?([A-Za-z_]\w*|\d+)")


@lru_cache(maxsize=1024)
def stated_ranks(docstring: str) -> tuple[tuple[str, int], ...]:
    """Each parameter whose entry states shapes of one rank, with that rank."""
    found = []
    entries = list(_ENTRY.finditer(docstring))
    ends = [*(entry.start() for entry in entries[1:]), len(docstring)]
    for entry, end in zip(entries, ends):
        said = _own_lines(docstring[entry.start() : end], entry["indent"])
        ranks = {_rank(found) for found in _SHAPE.finditer(said)} - {0}
        name = entry["sphinx"] or entry["google"] or entry["numpy"]
        if len(ranks) == 1:
            found.append((name, ranks.pop()))
    return tuple(found)


def _own_lines(text: str, indent: str) -> str:
    """The first line and those that are indented more."""
    first, *rest = text.split("\n")
    lines = [first]
    for line in rest:
        if line.strip() and len(line) - len(line.lstrip()) <= len(indent):
            break
        lines.append(line)
    return "\n".join(lines)


def _rank(found: re.Match[str]) -> int:
    """How many axes a bracket lists; 0 for one that is no shape: `(Tensor, optional)`, `(2, 5)`."""
    inner = found.group()[1:-1]
    parts = re.split(r"\s*,\s*|\s+[x×*]\s+", inner.strip().rstrip(","))
    axes = all(_AXIS.fullmatch(part) for part in parts) and not all(part.isdigit() for part in parts)
    return len(parts) if axes and not _TYPE_WORDS & set(parts) else 0
