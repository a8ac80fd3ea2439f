"""Samples written out by hand: profiles in log10, one per unit, along any dimension."""

import numpy as np

from catenary.sample import Sample


def sample(log10: np.ndarray, axis: int = 3, label: str = "measured", **more: object) -> Sample:
    """A Sample from log10 profiles (unit, L), units along net (2), sequence (3) or probe (4)."""
    shape = [1, 1, 1, 1, 1, log10.shape[1]]
    shape[axis] = log10.shape[0]
    return Sample((10.0 ** (2 * log10)).reshape(shape), ("random",), label=label, **more)


def noise(units: int, length: int, token: float, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, token, (units, length))
