"""Synthetic windows for untrained networks: independent random vectors, and tokens by Zipf's law."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64, Int64

from catenary.errors import invalid
from catenary.text.excerpts import check_request
from catenary.text.windows import Windows

# Of Qwen2; the exponent 1 is Zipf's own and close to that of English words.
VOCABULARY = 151_936


def random_windows(length: int, count: int, seed: int) -> Windows:
    """``count`` windows of L = ``length`` distinct tokens fed as independent Gaussian vectors.

    ids[w, j] = j: no two tokens of a window are equal. The vectors are drawn by whoever runs the network, from
    ``seed``, for every window anew, with the standard deviation of its embedding.

    Raises ``InvalidInput`` if ``length`` < 2, ``count`` < 1 or ``seed`` < 0.
    """
    check_request(length, count, seed)
    ids = np.tile(np.arange(length, dtype=np.int64), (count, 1))
    return Windows(ids, "random", "gaussian", seed, {"repeat_probability": 0.0})


def zipf_windows(
    length: int, count: int, seed: int, vocabulary: int = VOCABULARY, exponent: float = 1.0
) -> Windows:
    """``count`` windows of L = ``length`` independent tokens with p(id) ∝ (id + 1)^-s, s = ``exponent``.

    Ids run from 0, the most frequent, to ``vocabulary`` - 1. They repeat as tokens of text do, which random vectors
    never do: two tokens of a window are equal with probability ``report["repeat_probability"]`` = sum_k p_k^2.

    Raises ``InvalidInput`` if ``length`` < 2, ``count`` < 1, ``seed`` < 0, ``vocabulary`` < 1 or ``exponent`` < 0.
    """
    check_request(length, count, seed)
    probability = _zipf(vocabulary, exponent)
    edges = np.cumsum(probability)
    draws = np.random.default_rng(seed).random((count, length))
    # The sum of the probabilities can end a rounding error below 1, and a draw can fall above it.
    ids = np.minimum(np.searchsorted(edges, draws, side="right"), vocabulary - 1)
    report = {
        "vocabulary": vocabulary,
        "exponent": exponent,
        "repeat_probability": zipf_repeat_probability(vocabulary, exponent),
    }
    return Windows(ids, "zipf", "model", seed, report)


def zipf_repeat_probability(vocabulary: int = VOCABULARY, exponent: float = 1.0) -> float:
    """Probability that two independent Zipf tokens are equal: sum_k p_k^2, p_k = k^-s / sum_m m^-s, k = 1..M.

    .010513 for M = 151,936 and s = 1; 1/M for s = 0. Exact up to rounding. Derived here.

    Raises ``InvalidInput`` if ``vocabulary`` < 1 or ``exponent`` < 0.
    """
    return float(np.sum(_zipf(vocabulary, exponent) ** 2))


def repeat_probability(ids: Int64[np.ndarray, " *shape"]) -> float:
    """Share of the pairs i < j of a window that are the same token: sum_t n_t (n_t - 1) / (L (L - 1)), in [0, 1].

    n_t is how often token t occurs in the window. ``ids`` is one window (L,) or several (n, L), whose mean is
    returned; pairs across windows do not count. Unbiased for sum_k p_k^2 if the tokens are independent. Derived here.

    Raises ``InvalidInput`` if L < 2 or ``ids`` has another number of axes.
    """
    windows = np.atleast_2d(ids)
    if windows.ndim != 2 or windows.shape[0] < 1 or windows.shape[1] < 2:
        raise invalid("ids", "must have shape (L,) or (n, L) with L >= 2", f"shape {np.shape(ids)}")
    length = windows.shape[1]
    counts = [np.unique(window, return_counts=True)[1] for window in windows]
    return float(np.mean([np.sum(n * (n - 1)) for n in counts]) / (length * (length - 1)))


def _zipf(vocabulary: int, exponent: float) -> Float64[np.ndarray, " M"]:
    if vocabulary < 1:
        raise invalid("vocabulary", "must be >= 1", vocabulary)
    if not 0 <= exponent < np.inf:
        raise invalid("exponent", "must be finite and >= 0", exponent)
    weight = np.arange(1, vocabulary + 1, dtype=np.float64) ** -exponent
    return np.asarray(weight / weight.sum())
