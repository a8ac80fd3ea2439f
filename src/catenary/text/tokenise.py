"""Tokens of a text with their character offsets, and the special tokens that open a window (BOS)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from jaxtyping import Int64

from catenary.errors import invalid, unknown
from catenary.text.records import is_unicode

Bos = Literal["tokenizer", "none", "one"]

# Cutting a text can change how the tokens next to the cut are merged. Merges reach a word or a run of spaces back;
# 32 tokens is several times the longest of those in ordinary text.
MARGIN = 32
_PROBE = "a b"


@dataclass(frozen=True, eq=False)
class Tokens:
    """Token ids of the beginning of a text; ``starts`` and ``ends`` are 0-based character offsets into the text.

    ``complete`` is True if they are all of the text's tokens.
    """

    ids: Int64[np.ndarray, " n"]
    starts: Int64[np.ndarray, " n"]
    ends: Int64[np.ndarray, " n"]
    complete: bool

    def __len__(self) -> int:
        """Number of tokens."""
        return len(self.ids)


@dataclass(frozen=True)
class Opening:
    """The special tokens in front of every window; ``bos`` counts the beginning-of-sequence tokens among them (0 or 1).

    ``dropped`` are special tokens that the tokenizer would append after a text: a window's last position is the one
    that is read, so nothing is put behind the text.
    """

    policy: Bos
    ids: tuple[int, ...]
    bos: int
    dropped: tuple[int, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The opening as plain JSON values."""
        return {"policy": self.policy, "ids": list(self.ids), "bos": self.bos, "dropped": list(self.dropped)}


def opening(tokenizer: Any, bos: Bos = "tokenizer") -> Opening:
    """What opens a window: ``"tokenizer"`` as the tokenizer does, ``"none"`` nothing, ``"one"`` exactly one BOS.

    There is never more than one BOS. Raises ``InvalidInput`` for ``"one"`` if the tokenizer has no BOS token: none is
    invented.
    """
    if bos not in get_args(Bos):
        raise unknown("bos", str(bos), get_args(Bos))
    before, after = _added(tokenizer)
    token = tokenizer.bos_token_id
    if bos == "one":
        if token is None:
            raise invalid("bos", "can be 'one' only if the tokenizer has a BOS token", None, "use 'none'")
        before = (int(token),)
    elif bos == "none":
        before = ()
    seen = before.count(token)
    if seen > 1:
        first = before.index(token)
        before = tuple(t for i, t in enumerate(before) if t != token or i == first)
    return Opening(bos, before, min(seen, 1), after)


def tokenise_text(
    text: str, tokenizer: Any, *, characters: int | None = None, special_tokens: bool = False
) -> Tokens:
    """The tokens of ``text``, without those that a tokenizer adds around it.

    At most the first ``characters`` characters are looked at, so the cost does not depend on how long the text is;
    the ``MARGIN`` tokens before such a cut are dropped, as they may not be the ones the whole text gives.

    ``special_tokens`` says what the spelling of a special token in the text (``</s>``) is: False, plain characters
    (documents are data: no document can put a BOS into a window); True, the token itself (a rendered chat template).

    Offsets count characters of ``text``; a token that is part of a character has the offsets of that character.

    Raises ``InvalidInput`` if the tokenizer gives no offsets (a slow one) or the text has half a surrogate pair.
    """
    if not getattr(tokenizer, "is_fast", False):
        raise invalid("tokenizer", "must be a fast one, it gives character offsets", type(tokenizer).__name__)
    cut = characters is not None and characters < len(text)
    part = text[:characters] if cut else text
    if not is_unicode(part):
        raise invalid("text", "must be valid Unicode", part, "half a surrogate pair is no character")
    encoded = tokenizer(
        part,
        add_special_tokens=False,
        return_offsets_mapping=True,
        return_attention_mask=False,
        split_special_tokens=not special_tokens,
        truncation=False,
        verbose=False,  # the warning that a text is longer than the model's context is not ours: windows are shorter
    )
    ids = np.asarray(encoded["input_ids"], dtype=np.int64).reshape(-1)
    offsets = np.asarray(encoded["offset_mapping"], dtype=np.int64).reshape(-1, 2)
    keep = max(len(ids) - MARGIN, 0) if cut else len(ids)
    return Tokens(ids[:keep], offsets[:keep, 0], offsets[:keep, 1], not cut)


def open_with(ids: Int64[np.ndarray, " n"], start: Opening, bos_token_id: int | None) -> Int64[np.ndarray, " m"]:
    """The opening followed by ``ids``, with at most one BOS in front.

    A rendered chat template may begin with a BOS of its own: it is dropped where the opening brings one, and kept
    (once) where it does not. A BOS further inside is left alone; some models use it to mark turns.
    """
    own = 0
    while own < len(ids) and ids[own] == bos_token_id:
        own += 1
    kept = ids[own if start.bos else max(own - 1, 0) :]
    return np.concatenate([np.asarray(start.ids, dtype=np.int64), kept])


def _added(tokenizer: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The special tokens a tokenizer puts in front of a text and behind it, seen on a short text."""
    bare = list(tokenizer(_PROBE, add_special_tokens=False)["input_ids"])
    full = list(tokenizer(_PROBE, add_special_tokens=True)["input_ids"])
    for before in range(len(full) - len(bare) + 1):
        if full[before : before + len(bare)] == bare:
            return tuple(full[:before]), tuple(full[before + len(bare) :])
    raise invalid("tokenizer", "must add special tokens only around a text, not inside it", full)
