"""MSA903 unknown-code: a suppression or setting that names no rule."""

from __future__ import annotations

from msalint.rule import Level, Meta, Rule


class UnknownCode(Rule):
    """
    ## What it does
    Reports a suppression comment, or an entry of `select`, `extend-select`, `ignore` or `per-file-ignores` in the
    settings, that names no rule.

    ## Why is this bad?
    A misspelt code hides or selects nothing, and nobody notices.

    ## Example
    ```python
    import torch

    def weights(scores):
        return torch.softmax(scores, dim=-1)  # msalint: ignore[MSA999]
    ```

    ## Use instead
    ```python
    import torch

    def weights(scores):
        return torch.softmax(scores, dim=-1)
    ```

    ## Fix safety
    There is no fix: what was meant can't be known.

    ## Known limits
    In a `# noqa` comment only words that begin with MSA are read as ours. An unknown code on the command line is a
    usage error.

    ## References
    None.
    """

    meta = Meta(code="MSA903", name="unknown-code", level=Level.WARNING, since="0.1.0")
