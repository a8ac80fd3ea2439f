r"""Positions for the mean-field equations: nodes on [0, 1] with the running mean on them, and lines of sources.

Behind a source \(\sigma_0\) everything that it causes is written \(k_\lambda(\sigma, \sigma_0)\,E(y)\) with
\(y = Y(\sigma; \sigma_0)\). Because \(k_\lambda(\sigma, \tau)\,d\tau = e^{-(y-z)} dz\) and
\(k_\lambda(\sigma, \sigma_0) = e^{-y} k_\lambda(\sigma_0, \sigma_0)\),

\[ \int_{\sigma_0}^{\sigma} k_\lambda(\sigma, \tau)\, k_\lambda(\tau, \sigma_0)\, E\, d\tau
   = k_\lambda(\sigma, \sigma_0) \int_0^y E(z)\, dz, \]

so E obeys an equation with a plain integral, without a kernel and without a singularity, for every lambda and however
small \(\sigma_0\) is. Source: derived here (docs/kinetic-mean-field.md).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Complex128, Float64

from catenary.errors import NotApplicable, invalid
from catenary.kinetic.arguments import Numbers, at_least_zero, fraction, one_number, whole
from catenary.kinetic.closed_form.primitives import kernel_mass, source_position, warp_distance
from catenary.kinetic.positional.quadrature import gauss, lagrange

LONGEST = 100.0
"""Distance Y that a line may span: beyond it what polynomials lose at the source exceeds the steps' tolerance."""

Values = Float64[np.ndarray, "*batch nodes"] | Complex128[np.ndarray, "*batch nodes"]

FEWEST, MOST = 4, 256
"""Nodes: below 4 nothing is resolved; from about 500 on the scale factors of the interpolation leave float64."""


@dataclass(frozen=True, eq=False)
class Positions:
    r"""Chebyshev nodes on [0, 1] with both ends, and on them \((K_\lambda u)(\sigma) = \int_0^\sigma k_\lambda u\).

    With \(\tau = \sigma s\) the mean is \(\int_0^1 e^{-\lambda\sigma(1-s)} u(\sigma s)\,ds\) over the same integral of
    1, smooth down to \(\sigma = 0\), where it is u(0).
    """

    lam: float
    nodes: Float64[np.ndarray, " positions"]
    mean: Float64[np.ndarray, "positions positions"]

    @classmethod
    def of(cls, count: int, lam: float) -> Positions:
        """``count`` nodes; the rule inside the mean follows the node polynomials and the exponential."""
        decay = one_number("lam", at_least_zero("lam", lam))
        nodes = chebyshev(checked_count("positions", count))
        rule = gauss(count + 16 + int(np.ceil(4 * np.sqrt(decay))))
        weights = rule.weights * np.exp(-decay * nodes[:, None] * (1 - rule.nodes))
        weights = weights / weights.sum(axis=1, keepdims=True)
        return cls(decay, nodes, _averages(nodes, rule.nodes, weights))

    def reading(self, sigma: Float64[np.ndarray, "*shape"]) -> Float64[np.ndarray, "*shape positions"]:
        """The matrix that interpolates from the nodes."""
        return lagrange(self.nodes, sigma)


@dataclass(frozen=True, eq=False)
class Lines:
    r"""For each source, nodes in y from 0 to \(Y(1; \sigma_0)\), and what integrates along them.

    Attributes:
        positions: nodes over the whole prompt.
        sigma0: the sources.
        sigma: positions of the nodes; the first is the source, the last is 1.
        kernel: \(k_\lambda(\sigma, \sigma_0)\) there.
        integral: times ``span``, the matrix from values to \(\int_0^y\), one for all sources.
        span: \(Y(1; \sigma_0)\).
        reading: the matrix that reads the positions' nodes at ``sigma``.
    """

    positions: Positions
    sigma0: Float64[np.ndarray, " sources"]
    sigma: Float64[np.ndarray, "sources nodes"]
    kernel: Float64[np.ndarray, "sources nodes"]
    integral: Float64[np.ndarray, "nodes nodes"]
    span: Float64[np.ndarray, " sources"]
    reading: Float64[np.ndarray, "sources nodes positions"]

    @classmethod
    def of(cls, sigma0: Numbers, count: int, positions: int, lam: float) -> Lines:
        """Lines of ``count`` nodes from each source, over ``positions`` nodes of the whole prompt."""
        space = Positions.of(positions, lam)
        sources = np.atleast_1d(fraction("sigma0", sigma0))
        if sources.ndim != 1:
            raise invalid("sigma0", "must be one position or a row of them", sources.tolist())
        unit = chebyshev(checked_count("nodes", count))
        rule = gauss(count)
        integral = unit[:, None] * _averages(unit, rule.nodes, np.tile(rule.weights, (count, 1)))
        decay = np.float64(space.lam)
        span = warp_distance(np.float64(1.0), sources, decay)
        if span.max() > LONGEST:
            raise NotApplicable(
                f"a line spans log((e^lam - 1)/(e^(lam sigma0) - 1)) <= {LONGEST:g}, got {span.max():.4g}; use a "
                "smaller lam, a later source, or for uniform starts response, which has no such limit"
            )
        sigma = source_position(span[:, None] * (1 - unit), decay)
        # Exact ends; rounding must not put a node before its source.
        sigma = np.clip(sigma, sources[:, None], 1.0)
        sigma[:, 0], sigma[:, -1] = sources, 1.0
        kernel = np.exp(-decay * (sigma - sources[:, None])) / kernel_mass(sigma, decay)
        return cls(space, sources, sigma, kernel, integral, span, space.reading(sigma))

    def integrated(
        self, values: Complex128[np.ndarray, "sources nodes angles"]
    ) -> Complex128[np.ndarray, "sources nodes angles"]:
        r"""\(\int_0^y\) along each line."""
        return np.asarray(np.einsum("s,ij,sj...->si...", self.span, self.integral, values))


def _averages(
    nodes: Float64[np.ndarray, " count"],
    rule: Float64[np.ndarray, " points"],
    weights: Float64[np.ndarray, "count points"],
) -> Float64[np.ndarray, "count count"]:
    r"""From values on the nodes to \(\sum_q w_{iq} u(x_i s_q)\) at each node \(x_i\)."""
    return np.asarray(np.einsum("iq,iqj->ij", weights, lagrange(nodes, nodes[:, None] * rule)))


def chebyshev(count: int) -> Float64[np.ndarray, " count"]:
    """Chebyshev extreme points on [0, 1], rising."""
    return np.sin(np.pi * np.arange(count) / (2 * (count - 1))) ** 2


def trailing(values: Values) -> float:
    """The last two Chebyshev coefficients along the last axis against the largest: how much the nodes leave out."""
    from scipy.fft import dct

    sizes = np.abs(dct(values, type=1, axis=-1))
    sizes[..., -1] /= 2
    return float(sizes[..., -2:].max() / max(sizes.max(), np.finfo(np.float64).tiny))


def checked_count(name: str, count: int) -> int:
    """A whole number of nodes."""
    return whole(name, count, FEWEST, MOST)
