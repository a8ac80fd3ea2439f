"""Windows that hold documents' tokens without their order, or no document at all: controls for what text does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from catenary.errors import invalid
from catenary.text.excerpts import check_request
from catenary.text.tokenise import Bos, opening
from catenary.text.windows import Windows


def shuffled_windows(windows: Windows, seed: int) -> Windows:
    """The same windows with every window's tokens in a random order; what opens a window (BOS) stays in front.

    Which tokens a window holds, and how often, is kept; syntax, topics and the joins of excerpts are gone. What a
    profile shows here and on the windows it came from is not due to the order of tokens.

    Raises:
        InvalidInput: ``seed`` < 0, or windows of vectors, in which there is no order to lose.
    """
    check_request(windows.length, len(windows), seed)
    if windows.vectors != "model":
        raise invalid("windows", "must hold tokens of a text", f"{windows.kind} windows of random vectors")
    first = len(windows.report.get("bos", {}).get("ids", ()))
    rng = np.random.default_rng(seed)
    ids = windows.ids.copy()
    ids[:, first:] = rng.permuted(ids[:, first:], axis=1)
    report = {**windows.report, "shuffled": windows.kind}
    # Where a piece of text lies in its document no longer says where its tokens lie in the window.
    return replace(windows, ids=ids, kind="shuffled", seed=seed, report=report, sources=())


def uniform_windows(
    tokenizer: Any, *, length: int, count: int, seed: int, bos: Bos = "tokenizer", vocabulary: int | None = None
) -> Windows:
    """``count`` windows of L = ``length`` ids drawn uniformly from the tokenizer's ordinary tokens.

    Special tokens are left out, but for those that open a window. Means nothing to read, and every token is one the
    network knows: for trained networks, where random vectors would be foreign.

    Args:
        tokenizer: of the model.
        length: L >= 2.
        count: number of windows >= 1.
        seed: of the draw, >= 0.
        bos: as in ``chunked_windows``.
        vocabulary: rows of the network's embedding; ids stay below it. The tokenizer's own size if None.

    Raises:
        InvalidInput: sizes below their bounds, or a tokenizer without ordinary tokens.
    """
    check_request(length, count, seed)
    start = opening(tokenizer, bos)
    size = min(len(tokenizer), vocabulary or len(tokenizer))
    ordinary = np.setdiff1d(np.arange(size), np.asarray(tokenizer.all_special_ids, dtype=np.int64))
    if ordinary.size == 0 or len(start.ids) >= length:
        raise invalid("tokenizer", "must have ordinary tokens to fill a window", f"{ordinary.size} of {size}")
    ids = np.random.default_rng(seed).choice(ordinary, size=(count, length))
    ids[:, : len(start.ids)] = start.ids
    report = {"bos": start.to_dict(), "vocabulary": int(ordinary.size)}
    return Windows(ids, "uniform", "model", seed, report)
