r"""The interacting particle system on the circle with any positional weights, by fast Fourier transforms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Complex128, Float64

from catenary.errors import invalid
from catenary.kinetic.arguments import Array, concentration, one_number
from catenary.kinetic.particles.system import (
    Angles,
    Cotangents,
    angles_of,
    cotangents_of,
    interaction_rates,
    token_count,
)
from catenary.kinetic.positional.kernels import Weighted


@dataclass(frozen=True)
class PositionalCircle:
    r"""N tokens on the circle with positional weights \(\omega_{j,k} \propto b((j-k)/N)\) for any b > 0.

    The equation of ``Circle`` with b as given. A sum over earlier tokens is a convolution: ``drift`` costs
    O(K N log N) for K angular modes, about ten times the scan of ``Circle`` for exponential b, which is the one to
    take there. The transforms' rounding error is 1e-16 of the largest sum over tokens, so early tokens, whose sums
    are short, have the largest: measured 1e-14 of the largest force at N = 1000, random angles. Source: arXiv
    2605.09213, Section 1.2.2.

    Args:
        tokens: N >= 2.
        beta: concentration of the interaction, in (0, 700].
        b: positional weight as a function of the distance in (0, 1), taking and giving an array, or a
            ``PositionalKernel`` such as ``PowerLaw``.

    Raises:
        InvalidInput: an argument is out of range, or b is not finite and positive at a distance j/N.

    >>> PositionalCircle(3, beta=1.0, b=np.ones_like).drift(np.array([0.0, 1.0, 1.0])).round(4).tolist()
    [0.0, -1.4444, -0.7222]
    """

    tokens: int
    beta: float
    b: Callable[[Float64[np.ndarray, " distances"]], Float64[np.ndarray, " distances"]] | Weighted

    def __post_init__(self) -> None:
        """Refuse what is out of range."""
        token_count(self.tokens)
        one_number("beta", concentration(self.beta))
        distances, values = self._weights
        if values.shape != distances.shape:
            raise invalid("b", f"must give one value per distance {distances.shape}", values.shape)
        bad = ~(np.isfinite(values) & (values > 0))
        if bad.any():
            rule = f"must be > 0 at every distance j/N, also at {distances[bad][0]:g}"
            raise invalid("b", rule, float(values[bad][0]))

    @cached_property
    def _weights(self) -> tuple[Float64[np.ndarray, " distances"], Array]:
        """The distances of two tokens, and b there."""
        weight = self.b.weight if isinstance(self.b, Weighted) else self.b
        if not callable(weight):
            raise invalid("b", "must be a function of distances or a PositionalKernel", self.b)
        distances = np.arange(1, self.tokens) / self.tokens
        return distances, np.asarray(weight(distances), dtype=np.float64)

    @cached_property
    def _table(self) -> _Table:
        from scipy.fft import fft, next_fast_len

        weights = np.append(0.0, self._weights[1])
        length = next_fast_len(2 * self.tokens - 1)
        inverse = np.append(0.0, 1 / np.cumsum(weights)[1:])
        return _Table(weights, inverse, np.asarray(fft(weights, length)), interaction_rates(self.beta))

    @cached_property
    def last_weights(self) -> Float64[np.ndarray, " tokens"]:
        r"""\(\omega_{N,i}\): what the last token gives to each token; 0 for itself."""
        return np.asarray(self._table.weights[::-1] * self._table.inverse[-1])

    def drift(self, angles: Angles) -> Angles:
        """F, the speed of every token, for any number of copies; errors as ``Circle.drift``."""
        rows = angles_of("angles", angles, self.tokens)
        table = self._table
        step = np.exp(1j * rows)
        wave = np.ones_like(step)
        total = np.zeros(rows.shape)
        for n, rate in enumerate(table.rates, start=1):
            wave = wave * step
            total += rate / n * (wave * table.earlier(wave.conj())).imag
        return -2 * table.inverse * total

    def pull_back(self, angles: Angles, cotangents: Cotangents) -> Angles:
        r"""\(J^\top p\), with the meaning and the errors of ``Circle.pull_back``."""
        rows = angles_of("angles", angles, self.tokens)
        given = cotangents_of(cotangents, rows)
        table = self._table
        sent = given * table.inverse
        step = np.exp(1j * rows)
        wave = np.ones_like(step)
        total = np.zeros(rows.shape)
        for rate in table.rates:
            wave = wave * step
            own = sent * (wave * table.earlier(wave.conj())).real
            others = (wave * table.later(sent * wave.conj())).real
            total += rate * (others - own)
        return 2 * total


@dataclass(frozen=True, eq=False)
class _Table:
    """b at the lags 0..N-1 (0 at lag 0: strictly causal), 1/Z per token, the weights' transform, and a_n per mode."""

    weights: Float64[np.ndarray, " tokens"]
    inverse: Float64[np.ndarray, " tokens"]
    transform: Complex128[np.ndarray, " frequencies"]
    rates: Float64[np.ndarray, " modes"]

    def earlier(self, values: Complex128[np.ndarray, "*batch tokens"]) -> Complex128[np.ndarray, "*batch tokens"]:
        r"""\(\sum_{k<j} b((j-k)/N) v_k\)."""
        from scipy.fft import fft, ifft

        padded = fft(values, len(self.transform), axis=-1)
        return np.asarray(ifft(padded * self.transform, axis=-1)[..., : len(self.weights)])

    def later(self, values: Complex128[np.ndarray, "*batch tokens"]) -> Complex128[np.ndarray, "*batch tokens"]:
        r"""\(\sum_{j>k} b((j-k)/N) v_j\)."""
        return self.earlier(values[..., ::-1])[..., ::-1]
