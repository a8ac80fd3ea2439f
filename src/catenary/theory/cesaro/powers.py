r"""Powers of the Cesàro matrix without residual: all of \((M^r)_{L,j}\), r = 1..R, in one go.

One power alone is ``cesaro_row(length, r, 1.0)``, and one entry of it ``cesaro_point(length, r, 1.0, position)``.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64

from catenary.errors import NotApplicable
from catenary.theory.cesaro.first_moment import SMALLEST, checked_length, checked_positive
from catenary.theory.positions.kernels import Uniform


def cesaro_powers(length: int, count: int) -> Float64[np.ndarray, "{count} L"]:
    r"""Last rows of \(M, M^2, \dots\): row r - 1 holds \((M^r)_{L,j} = \frac1L h_{r-1}(\frac1j, \dots, \frac1L)\).

    Each is the adjoint average of the one before, in O(L) with additions of positive numbers. Rows sum to 1.
    Source: arXiv 2603.10123, section 3.1; the recursion is derived here.

    Args:
        length: number of positions L >= 2.
        count: number of powers R >= 1; the answer takes 8 R L bytes.

    Raises:
        InvalidInput: an argument is out of range.
        NotApplicable: a value is below 1e-292, that is R log10 L > 292; ``cesaro_log_row`` with mixing 1 has one power.

    >>> cesaro_powers(4, 2).round(4).tolist()
    [[0.25, 0.25, 0.25, 0.25], [0.5208, 0.2708, 0.1458, 0.0625]]
    """
    kernel = Uniform(checked_length(length))
    rows = np.empty((checked_positive("count", count), length))
    row = np.zeros(length)
    row[-1] = 1.0
    for out in rows:
        row = out[:] = kernel.adjoint(row)
    if rows[-1, -1] < SMALLEST:
        raise NotApplicable(
            f"the powers must stay above {SMALLEST:.1g} to be float64 numbers, got {rows[-1, -1]:.3g}; "
            "use cesaro_log_row with mixing 1"
        )
    return rows
