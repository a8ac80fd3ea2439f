"""Chunked windows: excerpts of different documents joined, with their boundaries at fixed positions."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from catenary.errors import invalid
from catenary.text.candidates import Candidates, Source
from catenary.text.excerpts import Excerpt, check_request, join, take
from catenary.text.tokenise import Bos, opening, tokenise_text
from catenary.text.windows import Windows

# Excerpts are drawn from the first so many characters of a document (about 25,000 tokens of prose), so that
# tokenising it has a bounded cost; how many documents were longer is in the report.
MOST_CHARACTERS = 100_000
# Where the source is too small for every excerpt to have a document of its own, a document gives up to this many,
# each to another window.
MOST_EXCERPTS = 8


def default_chunk(length: int) -> int:
    """Tokens per excerpt: 64 for windows of up to 1024 (half of one below 128), else 300 (arXiv 2603.10123)."""
    return min(64, length // 2) if length <= 1024 else 300


def chunked_windows(
    documents: Source,
    tokenizer: Any,
    *,
    length: int,
    count: int,
    seed: int,
    bos: Bos = "tokenizer",
    chunk: int | None = None,
) -> Windows:
    """``count`` windows of L = ``length`` tokens, each joined from excerpts of different documents.

    Boundaries lie at positions c, 2c, ... (0-based, c = ``chunk``, by default ``default_chunk(L)``) in every window,
    with no separator. What opens a window (BOS) takes the first places of the first excerpt, and the last excerpt is
    shorter where c does not divide L (``report["last_chunk"]``). An excerpt is c consecutive tokens from a random
    start, uniform over the tokens in the document's first ``MOST_CHARACTERS`` characters, so its first token is an
    ordinary one. No document occurs twice in a window; one occurs in a second window, with another random start, only
    after all others were used (``report["reused"]`` counts these excerpts). Order, counts and ``sources`` are as in
    ``vanilla_windows``.

    Raises ``InvalidInput``, with the counts, if the source has too few documents of c tokens.
    The condition "chunked" of arXiv 2603.10123.
    """
    check_request(length, count, seed)
    chunk = default_chunk(length) if chunk is None else chunk
    start = opening(tokenizer, bos)
    if not len(start.ids) < chunk < length:
        rule = f"must be > {len(start.ids)} (the tokens that open a window) and < the length {length}"
        hint = "give another --chunk (chunk=); for one excerpt per window use vanilla windows"
        raise invalid("chunk", rule, chunk, hint)
    sizes = _sizes(length, chunk, len(start.ids))
    wanted, most = count * len(sizes), min(MOST_EXCERPTS, count)
    rng = np.random.default_rng(seed)
    candidates = Candidates(documents, rng, chunk)
    drawn: list[list[Excerpt]] = []  # per document
    longer = 0
    for document in candidates:
        tokens = tokenise_text(document.text, tokenizer, characters=MOST_CHARACTERS)
        if len(tokens) < chunk:
            candidates.too_short()
        elif candidates.repeated(tokens.ids):
            candidates.skip("the same as another one")
        else:
            starts = rng.integers(0, len(tokens) - chunk + 1, size=most)
            drawn.append([take(document, tokens, int(first), chunk) for first in starts])
            longer += not tokens.complete
        if len(drawn) == wanted:
            break
    needed = -(-wanted // most)  # at least one window's worth, as most <= count
    if len(drawn) < needed:
        hint = f"take a smaller count or length, or give more documents ({wanted} give every excerpt its own)"
        raise candidates.too_few(f"{needed} texts of at least {chunk} tokens", len(drawn), hint)
    # Every document's first excerpt, then every document's second: neighbours in this list, up to the number of
    # documents, are of different documents.
    turns = [excerpts[turn] for turn in range(most) for excerpts in drawn][:wanted]
    groups = [
        [excerpt.cut(size) for excerpt, size in zip(turns[place:], sizes, strict=False)]
        for place in range(0, wanted, len(sizes))
    ]
    report = {
        "documents": candidates.counts(len(drawn)),
        "chunk": chunk,
        "boundaries": list(range(chunk, length, chunk)),
        "last_chunk": sizes[-1],
        "reused": wanted - len(drawn),
        "drawn_from_their_beginning_only": {"documents": longer, "characters": MOST_CHARACTERS},
    }
    return join(groups, start, "chunked", seed, report)


def _sizes(length: int, chunk: int, opening_size: int) -> list[int]:
    """Tokens of each excerpt of a window: the first makes room for the opening, the last takes what is left."""
    edges = [opening_size, *range(chunk, length, chunk), length]
    return [right - left for left, right in pairwise(edges)]
