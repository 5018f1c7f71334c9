"""The keys of [tool.msalint]: what each one means, its type, its default and an example."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

DEFAULT_SELECT = ("error", "warning")

DEFAULT_EXCLUDE = (
    ".bzr .direnv .eggs .git .hg .ipynb_checkpoints .mypy_cache .nox .pyenv .pytest_cache .ruff_cache .svn .tox .venv "
    ".vscode __pycache__ __pypackages__ _build build dist node_modules site-packages venv"
).split()
"""Folders that hold no code of the project's own."""

STRINGS, STRING, TABLE, FLAG = "list[str]", "str", "dict[str, list[str]]", "bool"


@dataclass(frozen=True)
class Key:
    """One key. `default` and `example` are written as in TOML; `rules`: its values name rules."""

    name: str
    kind: str
    default: str
    example: str
    text: str
    rules: bool = False

    @property
    def toml(self) -> str:
        """The example as it stands in a pyproject.toml."""
        if self.kind == TABLE:
            return f"[tool.msalint.{self.name}]\n{self.example}\n"
        return f"[tool.msalint]\n{self.name} = {self.example}\n"


def _toml(words: Iterable[str]) -> str:
    return "[" + ", ".join(f'"{word}"' for word in words) + "]"


_SELECTORS = (
    "An entry is a code (`MSA101`), a prefix of codes (`MSA1`), a name (`view-needs-contiguous`), a level (`error`, "
    "`warning`, `note`) or `ALL`; the more exact one wins, and `ignore` wins a draw."
)
_HERE = "Of the settings of the folder that msalint is run in."
_PATTERNS = (
    "Patterns are those of .gitignore: a plain name fits a file or folder anywhere, `tests/*.py` and `/build` start at "
    "the folder of the settings file."
)

KEYS = (
    Key(
        "extend",
        STRING,
        "null",
        '"../pyproject.toml"',
        "Another settings file that this one starts from, by a path from this file's folder; `~` and environment "
        "variables are replaced. What stands here counts before what stands there: a key here replaces the one there, "
        "the lists of `extend-...` keys are joined, and `select` and `ignore` are a layer on top of the layers there. "
        "Patterns and paths there start at the folder of that file.",
    ),
    Key(
        "select",
        STRINGS,
        _toml(DEFAULT_SELECT),
        '["error", "MSA4"]',
        f"The rules that are on, and no others. {_SELECTORS}",
        rules=True,
    ),
    Key(
        "extend-select",
        STRINGS,
        "[]",
        '["note"]',
        f"Rules that are on beside those that are on anyway. {_SELECTORS}",
        rules=True,
    ),
    Key("ignore", STRINGS, "[]", '["missing-divisibility-check"]', f"Rules that are off. {_SELECTORS}", rules=True),
    Key(
        "per-file-ignores",
        TABLE,
        "{}",
        '"tests/*" = ["MSA4"]',
        f"Rules that are off in the files that fit a pattern. {_PATTERNS}",
        rules=True,
    ),
    Key(
        "extend-per-file-ignores",
        TABLE,
        "{}",
        '"tests/*" = ["MSA4"]',
        "As `per-file-ignores`, beside those of the file that this one extends.",
        rules=True,
    ),
    Key(
        "exclude",
        STRINGS,
        _toml(DEFAULT_EXCLUDE),
        '["third_party"]',
        f"Files and folders that are not checked. {_PATTERNS}",
    ),
    Key(
        "extend-exclude",
        STRINGS,
        "[]",
        '["third_party", "src/old/*.py"]',
        f"Files and folders that are not checked, beside those of `exclude`. {_PATTERNS}",
    ),
    Key(
        "target-torch",
        STRING,
        "null",
        '"2.4"',
        "The torch version that the code is for, which matters to rules about torch's attention functions; without "
        "one, the newest that is known.",
    ),
    Key(
        "include-docs",
        FLAG,
        "false",
        "true",
        "Whether the code in docstrings, Markdown and reStructuredText is checked too, as by `--include-docs`.",
    ),
    Key("fix", FLAG, "false", "true", f"Whether what can be mended safely is mended, as by `--fix`. {_HERE}"),
    Key(
        "fix-only",
        FLAG,
        "false",
        "true",
        f"Whether findings are mended and what is left is not reported, as by `--fix-only`. {_HERE}",
    ),
    Key(
        "show-fixes",
        FLAG,
        "false",
        "true",
        f"Whether the fixes that were made are listed, as by `--show-fixes`. {_HERE}",
    ),
    Key(
        "unsafe-fixes",
        FLAG,
        "null",
        "true",
        "Whether fixes are made that change what correct code computes, too; `false` also keeps silent about them. "
        + _HERE,
    ),
    Key("fixable", STRINGS, '["ALL"]', '["MSA1"]', f"The rules whose fixes may be made. {_SELECTORS}", rules=True),
    Key("unfixable", STRINGS, "[]", '["MSA902"]', f"Rules whose fixes are not made. {_SELECTORS}", rules=True),
    Key(
        "extend-safe-fixes",
        STRINGS,
        "[]",
        '["MSA304"]',
        f"Rules whose unsafe fixes count as safe. {_SELECTORS}",
        rules=True,
    ),
    Key(
        "extend-unsafe-fixes",
        STRINGS,
        "[]",
        '["MSA101"]',
        f"Rules whose safe fixes count as unsafe. {_SELECTORS}",
        rules=True,
    ),
    Key(
        "baseline",
        STRING,
        "null",
        '"msalint-baseline.json"',
        "The file of the baseline, by a path from the folder of the settings file: findings that it knows are not "
        f"reported. {_HERE} The option `--baseline` counts before it.",
    ),
    Key(
        "cache-dir",
        STRING,
        '".msalint_cache"',
        '"build/msalint"',
        "The folder of the cache, by a path from the folder of the settings file. The option `--cache-dir` and the "
        "environment variable `MSALINT_CACHE_DIR` count before it.",
    ),
)


def key_of(name: str) -> Key | None:
    return next((key for key in KEYS if key.name == name), None)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """ ", did you mean `x`?", or "" where nothing is close."""
    known = list(known)
    folded = {name.lower(): name for name in known}
    close = difflib.get_close_matches(word.lower().replace("_", "-"), list(folded), n=1, cutoff=0.6)
    return f", did you mean `{folded[close[0]]}`?" if close else ""
