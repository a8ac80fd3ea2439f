"""Attention over repeated tokens pair of queries by pair of queries: full matrices, O(L^4), no chosen queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Node:
    """Weights of one correlation of two queries, as full matrices of queries and tokens."""

    excess: np.ndarray
    o: np.ndarray
    h: np.ndarray
    z: np.ndarray
    b: np.ndarray

    @classmethod
    def of(cls, pull: Any) -> Node:
        return cls(pull.excess, *(part.values for part in (pull.mean, pull.copies, pull.scores, pull.beyond)))

    def moments(self, i: int, k: int) -> np.ndarray:
        """E[A_ij A_kl] over all j, l."""
        both = np.outer(self.o[i], self.o[k]) + np.outer(self.h[i], self.h[k]) * self.excess
        both += np.diag(self.b[i] * self.b[k])
        return both / both.sum()


def moments(law: Any, i: int, k: int) -> np.ndarray:
    """E[A_ij A_kl], between the correlations by the weights of the pair of queries."""
    if i == k:
        return Node.of(law.single).moments(i, i)
    a = law.average.values
    total = law.free[i, k] * np.outer(a[i], a[k])
    for weight, pull in law.pulls:
        total += weight[i, k] * Node.of(pull).moments(i, k)
    return np.asarray(total)


def outputs(law: Any, x: np.ndarray) -> np.ndarray:
    """The mean of x over two queries' attention, not yet bounded."""
    n = len(x)
    return np.array([[(moments(law, i, k) * x).sum() for k in range(n)] for i in range(n)])


def at_values(law: Any, d: np.ndarray) -> np.ndarray:
    """Gradients at the values."""
    n = len(d)
    return np.asarray(sum(d[i, k] * moments(law, i, k) for i in range(n) for k in range(n)))


def at_scores(law: Any, d: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Gradients at keys and queries: for each pair of queries the doubly centred sum over all pairs of keys."""
    n, v, a = len(d), law.tables.variance, law.average.values
    half, both = a @ x, a @ x @ a.T
    turning = np.ones((n, n)) if law.turning is None else law.turning
    found = np.zeros((n, n))
    for i in range(n):
        for k in range(n):
            shape, pulls = (law.own, [(np.eye(n), law.single)]) if i == k else (law.other, law.pulls)
            keys, free = shape.likeness.keys, shape.response.values
            plain = np.outer(free[i], free[k])
            copied = np.zeros((n, n))
            for weight, pull in pulls:
                copied += weight[i, k] * np.outer(pull.scores.values[i], pull.scores.values[k]) * pull.excess
            # m runs down and belongs to i, n runs along and belongs to k.
            ci, ck = (a[q] @ (keys * law.unlike) / np.maximum(a[q] @ law.unlike, 1e-9) for q in (i, k))
            bi, bk, p, qi, qk = half[i], half[k], both[i, k], ci @ a[k], ck @ a[i]
            centred = x - bi - bk[:, None] + p
            found += d[i, k] * v * law.cosine[i, k] * (plain + copied) * centred * (turning if i == k else 1)
            level = qi * (x / 2 - bi + p / 2) + qk * (x / 2 - bk[:, None] + p / 2)
            exact = centred * (keys - ci - ck[:, None]) + level
            # Two copies m and n: B_km C_in is taken as the mean of B_kn C_in and B_km C_im.
            across = bk[:, None] * ci + ck[:, None] * bi
            near = 0.5 * (bk * ci + bi * ck + (bk * ci + bi * ck)[:, None])
            sums = (plain * exact + copied * (exact - across + near)).sum()
            found[i, k] += d[i, k] * v * turning[i, k] * sums
    return found
