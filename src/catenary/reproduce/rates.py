"""Rates: the exponent of a power law through measured points, with a 95 % interval from the points' own errors."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from catenary.errors import invalid

Points = Float64[np.ndarray, " n"]


@dataclass(frozen=True)
class Rate:
    r"""The exponent p of \(y \propto x^p\) and its 95 % interval."""

    exponent: float
    low: float
    high: float


def power_law(x: Points, y: Points, errors: Points | None = None) -> Rate:
    r"""Fit \(\log y = p \log x + q\), weighted by the relative errors where given.

    Args:
        x, y: n > 2 positive points.
        errors: one standard error of each y. The interval is then 1.96 standard errors of the slope, widened by the
            root of chi-square per degree of freedom where the points scatter by more; without errors it comes from
            the residuals, with Student's factor of n - 2 degrees of freedom.

    Raises:
        InvalidInput: fewer than three points, or one that is not positive.
    """
    from scipy.stats import t as student

    n = len(x)
    if n < 3 or (x <= 0).any() or (y <= 0).any():
        raise invalid("points", "must be three or more, all positive", (x.tolist(), y.tolist()))
    weights = np.ones(n) if errors is None else y / errors
    design = np.stack([np.log(x), np.ones(n)], axis=1) * weights[:, None]
    solution, *_ = np.linalg.lstsq(design, np.log(y) * weights)
    misfit = float(((design @ solution - np.log(y) * weights) ** 2).sum()) / (n - 2)
    variance = float(np.linalg.inv(design.T @ design)[0, 0])
    if errors is None:
        half = float(student.ppf(0.975, n - 2)) * math.sqrt(variance * misfit)
    else:
        half = 1.96 * math.sqrt(variance * max(1.0, misfit))
    return Rate(float(solution[0]), float(solution[0]) - half, float(solution[0]) + half)
