r"""The first-moment law of arXiv 2603.10123: how much path weight joins the last token to each position.

Every layer mixes with \(N_l = (1-\alpha_l) I + \alpha_l M\), \(M\) the Cesàro matrix. The law is the last row of
\(\prod_l N_l\). The paper prints it as an alternating sum (section 3.1), which float64 cannot evaluate from L = 36 on;
the three routes here add positive numbers only. All \(N_l\) commute, so the order of the layers does not matter.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import numpy as np
from jaxtyping import Float64

from catenary.architecture import Architecture
from catenary.errors import NotApplicable, invalid
from catenary.profile import Profile
from catenary.protocols import TokenLaw
from catenary.quantity import PATH_WEIGHT
from catenary.theory.firstmoment import (
    Mixing,
    first_moment_card,
    first_moment_provenance,
    layer_mixing,
    mixing_option,
    mixing_words,
    path_counts,
)
from catenary.theory.kernels import Uniform
from catenary.theory.powersums import power_sums
from catenary.theory.theories import THEORIES

SMALLEST = float(np.finfo(np.float64).tiny / np.finfo(np.float64).eps)
"""Below this (1e-292) a sum of float64 products may have lost terms to underflow."""


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
    mixings, kernel = layer_mixing(layers, mixing), Uniform(_checked_length(length))
    v = np.zeros(length)
    v[-1] = 1.0
    for a in mixings:
        v = (1 - a) * v + a * kernel.adjoint(v)
    if v.min() < SMALLEST:
        raise _underflow(v.min())
    return v


def cesaro_log_row(length: int, layers: int, mixing: Mixing) -> Float64[np.ndarray, " L"]:
    r"""Natural logarithm of ``cesaro_row``, by the same recursion in log space; nothing underflows.

    Absolute error of order 1e-16 times the size of the logarithm itself. Several times slower than ``cesaro_row``,
    and needed only near mixing 1, where \((M^H)_{L,L} = L^{-H}\). Source: derived here.

    Raises:
        InvalidInput: an argument is out of range.
    """
    mixings = layer_mixing(layers, mixing)
    log_counts = np.log(Uniform(_checked_length(length)).counts)
    v = np.full(length, -np.inf)
    v[-1] = 0.0
    for a in mixings[mixings > 0]:
        through = np.log(a) + np.logaddexp.accumulate((v - log_counts)[::-1])[::-1]
        v = through if a == 1 else np.logaddexp(np.log1p(-a) + v, through)
    return v


def cesaro_point(length: int, layers: int, mixing: Mixing, position: int) -> float:
    r"""The path weight of one position, in O(H^2) and independent of L.

    \((M^r)_{L,j} = \frac1L h_{r-1}(\frac1j, \dots, \frac1L)\), the complete homogeneous symmetric polynomial, so the
    weight is \(\delta_{jL} c_0 + \frac1L \sum_{r \ge 1} c_r h_{r-1}\) with c of ``path_counts``. Newton's identities
    \(r h_r = \sum_{k=1}^{r} p_k h_{r-k}\) build h from the power sums \(p_k = \sum_{m=j}^{L} m^{-k}\); every term is
    positive. Relative error of order H times 1e-16. Source: derived here.

    Args:
        length: number of positions L >= 2; any size, nothing of size L is allocated.
        layers: number of layers H >= 1.
        mixing: alpha in [0, 1], one number or one per layer, not 0 in every layer.
        position: 0-based, 0 <= position < L.

    Raises:
        InvalidInput: an argument is out of range.
        NotApplicable: the weight is below 1e-292.
    """
    counts = path_counts(layers, mixing)
    _checked_length(length)
    if not 0 <= position < length:
        raise invalid("position", f"must be in 0..{length - 1} (0-based)", position)
    sums = power_sums(position + 1, length, max(layers - 1, 1))
    # Newton's identities for the variables 1/(m p_1): their h_r stay between 1/r! and 1, whatever L is.
    h = np.ones(layers)
    for r in range(1, layers):
        h[r] = np.dot(sums.scaled[:r], h[r - 1 :: -1]) / r
    weight = float(np.dot(counts[1:], sums.first ** np.arange(layers) * h)) / length
    if position == length - 1:
        weight += float(counts[0])
    if weight < SMALLEST:
        raise _underflow(weight)
    return weight


@final
class Cesaro:
    """The paper's discrete law as a theory. It needs ``mixing``: no formula for it from a config is known to fit."""

    name = "cesaro"
    summary = "first-moment path weights of arXiv 2603.10123; needs mixing=..."

    def predict(
        self, architecture: Architecture, length: int, tokens: TokenLaw, options: Mapping[str, Any]
    ) -> Profile:
        """Path weights at the architecture's depth; ``options`` holds ``mixing``, one number or one per layer.

        The law does not know the tokens: ``tokens`` is not used.

        Raises:
            InvalidInput: ``mixing`` is missing or out of range, ``length`` < 2, or an option is unknown.
            NotApplicable: a weight is below 1e-292 (mixing close to 1 and many layers).
        """
        mixing = mixing_option(self.name, options)
        values = cesaro_row(length, architecture.depth, mixing)
        return Profile(
            values,
            PATH_WEIGHT,
            f"paper's law, {mixing_words(mixing)}",
            "expectation",
            card=first_moment_card(architecture, length),
            provenance=first_moment_provenance(self.name, architecture, length, mixing),
        )


def _checked_length(length: int) -> int:
    if not isinstance(length, int | np.integer) or isinstance(length, bool) or length < 2:
        raise invalid("length", "must be a whole number >= 2", length)
    return length


def _underflow(weight: float) -> NotApplicable:
    return NotApplicable(
        f"the path weights must stay above {SMALLEST:.1g} to be float64 numbers, got {weight:.3g}; "
        "use cesaro_log_row, which returns their logarithms"
    )


CESARO = THEORIES.register("cesaro", Cesaro())
