"""`python -m msalint` and the `msalint` script."""

from __future__ import annotations

import sys


def main() -> None:
    try:
        from msalint.cli import run

        code = run(sys.argv[1:])
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)


if __name__ == "__main__":
    main()
