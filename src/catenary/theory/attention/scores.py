"""What the scores of one attention are at birth, as numbers: variance, spread of query norms, cap, sink, overlap."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from catenary.architecture import Attention, Sink

SINK_NODES = 3
"""Gauss-Hermite nodes over the sink's logit: exact for its first five moments."""

SHARP = 0.1
"""Std of a sink's logit up to which its mean stands for all heads: e^s is .5 % larger on average."""


@dataclass(frozen=True)
class Scores:
    r"""The law of one head's logits \(z_{ij}\) over the draw of its weights, for inputs of unit variance.

    Attributes:
        variance: v, before soft-capping.
        query_dims: degrees of freedom of the chi-square law of the query's squared norm; None for a fixed norm.
        overlap: variance of the correlation that unrelated tokens have by chance, 1/d; 0 at infinite width.
        softcap: c of \(c\tanh(z/c)\), if any.
        sink: the learned logit without a value, if any.
    """

    variance: float
    query_dims: float | None
    overlap: float = 0.0
    softcap: float | None = None
    sink: Sink | None = None

    @property
    def plain(self) -> bool:
        """Whether a part common to all logits of a row cancels: no cap and no sink."""
        return self.softcap is None and self.sink is None

    @classmethod
    def of(cls, attention: Attention, width: int, finite_width: bool) -> Scores:
        r"""The scores of one attention behind a stream of ``width`` channels.

        QK-norm over all heads fixes the sum of their queries' squared norms only: one head's scatters by a factor
        \(1 - 1/n_h\) less than without. In latent attention keys and values share the random latent of rank r, which
        adds an overlap of 1/r to the plain channels' share \(\alpha\) of the variance; queries have
        \((\sum_cw_c)^2/\sum_cw_c^2\) effective dimensions, w the key variance per channel.
        """
        dims: float | None = attention.head_dim
        overlap = 1 / width
        if attention.qk_norm:
            share = 1 / attention.heads
            dims = attention.head_dim / (1 - share) if attention.qk_norm_over == "heads" and share < 1 else None
        if attention.latent is not None:
            latent = attention.latent
            plain, rotary = latent.rank * latent.plain_dim, width * latent.rotary_dim
            dims = (plain + rotary) ** 2 / (plain * latent.rank + rotary * width)
            overlap += plain / (plain + rotary) / latent.rank
        return cls(
            attention.logit_variance(width),
            dims,
            overlap if finite_width else 0.0,
            attention.softcap,
            attention.sink,
        )


@dataclass(frozen=True, eq=False)
class Nodes:
    """Nodes and weights of a quadrature."""

    at: Float64[np.ndarray, " nodes"]
    weights: Float64[np.ndarray, " nodes"]


def query_norms(dims: float | None) -> Nodes:
    r"""A quadrature for |q|^2/E|q|^2, a chi-square law with ``dims`` degrees of freedom over its mean.

    From 6 on: three nodes \(1, 1\pm\sqrt{6/h_d}\) with weights 2/3, 1/6, 1/6 (the law's first four moments to
    leading order in 1/h_d). Below 6 the lower node would be negative: 8 Gauss-Laguerre nodes, exact for polynomials
    up to degree 15. None: a fixed norm.
    """
    if dims is None:
        return Nodes(np.ones(1), np.ones(1))
    if dims >= 6:
        width = math.sqrt(6 / dims)
        return Nodes(np.array([1.0, 1 + width, 1 - width]), np.array([2 / 3, 1 / 6, 1 / 6]))
    # Golub and Welsch: the nodes are the eigenvalues of the Laguerre recurrence's matrix.
    shape, k = dims / 2, np.arange(8)
    beside = np.sqrt(k[1:] * (k[1:] + shape - 1))
    nodes, vectors = np.linalg.eigh(np.diag(2 * k + shape) + np.diag(beside, 1) + np.diag(beside, -1))
    return Nodes(nodes / shape, vectors[0] ** 2)


def sink_logits(sink: Sink | None) -> Nodes | None:
    """A quadrature for the logit of a sink over heads; None without a sink."""
    if sink is None:
        return None
    if sink.std <= SHARP:
        return Nodes(np.full(1, sink.mean), np.ones(1))
    nodes, weights = np.polynomial.hermite_e.hermegauss(SINK_NODES)
    return Nodes(sink.mean + sink.std * nodes, weights / weights.sum())
