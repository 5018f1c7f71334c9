"""Write docs/settings.md from the keys that msalint knows.

python scripts/settings_page.py
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

HEAD = """\
# Settings

In `[tool.msalint]` of a `pyproject.toml`, or at the top level of a `msalint.toml`. The closest file above a checked
file counts, and no other, but for those that it extends; a `msalint.toml` counts before a `pyproject.toml` of the same
folder, and a `pyproject.toml` without our table is passed over. A key that isn't known is an error.

What the command line says counts before the files:

    msalint --config ci/msalint.toml src/                 one settings file for all
    msalint --config 'target-torch = "2.4"' src/          one setting; TOML, any number of times
    msalint --config 'per-file-ignores."tests/*" = ["MSA4"]' src/
    msalint --isolated src/                               no settings files at all

`msalint --show-settings FILE` prints what holds for a file, and which rules are on in it; `msalint --show-files` lists
what would be checked. `msalint config KEY` shows one of the sections below.

Which rules are on is the sum of the layers: the defaults, the files from the one extended last to the closest,
`--config KEY=VALUE`, then `--select`, `--extend-select` and `--ignore`. A layer with a `select` starts from nothing,
one without adds to the layers below.
"""


def text() -> str:
    """The whole page."""
    from msalint.cli.config import page
    from msalint.keys import KEYS

    return HEAD + "".join(f"\n## {key.name}\n\n{page(key)}\n" for key in KEYS)


if __name__ == "__main__":
    (ROOT / "docs" / "settings.md").write_text(text(), encoding="utf-8")
