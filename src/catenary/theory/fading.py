r"""Energies far behind the memory of decays, where paths take the gentlest slope only.

With slope m each layer lets both tokens of a pair hop, with the same weights and so with a common factor g, or leaves
both. Paths that cover a distance t in n of H layers add \(\binom Hn g^n\left[\frac{t^{n-1}}{(n-1)!}e^{-mt}\right]^2\).
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64
from scipy.special import gammaln, logsumexp

TINY = float(np.finfo(np.float64).tiny)
"""The smallest normal number stands for all below it."""


def faded(
    near: Float64[np.ndarray, " n"], length: int, told: int, memory: float, layers: int
) -> Float64[np.ndarray, " L"]:
    r"""Energies of the last ``told`` positions as they are in ``near``, and before them

    \[E(t) \propto e^{-2t/memory}\sum_{n=1}^H\binom Hn\left[\frac{(\gamma t)^{n-1}}{(n-1)!}\right]^2,\]

    \(\gamma\) such that the last memory that is told falls as it does. Right asymptotically for one slope in each of H
    layers; others join in while their memories are near the longest. At least the smallest normal number. Derived here.

    Args:
        near: energies of at least the last ``told`` positions, > 0.
        length: L.
        told: positions behind which energies are continued.
        memory: 1/m of the gentlest slope.
        layers: H.
    """
    back = max(1, min(int(memory), told - 1))
    at = np.log(near[[near.size - told, near.size - told + back]])
    times = np.array([told - 1.0, told - 1.0 - back]) / memory
    gain = _gain(float(at[0] - at[1] + 2 * (times[0] - times[1])), times, layers)
    behind = np.arange(length - 1, told - 1, -1) / memory
    logs = at[0] - 2 * (behind - times[0]) + _log_paths(gain * behind, layers) - _log_paths(gain * times[:1], layers)
    return np.asarray(np.maximum(np.concatenate((np.exp(logs), near[-told:])), TINY))


def _gain(growth: float, times: Float64[np.ndarray, " 2"], layers: int) -> float:
    r"""The \(\gamma\) at which paths' logarithm grows by ``growth`` between two times; 0 or huge where none does."""
    low, high = -30.0, 30.0
    for _ in range(60):
        middle = (low + high) / 2
        first, second = _log_paths(np.exp(middle) * times, layers)
        low, high = (middle, high) if first - second < growth else (low, middle)
    return float(np.exp(low))


def _log_paths(x: Float64[np.ndarray, " t"], layers: int) -> Float64[np.ndarray, " t"]:
    r"""\(\ln\sum_{n=1}^H\binom Hn[x^{n-1}/(n-1)!]^2\), straight between 1000 values of ln x where there are more."""
    n = np.arange(1.0, layers + 1.0)
    weights = gammaln(layers + 1) - gammaln(n + 1) - gammaln(layers - n + 1) - 2 * gammaln(n)
    logs = np.log(np.maximum(x, TINY))
    known = np.linspace(logs.min(), logs.max(), 1000) if x.size > 1000 else logs
    values = np.asarray(logsumexp(weights + 2 * known[:, None] * (n - 1), axis=1))
    return np.asarray(np.interp(logs, known, values) if x.size > 1000 else values)
