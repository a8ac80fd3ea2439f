"""One number of several groups of curves whose sequences are drawn together, with its 95 % bootstrap interval."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float64

from catenary.reading import Reading
from catenary.sample import Sample
from catenary.statistics import RESAMPLES, interval

Curves = Float64[np.ndarray, "n L"]


def norms(sample: Sample) -> Curves:
    r"""\(\|J_j\|_F\) of every sequence, probes averaged as energies; a Sample of one network."""
    return np.asarray(np.sqrt(sample.select().energy[0, 0, 0].mean(axis=1)))


def drawn_together(
    name: str, groups: Sequence[Curves], formula: Callable[..., float], meaning: str, *,
    low: float = -np.inf, high: float = np.inf, draws: int = RESAMPLES, seed: int = 0,
) -> Reading:
    """``formula(*groups)``, each group rows of equally many sequences, with a 95 % interval over the sequences.

    Row i of every group is drawn or left out together: the same window measured in two networks is a pair. Widened
    for few sequences; the number lies between ``low`` and ``high``.
    """
    count = len(groups[0])
    rng = np.random.default_rng(seed)
    value = float(formula(*groups))
    found = np.array([
        float(formula(*(group[pick] for group in groups))) for pick in rng.integers(0, count, (draws, count))
    ])  # fmt: skip
    return Reading(name, value, meaning, *interval(value, found, count, low, high))
