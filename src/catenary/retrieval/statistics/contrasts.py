"""Paired contrasts of a curve by slot, its worst slot, and tests of each slot against the best and the worst."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from jaxtyping import Float64

from catenary.reading import Reading
from catenary.retrieval.statistics.curve import RESAMPLES, SlotCurve, resampled
from catenary.retrieval.statistics.simultaneous import middle
from catenary.statistics import interval

FLIPS = 20_000
"""Sign flips of a test: the smallest p-value is 5e-5, below what Holm asks of the least of 45 pairs."""


@dataclass(frozen=True)
class SlotTest:
    """One slot against a reference: difference, p-value, and p-value after Holm over all pairs of slots."""

    slot: int
    reference: int
    difference: float
    p: float
    holm: float


def contrasts(curve: SlotCurve, seed: int = 0, resamples: int = RESAMPLES) -> tuple[Reading, ...]:
    r"""first - mid, last - mid, first - last and two quadratic coefficients, with 95 % bootstrap intervals.

    ``mid`` is the mean of the slots between .3 and .7 of the prompt. The quadratic coefficient c is that of the
    least-squares parabola \(a+bz+cz^2\) through the slot means, \(z=2x-1\in[-1,1]\): for a symmetric U, c is the
    height of the ends over the middle. The second leaves out the first slot measured. Each is linear in the means,
    so every one comes from the same draws of whole rows. What needs more slots or samples is NaN with its reason.
    """
    weights = contrast_weights(curve.x)
    draws = resampled(curve.rows, seed, resamples) if curve.n > 1 else None
    return tuple(_reading(name, meaning, weights[name], curve, draws) for name, meaning in MEANINGS.items())


MEANINGS = {
    "first - mid": "first slot over the middle slots",
    "last - mid": "last slot over the middle slots",
    "first - last": "first slot over the last",
    "quadratic": "coefficient of z^2 over all slots",
    "quadratic without first": "coefficient of z^2, first slot left out",
}
"""Contrasts and what they say, in the order they are reported."""


def contrast_weights(x: Float64[np.ndarray, " P"]) -> dict[str, Float64[np.ndarray, " P"] | None]:
    """Each contrast as weights on the slot means; None where there are too few slots for it."""
    slots, mid = len(x), list(middle(x))
    unit, z = np.eye(slots), 2 * x - 1
    average = unit[mid].mean(axis=0) if mid else None
    return {
        "first - mid": None if average is None else unit[0] - average,
        "last - mid": None if average is None else unit[-1] - average,
        "first - last": unit[0] - unit[-1] if slots > 1 else None,
        "quadratic": np.linalg.pinv(np.vander(z, 3))[0] if slots > 2 else None,
        "quadratic without first": np.append(0.0, np.linalg.pinv(np.vander(z[1:], 3))[0]) if slots > 3 else None,
    }


def worst_slots(curve: SlotCurve, seed: int = 0, resamples: int = RESAMPLES) -> Float64[np.ndarray, " P"]:
    """Share of bootstrap resamples in which each slot has the lowest mean; ties are shared equally. Sums to 1."""
    draws = resampled(curve.rows, seed, resamples)
    lowest = np.isclose(draws, draws.min(axis=1, keepdims=True), rtol=0, atol=1e-12)
    return np.asarray((lowest / lowest.sum(axis=1, keepdims=True)).mean(axis=0))


def slot_tests(
    curve: SlotCurve, seed: int = 0, flips: int = FLIPS
) -> tuple[tuple[SlotTest, ...], tuple[SlotTest, ...]]:
    """Every slot against the best slot, and every slot against the worst, paired.

    Sign-flip tests of the mean difference, two-sided (``sign_flip_p``). Best and worst were picked by looking, so the
    family that Holm (1979) corrects for is every pair of slots, P(P-1)/2 of them. None with fewer than two samples.
    """
    if curve.n < 2 or len(curve.slots) < 2:
        return (), ()
    slots, mean = len(curve.slots), curve.mean
    pairs = list(combinations(range(slots), 2))
    differences = np.stack([curve.rows[:, i] - curve.rows[:, k] for i, k in pairs], axis=1)
    p = sign_flip_p(differences, binary=curve.binary, seed=seed, flips=flips)
    adjusted = holm(p)

    def against(reference: int) -> tuple[SlotTest, ...]:
        found = []
        for j in range(slots):
            if j != reference:
                at = pairs.index((min(j, reference), max(j, reference)))
                gap = float(mean[j] - mean[reference])
                found.append(SlotTest(curve.slots[j], curve.slots[reference], gap, float(p[at]), float(adjusted[at])))
        return tuple(found)

    return against(int(mean.argmax())), against(int(mean.argmin()))


def sign_flip_p(
    differences: Float64[np.ndarray, "n c"], *, binary: bool, seed: int = 0, flips: int = FLIPS
) -> Float64[np.ndarray, " c"]:
    r"""Two-sided p-value of each column's mean under random signs of its rows (Fisher 1935).

    Where outcomes are 0 or 1 the flips of the k rows that differ are summed exactly: McNemar's exact test,
    \(p=\min(1,2\Pr[\mathrm{Bin}(k,\tfrac12)\le\min(b,c)])\). Otherwise
    \(p=\frac{1+\#\{|\bar d^*|\ge|\bar d|\}}{1+\text{flips}}\), valid at any seed. Exact where differences are symmetric
    about 0 when slots do not differ, as differences of exchangeable outcomes are.
    """
    n, columns = differences.shape
    if binary:
        from scipy.special import bdtr

        up, down = (differences > 0).sum(axis=0), (differences < 0).sum(axis=0)
        return np.asarray(np.minimum(1.0, 2 * bdtr(np.minimum(up, down), up + down, 0.5)), dtype=np.float64)
    observed = np.abs(differences.mean(axis=0))
    bound = observed * (1 - 1e-12) - 1e-15  # the observed signs are one of the flips: rounding must not lose it
    generator = np.random.default_rng(seed)
    count, step = np.zeros(columns), max(1, 4_000_000 // n)
    for start in range(0, flips, step):
        signs = generator.integers(0, 2, size=(min(step, flips - start), n)) * 2.0 - 1.0
        count += (np.abs(signs @ differences / n) >= bound).sum(axis=0)
    return np.asarray((1 + count) / (1 + flips))


def holm(p: Float64[np.ndarray, " c"]) -> Float64[np.ndarray, " c"]:
    r"""Holm's step-down p-values: \(\tilde p_{(r)}=\max_{s\le r}\min(1,(c-s+1)\,p_{(s)})\)."""
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(np.minimum(1.0, p[order] * np.arange(len(p), 0, -1)))
    adjusted = np.empty_like(stepped)
    adjusted[order] = stepped
    return adjusted


def _reading(
    name: str, meaning: str, weights: Float64[np.ndarray, " P"] | None, curve: SlotCurve,
    draws: Float64[np.ndarray, "resample P"] | None,
) -> Reading:  # fmt: skip
    if weights is None:
        return Reading(name, float("nan"), meaning, reason=f"{len(curve.slots)} slots are too few")
    value = float(weights @ curve.mean)
    if draws is None:
        return Reading(name, value, meaning)
    drawn = draws @ weights
    if np.ptp(drawn) < 1e-12 and curve.binary:
        # Every sample agrees: the bootstrap has no width. A share that n samples never showed is below this.
        reach = float(np.abs(weights).sum() / 2 * (1 - 0.025 ** (1 / curve.n)))
        return Reading(name, value, meaning, value - reach, value + reach)
    low, high = interval(value, drawn, curve.n)
    return Reading(name, value, meaning, low, high)
