"""Recurrences by loops over pairs of tokens: every product of random steps written out token by token."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]

HERMITE = np.polynomial.hermite_e.hermegauss(120)


def tapped(x: Matrix, count: int) -> Matrix:
    """Both tokens moved back by 0, ..., count - 1, summed."""
    result = np.zeros_like(x)
    for i, j in np.ndindex(*x.shape):
        result[i, j] = sum(x[i - k, j - k] for k in range(count) if min(i, j) >= k)
    return result


@dataclass(frozen=True)
class Steps:
    """t = softplus(bias + deviation z), a = exp(-rate t): moments by quadrature."""

    rate: float
    bias: float
    deviation: float

    def moment(self, *factors: str) -> float:
        """Mean of a product of 'a', 't' and of their derivatives 'a1', 't1' in the input of softplus."""
        nodes, weights = HERMITE
        raw = self.bias + self.deviation * nodes
        t = np.log1p(np.exp(raw))
        t1 = 1 / (1 + np.exp(-raw))
        a = np.exp(-self.rate * t)
        known = {"a": a, "t": t, "t1": t1, "a1": -self.rate * t1 * a}
        product = np.prod([known[factor] for factor in factors], axis=0) if factors else np.ones_like(raw)
        return float((weights * product).sum() / weights.sum())


def path_moment(steps: Steps, i: int, j: int, k: int, m: int, moved: tuple[int, int] | None = None) -> float:
    """E of (a_i ... a_{j+1} t_j)(a_k ... a_{m+1} t_m); ``moved``: derivatives at one token of either factor."""
    paths = ((i, j), (k, m))
    if moved is not None and any(not first <= at <= last for at, (last, first) in zip(moved, paths, strict=True)):
        return 0.0
    total = 1.0
    for token in range(max(i, k) + 1):
        factors = []
        for place, (last, first) in enumerate(paths):
            if first <= token <= last:
                factors.append("t" if token == first else "a")
                if moved is not None and moved[place] == token:
                    factors[-1] += "1"
        total *= steps.moment(*factors)
    return total


@dataclass(frozen=True)
class Heads:
    """One head: second moments of queries, keys and values, means of queries and keys, entries per query, skip."""

    query: Matrix
    key: Matrix
    value: Matrix
    query_mean: NDArray[np.float64]
    key_mean: NDArray[np.float64]
    entries: int
    skip: float
    steps: Steps

    def outputs(self, moved: tuple[int, int] | None = None) -> Matrix:
        """Covariance of o_i and o_k per channel, or of their derivatives in the steps' inputs at two tokens."""
        length, n = len(self.query), self.entries
        result = np.zeros((length, length))
        mu, nu = self.query_mean, self.key_mean
        for i, k in itertools.product(range(length), repeat=2):
            for j, m in itertools.product(range(i + 1), range(k + 1)):
                same = n * self.query[i, k] * self.key[j, m]
                apart = n * (n - 1) * mu[i] * mu[k] * nu[j] * nu[m]
                result[i, k] += (same + apart) * self.value[j, m] * path_moment(self.steps, i, j, k, m, moved)
            if moved is None:
                result[i, k] += self.skip**2 * self.value[i, k]
                result[i, k] += self.skip * sum(self._single(i, j) * self.value[j, k] for j in range(i + 1))
                result[i, k] += self.skip * sum(self._single(k, m) * self.value[m, i] for m in range(k + 1))
        return result

    def _single(self, i: int, j: int) -> float:
        path = self.steps.moment("a") ** (i - j) * self.steps.moment("t")
        return self.entries * self.query_mean[i] * self.key_mean[j] * path
