r"""Tokens that start close to a curve: the path of the curve, and how each token answers to every first angle.

For \(\theta_j(0) = h_\circ(j/N) + \epsilon\xi_j\) with independent \(\xi_j\) of variance \(v(\sigma)\), as N grows and
then \(\epsilon\) falls, \(\mathrm{Cov}(\theta_\sigma(t), \theta_\sigma(0)) \to \epsilon^2 v(\sigma) D\) and
\(N\,\mathrm{Cov}(\theta_\sigma(t), \theta_{\sigma_0}(0)) \to \epsilon^2 v(\sigma_0) R\).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from catenary.errors import NotApplicable, invalid
from catenary.kinetic.arguments import Array, Numbers, at_least_zero, concentration, fraction, one_number
from catenary.kinetic.field.grid import Lines, Positions, trailing
from catenary.kinetic.field.layered import UNRESOLVED, evolve

Curve = Callable[[np.ndarray], np.ndarray]
r"""\(h_\circ(\sigma)\), an angle for each position in [0, 1]."""


@dataclass(frozen=True, eq=False)
class NearDeterministic:
    r"""The path h and the responses D and R at one time.

    Attributes:
        positions: nodes in \(\sigma\).
        path: h at the nodes, in radians.
        memory: D at the nodes: what a token keeps of its own first angle.
        sigma0: the sources.
        sigma: positions behind each source, from the source itself to 1.
        later: R there, per unit of \(\sigma_0\).
        resolution: the largest trailing coefficient in position, relative.
    """

    positions: Positions
    path: Float64[np.ndarray, " positions"]
    memory: Float64[np.ndarray, " positions"]
    sigma0: Float64[np.ndarray, " sources"]
    sigma: Float64[np.ndarray, "sources nodes"]
    later: Float64[np.ndarray, "sources nodes"]
    resolution: float

    @property
    def last(self) -> Float64[np.ndarray, " sources"]:
        """R at the last position."""
        return self.later[:, -1]

    def path_at(self, sigma: Numbers) -> Array:
        """h at some positions in (0, 1]."""
        return np.asarray(self.positions.reading(fraction("sigma", sigma)) @ self.path)

    def memory_at(self, sigma: Numbers) -> Array:
        """D at some positions in (0, 1]."""
        return np.asarray(self.positions.reading(fraction("sigma", sigma)) @ self.memory)


def near_deterministic(
    start: Curve,
    *,
    sigma0: Numbers,
    lam: float,
    beta: float,
    t: float,
    positions: int = 32,
    nodes: int = 32,
    tolerance: float = 1e-11,
) -> NearDeterministic:
    r"""Solve for the path and the responses, with \(\kappa(\sigma, \tau) = w''_\beta(h(\sigma) - h(\tau))\):

    \[ \partial_t h = \int_0^\sigma k_\lambda\, w'_\beta(h(\sigma) - h(\tau))\,d\tau, \qquad
       \partial_t D = D \int_0^\sigma k_\lambda\,\kappa(\sigma, \tau)\,d\tau, \]
    \[ \partial_t R = R \int_0^\sigma k_\lambda\,\kappa(\sigma, \tau)\,d\tau
       - \int_{\sigma_0}^\sigma k_\lambda\,\kappa(\sigma, \tau)\,R(\tau; \sigma_0)\,d\tau
       - k_\lambda(\sigma, \sigma_0)\,\kappa(\sigma, \sigma_0)\,D(\sigma_0), \]

    from \(h_\circ\), 1 and 0. Turning all first angles turns every token: \(D + \int_0^\sigma R\,d\sigma_0 = 1\). A
    constant curve gives ``cluster_memory`` and ``cluster_response``. Errors about 1e-10 for smooth curves (tests).
    Source: arXiv 2605.09213, Proposition 7.1; how R is carried, derived here (docs/kinetic-mean-field.md).

    Args:
        start: \(h_\circ\) on arrays of positions in [0, 1], in radians.
        sigma0: sources in (0, 1].
        lam: decay lambda >= 0.
        beta: in (0, 700].
        t: time >= 0.
        positions: nodes in position, 4 to 256.
        nodes: nodes behind each source, 4 to 256.
        tolerance: of the time steps, in [1e-13, 1).

    Raises:
        InvalidInput: an argument is out of range, or the curve is not finite.
        NotApplicable: the nodes do not resolve the solution, or lambda is about 100 or more.

    >>> seen = near_deterministic(lambda s: 0 * s, sigma0=0.5, lam=1.0, beta=1.0, t=1.0)
    >>> seen.last.round(6).item(), seen.memory[-1].round(6).item()  # cluster_response, cluster_memory
    (0.525931, 0.065988)
    """
    time, b = one_number("t", at_least_zero("t", t)), one_number("beta", concentration(beta))
    lines = Lines.of(sigma0, nodes, positions, lam)
    space = lines.positions
    path = np.broadcast_to(np.asarray(start(space.nodes), dtype=np.float64), (positions,))
    if not np.isfinite(path).all():
        raise invalid("start", "must be finite on [0, 1]", path.tolist())
    cuts = np.cumsum([positions, positions])

    def rate(state: Float64[np.ndarray, " n"]) -> Float64[np.ndarray, " n"]:
        h, d, e = np.split(state, cuts)
        apart = h[:, None] - h
        sharpening = (space.mean * bend(apart, b)).sum(axis=1)
        along = lines.reading @ h
        kappa = bend(along[:, :, None] - along[:, None], b)
        response = e.reshape(lines.sigma.shape)
        heard = np.einsum("s,ij,sij,sj->si", lines.span, lines.integral, kappa, response)
        direct = kappa[:, :, 0] * (lines.reading[:, 0] @ d)[:, None]
        grown = response * (lines.reading @ sharpening) - heard - direct
        return np.concatenate([(space.mean * pull(apart, b)).sum(axis=1), d * sharpening, grown.ravel()])

    first = np.concatenate([path, np.ones(positions), np.zeros(lines.sigma.size)])
    h, d, e = np.split(evolve(rate, first, np.array([time]), tolerance)[-1], cuts)
    response = e.reshape(lines.sigma.shape)
    left_out = float(np.max([trailing(h), trailing(d), trailing(response)]))
    if not left_out <= UNRESOLVED:
        raise NotApplicable(
            f"the solution is not resolved: trailing coefficients are {left_out:.1g} of the largest; "
            "use more positions and nodes, or a shorter t"
        )
    return NearDeterministic(space, h, d, lines.sigma0, lines.sigma, lines.kernel * response, left_out)


def pull(angle: Array, beta: float) -> Array:
    r"""\(w'_\beta(\theta) = -\beta\sin\theta\,e^{\beta\cos\theta}\)."""
    return np.asarray(-beta * np.sin(angle) * np.exp(beta * np.cos(angle)))


def bend(angle: Array, beta: float) -> Array:
    r"""\(w''_\beta(\theta) = \beta(\beta\sin^2\theta - \cos\theta)\,e^{\beta\cos\theta}\)."""
    cosine = np.cos(angle)
    return np.asarray(beta * (beta * (1 - cosine**2) - cosine) * np.exp(beta * cosine))
