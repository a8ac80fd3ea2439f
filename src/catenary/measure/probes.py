"""Gaussian cotangents, each a function of its own address, so that batching and resuming change nothing."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64

COTANGENT, VECTOR = 1, 2
"""First word of an address: which kind of draw it is, so that probes and inputs of one seed are independent."""


def stream(seed: int, *address: int) -> np.random.Generator:
    """A generator that depends on ``seed`` and ``address`` alone (numpy SeedSequence, Philox counter)."""
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(seed, spawn_key=address)))


def cotangent(width: int, *, seed: int, net: int, sequence: int, probe: int) -> Float64[np.ndarray, " d"]:
    r"""One probe \(v \sim N(0, I_d)\), for which \(E\|J_j^T v\|^2 = \|J_j\|_F^2\) at every position j.

    ``net`` is the seed of the network, ``sequence`` and ``probe`` count from 0. Adding probes or sequences, or
    computing them in another order or batch, leaves every existing probe as it is.
    """
    return stream(seed, COTANGENT, net, sequence, probe).standard_normal(width)


def token_vectors(count: int, width: int, *, seed: int, sequence: int) -> Float64[np.ndarray, "count d"]:
    """Independent N(0, 1) vectors for the distinct tokens of one window, in order of first occurrence."""
    return stream(seed, VECTOR, sequence).standard_normal((count, width))
