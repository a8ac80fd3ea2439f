r"""The interacting particle system on the circle with exponentially decaying positional weights."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float64

from catenary.compiled import run_compiled
from catenary.errors import invalid
from catenary.kinetic.arguments import Array, at_least_zero, concentration, one_number, positive
from catenary.kinetic.particles.loops import drift_loop, pull_back_loop
from catenary.kinetic.particles.system import (
    Angles,
    Cotangents,
    angles_of,
    cotangents_of,
    interaction_rates,
    token_count,
)


@dataclass(frozen=True)
class Circle:
    r"""N tokens on the circle, each drawn towards the earlier ones, nearer ones more:

    \[ \dot\theta_j = \sum_{k<j} \omega_{j,k}\, w'_\beta(\theta_j - \theta_k), \qquad
       \omega_{j,k} = \frac{b((j-k)/N)}{\sum_{l<j} b((j-l)/N)}, \qquad
       b(x) = \sum_p s_p e^{-\lambda_p x}, \]

    \(w_\beta = e^{\beta\cos\theta}\), the first token at rest. One \(\lambda\) with share 1 is the paper's system;
    \(\lambda = 0\) weighs all earlier tokens alike. ``drift`` costs O(N K P) for K angular modes (16 at beta = 1, 31 at
    8) and P exponentials, and agrees with the double sum to 2e-15 of the largest force (tests: lambda up to 2000, beta
    up to 8). For any other b: ``PositionalCircle``. Source: arXiv 2605.09213, Eq. 1.1; the scan is derived here
    (docs/kinetic-particles.md).

    Args:
        tokens: N >= 2.
        beta: concentration of the interaction, in (0, 700].
        lam: \(\lambda \ge 0\), or one per exponential.
        shares: \(s_p > 0\), one per exponential; all 1 if not given.

    Raises:
        InvalidInput: an argument is out of range.

    >>> Circle(3, beta=1.0, lam=0.0).drift(np.array([0.0, 1.0, 1.0])).round(4).tolist()
    [0.0, -1.4444, -0.7222]
    """

    tokens: int
    beta: float
    lam: float | tuple[float, ...]
    shares: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        """Refuse what is out of range; keep lists as tuples, which have a hash."""
        for name in ("lam", "shares"):
            values = getattr(self, name)
            if isinstance(values, list | np.ndarray):
                object.__setattr__(self, name, tuple(values))
        token_count(self.tokens)
        one_number("beta", concentration(self.beta))
        if len(self._sizes) != len(self._rates):
            raise invalid("shares", f"must have one entry per lam ({len(self._rates)})", len(self._sizes))

    @property
    def _rates(self) -> Float64[np.ndarray, " exponentials"]:
        return _row("lam", at_least_zero("lam", self.lam))

    @property
    def _sizes(self) -> Float64[np.ndarray, " exponentials"]:
        return np.ones(len(self._rates)) if self.shares is None else _row("shares", positive("shares", self.shares))

    @cached_property
    def _scan(self) -> _Scan:
        """Weights in units of the slowest exponential one token back, so that no decay can underflow them."""
        per_token = self._rates / self.tokens
        decays = np.exp(-per_token)
        sizes = self._sizes
        shares = sizes / sizes.max() * np.exp(per_token.min() - per_token)
        lags = np.arange(self.tokens)[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            sums = np.where(per_token > 0, np.expm1(-lags * per_token) / np.expm1(-per_token), lags)
        normalisers = sums @ shares
        return _Scan(decays, shares, np.append(0.0, 1 / normalisers[1:]), interaction_rates(self.beta))

    @cached_property
    def last_weights(self) -> Float64[np.ndarray, " tokens"]:
        r"""\(\omega_{N,i}\): what the last token gives to each token; 0 for itself."""
        scan = self._scan
        lags = np.arange(self.tokens - 2, -1, -1)[:, None]
        return np.append(scan.decays**lags @ scan.shares * scan.inverse[-1], 0.0)

    def drift(self, angles: Angles) -> Angles:
        """F, the speed of every token, for any number of copies.

        Raises:
            InvalidInput: the last axis is not one entry per token, or an angle is not finite.
        """
        scan = self._scan
        rows = angles_of("angles", angles, self.tokens)
        flat = np.ascontiguousarray(rows.reshape(-1, self.tokens))
        out = np.empty_like(flat)
        run_compiled(drift_loop, flat, scan.decays, scan.shares, scan.inverse, scan.strengths, out, reorder=True)
        return out.reshape(rows.shape)

    def pull_back(self, angles: Angles, cotangents: Cotangents) -> Angles:
        r"""\((J^\top p)_k = \sum_j p_j\, \partial F_j/\partial\theta_k\) by a forward and a backward scan.

        \[ (J^\top p)_k = p_k \sum_{l<k} \omega_{k,l} w''(\theta_k - \theta_l)
           - \sum_{j>k} p_j\, \omega_{j,k} w''(\theta_j - \theta_k). \]

        Raises:
            InvalidInput: as ``drift``, or the two arrays differ in shape.
        """
        scan = self._scan
        rows = angles_of("angles", angles, self.tokens)
        given = cotangents_of(cotangents, rows)
        flat = np.ascontiguousarray(rows.reshape(-1, self.tokens))
        sent = np.ascontiguousarray(given.reshape(-1, self.tokens))
        out = np.empty_like(flat)
        run_compiled(
            pull_back_loop, flat, sent, scan.decays, scan.shares, scan.inverse, 2 * scan.rates, out, reorder=True
        )
        return out.reshape(rows.shape)


@dataclass(frozen=True, eq=False)
class _Scan:
    """What the loops need: decay and share per exponential, 1/Z per token (0 for the first), a_n per mode."""

    decays: Float64[np.ndarray, " exponentials"]
    shares: Float64[np.ndarray, " exponentials"]
    inverse: Float64[np.ndarray, " tokens"]
    rates: Float64[np.ndarray, " modes"]

    @property
    def strengths(self) -> Float64[np.ndarray, " modes"]:
        r"""\(2 n I_n(\beta)\)."""
        return 2 * self.rates / np.arange(1, len(self.rates) + 1)


def _row(name: str, values: Array) -> Float64[np.ndarray, " exponentials"]:
    array = np.atleast_1d(values)
    if array.ndim > 1 or not len(array):
        raise invalid(name, "must be one number, or one per exponential", values)
    return array
