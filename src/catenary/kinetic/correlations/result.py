r"""Correlations between the last token and earlier ones, times N, sampled from the particle system.

They are of order 1/N, so a plain average of products has a standard deviation of order N against a value of order 1.
The estimators differ in how they remove that noise, in what they cost, and in how many sources one sample serves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float64, Int64

from catenary.errors import NotApplicable, invalid
from catenary.kinetic.arguments import Array, Numbers, fraction
from catenary.kinetic.particles.readout import Readout
from catenary.kinetic.particles.system import Angles, System

Draws = Float64[np.ndarray, "samples sources"]
"""One row per prompt."""

SPREAD = 2**15
"""Token angles held by one batch of copies: the batch then stays in a cache of a megabyte through its steps."""


@dataclass(frozen=True, eq=False)
class Question:
    """What is to be estimated: the system, the time, the read-out, and the sources (token indices from 0)."""

    system: System
    t: float
    readout: Readout
    sources: Int64[np.ndarray, " sources"]
    steps: int | None = None

    def starts(self, rng: np.random.Generator, samples: int) -> Angles:
        """Independent uniform prompts."""
        return rng.uniform(0.0, 2 * np.pi, (samples, self.system.tokens))


@runtime_checkable
class Estimator(Protocol):
    """Draws whose mean is N times the correlation, up to what is of order 1/N."""

    def runs(self, question: Question) -> float:
        """Cost of one sample, in forward runs of the particle system."""

    def draw(self, question: Question, rng: np.random.Generator, samples: int) -> Draws:
        """Independent rows of draws."""


@dataclass(frozen=True, eq=False)
class Correlations:
    r"""Estimates of \(N\,\mathrm{Cov}\) at each source, with their standard errors.

    Args:
        estimator: which one.
        sigma0: i/N per source, i counted from 1.
        draws: independent rows, each unbiased up to order 1/N.
        runs_per_sample: cost of one row, in forward runs of the particle system.
        seed: the seed of the draws.
    """

    estimator: str
    sigma0: Float64[np.ndarray, " sources"]
    draws: Draws
    runs_per_sample: float
    seed: int

    @property
    def samples(self) -> int:
        """Number of independent draws."""
        return len(self.draws)

    @property
    def value(self) -> Float64[np.ndarray, " sources"]:
        """Mean over the draws."""
        return np.asarray(self.draws.mean(axis=0))

    @property
    def spread(self) -> Float64[np.ndarray, " sources"]:
        """Standard deviation of one draw."""
        return np.asarray(self.draws.std(axis=0, ddof=1))

    @property
    def stderr(self) -> Float64[np.ndarray, " sources"]:
        """Standard error of ``value``."""
        return np.asarray(self.spread / np.sqrt(self.samples))

    def samples_for(self, relative: float, value: Array | None = None) -> Float64[np.ndarray, " sources"]:
        """Samples at which the standard error would be ``relative`` times the value, from the spread seen here.

        Args:
            relative: e.g. 0.01.
            value: true values where known; by default the estimates, which must then exceed their standard errors.

        Raises:
            InvalidInput: ``relative`` is not positive.
            NotApplicable: an estimate is within three standard errors of 0, and no value is given.
        """
        if not relative > 0:
            raise invalid("relative", "must be > 0", relative)
        if value is None and (np.abs(self.value) < 3 * self.stderr).any():
            raise NotApplicable("an estimate is within 3 standard errors of 0: give the value, or draw more samples")
        reference = self.value if value is None else value
        return np.asarray((self.spread / (relative * reference)) ** 2)

    def binned(self, width: int) -> Correlations:
        """Averages over ``width`` neighbouring sources; a shorter rest at the end is left out.

        Errors come from the bins' own draws. Draws of unlike sources by "adjoint" are uncorrelated, so a bin of 16 has
        1/16 of the variance; those of "adjoint-control" keep a part in common, and a bin of 16 has about 1/10
        (measured, N = 512, lambda = beta = t = 1).

        Raises:
            InvalidInput: ``width`` is below 1, or more than there are sources.
        """
        bins = len(self.sigma0) // width if width >= 1 else 0
        if not bins:
            raise invalid("width", f"must be from 1 to the number of sources ({len(self.sigma0)})", width)
        draws = self.draws[:, : bins * width].reshape(self.samples, bins, width).mean(axis=2)
        sigma0 = self.sigma0[: bins * width].reshape(bins, width).mean(axis=1)
        return Correlations(self.estimator, sigma0, draws, self.runs_per_sample, self.seed)


def source_tokens(sigma0: Numbers | None, tokens: int) -> Int64[np.ndarray, " sources"]:
    r"""Indices from 0 of the tokens \(\lceil N\sigma_0 \rceil\); all but the last if no positions are given.

    Raises:
        InvalidInput: a position is outside (0, 1], or names the last token, whose own memory is of order 1, not 1/N.
    """
    if sigma0 is None:
        return np.arange(tokens - 1)
    position = np.atleast_1d(fraction("sigma0", sigma0))
    index = np.ceil(position * tokens - 1e-9).astype(np.int64) - 1
    if position.ndim > 1 or (index > tokens - 2).any():
        raise invalid("sigma0", f"must be a row of positions up to (N - 1)/N = {1 - 1 / tokens:g}", position.tolist())
    return np.asarray(index)


def batches(tokens: int, samples: int) -> list[int]:
    """``samples`` in parts whose angles fit a cache; the parts depend on the number of tokens alone."""
    size = max(1, SPREAD // tokens)
    return [min(size, samples - done) for done in range(0, samples, size)]
