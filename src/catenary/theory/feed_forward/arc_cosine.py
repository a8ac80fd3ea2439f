"""Closed kernels of rectified powers: the arc-cosine kernels (Cho and Saul 2009, equations 3 to 6)."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64

Array = Float64[np.ndarray, " *shape"]


def arc_cosine(rho: Array, degree: int) -> Array:
    r"""\(E[u_+^n v_+^n]\) for standard normals of correlation rho, n = 0, 1, 2, with \(\theta = \arccos\rho\).

    \[\frac{1}{2\pi}\{\pi-\theta,\ \sin\theta + (\pi-\theta)\rho,\ 3\rho\sin\theta + (\pi-\theta)(1+2\rho^2)\}.\]
    """
    rho = np.clip(rho, -1, 1)
    angle = np.pi - np.arccos(rho)
    if degree == 0:
        return np.asarray(angle / (2 * np.pi))
    sine = np.sqrt(1 - rho * rho)
    if degree == 1:
        return np.asarray((sine + angle * rho) / (2 * np.pi))
    assert degree == 2, degree
    return np.asarray((3 * sine * rho + angle * (1 + 2 * rho * rho)) / (2 * np.pi))
