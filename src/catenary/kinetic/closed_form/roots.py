"""Roots of many functions at once, each positive at its start and negative further out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float64, Int64

from catenary.errors import NotApplicable


def falls_to_zero(
    function: Callable[[Float64[np.ndarray, " active"], Int64[np.ndarray, " active"]], Float64[np.ndarray, " active"]],
    start: Float64[np.ndarray, " n"],
    step: Float64[np.ndarray, " n"],
) -> Float64[np.ndarray, " n"]:
    """The point x >= start where function(x, i) changes sign, for i = 0..n-1, to the last bits of x.

    The bracket begins with one ``step`` and doubles until the sign has changed. Where the start itself is not positive
    it is the answer: the root has come closer than rounding.
    """
    from scipy.optimize.elementwise import find_root

    every = np.arange(start.size)
    roots, low, step = start.copy(), start.copy(), step.copy()
    waiting = every[function(start, every) > 0]
    open_, high = waiting, start + step
    while open_.size:
        open_ = open_[function(high[open_], open_) > 0]
        low[open_] = high[open_]
        step[open_] *= 2
        high[open_] = start[open_] + step[open_]
    if waiting.size:
        found = find_root(function, (low[waiting], high[waiting]), args=(waiting,), tolerances={"xrtol": 1e-15})
        if not found.success.all():
            raise NotApplicable("a change of sign was not found to the last bits; use less extreme arguments")
        roots[waiting] = found.x
    return roots
