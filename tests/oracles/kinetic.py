"""The kinetic closed forms as the series and integrals that define them, with 50 digits; nothing of the package."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import mpmath as mp
import numpy as np

DIGITS = 50


def graphon(sigma: mp.mpf, sigma0: mp.mpf, lam: mp.mpf) -> mp.mpf:
    if lam == 0:
        return 1 / sigma
    return lam * mp.exp(-lam * (sigma - sigma0)) / (1 - mp.exp(-lam * sigma))


def distance(sigma: mp.mpf, sigma0: mp.mpf, lam: mp.mpf) -> mp.mpf:
    if lam == 0:
        return mp.log(sigma / sigma0)
    return mp.log(mp.expm1(lam * sigma) / mp.expm1(lam * sigma0))


def psi(c: mp.mpf, y: mp.mpf) -> mp.mpf:
    """Sum of c^(k+1) y^k / (k! (k+1)!), term by term."""
    term, total, k = mp.mpf(c), mp.mpf(0), 0
    while term > total * mp.mpf(10) ** (-DIGITS) or k * (k + 1) < c * y:
        total += term
        k += 1
        term *= c * y / (k * (k + 1))
    return total


def response(c: float, sigma: float, sigma0: float, lam: float) -> mp.mpf:
    with mp.workdps(DIGITS):
        c, sigma, sigma0, lam = (mp.mpf(value) for value in (c, sigma, sigma0, lam))
        return graphon(sigma, sigma0, lam) * psi(c, distance(sigma, sigma0, lam))


def rate(mode: int, beta: float) -> mp.mpf:
    return mode**2 * mp.besseli(mode, mp.mpf(beta))


def profile(sigma0: mp.mpf, lam: float, beta: float, t: float, M: float, modes: int = 60) -> mp.mpf:
    """Sum over far more modes than count."""
    one, lam = mp.mpf(1), mp.mpf(lam)
    y = distance(one, sigma0, lam)
    weights = [mp.exp(-(mp.pi**2) * n**2 / (2 * mp.mpf(M) ** 2)) for n in range(1, modes + 1)]
    return graphon(one, sigma0, lam) * mp.fsum(w * psi(rate(n, beta) * t, y) for n, w in enumerate(weights, 1))


def slope_changes(values: np.ndarray) -> int:
    """How often a sampled curve turns."""
    steps = np.sign(np.diff(values))
    return int((steps[1:] != steps[:-1]).sum())


def attention(tokens: int, b: Callable[[float], float]) -> np.ndarray:
    """Strictly causal weights, row by row: b((j-k)/N)/Z_j for k < j."""
    weights = np.zeros((tokens, tokens))
    for j in range(1, tokens):
        row = [b((j - k) / tokens) for k in range(j)]
        weights[j, :j] = np.array(row) / sum(row)
    return weights


def falling_ratio(weights: Sequence[float], rates: Sequence[float], y: float) -> mp.mpf:
    """Psi/Psi' from the two power series."""
    zeroth = mp.fsum(w * psi(mp.mpf(c), mp.mpf(y)) for w, c in zip(weights, rates, strict=True))
    first = mp.fsum(w * mp.mpf(c) ** 2 / 2 * mp.hyp0f1(3, mp.mpf(c) * y) for w, c in zip(weights, rates, strict=True))
    return zeroth / first
