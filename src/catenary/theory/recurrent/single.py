r"""Decays over single positions: \(AXA^\top\), \(A_{ij} = q^{i-j}\), both ways in one compiled pass over the pairs."""

from __future__ import annotations

from typing import no_type_check

import numpy as np

from catenary.compiled import run_compiled
from catenary.theory.positions.pairs import Matrix, Vector


def summed(x: Matrix, keep: float, backward: bool = False) -> Matrix:
    r"""\(AXA^\top\), or \(A^\top XA\) with ``backward``; O(L^2). Values below the smallest normal number become 0."""
    out = np.empty_like(x)
    step = -1 if backward else 1
    run_compiled(_sum_both, x[::step, ::step], out[::step, ::step], keep, reorder=True)
    return out


def with_own(x: Matrix, keep: float, own: Vector, backward: bool = False) -> Matrix:
    r"""\(X_{ik} + q^{|i-k|}E_{\min(i,k)}\) in the memory of ``x``; the larger of i and k with ``backward``.

    It is what more there is in \(AXA^\top\) when tokens have \(e_i = E_i - q^2E_{i-1}\) more with themselves.
    """
    step = -1 if backward else 1
    powers = keep ** np.arange(float(own.size))
    run_compiled(_add_own, x[::step, ::step], powers, own[::step])
    return x


def one_sided(x: Matrix, keep: float, backward: bool = False) -> Matrix:
    r"""\(AX + XA^\top\), or \(A^\top X + XA\) with ``backward``; O(L^2)."""
    half = np.empty_like(x)
    step = -1 if backward else 1
    run_compiled(_sum_one, x[::step], half[::step], keep, reorder=True)
    return np.asarray(half + half.T)


@no_type_check
def _sum_one(x, out, keep):
    least = 2.3e-308
    before = np.zeros(x.shape[1])
    for i in range(x.shape[0]):
        for k in range(x.shape[1]):
            total = keep * before[k] + x[i, k]
            if abs(total) < least:
                total = 0.0
            before[k] = total
            out[i, k] = total


@no_type_check
def _sum_both(x, out, keep):
    size = x.shape[0]
    least = 2.3e-308
    before = np.zeros(size)
    for i in range(size):
        row = 0.0
        for k in range(size):
            row = keep * row + x[i, k]
            # Rounding to nearest keeps a subnormal number alive for ever when keep > 1/2, and is slow.
            if abs(row) < least:
                row = 0.0
            both = keep * before[k] + row
            if abs(both) < least:
                both = 0.0
            before[k] = both
            out[i, k] = both


@no_type_check
def _add_own(x, powers, own):
    size = x.shape[0]
    for i in range(size):
        for k in range(i):
            x[i, k] += powers[i - k] * own[k]
        for k in range(i, size):
            x[i, k] += powers[k - i] * own[i]
