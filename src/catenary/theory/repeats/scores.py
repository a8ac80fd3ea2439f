r"""How gradients pass through attention scores: doubly centred sums over pairs of tokens, for keys and for queries."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from catenary.theory.repeats.band import Square
from catenary.theory.repeats.between import Between, Interpolated, Over


@dataclass(frozen=True, eq=False)
class Means:
    """Means over what queries see: by one of the two (``half``: query, token), by both (``both``)."""

    half: Float[np.ndarray, "rows n"]
    both: Between


def key_terms(w: Interpolated, weighted: Square, half: Square, both: Square) -> tuple[Square, Square]:
    r"""\(\sum_{ik}E_{ik}w_{im}w_{kn}(X_{mn} - B_{in} - B_{km} + p_{ik})\): the coefficient of X, and the rest.

    The rest is symmetric up to an antisymmetric part, which the caller drops. ``half`` is B by (token, query),
    ``both`` is p.
    """
    sent = w.transposed(weighted)
    rest = w.transposed(weighted * both)
    rest -= 2 * half * sent
    return w.transposed(sent.T), w.transposed(rest.T)


def own_key_terms(
    w: Interpolated, weighted: Float[np.ndarray, " n"], half: Square, both: Square
) -> tuple[Square, Square]:
    """The same where every query meets only itself; ``half`` by (query, token)."""
    sent = weighted[:, None] * w.dense()
    rest = both.diagonal()[:, None] - 2 * half
    rest *= sent
    return w.transposed(sent), w.transposed(rest)


def query_terms(w: Interpolated, x: Square, keys: Square, values: Means, others: Means, over: Over) -> Between:
    r"""\(\sum_{mn}w_{im}w_{kn}(X_{mn} - B_{in} - B_{km} + p_{ik})(K_{mn} - B'_{in} - B'_{km} + p'_{ik})\)."""
    b, p, c, q, u = values.half, values.both, others.half, others.both, w.values
    whole = u.sum(axis=1)[:, None]
    by_key, by_value = w.at(keys), w.at(x)
    total = over(0.5 * w.at(x * keys) - by_key * b - by_value * c + whole * b * c, u)
    total += p * over(0.5 * by_key - whole * c, u) + q * over(0.5 * by_value - whole * b, u)
    crossed = over(u, b) * over(u, c).T
    total += crossed + 0.5 * p * q * over(np.broadcast_to(whole, u.shape), u)
    return total + total.T


def copied_query_terms(
    w: Interpolated, excess: Square, x: Square, keys: Square, values: Means, others: Means, over: Over
) -> Between:
    r"""The same with \(M_{mn}\) in the sum; M is large only where m and n are one type, so \(B_{km}\approx B_{kn}\)."""
    b, p, c, q, u = values.half, values.both, others.half, others.both, w.values
    alike = excess * keys
    one, by_key, by_value = w.at(excess), w.at(alike), w.at(excess * x)
    alike *= x
    total = over(0.5 * w.at(alike) - by_key * b - by_value * c + one * b * c, u)
    total += p * over(0.5 * by_key - one * c, u) + q * over(0.5 * by_value - one * b, u)
    total += 0.5 * (p * q * over(one, u) + over(one * c, u * b) + over(one * b, u * c))
    return total + total.T
