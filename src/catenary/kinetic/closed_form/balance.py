r"""The sign of the retrieval profile's slope, as a balance of two logarithms.

With \(q = 1/(e^\lambda - 1)\) and \(\rho = \Psi/\Psi'\) the profile falls towards the end of the prompt at distance y
where, and only where,

\[ \Lambda(y, t) = \log\rho(y, t) - \log(1 + q e^y) < 0. \]

\(\rho\) falls with t (docs/kinetic.md), so at each distance the slope changes sign once in time, from rising to falling
towards the end. A positive balance at y = 0 is recency; it is negative for large y, which is primacy.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64, Int64

from catenary.kinetic.closed_form.modes import ProfileModes
from catenary.kinetic.closed_form.roots import falls_to_zero

LOOKS = np.concatenate([[0.0], np.geomspace(1e-4, 1.0, 24)])
r"""Where to look for a rising balance, as parts of \(5 + \log(e^\lambda - 1)\): beyond, \(\log(1 + q e^y)\) wins."""

STEPS = np.append(np.diff(LOOKS), 1.0)
"""From each look to the next."""


@dataclass(frozen=True)
class Turns:
    """Where the balance turns, going out from y = 0: crests 0, 1, ... with valley m between m and m + 1.

    Crest 0 is y = 0 itself, and so is valley 0 where the balance rises from there. From the last crest on it falls for
    good. Profiles with fewer turns than others have NaN in the places left over.
    """

    crest: Float64[np.ndarray, "crests k"]
    valley: Float64[np.ndarray, "valleys k"]
    at_crest: Float64[np.ndarray, "crests k"]
    """The balance there."""
    at_valley: Float64[np.ndarray, "valleys k"]

    @property
    def recent(self) -> Bool[np.ndarray, " k"]:
        """Whether the profile rises at its end."""
        return np.asarray(self.at_crest[0] > 0)

    def minima(self) -> Iterator[tuple[Int64[np.ndarray, " j"], Float64[np.ndarray, " j"], Float64[np.ndarray, " j"]]]:
        """Brackets of the profile's minima: which profiles, from which distance on, and a first step from there.

        One follows each crest above 0 unless the next valley is above 0 as well.
        """
        for m, (crest, height) in enumerate(zip(self.crest, self.at_crest, strict=True)):
            step, falls = np.ones(crest.size), np.ones(crest.size, dtype=bool)
            if m < len(self.valley):
                last = np.isnan(self.valley[m])
                step, falls = np.where(last, 1.0, self.valley[m] - crest), last | (self.at_valley[m] < 0)
            part = np.flatnonzero((height > 0) & falls)
            yield part, crest[part], step[part]


@dataclass(frozen=True)
class Balance:
    """Many profiles side by side, one along the first axis each; lambda > 0."""

    modes: ProfileModes
    log_growth: Float64[np.ndarray, " n"]
    r"""\(\log(e^\lambda - 1)\)."""

    def value(
        self, y: Float64[np.ndarray, " k"], t: Float64[np.ndarray, " k"], index: Int64[np.ndarray, " k"]
    ) -> Float64[np.ndarray, " k"]:
        r"""\(\Lambda(y, t)\) of the profiles ``index``."""
        _, (zeroth, first) = self.modes[index].series(t).derivatives(y, (0, 1))
        return np.asarray(np.log(zeroth / first) - np.logaddexp(0.0, y - self.log_growth[index]))

    def slope(
        self, y: Float64[np.ndarray, " k"], t: Float64[np.ndarray, " k"], index: Int64[np.ndarray, " k"]
    ) -> Float64[np.ndarray, " k"]:
        r"""\(\partial\Lambda/\partial y = \Psi'/\Psi - \Psi''/\Psi' - q e^y/(1 + q e^y)\) of the profiles ``index``."""
        from scipy.special import expit

        _, (zeroth, first, second) = self.modes[index].series(t).derivatives(y, (0, 1, 2))
        return np.asarray(first / zeroth - second / first - expit(y - self.log_growth[index]))

    def turns(self, t: Float64[np.ndarray, " k"], index: Int64[np.ndarray, " k"]) -> Turns:
        """Where the balance of the profiles ``index`` turns, seen on the grid of ``LOOKS`` and then found exactly."""
        far = 5 + self.log_growth[index].clip(min=0)
        rises = np.array([self.slope(y * far, t, index) > 0 for y in LOOKS])
        starts = rises & ~np.concatenate([np.zeros((1, t.size), dtype=bool), rises[:-1]])
        run = np.where(rises, starts.cumsum(axis=0), 0)
        runs = int(run.max(initial=0))
        crest, at_crest = np.full((2, runs + 1, t.size), np.nan)
        valley, at_valley = np.full((2, runs, t.size), np.nan)
        crest[0], at_crest[0] = 0.0, self.value(np.zeros(t.size), t, index)
        for m in range(runs):
            within = run == m + 1
            part = np.flatnonzero(within.any(axis=0))
            first, last = within.argmax(axis=0)[part], LOOKS.size - 1 - within[::-1].argmax(axis=0)[part]
            before, scale, of = np.maximum(first - 1, 0), far[part], (t[part], index[part])
            valley[m, part] = self._change(-1, LOOKS[before] * scale, STEPS[before] * scale, *of)
            crest[m + 1, part] = self._change(1, LOOKS[last] * scale, STEPS[last] * scale, *of)
            at_valley[m, part] = self.value(valley[m, part], *of)
            at_crest[m + 1, part] = self.value(crest[m + 1, part], *of)
        return Turns(crest, valley, at_crest, at_valley)

    def _change(
        self, sign: int, start: Float64[np.ndarray, " k"], step: Float64[np.ndarray, " k"],
        t: Float64[np.ndarray, " k"], index: Int64[np.ndarray, " k"],
    ) -> Float64[np.ndarray, " k"]:
        """Where ``sign`` times the slope falls to 0."""
        return falls_to_zero(lambda y, i: sign * self.slope(y, t[i], index[i]), start, step)

    def minimum(
        self, start: Float64[np.ndarray, " k"], step: Float64[np.ndarray, " k"], t: Float64[np.ndarray, " k"],
        index: Int64[np.ndarray, " k"],
    ) -> Float64[np.ndarray, " k"]:
        """The distance of the minimum after ``start``, where the balance is positive; ``step`` is a first bracket."""
        return falls_to_zero(lambda y, i: self.value(y, t[i], index[i]), start, step)

    def end_of_hump(
        self, log_start: Float64[np.ndarray, " k"], index: Int64[np.ndarray, " k"]
    ) -> Float64[np.ndarray, " k"]:
        """Logarithm of the time from which on the balance is negative everywhere; it falls with time at each y."""

        def highest(log_t: Float64[np.ndarray, " j"], i: Int64[np.ndarray, " j"]) -> Float64[np.ndarray, " j"]:
            return np.asarray(np.nanmax(self.turns(np.exp(log_t), index[i]).at_crest, axis=0))

        return falls_to_zero(highest, log_start, np.ones(log_start.size))


def balance(modes: ProfileModes, lam: Float64[np.ndarray, " n"]) -> Balance:
    """The balance of profiles with decay ``lam`` > 0."""
    return Balance(modes, np.asarray(lam + np.log(-np.expm1(-lam))))


