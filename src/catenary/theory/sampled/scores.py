r"""Gradients through a drawn attention head, averaged over its values and outputs: three paths to an input.

With \(g_i\) the gradient at output i (covariance D), values and outputs independent Gaussian, the score gradients
\(\partial z_{ij} = A'_{ij}(s_{ij} - \sum_l A_{il}s_{il})\), \(A'_{ij} = A_{ij}f'(z_{ij})\), have
\(\mathrm{Cov}(s_{ij}, s_{kl}) = D_{ik}X_{jl}\), hence

\[E[\partial z_{ij}\,\partial z_{kl}] = D_{ik}A'_{ij}A'_{kl}(X_{jl} - B_{jk} - B_{li} + P_{ik}),
  \quad B = XA^\top,\quad P = AXA^\top.\]

The key's gradient is \(\sum_i\partial z_{ij}w_{ij}\) with w the query as position j sees it (turned back by j), the
query's is \(\sum_j\partial z_{ij}u_{ij}\) with u the key as position i sees it. Derived here; at infinite width the
three paths are uncorrelated.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from catenary.theory.sampled.heads import Head, Side, as_pairs, phases

Square = Float64[np.ndarray, "L L"]


@dataclass(frozen=True, eq=False)
class HeadPass:
    """One head over inputs of covariance X: \\(B = XA^\\top\\) and \\(P = AXA^\\top\\)."""

    head: Head
    x: Square
    half: Square
    full: Square

    @classmethod
    def over(cls, head: Head, x: Square) -> HeadPass:
        """The averages of ``x`` by the head's attention."""
        half = x @ head.attention.T
        return cls(head, x, half, head.attention @ half)

    def backward(self, gradient: Square) -> Square:
        r"""Covariance of the input gradients, all three paths, for gradients of covariance D at the outputs.

        \[A^\top DA + \sum_a[X\circ W_a^\top DW_a - Y_a - Y_a^\top + W_a^\top(D\circ P)W_a]
          + D\circ\sum_a N_aXN_a^\top,\]
        \[W_{a,ij} = A'_{ij}w_{ij}^a,\quad Y_a = (W_a^\top D\circ B)W_a,\quad
          N_{a,ij} = A'_{ij}u_{ij}^a - A_{ij}\sum_lA'_{il}u_{il}^a,\]

        a over the channels of the head. Channels that no position turns share \(W = A'\): there D becomes
        \(D\circ qq^\top\), and one term serves for all of them. O(L^3), times the turned or normalised channels.
        """
        a = self.head.attention
        through: Square = a.T @ gradient @ a
        for weights, sent in self._key_terms(gradient):
            through += self._keys(weights, sent)
        through += gradient * self._queries()
        return through

    def _key_terms(self, gradient: Square) -> Iterator[tuple[Square, Square]]:
        head = self.head
        shared = unturned(head.query, head.angles.size, head.key)
        if shared is not None:
            yield head.slope, gradient * (head.scale**2 * shared @ shared.T)
        for channel in seen_by_keys(head):
            yield head.slope * channel, gradient

    def _keys(self, weights: Square, gradient: Square) -> Square:
        """The key path of one channel."""
        sent = weights.T @ gradient
        own = (sent @ weights) * self.x
        # W^T (D o P) W is symmetric: half of it goes to each of Y and its transpose.
        rest = (sent * self.half - 0.5 * (weights.T @ (gradient * self.full))) @ weights
        return np.asarray(own - rest - rest.T)

    def _queries(self) -> Square:
        """The query path's factor of D."""
        head = self.head
        total = np.zeros_like(self.x)
        shared = unturned(head.key, head.angles.size, head.query)
        if shared is not None:
            total += self._shared_queries(head.scale**2 * shared @ shared.T)
        for channel in seen_by_queries(head):
            moved = head.slope * channel
            moved -= moved.sum(axis=1, keepdims=True) * head.attention
            total += moved @ self.x @ moved.T
        return total

    def _shared_queries(self, overlap: Square) -> Square:
        r"""\(\sum_aN_aXN_a^\top\) over channels with \(\sum_au_j^au_l^a\) = ``overlap``, the same for all queries."""
        slope = self.head.slope
        mean = overlap @ slope.T
        cross = slope @ (self.half * mean)
        return np.asarray(
            slope @ (self.x * overlap) @ slope.T - cross - cross.T + self.full * (slope @ mean)
        )


def unturned(sender: Side, pairs: int, receiver: Side) -> Float64[np.ndarray, "L channels"] | None:
    """The channels in which every receiver sees the same vector; None where there are none.

    A receiver behind QK-norm sees only what is tangent to its own vector, so there no channel is shared.
    """
    rest = sender.vectors[:, 2 * pairs :]
    return rest if receiver.rms is None and rest.shape[1] else None


def seen_by_keys(head: Head) -> Iterator[Square]:
    """Scaled queries as each key sees them, channel by channel: [i, j] for query i and key j."""
    return _seen(head.query, head.key, head)


def seen_by_queries(head: Head) -> Iterator[Square]:
    """Scaled keys as each query sees them, channel by channel: [i, j] for query i and key j."""
    for channel in _seen(head.key, head.query, head):
        yield channel.T


def _seen(sender: Side, receiver: Side, head: Head) -> Iterator[Square]:
    r"""s Rot_{i-j} x_i of sender i at receiver j, unless shared; tangent to y_j and over its rms behind QK-norm."""
    count = head.angles.size
    pairs = as_pairs(sender.vectors, count)
    turns = phases(len(pairs), head.angles)
    pieces: Iterator[tuple[int, Square]] = (
        piece
        for f in range(count)
        for turned in [np.outer(pairs[:, f] * turns[:, f], turns[:, f].conj())]
        for piece in ((f, turned.real), (f + count, turned.imag))
    )
    if receiver.rms is None:
        for _, channel in pieces:
            yield head.scale * channel
        return
    logits = head.logits if receiver is head.key else head.logits.T
    along = logits / np.sum(receiver.vectors**2, axis=1)
    for a, channel in pieces:
        yield (head.scale * channel - along * receiver.vectors[:, a]) / receiver.rms
    for a in range(2 * count, sender.vectors.shape[1]):
        yield (head.scale * sender.vectors[:, a, None] - along * receiver.vectors[:, a]) / receiver.rms
