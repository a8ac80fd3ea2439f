r"""The sign of the retrieval profile's slope, as a balance of two logarithms.

With \(q = 1/(e^\lambda - 1)\) and \(\rho = \Psi/\Psi'\) the profile falls towards the end of the prompt at distance y
where, and only where,

\[ \Lambda(y, t) = \log\rho(y, t) - \log(1 + q e^y) < 0. \]

\(\rho\) falls with t (docs/kinetic.md), so at each distance the slope changes sign once in time, from rising to falling
towards the end. A positive balance at y = 0 is recency; it is negative for large y, which is primacy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int64

from catenary.kinetic.modes import ProfileModes
from catenary.kinetic.roots import falls_to_zero


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

    def crest(self, t: Float64[np.ndarray, " k"], index: Int64[np.ndarray, " k"]) -> Float64[np.ndarray, " k"]:
        """The distance at which the balance is largest; 0 where it falls from the start."""
        return falls_to_zero(lambda y, i: self.slope(y, t[i], index[i]), np.zeros(t.size))

    def minimum(
        self, start: Float64[np.ndarray, " k"], t: Float64[np.ndarray, " k"], index: Int64[np.ndarray, " k"]
    ) -> Float64[np.ndarray, " k"]:
        """The distance of the profile's minimum: the balance is positive at ``start`` and negative from there on."""
        return falls_to_zero(lambda y, i: self.value(y, t[i], index[i]), start)

    def end_of_hump(
        self, log_start: Float64[np.ndarray, " k"], index: Int64[np.ndarray, " k"]
    ) -> Float64[np.ndarray, " k"]:
        """Logarithm of the time from which on the balance is negative everywhere; it falls with time at each y."""

        def highest(log_t: Float64[np.ndarray, " j"], i: Int64[np.ndarray, " j"]) -> Float64[np.ndarray, " j"]:
            t = np.exp(log_t)
            return self.value(self.crest(t, index[i]), t, index[i])

        return falls_to_zero(highest, log_start)


def balance(modes: ProfileModes, lam: Float64[np.ndarray, " n"]) -> Balance:
    """The balance of profiles with decay ``lam`` > 0."""
    return Balance(modes, np.asarray(lam + np.log(-np.expm1(-lam))))


