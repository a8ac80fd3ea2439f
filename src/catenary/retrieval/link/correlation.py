"""Rank and linear correlation of curves row by row, their permutation p over slots, and split-half reliability."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import permutations

import numpy as np
from jaxtyping import Float64

from catenary.retrieval.link.table import means

Curves = Float64[np.ndarray, "draw P"]

EXACT_SLOTS = 8
"""Slots up to which every permutation is counted: 8! = 40,320."""
PERMUTATIONS = 20_000
"""Random permutations beyond: the smallest p is 5e-5."""
SPLITS = 200
"""Random halves a reliability is averaged over."""
DIGITS = 10
"""Digits after which two values count as tied: equal shares of samples must not differ by rounding."""


def pearson(a: Curves, b: Curves) -> Float64[np.ndarray, " draw"]:
    """Correlation over slots of each row of a with that row of b; NaN where one is constant or has a hole."""
    x, y = (part - part.mean(axis=1, keepdims=True) for part in (a, b))
    scale = np.sqrt((x**2).sum(axis=1) * (y**2).sum(axis=1))
    small = 1e-12 * np.sqrt((a**2).sum(axis=1) * (b**2).sum(axis=1))
    return np.where(scale > small, (x * y).sum(axis=1) / np.where(scale > small, scale, 1.0), np.nan)


def spearman(a: Curves, b: Curves) -> Float64[np.ndarray, " draw"]:
    """Correlation of ranks over slots, row by row; equal values share their mean rank."""
    return pearson(ranks(a), ranks(b))


def ranks(a: Curves) -> Curves:
    """Ranks within each row, from 1; a row with a hole is all NaN."""
    from scipy.stats import rankdata

    scale = np.nanmax(np.abs(a), axis=1, keepdims=True, initial=TINIEST)
    found = np.asarray(rankdata(np.round(a / scale, DIGITS), axis=1), dtype=np.float64)
    return np.where(np.isfinite(a).all(axis=1, keepdims=True), found, np.nan)


TINIEST = 1e-300


def permutation_p(a: Sequence[float], b: Sequence[float], seed: int = 0) -> float:
    r"""Two-sided p of Spearman's coefficient when slots are permuted: \(\Pr[|\rho^*|\ge|\rho|]\).

    Exact up to 8 slots; beyond, \(\frac{1+\#}{1+20000}\) from random permutations. It takes slots as exchangeable:
    smooth curves agree by chance more often than it says.
    """
    first, second = (ranks(np.array([part], dtype=np.float64)) for part in (a, b))
    observed = float(abs(pearson(first, second)[0]))
    if math.isnan(observed):
        return math.nan
    count = len(a)
    if count <= EXACT_SLOTS:
        drawn = second[0][np.array(list(permutations(range(count))))]
        extra = 0
    else:
        drawn = np.random.default_rng(seed).permuted(np.repeat(second, PERMUTATIONS, axis=0), axis=1)
        extra = 1
    found = np.abs(pearson(np.repeat(first, len(drawn), axis=0), drawn))
    return float(((found >= observed - 1e-12).sum() + extra) / (len(drawn) + extra))


def split_half(
    rows: Float64[np.ndarray, "n P"], strata: Sequence[int] | None = None, seed: int = 0, splits: int = SPLITS
) -> tuple[float, float]:
    r"""Reliability of the mean of rows as a curve, with all slots and without the first: \(2r/(1+r)\).

    r is the mean over random splits of the correlation of the halves' curves, and the Spearman-Brown step carries it
    to all rows; at r < 0 it has no meaning and r stands. For a true curve with variance \(v\) over slots and
    independent errors of standard deviation s in each of n rows it tends to \(v/(v+s^2/n)\). With ``strata`` each is
    halved by itself. NaN where a stratum has a single row, most halves lack a slot or are constant, or fewer than 3
    slots are left.
    """
    groups = [np.flatnonzero(np.array(strata) == s) for s in sorted(set(strata))] if strata else [np.arange(len(rows))]
    if min(len(group) for group in groups) < 2:
        return math.nan, math.nan
    generator = np.random.default_rng(seed)
    weights = np.zeros((2, splits, len(rows)))
    for group in groups:
        half = len(group) // 2
        order = generator.permuted(np.broadcast_to(group, (splits, len(group))), axis=1)
        for k in (0, 1):
            np.put_along_axis(weights[k], order[:, k * half : (k + 1) * half], 1.0, axis=1)
    a, b = (means(rows, part) for part in weights)
    return _stepped(pearson(a, b)), _stepped(pearson(a[:, 1:], b[:, 1:])) if a.shape[1] > 3 else math.nan


def _stepped(found: Float64[np.ndarray, " split"]) -> float:
    known = found[np.isfinite(found)]
    if len(known) < len(found) / 2:
        return math.nan
    r = float(known.mean())
    return 2 * r / (1 + r) if r >= 0 else r
