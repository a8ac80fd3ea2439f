r"""What groups of positions cannot show of sinusoidal positions: energies that change from one token to the next.

Where LayerNorms remove the mean over channels, a token keeps \(X_{jj}\) less the square of its position's mean, which
ripples with the fastest sines: by .8 % of \(X_{jj}\), with a period of about six tokens. The first norm divides by it.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64

from catenary.architecture import Architecture, Sinusoid
from catenary.theory.embedding import fixed_width, removes_means, variances
from catenary.theory.positions.grid import Grid

BLOCK = 1024
"""Positions whose angles are added to those of blocks, so that a million take two products of matrices."""


def ripple(architecture: Architecture, grid: Grid) -> Float64[np.ndarray, " L"]:
    r"""\(\bar X_{jj}/X_{jj}\) at every position, the mean over j's group above: energies change by about this factor.

    With GPT-2's layers the exact recursion's energies follow the power 1.12 to 1.14 of it (correlation .999), 12
    layers, L = 512 and 1024. 1 without sinusoids, or where their means are kept. Derived here.
    """
    sinusoid = architecture.embedding.sinusoid
    if sinusoid is None or not removes_means(architecture):
        return np.ones(grid.length)
    width = fixed_width(architecture)
    means = channel_means(sinusoid, width, grid.length)
    whole = sum(variances(architecture)) + (width // 2) / width
    grouped = np.add.reduceat(means, grid.starts.astype(int)) / grid.sizes
    return np.asarray(grid.spread(whole - grouped**2) / (whole - means**2))


def channel_means(sinusoid: Sinusoid, width: int, length: int) -> Float64[np.ndarray, " L"]:
    r"""Means over channels, \(\frac1d\sum_{f<d/2}(\sin\omega_fi+\cos\omega_fi)\), as in ``sinusoid_covariance``."""
    frequencies = sinusoid.theta ** (-np.arange(width // 2) / sinusoid.span)
    within = np.multiply.outer(np.arange(min(BLOCK, length)), frequencies)
    starts = np.multiply.outer(sinusoid.offset + np.arange(0, length, BLOCK), frequencies)
    # sin(a + b) + cos(a + b), of angles a where blocks start and b within them.
    sine, cosine = np.sin(within).T, np.cos(within).T
    sums = np.sin(starts) @ (cosine - sine) + np.cos(starts) @ (sine + cosine)
    return np.asarray(sums.ravel()[:length] / width)
