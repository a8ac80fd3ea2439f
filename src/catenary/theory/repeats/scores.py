r"""How gradients pass through attention scores: doubly centred sums over pairs of tokens, for keys and for queries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from catenary.theory.repeats.band import Square, symmetric_product, times_lower, transposed_times

Rows = Float[np.ndarray, "rows n"]
"""Queries of a grid by tokens."""

Between = Float[np.ndarray, "*rows"]
"""One number per pair of queries of a grid, or per query."""

Over = Callable[[Rows, Rows], Between]
"""From two functions of (query, token) to their product summed over tokens, for two queries or for one."""


@dataclass(frozen=True, eq=False)
class Means:
    """Means over what queries see: by one of the two (``half``: query, token), by both (``both``)."""

    half: Float[np.ndarray, "rows n"]
    both: Between


def pairs(u: Rows, w: Rows) -> Between:
    """For every pair of queries."""
    return np.asarray(u @ w.T)


def single(u: Rows, w: Rows) -> Between:
    """For every query with itself."""
    return np.asarray((u * w).sum(axis=1))


def key_terms(w: Square, weighted: Square, means: Means) -> tuple[Square, Square]:
    r"""\(\sum_{ik}E_{ik}w_{im}w_{kn}(X_{mn} - B_{in} - B_{km} + p_{ik})\): the coefficient of X, and the rest."""
    sent = times_lower(weighted, w)
    rest = 0.5 * times_lower(weighted * means.both, w)
    return _keys(w, sent, rest, means)


def own_key_terms(w: Square, weighted: Float[np.ndarray, " n"], means: Means) -> tuple[Square, Square]:
    """The same where every query meets only itself."""
    sent = weighted[:, None] * w
    rest = (0.5 * means.both.diagonal())[:, None] * sent
    return _keys(w, sent, rest, means)


def _keys(w: Square, sent: Square, rest: Square, means: Means) -> tuple[Square, Square]:
    rest -= means.half * sent
    half = transposed_times(w, rest)
    return symmetric_product(w, sent), half + half.T


def query_terms(w: Rows, x: Square, keys: Square, values: Means, others: Means, over: Over) -> Between:
    r"""\(\sum_{mn}w_{im}w_{kn}(X_{mn} - B_{in} - B_{km} + p_{ik})(K_{mn} - B'_{in} - B'_{km} + p'_{ik})\)."""
    b, p, c, q = values.half, values.both, others.half, others.both
    whole = w.sum(axis=1)[:, None]
    by_key, by_value = w @ keys, w @ x
    total = over(0.5 * (w @ (x * keys)) - by_key * b - by_value * c + whole * b * c, w)
    total += p * over(0.5 * by_key - whole * c, w) + q * over(0.5 * by_value - whole * b, w)
    crossed = over(w, b) * over(w, c).T
    total += crossed + 0.5 * p * q * over(np.broadcast_to(whole, w.shape), w)
    return total + total.T


def copied_query_terms(
    w: Rows, excess: Square, x: Square, keys: Square, values: Means, others: Means, over: Over
) -> Between:
    r"""The same with \(M_{mn}\) in the sum; M is large only where m and n are one type, so \(B_{km}\approx B_{kn}\)."""
    b, p, c, q = values.half, values.both, others.half, others.both
    one, by_key, by_value = w @ excess, w @ (excess * keys), w @ (excess * x)
    total = over(0.5 * (w @ (excess * x * keys)) - by_key * b - by_value * c + one * b * c, w)
    total += p * over(0.5 * by_key - one * c, w) + q * over(0.5 * by_value - one * b, w)
    total += 0.5 * (p * q * over(one, w) + over(one * c, w * b) + over(one * b, w * c))
    return total + total.T
