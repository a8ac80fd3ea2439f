r"""Moments of a random step t = softplus(b + g) and of the decay exp(-rate t) that it makes, g Gaussian."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

GAUSS_HERMITE = np.polynomial.hermite_e.hermegauss(160)
"""Steps of large deviation and rate make decays that switch within a tenth of it."""


@dataclass(frozen=True)
class Decay:
    r"""Of a = exp(-rate t) and t at one token: means, second moments, and those of their derivatives in g.

    ``keep`` \(E[a]\), ``keep_square`` \(E[a^2]\), ``step`` \(E[t]\), ``step_square`` \(E[t^2]\), ``joint`` \(E[at]\);
    the fields in ``moved_`` are the same of da/dg and dt/dg.
    """

    keep: float
    keep_square: float
    step: float
    step_square: float
    joint: float
    moved_keep: float = 0.0
    moved_keep_square: float = 0.0
    moved_step: float = 0.0
    moved_step_square: float = 0.0
    moved_joint: float = 0.0

    @property
    def slope(self) -> float:
        """-ln E[a]."""
        return -math.log(self.keep)

    @property
    def random(self) -> bool:
        """Whether steps differ between tokens."""
        return self.moved_step != 0


def fixed_decay(slope: float) -> Decay:
    """A decay by exp(-slope) per token, with steps of 1."""
    keep = math.exp(-slope)
    return Decay(keep, keep**2, 1.0, 1.0, keep)


LEAST_KEPT = 1e-13
"""Below, nothing is kept: e^-30."""


@lru_cache(maxsize=4096)
def step_decay(rate: float, bias: float, deviation: float, least: float = 0.0, most: float = math.inf) -> Decay:
    """The moments for t = softplus(bias + deviation z) cut to [least, most], z standard normal, by Gauss-Hermite."""
    nodes, weights = GAUSS_HERMITE
    weights = weights / weights.sum()
    raw = bias + deviation * nodes
    free = np.logaddexp(0, raw)
    step = np.clip(free, least, most)
    moved = np.where((free >= least) & (free <= most), 1 / (1 + np.exp(-raw)), 0.0)
    keep = np.exp(-rate * step)
    fade = -rate * moved * keep

    def mean(first: object, second: object = 1.0) -> float:
        return float(np.sum(weights * np.asarray(first) * np.asarray(second)))

    return Decay(
        max(mean(keep), LEAST_KEPT), mean(keep, keep), mean(step), mean(step, step), mean(keep, step),
        mean(fade), mean(fade, fade), mean(moved), mean(moved, moved), mean(fade, moved),
    )  # fmt: skip
