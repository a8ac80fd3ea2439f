"""Vanilla windows: the beginning of one document, cut to the length of the window."""

from __future__ import annotations

from typing import Any

import numpy as np

from catenary.errors import invalid
from catenary.text.candidates import Candidates, Source
from catenary.text.excerpts import Excerpt, check_request, join, take
from catenary.text.tokenise import MARGIN, Bos, Tokens, opening, tokenise_text
from catenary.text.windows import Windows

# English has about 4 characters a token and source code about 3. Reading starts at 8 characters for every token wanted
# and ends at 64: a text with fewer tokens than that is mostly padding, and reading on could take for ever.
FIRST_CHARACTERS = 8
MOST_CHARACTERS = 64


def vanilla_windows(
    documents: Source, tokenizer: Any, *, length: int, count: int, seed: int, bos: Bos = "tokenizer"
) -> Windows:
    """``count`` windows of L = ``length`` tokens, each the beginning of another document.

    A window is what opens it (BOS, by the policy ``bos``: see ``opening``) and the document's first tokens. Documents
    are taken in an order shuffled by ``seed`` within pools of ``POOL_DOCUMENTS`` (a smaller source is shuffled as a
    whole) until there are enough; no more is read. Documents that are shorter, repeated, or have fewer than L tokens
    in their first ``MOST_CHARACTERS`` L characters are counted in ``report["documents"]["skipped"]``. ``sources``
    names each window's document, with token and character offsets and the latter as fractions of the document.

    Raises ``InvalidInput``, with the counts, if the source has fewer than ``count`` such documents.
    The condition "vanilla" of arXiv 2603.10123.
    """
    check_request(length, count, seed)
    start = opening(tokenizer, bos)
    wanted = length - len(start.ids)
    if wanted < 1:
        raise invalid("length", f"must be > {len(start.ids)}, the tokens that open a window", length)
    candidates = Candidates(documents, np.random.default_rng(seed), wanted)
    chosen: list[Excerpt] = []
    for document in candidates:
        tokens = _beginning(document.text, tokenizer, wanted)
        if isinstance(tokens, str):
            candidates.skip(tokens)
        elif candidates.repeated(tokens.ids[:wanted]):
            candidates.skip("begins as another one does")
        else:
            chosen.append(take(document, tokens, 0, wanted))
        if len(chosen) == count:
            break
    else:
        hint = "take a smaller length or count, or give more documents"
        raise candidates.too_few(f"{count} texts of at least {wanted} tokens", len(chosen), hint)
    report = {"documents": candidates.counts(count)}
    return join([[excerpt] for excerpt in chosen], start, "vanilla", seed, report)


def _beginning(text: str, tokenizer: Any, wanted: int) -> Tokens | str:
    """At least ``wanted`` tokens from the text's beginning, or why it cannot give them."""
    characters = FIRST_CHARACTERS * (wanted + MARGIN)
    while True:
        tokens = tokenise_text(text, tokenizer, characters=characters)
        if len(tokens) >= wanted:
            return tokens
        if tokens.complete:
            return f"shorter than {wanted} tokens"
        if characters >= MOST_CHARACTERS * (wanted + MARGIN):
            return f"fewer than {wanted} tokens in the first {characters} characters"
        characters *= 2
