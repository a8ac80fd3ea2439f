r"""Correlations between tokens in the mean-field limit, for independent tokens that need not be uniform.

For a function \(\varphi\) of the source's first angle, two fields say everything: the source's own, A, of order 1, and
that of a later token, C, of order 1/N:

\[ \mathrm{Cov}(\psi(\theta_{\sigma_0}(t)), \varphi(\theta_{\sigma_0}(0))) \to \int \psi A, \qquad
   N\,\mathrm{Cov}(\psi(\theta_\sigma(t)), \varphi(\theta_{\sigma_0}(0))) \to \int \psi\,C(\sigma; \sigma_0). \]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Complex128, Float64

from catenary.errors import invalid
from catenary.kinetic.arguments import Numbers, at_least_zero, one_number
from catenary.kinetic.field.grid import Lines
from catenary.kinetic.field.layered import Angles, Density, evolve, resolved, spread, started, velocity

Function = Callable[[np.ndarray], np.ndarray]
"""A real or complex function of the angle."""


@dataclass(frozen=True, eq=False)
class MeanFieldCorrelations:
    r"""The fields A and C at one time, for each source.

    Attributes:
        angles: the grid of angles.
        sigma0: the sources.
        own: A at the source's own position.
        sigma: positions behind each source, from the source itself to 1.
        later: C at those positions.
        resolution: the largest trailing coefficient of \(C/k_\lambda\) in position or angle, relative.
    """

    angles: Angles
    sigma0: Float64[np.ndarray, " sources"]
    own: Complex128[np.ndarray, "sources angles"]
    sigma: Float64[np.ndarray, "sources nodes"]
    later: Complex128[np.ndarray, "sources nodes angles"]
    resolution: float

    @property
    def last(self) -> Complex128[np.ndarray, "sources angles"]:
        """C at the last position of the prompt."""
        return self.later[:, -1]

    def fourier(self, modes: Numbers) -> Complex128[np.ndarray, "sources modes"]:
        r"""\(\hat C(t, 1, n; \sigma_0)\) for some n, negative ones included: \(\lim N\,\mathrm{Cov}(e^{-in\theta_N(t)},
        \varphi)\).

        Raises:
            InvalidInput: a mode beyond half the number of angles.
        """
        return self.angles.fourier(self.last, np.atleast_1d(np.asarray(modes)).astype(np.int64))

    def covariance(self, function: Function) -> Complex128[np.ndarray, " sources"]:
        r"""\(\lim N\,\mathrm{Cov}(\psi(\theta_N(t)), \varphi(\theta_{\sigma_0}(0)))\) for each source."""
        return np.asarray((function(self.angles.nodes) * self.last).mean(axis=-1))


def mean_field_correlations(
    start: Density,
    function: Function,
    *,
    sigma0: Numbers,
    lam: float,
    beta: float,
    t: float,
    positions: int = 24,
    nodes: int = 24,
    angles: int = 64,
    tolerance: float = 1e-11,
) -> MeanFieldCorrelations:
    r"""Solve for the correlations with \(\varphi\) of the sources' first angles,

    \[ \partial_t A = -\partial_\theta(A\,V[f]), \qquad A(0) = (\varphi - \textstyle\int\varphi f_\circ) f_\circ, \]
    \[ \partial_t C = -\partial_\theta\Big(C\,V[f] + f \Big\{\int_{\sigma_0}^\sigma k_\lambda(\sigma, \tau)\,
       (w'_\beta * C)(\tau)\,d\tau + k_\lambda(\sigma, \sigma_0)\,(w'_\beta * A)(\sigma_0)\Big\}\Big), \]

    and C = 0 at the start.

    C is carried as \(k_\lambda E\) along a line of Chebyshev nodes behind each source (``grid.py``). For the
    uniform start \(\hat C(n) = g_{a_n}(t, \sigma; \sigma_0)\,\hat\varphi(n)\), ``response``. Errors about 1e-10 at
    lambda = 2, beta = t = 1 (tests: the closed form; the derivative of ``mean_field`` by its start).
    Source: the equations, arXiv 2605.09213, Eq. 1.2 and Section 5; the form in E, derived here
    (docs/kinetic-mean-field.md).

    Args:
        start: \(f_\circ(\sigma, \theta)\), as ``mean_field``.
        function: \(\varphi(\theta)\), real or complex.
        sigma0: sources in (0, 1].
        lam: decay lambda >= 0.
        beta: in (0, 700].
        t: one time >= 0.
        positions: nodes in position for f.
        nodes: nodes behind each source.
        angles: angles on the circle.
        tolerance: of the time steps.

    Raises:
        InvalidInput: an argument is out of range, or the start is no density.
        NotApplicable: the grid does not resolve the solution, or lambda is about 100 or more.

    >>> start = lambda s, a: np.ones(np.broadcast_shapes(s.shape, a.shape))
    >>> seen = mean_field_correlations(start, lambda a: np.exp(1j * a), sigma0=0.5, lam=1.0, beta=1.0, t=1.0)
    >>> seen.fourier(1).real.round(6).item()  # response(1, 1, 0.5, a=mode_rate(1, 1.0), lam=1.0)
    0.705886
    """
    time = one_number("t", at_least_zero("t", t))
    grid, lines = Angles(angles, beta), Lines.of(sigma0, nodes, positions, lam)
    space = lines.positions
    tested = np.asarray(function(grid.nodes), dtype=np.complex128)
    if tested.shape != (angles,) or not np.isfinite(tested).all():
        raise invalid("function", "must give one finite number per angle", tested.shape)
    parts = _Parts(space.nodes.size, lines.sigma0.size, nodes, grid.count)
    density = started(start, space, grid)
    sources = np.asarray(lines.reading[:, 0] @ density)
    own = (tested - (sources * tested).mean(axis=-1, keepdims=True)) * sources

    def rate(state: Complex128[np.ndarray, "rows angles"]) -> Complex128[np.ndarray, "rows angles"]:
        f, a, e = parts.of(state)
        density = np.ascontiguousarray(f.real)
        speed = velocity(density, space, grid)
        along, there = lines.reading @ speed, lines.reading @ density
        heard = lines.integrated(grid.pull(e)) + grid.pull(a)[:, None]
        return parts.joined(
            spread(density, speed, grid).astype(np.complex128),
            spread(a, along[:, 0], grid),
            -grid.slope(e * along + there * heard),
        )

    first = parts.joined(density.astype(np.complex128), own, np.zeros((lines.sigma0.size, nodes, angles), complex))
    f, a, e = parts.of(evolve(rate, first, np.array([time]), tolerance)[-1])
    errors = [resolved(f[None], grid, "positions"), resolved(e, grid, "nodes") if time else 0.0]
    return MeanFieldCorrelations(grid, lines.sigma0, a, lines.sigma, lines.kernel[..., None] * e, max(errors))


@dataclass(frozen=True)
class _Parts:
    """f, A and E as one array of rows of angles, and back."""

    positions: int
    sources: int
    nodes: int
    angles: int

    def of(
        self, state: Complex128[np.ndarray, "rows angles"]
    ) -> tuple[
        Complex128[np.ndarray, "positions angles"],
        Complex128[np.ndarray, "sources angles"],
        Complex128[np.ndarray, "sources nodes angles"],
    ]:
        """The three fields of a state."""
        f, a, e = np.split(state, np.cumsum([self.positions, self.sources]))
        return f, a, e.reshape(self.sources, self.nodes, self.angles)

    def joined(
        self,
        f: Complex128[np.ndarray, "positions angles"],
        a: Complex128[np.ndarray, "sources angles"],
        e: Complex128[np.ndarray, "sources nodes angles"],
    ) -> Complex128[np.ndarray, "rows angles"]:
        """One state of three fields."""
        return np.concatenate([f, a, e.reshape(-1, self.angles)])
