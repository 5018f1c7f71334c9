"""Scaffold a rule: its file, a bad and a good fixture, and a proof. Usage: new_rule.py MSA999 my-rule"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from msalint import __version__  # noqa: E402
from msalint.registry import FAMILIES  # noqa: E402

RULE = '''"""{code} {name}: TODO what is wrong, in half a line."""

from __future__ import annotations

from msalint.facts import Softmaxed
from msalint.rule import Diagnostic, Iterator, Level, Meta, Rule, on


class {title}(Rule):
    """
    ## What it does
    TODO: the expression that is reported, and under which condition.

    ## Why is this bad?
    TODO: what happens at run time.

    ## Example
    ```python
    import torch

    TODO
    ```

    ## Use instead
    ```python
    import torch

    TODO
    ```

    ## Fix safety
    TODO: safe (behaviour on correct inputs unchanged), unsafe, or no fix; and why.

    ## Known limits
    TODO

    ## References
    - TODO
    """

    meta = Meta(code="{code}", name="{name}", level=Level.NOTE, since="{version}", needs=("softmax",))

    @on(Softmaxed)
    def TODO_what_is_wrong(self, fact: Softmaxed) -> Iterator[Diagnostic]:
        if False:  # TODO: only what is known to be wrong
            yield self.report(fact.at, "TODO: what happens at run time, in one sentence")
'''

BAD = '''"""TODO: a whole module with the fault."""

import torch
from torch import nn


class Attention(nn.Module):
    def forward(self, query, key, value):
        scores = query @ key.transpose(-2, -1)
        return torch.softmax(scores, dim=-1) @ value  # expect: {code}
'''

GOOD = '''"""TODO: the same module, mended."""

import torch
from torch import nn


class Attention(nn.Module):
    def forward(self, query, key, value):
        scores = query @ key.transpose(-2, -1)
        return torch.softmax(scores, dim=-1) @ value
'''

PROVE = '''"""Proof: TODO what the bad module does when it runs, and the mended one does not."""

import sys
from pathlib import Path

import torch

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[2]))

from fixtures.proofkit import differs, pair, proven, twins

query, key, value = torch.randn(3, 2, 5, 7).unbind(0)

bad, good = twins(*pair(HERE, "todo"), lambda m: m.Attention())
assert differs(bad(query, key, value), good(query, key, value)), "TODO: show the failure that the rule claims"

proven()
'''


def scaffold(code: str, name: str, root: Path) -> list[Path]:
    """Write the files of a new rule below `root` and return their paths; raises ValueError for a bad code or name."""
    if not re.fullmatch(r"MSA[1-9]\d\d", code):
        raise ValueError(f"CODE must be MSA and three digits, such as MSA999, not {code!r}")
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
        raise ValueError(f"NAME must be words in lower case with dashes, such as my-rule, not {name!r}")
    taken = list((root / "rules").glob(f"*/{code.lower()}_*.py"))
    if taken:
        raise ValueError(f"{code} is taken by {taken[0].relative_to(root)}")
    family = FAMILIES[int(code[3]) - 1]
    fixtures = root / "fixtures" / "rules" / f"{code}-{name}"
    values = {
        "code": code,
        "name": name,
        "title": "".join(word.capitalize() for word in name.split("-")),
        "version": __version__,
    }
    files = {
        root / "rules" / family / f"{code.lower()}_{name.replace('-', '_')}.py": RULE,
        fixtures / "bad_todo.py": BAD,
        fixtures / "good_todo.py": GOOD,
        fixtures / "prove.py": PROVE,
    }
    for path, template in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(template.format(**values), encoding="utf-8")
    return list(files)


def main() -> None:
    if len(sys.argv) != 3 or not all(sys.argv[1:]):
        raise SystemExit("usage: make rule CODE=MSA999 NAME=my-rule")
    try:
        written = scaffold(sys.argv[1], sys.argv[2], ROOT)
    except ValueError as error:
        raise SystemExit(f"error: {error}") from error
    for path in written:
        print(path.relative_to(ROOT))
    print("Fill in what says TODO; `make test` holds you to it.")


if __name__ == "__main__":
    main()
