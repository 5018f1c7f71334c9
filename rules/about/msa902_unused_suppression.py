"""MSA902 unused-suppression: a suppression that hid nothing."""

from __future__ import annotations

from msalint.rule import Level, Meta, Rule


class UnusedSuppression(Rule):
    """
    ## What it does
    Reports a `# noqa: MSA...` or `# msalint: ignore[...]` comment that hid no finding. A bare `# noqa` is left alone,
    since other tools read it too, and so are the codes of other tools and of rules that are off.

    ## Why is this bad?
    The fault it was written for is gone or has moved, and the next fault on that line would be hidden unread.

    ## Example
    ```python
    import torch

    def weights(scores):
        return torch.softmax(scores, dim=-1)  # msalint: ignore[MSA212]
    ```

    ## Use instead
    ```python
    import torch

    def weights(scores):
        return torch.softmax(scores, dim=-1)
    ```

    ## Fix safety
    Safe: only the comment, or the unused codes in it, is taken out.

    ## Known limits
    None known.

    ## References
    None.
    """

    meta = Meta(code="MSA902", name="unused-suppression", level=Level.WARNING, since="0.1.0")
