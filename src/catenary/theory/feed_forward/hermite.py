r"""Hermite series of functions of a Gaussian: \(E[f(su)g(tv)]\) as a power series in the correlation of u and v."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Float64

from catenary.errors import NotApplicable

Array = Float64[np.ndarray, " *shape"]
Function = Callable[[Array], Array]

TERMS = 256
"""Most terms of a series, the remainder apart."""

TAIL = 1e-10
"""A series ends where the terms left out hold less than this share of E[f^2]."""

WORST_TAIL = 1e-2
"""Refused when TERMS terms leave more than this share of E[f^2] out. What is left out is put on the last power, so
only correlations above .97 see an error at all, and it is below this share."""

REACH = 13.0
"""Where the Gaussian average ends: He_k(z) exp(-z^2/2) is below 1e-15 there for k <= TERMS."""

EDGES = np.unique(np.concatenate([sign * np.array([0, 1 / 16, 1 / 8, 1 / 4, *np.arange(0.5, REACH + 0.25, 0.5)])
                                  for sign in (-1, 1)]))  # fmt: skip
"""Ends of the panels, narrow at 0: f(sz) bends over a width of 1/s there, and s reaches 15."""

GAUSS_LEGENDRE = np.polynomial.legendre.leggauss(16)


@dataclass(frozen=True, eq=False)
class Series:
    r"""A kernel \(\sum_k c_k \rho^k\), \(|\rho| \le 1\).

    For a Hermite series \(c_k = a_k^2 \ge 0\), \(a_k = E[f(sz) He_k(z)]/\sqrt{k!}\), by Mehler's formula.
    """

    coefficients: Float64[np.ndarray, " terms"]

    def __call__(self, rho: Array) -> Array:
        """The sum, by Horner's rule; shape of ``rho``."""
        return horner(self.coefficients, rho)

    def times(self, factor: float) -> Series:
        """The series factor * K."""
        return Series(factor * self.coefficients)

    def plus(self, other: Series) -> Series:
        """The sum of two series."""
        total = np.zeros(max(self.coefficients.size, other.coefficients.size))
        total[: self.coefficients.size] += self.coefficients
        total[: other.coefficients.size] += other.coefficients
        return Series(total)

    def product(self, other: Series) -> Series:
        """The product of two series."""
        return Series(np.convolve(self.coefficients, other.coefficients))


def hermite_series(f: Function, scale: float, kinks: tuple[float, ...] = ()) -> Series:
    r"""The Hermite series of \(E[f(su)f(sv)]\), cut where the rest holds less than ``TAIL`` of \(E[f(sz)^2]\).

    All terms are >= 0. What is left out stands on the last power, so \(\rho = 1\) is exact and the error elsewhere is
    below the share left out.

    Args:
        f: a function with moderate growth.
        scale: s > 0.
        kinks: points where f or f' jumps; quadrature panels end there.

    Raises:
        NotApplicable: when ``TERMS`` terms leave more than ``WORST_TAIL`` out (a jump, or a very large ``scale``).
    """
    return Series(_trimmed(hermite_coefficients(f, np.array([scale]), kinks)[0]) ** 2)


def hermite_coefficients(
    f: Function, scales: Float64[np.ndarray, " n"], kinks: tuple[float, ...] = ()
) -> Float64[np.ndarray, "n terms"]:
    r"""\(a_k(s) = E[f(sz)He_k(z)]/\sqrt{k!}\) for several s; the last column is the root of what is left out.

    With them \(E[f(su)f(tv)] = \sum_k a_k(s)a_k(t)\rho^k\), exact for s = t and \(\rho = 1\).

    Raises:
        NotApplicable: as ``hermite_series``.
    """
    distinct, which = np.unique(scales, return_inverse=True)
    rows = [_coefficients(f, float(scale), kinks) for scale in distinct]
    size = max(np.flatnonzero(row)[-1] if row.any() else 0 for row in rows) + 1
    return np.array([row[:size] for row in rows])[which]


def horner(coefficients: Float64[np.ndarray, " terms"], rho: Array) -> Array:
    """The polynomial sum_k coefficients[k] rho^k, elementwise."""
    flat = np.ascontiguousarray(rho).reshape(-1)
    out = np.empty_like(flat)
    for start in range(0, flat.size, BLOCK):
        x, y = flat[start : start + BLOCK], out[start : start + BLOCK]
        y[:] = coefficients[-1]
        for c in coefficients[-2::-1]:
            y *= x
            if c:
                y += c
    return out.reshape(rho.shape)


BLOCK = 32_768
"""Numbers per block: two blocks stay in the cache through all terms."""


def _coefficients(f: Function, scale: float, kinks: tuple[float, ...]) -> Float64[np.ndarray, " terms"]:
    """The coefficients at one scale, TERMS + 1 numbers: zeros behind the cut, then the remainder's root."""
    inside = tuple(kink / scale for kink in kinks if 0 < abs(kink) < REACH * scale)
    basis = _basis(inside)
    values = f(scale * basis.nodes)
    total = float(basis.weights @ values**2)
    out = np.zeros(TERMS + 1)
    if total == 0:
        return out
    found = basis.polynomials @ values
    held = np.cumsum(found**2)
    enough = np.flatnonzero(held >= (1 - TAIL) * total)
    cut = int(enough[0]) + 1 if enough.size else TERMS
    left = max(total - held[cut - 1], 0.0)
    if left > WORST_TAIL * total:
        raise NotApplicable(
            f"the Hermite series of the activation leaves {left / total:.1e} of its variance out after {TERMS} terms "
            f"at input std {scale:.3g}; smaller weights converge faster"
        )
    out[:cut], out[cut] = found[:cut], math.sqrt(left)
    return out


@dataclass(frozen=True, eq=False)
class _Basis:
    """Nodes and weights of the Gaussian average, and weight * He_k / sqrt(k!) at the nodes."""

    nodes: Float64[np.ndarray, " nodes"]
    weights: Float64[np.ndarray, " nodes"]
    polynomials: Float64[np.ndarray, "terms nodes"]


@lru_cache(maxsize=16)
def _basis(breaks: tuple[float, ...]) -> _Basis:
    """Gauss-Legendre panels between ``EDGES`` and ``breaks``."""
    edges = np.unique(np.concatenate((EDGES, breaks)))
    at, weight = GAUSS_LEGENDRE
    half = np.diff(edges) / 2
    nodes = ((edges[:-1] + half)[:, None] + half[:, None] * at).ravel()
    weights = (half[:, None] * weight).ravel() * np.exp(-(nodes**2) / 2)
    weights /= weights.sum()
    polynomials = np.empty((TERMS, nodes.size))
    previous, current = np.zeros_like(nodes), np.ones_like(nodes)
    for k in range(TERMS):
        polynomials[k] = weights * current
        previous, current = current, (nodes * current - math.sqrt(k) * previous) / math.sqrt(k + 1)
    return _Basis(nodes, weights, polynomials)


def _trimmed(row: Float64[np.ndarray, " terms"]) -> Float64[np.ndarray, " terms"]:
    """The row without zeros at its end."""
    nonzero = np.flatnonzero(row)
    return row[: nonzero[-1] + 1] if nonzero.size else row[:1]
