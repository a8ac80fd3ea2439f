"""Where the published code of arXiv 2602.16837 departs from what it describes, each departure with its own name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from catenary.errors import invalid, unknown

COMMIT = "ml-uhh-a514e09"
"""GitHub ml-uhh/position-bias, commit a514e09: the word that switches all departures on."""

DEPARTURES: Mapping[str, str] = {
    "content-in-first-heads": "a content prior given for n heads reaches the first n only; the others get none",
    "one-series-slopes": "ALiBi slopes 2^(-8(h+1)/n) for any n; BLOOM with n no power of two has another series",
    "bare-slope": "Falcon's slopes without the factor 1/sqrt(head_dim) that its attention multiplies them by",
    "unscaled-content": "q.k enters the softmax without the factor that the attention multiplies it by",
    "clipped-strengths": "strengths outside [0, 1] are cut to that range in silence",
}
"""What ``compat`` can ask for, and what each one is."""


def departures(compat: str | None) -> frozenset[str]:
    """The departures that ``compat`` names: none, all of ``COMMIT``, or a comma-separated list of single ones.

    Raises:
        InvalidInput: an unknown name.

    >>> sorted(departures("bare-slope,unscaled-content"))
    ['bare-slope', 'unscaled-content']
    """
    if compat is None:
        return frozenset()
    if compat == COMMIT:
        return frozenset(DEPARTURES)
    names = frozenset(str(compat).split(","))
    for name in sorted(names - frozenset(DEPARTURES)):
        raise unknown("compat", name, (COMMIT, *DEPARTURES))
    return names


def one_series_slopes(heads: int) -> Float64[np.ndarray, " {heads}"]:
    r"""\(2^{-8(h+1)/n}\), h = 0..n-1: ALiBi's slopes for n a power of two, and the published code's for every n."""
    return np.asarray(2.0 ** (-8.0 * np.arange(1, heads + 1) / heads))


@dataclass(frozen=True)
class PublishedFigures:
    """The two figures of the published notebook: rank correlation, and Wasserstein-1 over positions / (n - 1)."""

    spearman: float
    wasserstein: float


def published_figures(
    predicted: Float64[np.ndarray, " L"], measured: Float64[np.ndarray, " M"]
) -> PublishedFigures:
    r"""Spearman's rank correlation and \(W_1/(n-1)\) of two profiles, each normalised to sum 1 over the first n.

    n is the shorter length. The published tables round them to 2 and 4 digits. ``compare`` has W1 over x = j/L, which
    is (n-1)/n of this one, and figures that can judge. Source: ``influence_stats.ipynb`` of the published code.

    Args:
        predicted, measured: values >= 0, at least two positions, not constant.

    Raises:
        InvalidInput: a value is negative, or all are 0 or equal.
    """
    from scipy.stats import spearmanr, wasserstein_distance  # slow to import

    n = min(predicted.size, measured.size)
    sides = []
    for name, values in (("predicted", predicted[:n]), ("measured", measured[:n])):
        if n < 2 or not (values >= 0).all() or np.ptp(values) == 0:
            raise invalid(name, "must hold at least 2 values >= 0, not all equal", f"{values.size} values")
        sides.append(values / values.sum())
    positions = np.arange(n)
    return PublishedFigures(
        float(spearmanr(*sides).statistic),
        float(wasserstein_distance(positions, positions, *sides)) / (n - 1),
    )
