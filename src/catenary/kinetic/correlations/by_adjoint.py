r"""Estimators of N Cov from the last token's derivatives: every source from one backward pass."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from catenary.errors import invalid
from catenary.kinetic.correlations.result import Draws, Question, batches
from catenary.kinetic.particles.adjoint import sensitivity
from catenary.kinetic.particles.system import Angles

SMALLEST_CONTROL = 1e-100
"""A source whose control stays below this, at large decays, is left without one."""


@dataclass(frozen=True)
class Adjoint:
    r"""\(N J_{N,i}\,\kappa(\theta_N(t) - \theta_i(0))\), \(J_{N,i} = \partial\theta_N(t)/\partial\theta_i(0)\).

    Integration by parts over \(\theta_i(0)\), which is uniform: \(\mathrm{E}\,e^{in(\theta_N(t) - \theta_i(0))} =
    \mathrm{E}\,J_{N,i}\,e^{in(\theta_N(t) - \theta_i(0))}\) for every n but 0. \(N J_{N,i}\) is of order 1. Source:
    derived here (docs/kinetic-particles.md).
    """

    def runs(self, question: Question) -> float:
        """A forward run, and a backward one of two scans per stage."""
        return 3.0

    def draw(self, question: Question, rng: np.random.Generator, samples: int) -> Draws:
        """One row per prompt."""
        return np.concatenate(
            [_products(question, question.starts(rng, size)) for size in batches(question.system.tokens, samples)]
        )


@dataclass(frozen=True)
class AdjointControl:
    r"""``Adjoint`` less a multiple of its own first order in t, whose mean is known:

    \[ X_0 = -N t\,\omega_{N,i}\, w''(\Delta)\,\kappa(\Delta), \quad \Delta = \theta_N(0) - \theta_i(0), \qquad
       \mathrm{E} X_0 = N t\,\omega_{N,i} \sum_n \omega_n a_n. \]

    The multiple is a least-squares coefficient per source. Each half of the samples takes the other half's, so that
    it is independent of the draws it is applied to and adds no bias. Source: derived here (docs/kinetic-particles.md).
    """

    def runs(self, question: Question) -> float:
        """As ``Adjoint``: the control needs no run."""
        return 3.0

    def draw(self, question: Question, rng: np.random.Generator, samples: int) -> Draws:
        """One row per prompt; at least 4, because each half fits a slope."""
        if samples < 4:
            raise invalid("samples", "must be at least 4 for a control variate", samples)
        products, controls = [], []
        for size in batches(question.system.tokens, samples):
            start = question.starts(rng, size)
            products.append(_products(question, start))
            controls.append(_centred_controls(question, start))
        plain, control = np.concatenate(products), np.concatenate(controls)
        half = samples // 2
        slopes = np.stack([_slope(plain[half:], control[half:]), _slope(plain[:half], control[:half])])
        return np.concatenate([plain[:half] - slopes[0] * control[:half], plain[half:] - slopes[1] * control[half:]])


def _products(question: Question, start: Angles) -> Draws:
    answer = sensitivity(question.system, start, question.t, steps=question.steps)
    difference = answer.end[:, -1:] - start[:, question.sources]
    gradient = answer.gradient[:, question.sources]
    return np.asarray(question.system.tokens * gradient * question.readout.kernel(difference))


def _centred_controls(question: Question, start: Angles) -> Draws:
    r"""\(X_0\) less its mean."""
    beta = question.system.beta
    difference = start[:, -1:] - start[:, question.sources]
    curvature = beta * (beta * np.sin(difference) ** 2 - np.cos(difference)) * np.exp(beta * np.cos(difference))
    mean = float(question.readout.weights @ question.readout.rates(beta))
    share = question.system.tokens * question.t * question.system.last_weights[question.sources]
    return np.asarray(-share * (curvature * question.readout.kernel(difference) + mean))


def _slope(plain: Draws, control: Draws) -> Float64[np.ndarray, " sources"]:
    """Least squares; 0 for a source whose control does not vary, or is too small to remove anything."""
    largest = np.abs(control).max(axis=0)
    usable = largest > SMALLEST_CONTROL
    scale = np.where(usable, largest, 1.0)
    spread = control / scale
    spread = spread - spread.mean(axis=0)
    size = (spread**2).sum(axis=0)
    slope = np.zeros(size.shape)
    np.divide((spread * plain).sum(axis=0) / scale, size, out=slope, where=usable & (size > 0))
    return slope
