"""How many samples an effect needs, and how small an effect the samples at hand would have shown."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float64

from catenary.errors import invalid

Z_TWO_SIDED = 1.959964
"""Normal quantile .975."""
Z_POWER = 0.841621
"""Normal quantile .8: the effect is found in four studies of five."""


def samples_for(effect: float, sd: float, critical: float = Z_TWO_SIDED) -> int:
    r"""Paired samples that show a difference of ``effect`` with 80 % power.

    \(n=\lceil((c+z_{.8})\,s/\delta)^2\rceil\), s the standard deviation over samples of the paired difference and c
    the critical value, 1.96 for one two-sided 5 % test. Normal quantiles: Student's ask for about two more, which is
    less than a pilot's error of s moves n (``samples_range``). At least 2.

    >>> samples_for(0.1, 0.225)
    40

    Raises:
        InvalidInput: for an effect that is not above 0, or an sd below 0.
    """
    if not (effect > 0 and math.isfinite(effect)):
        raise invalid("resolve", "must be above 0", effect, "give the difference to be seen, such as 0.05")
    if not (sd >= 0 and math.isfinite(sd)):
        raise invalid("sd", "must be a number of at least 0", sd)
    return max(2, math.ceil(((critical + Z_POWER) * sd / effect) ** 2))


def detectable(n: int, sd: float, critical: float = Z_TWO_SIDED) -> float:
    r"""Smallest difference that n paired samples show with 80 % power: \(\delta=(c+z_{.8})\,s/\sqrt n\)."""
    if n < 2:
        raise invalid("n", "must be at least 2", n)
    return (critical + Z_POWER) * sd / math.sqrt(n)


def samples_range(effect: float, sd: float, pilot: int) -> tuple[int, int]:
    r"""The sample counts for the ends of the 95 % interval of a pilot's sd.

    \(s\sqrt{(m-1)/\chi^2_{.975,m-1}}\) to \(s\sqrt{(m-1)/\chi^2_{.025,m-1}}\) for a pilot of m samples with normal
    differences. A pilot of 10 leaves a factor of 7 between the ends, one of 40 a factor of 2.5.
    """
    from scipy.special import chdtri

    if pilot < 2:
        raise invalid("pilot", "must have two samples or more", pilot)
    low, high = (sd * math.sqrt((pilot - 1) / float(chdtri(pilot - 1, tail))) for tail in (0.025, 0.975))
    return samples_for(effect, low), samples_for(effect, high)


def paired_sd(rows: Float64[np.ndarray, "n P"]) -> float:
    r"""Standard deviation over samples of the difference of two slots, root mean square over all pairs of slots.

    \(s^2=\frac{2}{(n-1)(P-1)}\sum_{is}(c_{is}-\bar c_i)^2\), c the scores less their slot's mean: twice the mean
    variance of a slot less the mean covariance of two, as a sum of squares, so that it is 0 where no sample differs
    between slots. NaN with one sample.
    """
    n, slots = rows.shape
    if n < 2:
        return math.nan
    if slots < 2:
        raise invalid("slots", "must be two or more", slots)
    centred = rows - rows.mean(axis=0)
    within = centred - centred.mean(axis=1, keepdims=True)
    squares = float((within**2).sum())
    if squares <= within.size * (8 * np.finfo(np.float64).eps * float(np.abs(rows).max())) ** 2:
        return 0.0  # rounding of means
    return math.sqrt(2 * squares / ((n - 1) * (slots - 1)))
