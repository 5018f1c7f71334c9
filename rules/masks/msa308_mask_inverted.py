"""MSA308 mask-inverted: a mask of known polarity is used with the other one."""

from __future__ import annotations

from msalint.facts import MaskAdded, MaskFilled, MhaCalled, Region, SdpaCalled, reads_backwards
from msalint.rule import Diagnostic, Edit, Fix, Iterator, Level, Meta, Rule, Safety, Site, on, step, wrap

ADDED = "this mask ends up far below 0 where keys are to be attended"
ONLY_HIDDEN = "attention goes to what was to be hidden, and only there"


class MaskInverted(Rule):
    """
    ## What it does
    Reports a mask whose polarity is known (from the comparison or triangle that made it, or from a docstring) and that
    is read the other way round: True = keep handed to nn.MultiheadAttention, nn.Transformer* or masked_fill, True =
    hide (a padding mask, triu of ones) handed to F.scaled_dot_product_attention, an additive mask made boolean.

    ## Why is this bad?
    Tokens are hidden and padding is attended, or each token sees nothing but its future. Every shape is right, so
    nothing raises; a causal model that sees only what comes next even reaches a very low loss.

    ## Example
    ```python
    import torch
    import torch.nn.functional as F


    def attention(q, k, v, ids, pad_id):
        padding = (ids == pad_id)[:, None, None, :]
        return F.scaled_dot_product_attention(q, k, v, attn_mask=padding)
    ```

    ## Use instead
    ```python
    import torch
    import torch.nn.functional as F


    def attention(q, k, v, ids, pad_id):
        padding = (ids == pad_id)[:, None, None, :]
        return F.scaled_dot_product_attention(q, k, v, attn_mask=~padding)
    ```

    ## Fix safety
    Unsafe: every output changes.

    ## Known limits
    A name alone (`mask`, `key_padding_mask`) proves no polarity, and a mask of unknown make is left alone. Where only
    a docstring tells the polarity, it is a warning: the docstring may be what is wrong. A triangle
    put on by hand with the wrong side is causal-mask-shows-future (MSA310). A mask that is taken from another
    under a name of its own, for one use, is reported where it is taken, any other where it is used.

    ## References
    - [F.scaled_dot_product_attention](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html)
    - [nn.MultiheadAttention](https://docs.pytorch.org/docs/stable/generated/torch.nn.MultiheadAttention.html)
    """

    meta = Meta(code="MSA308", name="mask-inverted", level=Level.ERROR, since="0.1.0")

    @on(SdpaCalled)
    def handed_to_a_kernel(self, fact: SdpaCalled) -> Iterator[Diagnostic]:
        site, hidden = fact.mask_site, fact.mask_hidden
        if fact.mask_inverted and not fact.mask_additive and site is not None and not _backwards(hidden, fact.purpose):
            said = "True means attend in attn_mask, and this mask is True where keys are to be hidden"
            yield self._told(site, said, hidden, fact.mask_made_at, site, fact.mask_taken_at)

    @on(MhaCalled)
    def handed_to_a_module(self, fact: MhaCalled) -> Iterator[Diagnostic]:
        for mask in fact.masks:
            if mask.inverted and not mask.additive and not _backwards(mask.hidden, fact.purpose):
                said = f"True means hide in {mask.parameter}, and this mask is True where keys are to be attended"
                yield self._told(mask.site, said, mask.hidden, mask.made_at, mask.site, mask.taken_at)

    @on(MaskFilled)
    def filled_by_hand(self, fact: MaskFilled) -> Iterator[Diagnostic]:
        if fact.inverted and fact.attention and fact.fill is not None and fact.fill <= -1:
            said = f"this {'choice' if fact.how == 'where' else 'fill'} hides the keys that the mask is to keep"
            if fact.taken_at is not None:
                said = "where this mask is True, keys that it is to keep are hidden"
            negatable = fact.mask_site if fact.how == "masked_fill" else None
            yield self._told(fact.at, said, fact.hidden, fact.made_at, negatable, fact.taken_at)

    @on(MaskAdded)
    def added(self, fact: MaskAdded) -> Iterator[Diagnostic]:
        if fact.inverted and fact.hidden is not None:
            made_at = fact.hidden.made_at
            yield self._told(made_at or fact.at, ADDED, fact.hidden, fact.at if made_at else None, None)

    def _told(
        self,
        at: Site,
        said: str,
        hidden: Region | None,
        elsewhere: Site | None,
        mask: Site | None,
        taken_at: Site | None = None,
    ) -> Diagnostic:
        """What is wrong is the use, and the place to mend is where the mask was taken for that use, if it was."""
        trail = step(elsewhere, "added to the scores here" if said is ADDED else "the mask is made here")
        if taken_at is not None:
            trail += step(at, "used the other way round here")
            at = taken_at
        fix = Fix("negate the mask", _negated(mask), Safety.UNSAFE) if mask is not None else None
        # A docstring may itself be wrong.
        level = Level.WARNING if hidden is not None and hidden.said else None
        return self.report(at, f"{said}: {ONLY_HIDDEN}", trail=trail, fix=fix, level=level)


def _backwards(hidden: Region | None, purpose: tuple[str, ...]) -> bool:
    """A causal mask of code that says that it reads backwards."""
    return hidden is not None and "causal" in hidden.kinds and reads_backwards(purpose)


def _negated(mask: Site) -> tuple[Edit, ...]:
    plain = mask.text.replace(".", "").replace("_", "").isalnum()
    return wrap(mask, "~", "") if plain else wrap(mask, "~(", ")")
