"""Slow, obvious versions of the first-moment law: dense matrices, exact integers, the paper's alternating sum."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import mpmath as mp
import numpy as np


def dense_kernel(length: int) -> np.ndarray:
    """The Cesàro matrix, entry by entry."""
    matrix = np.zeros((length, length))
    for query in range(length):
        for key in range(query + 1):
            matrix[query, key] = 1 / (query + 1)
    return matrix


def dense_row(length: int, mixings: Sequence[float]) -> np.ndarray:
    """Last row of the product of dense mixing matrices."""
    product = np.eye(length)
    for a in mixings:
        product = product @ ((1 - a) * np.eye(length) + a * dense_kernel(length))
    return product[-1]


def dense_product(kernel: np.ndarray, mixings: Sequence[float]) -> np.ndarray:
    """Product of dense mixing matrices of any kernel."""
    product = np.eye(len(kernel))
    for a in mixings:
        product = product @ ((1 - a) * np.eye(len(kernel)) + a * kernel)
    return product


def log_row(length: int, mixings: Sequence[float]) -> np.ndarray:
    """Logarithm of the row by log-sums of every layer."""
    log_counts = np.log(np.arange(1.0, length + 1))
    v = np.full(length, -np.inf)
    v[-1] = 0.0
    for a in mixings:
        if a > 0:
            through = np.log(a) + np.logaddexp.accumulate((v - log_counts)[::-1])[::-1]
            v = through if a == 1 else np.logaddexp(np.log1p(-a) + v, through)
    return v


def exact_path_sum(length: int, squared_gains: Sequence[Fraction]) -> list[Fraction]:
    """Sum over r of e_r times the squared power, e_r by summing over all sets of layers."""
    total = [Fraction(0)] * length
    for size in range(len(squared_gains) + 1):
        symmetric = sum(math.prod(chosen, start=Fraction(1)) for chosen in itertools.combinations(squared_gains, size))
        power = exact_row(length, [Fraction(1)] * size)
        total = [so_far + symmetric * entry**2 for so_far, entry in zip(total, power, strict=True)]
    return total


def exact_row(length: int, mixings: Sequence[Fraction]) -> list[Fraction]:
    """The same row without rounding: whole numbers over one common denominator, double loops over positions."""
    common = math.lcm(*range(1, length + 1))
    row, denominator = [0] * (length - 1) + [1], 1
    for a in mixings:
        p, q = a.numerator, a.denominator
        row = [
            (q - p) * common * row[j] + p * sum(row[i] * (common // (i + 1)) for i in range(j, length))
            for j in range(length)
        ]
        denominator *= q * common
    return [Fraction(value, denominator) for value in row]


def alternating_row(length: int, layers: int, mixing: Fraction, *, exact: bool) -> list[Fraction] | list[float]:
    """The law as arXiv 2603.10123, section 3.1, prints it, in rationals or in float64."""
    number = Fraction if exact else float
    a = number(mixing)
    row = []
    for j in range(1, length + 1):
        total = (1 - a) ** layers if j == length else number(0)
        for r in range(1, layers + 1):
            inner = number(0)
            for m in range(j, length + 1):
                inner += number((-1) ** (m - j) * math.comb(length - j, m - j)) * (number(1) / number(m)) ** r
            paths = number(math.comb(layers, r)) * a**r * (1 - a) ** (layers - r)
            total += paths * number(math.comb(length - 1, j - 1)) * inner
        row.append(total)
    return row


def exact_point(length: int, layers: int, mixing: float, position: int) -> mp.mpf:
    """One path weight at any length, from zeta and digamma functions; call it with enough working digits."""
    a, j = mp.mpf(mixing), position + 1
    power = [mp.psi(0, length + 1) - mp.psi(0, j)]
    power += [mp.zeta(k, j) - mp.zeta(k, length + 1) for k in range(2, layers)]
    h = [mp.mpf(1)]
    for r in range(1, layers):
        h.append(sum(power[k - 1] * h[r - k] for k in range(1, r + 1)) / r)
    weight = sum(mp.binomial(layers, r) * a**r * (1 - a) ** (layers - r) * h[r - 1] for r in range(1, layers + 1))
    return weight / length + ((1 - a) ** layers if j == length else 0)


def density(x: mp.mpf, layers: int, mixing: float) -> mp.mpf:
    """The continuous density by mpmath's Laguerre polynomial, or its limit at mixing 1."""
    t, a = -mp.log(x), mp.mpf(mixing)
    if mixing == 1:
        return t ** (layers - 1) / mp.factorial(layers - 1)
    return a * (1 - a) ** (layers - 1) * mp.laguerre(layers - 1, 1, -a * t / (1 - a))


def beta_smoothed(length: int, layers: int, mixing: float, position: int) -> mp.mpf:
    """E[density(X)]/L for X ~ Beta(j, L-j+1), plus the point mass at the last position, by quadrature."""
    j = position + 1

    def integrand(x: mp.mpf) -> mp.mpf:
        return x ** (j - 1) * (1 - x) ** (length - j) * density(x, layers, mixing) / mp.beta(j, length - j + 1)

    cuts = [0, mp.mpf("0.01"), mp.mpf("0.1"), mp.mpf("0.5"), 1]
    return mp.quad(integrand, cuts) / length + ((1 - mp.mpf(mixing)) ** layers if j == length else 0)
