"""MSA901 syntax-error: the file is not Python that can be read."""

from __future__ import annotations

from msalint.rule import Level, Meta, Rule


class SyntaxErrorRule(Rule):
    """
    ## What it does
    Reports a file that can't be read as Python: bytes that its encoding doesn't know, NUL characters, a file or folder
    without permission, or text that neither the running Python nor msalint's own parser understands.

    ## Why is this bad?
    Nothing else in the file was checked, so silence about it would mean nothing.

    ## Example
    ```python
    import torch

    def weights(scores)
        return torch.softmax(scores, dim=-1)
    ```

    ## Use instead
    ```python
    import torch

    def weights(scores):
        return torch.softmax(scores, dim=-1)
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    A file with no word of attention code in it is not parsed, so its syntax errors are not seen. Python 2 is not read.

    ## References
    - [PEP 263: source code encodings](https://peps.python.org/pep-0263/)
    """

    meta = Meta(code="MSA901", name="syntax-error", level=Level.ERROR, since="0.1.0")
