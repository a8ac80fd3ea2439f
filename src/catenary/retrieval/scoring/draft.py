"""A guess at what comes next, from what stands in the context: a retrieved fact is a copy of a stretch of it."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int64

LONGEST = 4
"""Most last tokens that are looked for."""


def draft(context: Int64[np.ndarray, " n"], length: int) -> Int64[np.ndarray, " k"]:
    """``length`` tokens that may follow ``context``, which is not empty.

    They are what followed the last earlier occurrence of the longest ending of at most ``LONGEST`` tokens that occurs
    earlier; where too little follows, or no ending occurs twice, the last token fills up. A guess costs time when it
    is wrong, never a token: the network is asked about each.
    """
    end = len(context)
    for size in range(min(LONGEST, end - 1), 0, -1):
        windows = np.lib.stride_tricks.sliding_window_view(context[:-1], size)
        found = np.flatnonzero((windows == context[end - size :]).all(axis=1))
        if found.size:
            start = int(found[-1]) + size
            break
    else:
        start = end
    made = np.full(length, context[-1])
    follows = context[start : start + length]
    made[: len(follows)] = follows
    return made
