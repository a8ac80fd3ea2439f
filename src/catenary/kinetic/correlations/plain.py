r"""Estimators of N Cov from forward runs alone: plain products, resampled sources, sources on a grid of angles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from catenary.errors import invalid
from catenary.kinetic.arguments import whole
from catenary.kinetic.correlations.result import Draws, Question, batches
from catenary.kinetic.particles.integrate import flow
from catenary.kinetic.particles.system import Angles


@dataclass(frozen=True)
class Naive:
    r"""\(N\kappa(\theta_N(t) - \theta_i(0))\): all sources from one run, standard deviation about
    \(N\sqrt{\tfrac12\sum_n\omega_n^2}\).
    """

    def runs(self, question: Question) -> float:
        """One forward run."""
        return 1.0

    def draw(self, question: Question, rng: np.random.Generator, samples: int) -> Draws:
        """One row per prompt."""
        rows = []
        for size in batches(question.system.tokens, samples):
            start = question.starts(rng, size)
            end = _last(question, start)
            rows.append(question.system.tokens * question.readout.kernel(end[:, None] - start[:, question.sources]))
        return np.concatenate(rows)


@dataclass(frozen=True)
class GlauberPair:
    r"""Half the second difference under resampling of the source token, everything else shared:

    \[ \tfrac{N}{2}\bigl[\kappa(\theta_N - \theta_i) - \kappa(\theta'_N - \theta_i) - \kappa(\theta_N - \theta'_i)
       + \kappa(\theta'_N - \theta'_i)\bigr]. \]

    Its mean is N Cov for independent tokens of any law. What does not depend on token i cancels, so the standard
    deviation is of order 1. Each source needs its own second run.
    """

    def runs(self, question: Question) -> float:
        """One shared run, and one per source."""
        return 1.0 + len(question.sources)

    def draw(self, question: Question, rng: np.random.Generator, samples: int) -> Draws:
        """One row per prompt."""
        kernel, tokens = question.readout.kernel, question.system.tokens
        rows = []
        for size in batches(tokens, samples):
            start = question.starts(rng, size)
            others = rng.uniform(0.0, 2 * np.pi, (size, len(question.sources)))
            end = _last(question, start)
            out = np.empty(others.shape)
            for column, source in enumerate(question.sources):
                old, new = start[:, source], others[:, column]
                changed = start.copy()
                changed[:, source] = new
                other_end = _last(question, changed)
                gain = kernel(end - old) - kernel(end - new)
                out[:, column] = gain - kernel(other_end - old) + kernel(other_end - new)
            rows.append(tokens / 2 * out)
        return np.concatenate(rows)


@dataclass(frozen=True)
class Conditional:
    r"""The source token on m equal steps of the circle, with a random offset, everything else shared:

    \[ N\Bigl[\operatorname{mean}_q \kappa(Y_q - p_q) - \operatorname{mean}_{q,q'} \kappa(Y_q - p_{q'})\Bigr], \]

    \(Y_q\) the last token's end when the source starts at \(p_q\). Modes that are multiples of m drop out, so m must
    exceed the highest mode that matters in the limit (``Readout.highest_relevant_mode``); fewer points are refused.
    By default m exceeds twice that mode. The source moves the last token by a sum of modes, and what is averaged is
    that sum times a derivative of the read-out, so a grid that resolves twice the highest mode integrates it whatever
    the offset: at N = 512, lambda = beta = t = 1, M = 8, a draw spreads by .05 with 11 points, by .2 with 8.

    Args:
        points: m; one more than twice the highest relevant mode if not given.
    """

    points: int | None = None

    def _count(self, question: Question) -> int:
        highest = question.readout.highest_relevant_mode(question.system.beta, question.t)
        if self.points is None:
            return 2 * highest + 1
        points = whole("points", self.points, 1)
        if points <= highest:
            rule = f"must be above {highest}, the highest mode that carries more than 1e-4 of the sum"
            raise invalid("points", rule, points, "modes that are multiples of points are lost")
        return points

    def runs(self, question: Question) -> float:
        """m runs per source."""
        return float(self._count(question) * len(question.sources))

    def draw(self, question: Question, rng: np.random.Generator, samples: int) -> Draws:
        """One row per prompt."""
        kernel, tokens = question.readout.kernel, question.system.tokens
        count = self._count(question)
        grid = 2 * np.pi / count * np.arange(count)
        rows = []
        for size in batches(tokens * count, samples):
            start = question.starts(rng, size)
            offsets = rng.uniform(0.0, 2 * np.pi, (size, len(question.sources)))
            out = np.empty(offsets.shape)
            for column, source in enumerate(question.sources):
                points = offsets[:, column, None] + grid
                copies = np.repeat(start[:, None], count, axis=1)
                copies[:, :, source] = points
                end = _last(question, copies)
                own = kernel(end - points).mean(axis=1)
                out[:, column] = own - kernel(end[:, :, None] - points[:, None, :]).mean(axis=(1, 2))
            rows.append(tokens * out)
        return np.concatenate(rows)


def _last(question: Question, start: Angles) -> Float64[np.ndarray, "*batch"]:
    return flow(question.system, start, question.t, steps=question.steps)[..., -1]
