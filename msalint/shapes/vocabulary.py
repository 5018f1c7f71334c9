"""Weak knowledge: what the names that people give to axes, sizes, masks and values usually mean."""

from __future__ import annotations

import re
from functools import lru_cache

BATCH = "batch"
HEAD = "head"
SEQ = "seq"
HEAD_DIM = "d_k"
WIDTH = "width"

_AXIS_NAMES: dict[str, frozenset[str]] = {
    BATCH: frozenset("b bs bsz bz nb batch batch_size batchsize batch_sz n_batch nbatch n_batches num_batches".split()),
    HEAD: frozenset(
        "h heads head num_heads n_heads nheads nhead n_head num_attention_heads num_head nh attention_heads "
        "num_attn_heads n_heads_q num_q_heads q_heads num_key_value_heads num_kv_heads kv_heads n_kv_heads "
        "n_local_heads num_heads_q n_kv_head num_query_heads decoder_attention_heads encoder_attention_heads".split()
    ),
    SEQ: frozenset(
        "l t s seq seq_len seqlen seq_length length len q_len kv_len k_len src_len tgt_len tokens n_tokens "
        "num_tokens query_len key_len value_len tgt src_length sequence_length seq_q seq_k time steps ctx "
        "context_length block_size q_length k_length target_length query_length key_length max_len lq lk lv tq tk sq "
        "sk n_ctx num_patches n_patches frames num_frames q_seq_len kv_seq_len tgt_length slen qlen klen "
        "seq_len_q seq_len_k len_q len_k len_v steps nq nk query kv new count pos".split()
    ),
    HEAD_DIM: frozenset(
        "d_k dk d_v dv head_dim dim_head d_head head_size hd dh dim_per_head per_head_dim attention_head_size hs "
        "head_width d_kv size_per_head depth head_channels kv_channels key_dim qkv_dim q_head_dim qk_head_dim".split()
    ),
    WIDTH: frozenset(
        "c d e dim width hidden hidden_size embed_dim d_model emb_dim emb embed embedding_dim n_embd n_embed channels "
        "embed_size all_head_size model_dim inner_dim features n_feat hidden_dim d_out d_in w_dim".split()
    ),
}
_ROLE_OF = {name: role for role, names in _AXIS_NAMES.items() for name in names}


@lru_cache(maxsize=8192)
def role_of_name(name: str) -> str | None:
    """The role that a size or axis of this name usually has: `bsz` is a batch, `self.num_heads` are heads."""
    last = name.rsplit(".", 1)[-1].strip("_").lower()
    return _ROLE_OF.get(last)


_SLOTS = {
    slot: frozenset(f"{letter} {letter}s {slot} {plural} w{letter} {letter}proj to{letter} {letter}linear".split())
    for slot, letter, plural in (("query", "q", "queries"), ("key", "k", "keys"), ("value", "v", "values"))
}


def slot_of_name(name: str) -> str | None:
    """ "query", "key" or "value" if a projection is called after just one of them: `k_proj`, `W_k`, `to_keys`."""
    found = [slot for slot, words in _SLOTS.items() if says(name, *words)]
    return found[0] if len(found) == 1 else None


@lru_cache(maxsize=8192)
def says(name: str, *words: str) -> bool:
    """Whether a name has one of these words among its parts: `key_padding_mask` says "padding"."""
    parts = re.split(r"[_.\d]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())
    return any(word in parts for word in words)


@lru_cache(maxsize=8192)
def mask_polarity(name: str) -> str | None:
    """ "keep" if a mask of this name marks what may be attended, "hide" if it marks what may not, else None."""
    lowered = name.rsplit(".", 1)[-1].lower()
    if re.search(r"non_?pad|not_?pad|valid|keep|visible|allowed|real_tokens", lowered):
        return "keep"
    if "invert" in lowered or "extended" in lowered or "bias" in lowered:
        return None
    if lowered in {"attention_mask", "encoder_attention_mask"}:
        return "keep"
    if re.search(r"key_padding_mask|padding_mask|pad_mask|is_pad|ignore|hidden_positions|is_masked", lowered):
        return "hide"
    return None


_HIDING = r"ignor\w*|pad\w*|filler|mask(?:ed|s)\b|hid(?:e|es|den)\b|exclu\w*|invalid|block\w*|future"
_KEEPING = r"keep|kept|valid|real\b|tokens?\b|attend\w*|visible|allow\w*|unmasked|participat\w*|part\b|look\b"
_DENYING = r"\bnot\b|\bnon\b|n't\b|\bnever\b|\bno\b|\bwithout\b"
_TRUTH = r"(?<![\w.])(?:(?P<on>true|1s|ones?|1(?:\.0*)?)|(?P<off>false|0s|zeros?|0(?:\.0*)?))(?!\w)"
_ADDITIVE = r"additive|float|inf\b|finfo|-1e\d"
_MARKED_BY = rf"(?P<what>.{{3,60}}?)\b(?:indicated|marked|denoted|represented) (?:by|as|with) (?:a )?`*{_TRUTH}"


_NEXT_ENTRY = r"\n\s*\n|\n\s*(?:[-*]\s+)?[`*]*\w+[`*]*\s*(?:\([^)]*\)\s*)?:|\n\s*:\w+"
"""Where what a docstring says of a name ends: at an empty line, or where it goes on with another name."""


@lru_cache(maxsize=4096)
def stated_polarity(docstring: str, name: str) -> str | None:
    """What a docstring says of a mask: "hide" for `name: (N, S) bool, True = ignore this key`, else "keep" or None."""
    found = set()
    for _, end in _entries(docstring).get(name, ()):
        text = re.split(rf"{_NEXT_ENTRY}|;", docstring[end:], maxsplit=1)[0]
        if re.search(_ADDITIVE, text, re.IGNORECASE):
            continue
        # Shapes are no truth values: `(batch, 1, 1, seq)`.
        found |= _polarities(re.sub(r"[(\[][^()\[\]]*[)\]]", " ", text))
    return found.pop() if len(found) == 1 else None


_ENTRY = re.compile(r"\b(?P<name>\w+)\b(?=(?P<tail>`*\s*(?:\([^)]*\)\s*|(?P<as>as [\w ]{3,40}))?[:=]))")


@lru_cache(maxsize=1024)
def _entries(docstring: str, said_as: bool = True) -> dict[str, list[tuple[int, int]]]:
    """Where a docstring speaks of each name, and where what it says begins: `mask (Tensor): ...`.

    Entries such as `mask as a boolean tensor: ...` count where `said_as`.
    """
    found: dict[str, list[tuple[int, int]]] = {}
    for entry in _ENTRY.finditer(docstring):
        if said_as or entry["as"] is None:
            found.setdefault(entry["name"], []).append((entry.start(), entry.end("tail")))
    return found


_BOOLEAN = r"\bBoolTensor\b|\bbool(?:ean)?s? (?:tensor|mask)|\([^()]*,[^()]*\)`*,? (?:of )?bool(?:ean)?\b"
_OTHER_KIND = r"\b(?:or|int\w*|long\w*|float\w*|byte\w*|uint8|additive)\b"


def says_boolean(docstring: str, name: str) -> bool:
    """Whether a docstring calls this parameter a boolean tensor, and nothing else: `mask: (N, S) bool, True = keep`."""
    if not name or " " not in docstring or name not in docstring:
        return False
    entries = _entries(docstring, said_as=False).get(name)
    if entries is None:
        return False
    start, end = entries[0]
    stated = docstring[start : end + 48].split("\n\n")[0]
    found = re.search(_BOOLEAN, stated, re.IGNORECASE)
    rest = re.split(r"[,.;]|->", stated[found.end() :])[0] if found is not None else ""
    return found is not None and re.search(_OTHER_KIND, rest, re.IGNORECASE) is None


def says_additive(docstring: str, name: str) -> bool:
    """Whether a docstring calls this parameter an additive mask, and nothing else: `mask: additive, 0 or -inf`."""
    if not name or " " not in docstring or name not in docstring:
        return False
    entries = _entries(docstring, said_as=False).get(name)
    if entries is None:
        return False
    stated = re.split(_NEXT_ENTRY, docstring[entries[0][1] :], maxsplit=1)[0]
    return re.search(r"\badditive\b", stated[:60]) is not None and not re.search(r"\b(?:bool|or|int|if|not)", stated)


def annotates_boolean(annotation: str) -> bool:
    """Whether an annotation says boolean tensor and nothing else: `torch.BoolTensor`, `Bool[Tensor, "b s"]`."""
    return re.search(r"\bBool(?:Tensor\b|\[)", annotation) is not None and not re.search(
        r"\b(?:Float|Int|Long|Byte|Shaped|Num)", annotation
    )


def _polarities(text: str) -> set[str]:
    """What each statement of a truth value says: `1 for tokens that are not masked, 0 for ...` is {"keep"}."""
    marks = list(re.finditer(_TRUTH, text, re.IGNORECASE))
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    said = [(mark, text[mark.end() : end]) for mark, end in zip(marks, ends)]
    said += [(mark, mark["what"]) for mark in re.finditer(_MARKED_BY, text, re.IGNORECASE)]
    found = set()
    for mark, words in said:
        meaning = _meaning_of(" ".join(re.split(r"[,.]\s", words.strip())[0].split()[:14]))
        if meaning is not None:
            found.add(meaning if mark["on"] else {"keep": "hide", "hide": "keep"}[meaning])
    return found


def _meaning_of(words: str) -> str | None:
    """Whether words like "= ignore this key" or "for tokens that are not masked" speak of what is kept or hidden."""
    hides = re.search(rf"\b(?:{_HIDING})", words, re.IGNORECASE) is not None
    if not hides and re.search(rf"\b(?:{_KEEPING})", words, re.IGNORECASE) is None:
        return None
    denied = re.search(_DENYING, words, re.IGNORECASE) is not None
    return "hide" if hides != denied else "keep"


_INPUT_NAMES = frozenset(
    "x hidden_states hidden hidden_state inputs input src tgt query key value q k v queries keys values embeddings "
    "states tokens qkv memory context".split()
)


def is_input_name(name: str) -> bool:
    """A parameter of this name is, by convention, a tensor of (batch, seq, width)."""
    return name in _INPUT_NAMES
