r"""Logarithms of the first-moment row at the same cost as the row itself, where its values leave float64's range.

Dividing every share \(q_i\) by \(\lambda\) and taking \(b_l = a_l\lambda/s_l\), \(s_l = 1 - a_l + a_l\lambda\), for
the mixings changes the row by the one factor \(\prod_l s_l\): a path through r branches gains \(\lambda^{-r}\) from
the shares and \(\lambda^r\) from the mixings. So the recursion for the row also gives the row tilted to any size. The
first stretch of positions is read from the untilted row; where its values become too small, the rest is done again
with the smaller \(\lambda\) that makes the first of the rest 1e100; and so on. The rest needs no earlier position, and
it shrinks with \(\lambda\), so all further passes together cost about as much as the first.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64

from catenary.errors import NotApplicable
from catenary.theory.cesaro.first_moment import SMALLEST, Mixing, checked_length, layer_mixing
from catenary.theory.cesaro.row import cesaro_log_point, mixed_row
from catenary.theory.positions.kernels import Uniform

TOP = 100 * float(np.log(10))
"""Log of the largest value of a tilted row. With 1000 layers the values between layers are up to 1e100 larger."""


def cesaro_log_row(length: int, layers: int, mixing: Mixing) -> Float64[np.ndarray, " L"]:
    r"""Natural logarithm of ``cesaro_row``; nothing underflows.

    Absolute error of order 1e-16 times (H + sqrt L + the size of the logarithm). Needed near mixing 1, where
    \((M^H)_{L,L} = L^{-H}\). Source: derived here (docs/cesaro.md).

    Args:
        length: number of positions L >= 2.
        layers: number of layers H >= 1.
        mixing: alpha in [0, 1], one number or one per layer, not 0 in every layer.

    Raises:
        InvalidInput: an argument is out of range.
        NotApplicable: more than about 1500 layers near mixing 1, whose values between layers leave float64's range.
    """
    mixings, shares = layer_mixing(layers, mixing), 1 / Uniform(checked_length(length)).counts
    logs = np.empty(length)
    logs[-1] = np.log(1 - mixings + mixings / length).sum()
    done, tilt = 0, 1.0
    while done < length - 1:
        scales = 1 - mixings + mixings * tilt
        with np.errstate(over="ignore", invalid="ignore"):
            body = mixed_row(shares[done:] / tilt, mixings * tilt / scales)[:-1]
        inside = (body > SMALLEST) & (body < 1 / SMALLEST)
        good = len(body) if inside.all() else int(inside.argmin())
        if not good:
            raise NotApplicable(
                f"the log row holds for about 1500 layers near mixing 1, got {layers}; use cesaro_log_point"
            )
        logs[done : done + good] = np.log(body[:good]) + np.log(scales).sum()
        done += good
        if done < length - 1:
            tilt = _tilt(mixings, cesaro_log_point(length, layers, mixing, done) - TOP, tilt)
    return logs


def _tilt(mixings: Float64[np.ndarray, " H"], target: float, upper: float) -> float:
    r"""The \(\lambda\) < ``upper`` with \(\sum_l \ln(1 - a_l + a_l\lambda)\) = ``target``, by bisection of its log."""
    low, high = np.log(SMALLEST), np.log(upper)
    for _ in range(60):  # leaves 1e-15 of the interval
        middle = (low + high) / 2
        if np.log(1 - mixings + mixings * np.exp(middle)).sum() < target:
            low = middle
        else:
            high = middle
    return float(np.exp(high))
