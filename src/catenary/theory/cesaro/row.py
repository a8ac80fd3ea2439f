r"""The first-moment law of arXiv 2603.10123: how much path weight joins the last token to each position.

Every layer mixes with \(N_l = (1-\alpha_l) I + \alpha_l M\), \(M\) the Cesàro matrix. The law is the last row of
\(\prod_l N_l\). The paper prints it as an alternating sum (section 3.1), which float64 cannot evaluate from L = 36 on;
the three routes here add positive numbers only. All \(N_l\) commute, so the order of the layers does not matter.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64

from catenary.errors import NotApplicable
from catenary.theory.cesaro.first_moment import (
    SMALLEST,
    FirstMomentTheory,
    Mixing,
    checked_length,
    checked_position,
    layer_mixing,
    scaled_path_counts,
)
from catenary.theory.cesaro.moments import log_moments
from catenary.theory.cesaro.scaled import Scaled
from catenary.theory.cesaro.stream import stream_row
from catenary.theory.positions.kernels import Uniform
from catenary.theory.theories import THEORIES

STREAM_FROM = 10**7
"""Layers times positions from which one compiled pass is used; below, 0.05 s of cumulative sums cost less than numba's
import (0.5 s, once) is worth."""


def cesaro_row(length: int, layers: int, mixing: Mixing) -> Float64[np.ndarray, " L"]:
    r"""Path weights \((\prod_l N_l)_{L,j}\), j = 1..L (index 0 is the first token), in O(HL).

    From \(v = e_L\), each layer does \(v_j \leftarrow (1-\alpha_l) v_j + \alpha_l \sum_{i \ge j} v_i / i\).
    The weights are positive, sum to 1, and fall with j up to L-1. Exact up to a relative rounding error of order
    (H + sqrt L) times 1e-16. Source: arXiv 2603.10123, section 3.1 (the law); the recursion is derived here.

    Args:
        length: number of positions L >= 2.
        layers: number of layers H >= 1.
        mixing: alpha in [0, 1], one number or one per layer, not 0 in every layer.

    Raises:
        InvalidInput: an argument is out of range.
        NotApplicable: a weight is below 1e-292 (mixing close to 1 and H log10 L > 292); ``cesaro_log_row`` has it.

    >>> cesaro_row(4, 2, 1.0).round(4).tolist()  # 25/48, 13/48, 7/48, 1/16
    [0.5208, 0.2708, 0.1458, 0.0625]
    """
    mixings, counts = layer_mixing(layers, mixing), Uniform(checked_length(length)).counts
    row = mixed_row(1 / counts, mixings)
    if row.min() < SMALLEST:
        raise _underflow(float(row.min()))
    return row


def mixed_row(shares: Float64[np.ndarray, " L"], mixings: Float64[np.ndarray, " H"]) -> Float64[np.ndarray, " L"]:
    """The row of ``stream_row``, by the route that is faster at this size; nothing is checked."""
    return (stream_row if shares.size * mixings.size >= STREAM_FROM else layerwise_row)(shares, mixings)


def layerwise_row(shares: Float64[np.ndarray, " L"], mixings: Float64[np.ndarray, " H"]) -> Float64[np.ndarray, " L"]:
    """``stream_row`` layer by layer with one cumulative sum each: the same numbers, H walks through memory."""
    row = np.zeros(len(shares))
    row[-1] = 1.0
    for a in mixings:
        row = (1 - a) * row + a * np.cumsum((row * shares)[::-1])[::-1]
    return row


def cesaro_point(length: int, layers: int, mixing: Mixing, position: int) -> float:
    r"""The path weight of one position, in O(H^2) and independent of L.

    \((M^r)_{L,j} = \frac1L h_{r-1}(\frac1j, \dots, \frac1L)\), the complete homogeneous symmetric polynomial of
    ``log_moments``, so the weight is \(\delta_{jL} c_0 + \frac1L \sum_{r \ge 1} c_r h_{r-1}\) with c of
    ``path_counts``. Relative error of order H times 1e-16. Source: derived here.

    Args:
        length: number of positions L >= 2; any size, nothing of size L is allocated.
        layers: number of layers H >= 1.
        mixing: alpha in [0, 1], one number or one per layer, not 0 in every layer.
        position: 0-based, 0 <= position < L.

    Raises:
        InvalidInput: an argument is out of range.
        NotApplicable: the weight is below 1e-292; ``cesaro_log_point`` has it.
    """
    weight = float(_point(length, layers, mixing, position).values())
    if weight < SMALLEST:
        raise _underflow(weight)
    return weight


def cesaro_log_point(length: int, layers: int, mixing: Mixing, position: int) -> float:
    """Natural logarithm of ``cesaro_point``, also where the weight itself is below every float64.

    Absolute error of order 1e-16 times (H + the size of the logarithm). Source: derived here.

    Raises:
        InvalidInput: an argument is out of range.
    """
    return float(_point(length, layers, mixing, position).log())


def _point(length: int, layers: int, mixing: Mixing, position: int) -> Scaled:
    counts = scaled_path_counts(layers, mixing)
    position = checked_position("position", position, checked_length(length))
    weight = counts[1:].times(log_moments(length, position, layers)).total().times(Scaled.of(1 / length))
    return weight.plus(counts[0]) if position == length - 1 else weight


def _underflow(weight: float) -> NotApplicable:
    return NotApplicable(
        f"the path weights must stay above {SMALLEST:.1g} to be float64 numbers, got {weight:.3g}; "
        "use cesaro_log_row or cesaro_log_point, which return logarithms"
    )


CESARO = THEORIES.register(
    "cesaro",
    FirstMomentTheory(
        "cesaro", "first-moment path weights of arXiv 2603.10123; needs mixing=...", "paper's law", cesaro_row
    ),
)
