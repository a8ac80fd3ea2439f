"""At which rank a retriever of a given strength puts the document that holds the fact."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float64

from catenary.errors import invalid

REACH, STEPS = 9.0, 1801
"""The trapezium rule over +-9 standard deviations in steps of .01, which converges faster than any power of the step:
against adaptive quadrature the shares differ by at most 2e-15 at 20 documents and 2e-11 at 1,000."""


def rank_shares(documents: int, separation: float) -> Float64[np.ndarray, " K"]:
    r"""Probability of each rank of the fact's document among K, rank 0 being the top.

    The retriever scores it N(d', 1) and the K-1 others N(0, 1), independently. With r others above it,
    \(P_r=\binom{K-1}{r}\int\phi(s-d')\,(1-\Phi(s))^r\,\Phi(s)^{K-1-r}\,ds\). \(d'=0\) gives 1/K each; ``inf`` is a
    perfect retriever. Integrated over s, not sampled.

    Raises:
        InvalidInput: for fewer than one document or a separation below 0.
    """
    from scipy.special import gammaln, log_ndtr

    if documents < 1:
        raise invalid("documents", "must be at least 1", documents)
    if not separation >= 0:
        raise invalid("separation", "must be at least 0", separation, "0 is a retriever that knows nothing")
    others = documents - 1
    if math.isinf(separation):
        return np.asarray(np.eye(documents)[0])
    node, weight = _nodes()
    s = separation + node
    r = np.arange(documents)[:, None]
    count = gammaln(documents) - gammaln(r + 1) - gammaln(documents - r)
    shares = np.exp(count + r * log_ndtr(-s) + (others - r) * log_ndtr(s)) @ weight
    return np.asarray(shares, dtype=np.float64)


def _nodes() -> tuple[Float64[np.ndarray, " m"], Float64[np.ndarray, " m"]]:
    """Points and weights of an integral against the standard normal density."""
    node = np.linspace(-REACH, REACH, STEPS)
    weight = np.exp(-(node**2) / 2)
    return node, weight / weight.sum()
