r"""Where the first-moment law is lowest, and how high its ends and its middle stand over that, for many laws at once.

Before the last token the law falls strictly (with two attention layers or more), so its minimum is at position L-1, or
at L itself where the residual path is too weak to lift the last token: a falling curve and one spike. For large L

\[ \frac{\text{last}}{\min} \approx \frac{(1-\alpha) L}{H\alpha}, \quad
   \frac{\text{mid}}{\min} \to \frac1H L^{(1)}_{H-1}\Big(-\frac{\alpha\ln 2}{1-\alpha}\Big), \]

while first/min grows like a power of ln L.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from jaxtyping import Float64, Int64

from catenary.errors import invalid
from catenary.theory.cesaro.first_moment import checked_length
from catenary.theory.cesaro.row import cesaro_log_point


@dataclass(frozen=True, eq=False)
class Extremes:
    """Ratios of the law's path weights in dex (log10), which are finite also where the weights underflow.

    Attributes:
        first_over_min: first token over the lowest.
        mid_over_min: position floor(L/2), 0-based, over the lowest.
        last_over_min: last token over the lowest; 0 where the last is the lowest.
        argmin: the lowest position, 0-based: L - 2 or L - 1. Of a flat stretch (one layer) the last of the lowest.
    """

    first_over_min: Float64[np.ndarray, " *shape"]
    mid_over_min: Float64[np.ndarray, " *shape"]
    last_over_min: Float64[np.ndarray, " *shape"]
    argmin: Int64[np.ndarray, " *shape"]


def cesaro_extremes(length: npt.ArrayLike, layers: npt.ArrayLike, mixing: npt.ArrayLike) -> Extremes:
    """Minimum and ratios of the law at every combination of the arguments, broadcast against each other.

    O(H^2) for each combination, whatever L is. Exact up to rounding (1e-12 dex). Source: derived here.

    Args:
        length: L >= 2, whole numbers below 2^63.
        layers: H >= 1, whole numbers.
        mixing: alpha in (0, 1], the same in every layer.

    Raises:
        InvalidInput: an argument is out of range.

    >>> found = cesaro_extremes(512, [6, 24], 0.3)
    >>> (10**found.first_over_min).round(2).tolist(), found.argmin.tolist()
    ([38.66, 128158.98], [510, 510])
    """
    grid = np.broadcast(*(np.asarray(each, dtype=object) for each in (length, layers, mixing)))
    *ratios, argmin = zip(*(_extremes(*combination) for combination in grid), strict=True)
    first, mid, last = (np.array(ratio, dtype=np.float64).reshape(grid.shape) for ratio in ratios)
    return Extremes(first, mid, last, np.array(argmin, dtype=np.int64).reshape(grid.shape))


def _extremes(length: int, layers: int, mixing: float) -> tuple[float, float, float, int]:
    if checked_length(length) >= 1 << 63:
        raise invalid("length", "must be below 2^63", length)
    places = (0, length // 2, length - 2, length - 1)
    first, mid, body, last = (cesaro_log_point(length, layers, mixing, j) / math.log(10) for j in places)
    lowest = min(body, last)
    return first - lowest, mid - lowest, last - lowest, places[3] if last <= body else places[2]
