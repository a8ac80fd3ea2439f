"""Differences between slots that can be told from chance, whichever slots were picked by looking."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from jaxtyping import Float64

DRAWS = 2000
"""Sign-flipped draws: the 95 % quantile then rests on 100, and two seeds agree on it to about 2 %."""
ONE, TWO = 1.644854, 1.959964
"""Critical values of one test of one side and of two: many tests never ask for less, even where rows do not differ."""
_BATCH = 4_000_000
"""Numbers held at once."""


def middle(x: Float64[np.ndarray, " P"]) -> tuple[int, ...]:
    """Indices of the slots in the middle: between .3 and .7 of the prompt, else the interior one nearest to .5.

    Empty with fewer than three slots.
    """
    inner = range(1, len(x) - 1)
    return tuple(j for j in inner if 0.3 <= x[j] <= 0.7) or tuple(sorted(inner, key=lambda j: abs(x[j] - 0.5))[:1])


@dataclass(frozen=True, eq=False)
class Gaps:
    r"""Differences between slot means with critical values that hold for all of them at once.

    Attributes:
        means: (P,) slot means.
        mid: indices of the middle slots.
        error: (P, P) standard error of the difference of slots i and k; 0 on the diagonal.
        mid_error: (2,) standard errors of first - mid and last - mid.
        ends: 95 % quantile, under no differences, of the largest t of an end over any slot or over the middle.
        pairs: the same for the largest \(|t|\) of all pairs of slots.
        paired: whether errors rest on pairs; a published curve's do not.
    """

    means: Float64[np.ndarray, " P"]
    mid: tuple[int, ...]
    error: Float64[np.ndarray, "P P"]
    mid_error: Float64[np.ndarray, " 2"]
    ends: float
    pairs: float
    paired: bool

    def t(self, i: int, k: int) -> float:
        """Difference of slots i and k in standard errors; 0 for equal means."""
        return _ratio(float(self.means[i] - self.means[k]), float(self.error[i, k]))

    def over_middle(self, end: int) -> float:
        """An end (0 first, 1 last) over the mean of the middle slots, in standard errors."""
        gap = float(self.means[-end] - self.means[list(self.mid)].mean())
        return _ratio(gap, float(self.mid_error[end]))

    @property
    def typical_error(self) -> float:
        """Root mean square standard error of the differences to an end."""
        to_ends = np.concatenate([self.error[0, 1:], self.error[-1, :-1]])
        return float(np.sqrt((to_ends**2).mean()))


def _ratio(gap: float, error: float) -> float:
    return gap / error if error > 0 else float(np.sign(gap)) * np.inf if gap else 0.0


def gaps_of_rows(
    rows: Float64[np.ndarray, "n P"], x: Float64[np.ndarray, " P"], *, binary: bool, seed: int = 0, draws: int = DRAWS
) -> Gaps:
    r"""Gaps of paired rows, by flipping the signs of whole centred rows.

    With \(d_{mi}\) the difference of contrast m in sample i less its mean, and signs \(s_i=\pm1\),
    \(t^*_m=\bar d^*_m/\sqrt{(\overline{d_m^2}-\bar d^{*2}_m)/(n-1)}\) with
    \(\bar d^*_m=\frac1n\sum_i s_i d_{mi}\). Whole rows flip together, so the correlation between contrasts is
    kept. Of a binary metric no standard error is below 1/n, what a single sample that differs gives. Needs n of 2 or
    more.
    """
    n, slots = rows.shape
    mid = middle(x)
    contrasts = _contrasts(slots, mid)
    d = (rows - rows.mean(axis=0)) @ contrasts.T
    square = (d**2).mean(axis=0)
    floor = 1 / n if binary else 0.0
    generator = np.random.default_rng(seed)
    step = max(1, _BATCH // n)
    parts = []
    for start in range(0, draws, step):
        signs = generator.integers(0, 2, size=(min(step, draws - start), n)) * 2.0 - 1.0
        mean = signs @ d / n
        error = np.maximum(np.sqrt(np.maximum(square - mean**2, 0) / (n - 1)), floor)
        parts.append(np.divide(mean, error, out=np.zeros_like(mean), where=error > 1e-12))
    error = np.maximum(np.sqrt(square / (n - 1)), floor)
    return _gaps(rows.mean(axis=0), mid, error, np.concatenate(parts), paired=True)


def gaps_of_means(
    means: Float64[np.ndarray, " P"],
    variance: Float64[np.ndarray, " P"],
    x: Float64[np.ndarray, " P"],
    *,
    seed: int = 0,
    draws: int = DRAWS,
) -> Gaps:
    r"""Gaps of means alone with these variances, taken as independent normals.

    Samples that visit every slot correlate between slots, which makes true errors of differences smaller. So the
    intervals err on the wide side where the correlation is positive, as it is when some samples are harder.
    """
    mid = middle(x)
    contrasts = _contrasts(len(means), mid)
    error = np.sqrt(contrasts**2 @ variance)
    noise = np.random.default_rng(seed).normal(size=(draws, len(means))) * np.sqrt(variance)
    t = np.divide(noise @ contrasts.T, error, out=np.zeros((draws, len(error))), where=error > 0)
    return _gaps(means, mid, error, t, paired=False)


def _contrasts(slots: int, mid: tuple[int, ...]) -> Float64[np.ndarray, "c P"]:
    """One row per pair i < k (i minus k), then first - mid and last - mid."""
    unit = np.eye(slots)
    average = unit[list(mid)].mean(axis=0) if mid else np.zeros(slots)
    pairs = [unit[i] - unit[k] for i, k in combinations(range(slots), 2)]
    return np.array([*pairs, unit[0] - average, unit[-1] - average])


def _gaps(
    means: Float64[np.ndarray, " P"],
    mid: tuple[int, ...],
    error: Float64[np.ndarray, " c"],
    t: Float64[np.ndarray, "draw c"],
    *,
    paired: bool,
) -> Gaps:
    slots = len(means)
    pairs = list(combinations(range(slots), 2))
    matrix = np.zeros((slots, slots))
    for (i, k), value in zip(pairs, error, strict=False):
        matrix[i, k] = matrix[k, i] = value
    # t is that of i - k; the last slot stands second in its pairs, so the sign turns for it.
    first = [m for m, (i, _) in enumerate(pairs) if i == 0]
    last = [m for m, (_, k) in enumerate(pairs) if k == slots - 1]
    ends = np.concatenate([t[:, first], -t[:, last], t[:, len(pairs) :]], axis=1).max(axis=1)
    return Gaps(
        np.asarray(means), mid, matrix, np.asarray(error[len(pairs) :]), max(ONE, float(np.quantile(ends, 0.95))),
        max(TWO, float(np.quantile(np.abs(t[:, : len(pairs)]).max(axis=1), 0.95))), paired,
    )  # fmt: skip
