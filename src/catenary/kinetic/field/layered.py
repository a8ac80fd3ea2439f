r"""The mean-field limit: how the law of a token's angle moves at each position when prompts are long.

\[ \partial_t f = -\partial_\theta(f\,V[f]), \qquad
   V[f](\sigma, \theta) = \int_0^\sigma k_\lambda(\sigma, \tau)\,(w'_\beta * f)(\tau, \theta)\,d\tau. \]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Complex128, Float64, Int64

from catenary.errors import NotApplicable, invalid
from catenary.kinetic.arguments import Numbers, at_least_zero, concentration, fraction, one_number, positive, whole
from catenary.kinetic.field.grid import Positions, trailing

Field = Float64[np.ndarray, "*batch angles"] | Complex128[np.ndarray, "*batch angles"]
"""Values on the grid of angles, along the last axis."""

Density = Callable[[np.ndarray, np.ndarray], np.ndarray]
r"""A density \(f(\sigma, \theta) \ge 0\) of mean 1 over the circle, on arrays that broadcast."""

UNRESOLVED = 1e-3
"""A trailing coefficient above this part of the largest one means that the grid misses something."""

_MEAN = 1e-9
"""How far a start's mean over the circle may be from 1."""


@dataclass(frozen=True)
class Angles:
    r"""Equally spaced angles, and on them \(\partial_\theta\) and the convolution with \(w'_\beta\)."""

    count: int
    beta: float

    def __post_init__(self) -> None:
        """Refuse what is out of range."""
        one_number("beta", concentration(self.beta))
        whole("angles", self.count, 8, 4096)

    @property
    def nodes(self) -> Float64[np.ndarray, " angles"]:
        """The angles, from 0."""
        return np.asarray(2 * np.pi * np.arange(self.count) / self.count)

    @cached_property
    def modes(self) -> Int64[np.ndarray, " angles"]:
        """n of each Fourier coefficient, in the order of the transform; 0 for the unpaired one of an even grid."""
        modes = np.fft.ifftshift(np.arange(self.count) - self.count // 2)
        if self.count % 2 == 0:
            modes[self.count // 2] = 0
        return np.asarray(modes)

    @cached_property
    def _pull(self) -> Complex128[np.ndarray, " angles"]:
        from scipy.special import iv

        return np.asarray(1j * self.modes * iv(np.abs(self.modes), self.beta))

    def pull(self, values: Field) -> Field:
        r"""\(w'_\beta * f\), coefficients \(i n I_n(\beta) \hat f(n)\)."""
        return self._multiplied(values, self._pull)

    def slope(self, values: Field) -> Field:
        r"""\(\partial_\theta\)."""
        return self._multiplied(values, 1j * self.modes)

    def fourier(self, values: Field, modes: Int64[np.ndarray, " n"]) -> Complex128[np.ndarray, "*batch n"]:
        r"""\(\hat f(n) = \frac1{2\pi}\int e^{-in\theta} f\,d\theta\) for some n."""
        if (2 * np.abs(modes) >= self.count).any():
            raise invalid("modes", f"must be below {self.count / 2:g} in size", modes.tolist(), "use more angles")
        return np.asarray((np.fft.fft(values, axis=-1) / self.count)[..., modes])

    def trailing(self, values: Field) -> float:
        """The highest quarter of the Fourier coefficients against the largest."""
        sizes = np.abs(np.fft.fft(values, axis=-1))
        high = np.abs(np.fft.fftfreq(self.count)) > 0.375
        return float(sizes[..., high].max() / max(sizes.max(), np.finfo(np.float64).tiny))

    def _multiplied(self, values: Field, factors: Complex128[np.ndarray, " angles"]) -> Field:
        out = np.fft.ifft(np.fft.fft(values, axis=-1) * factors, axis=-1)
        return out if np.iscomplexobj(values) else np.ascontiguousarray(out.real)


@dataclass(frozen=True, eq=False)
class MeanField:
    r"""Densities f of the angle by time and position, relative to the uniform law.

    Attributes:
        t: the times.
        positions: nodes in \(\sigma\) and the running mean on them.
        angles: the grid of angles.
        density: f, one per time, node and angle.
        resolution: the largest trailing coefficient in position or angle, relative: about the error of the grid.
    """

    t: Float64[np.ndarray, " times"]
    positions: Positions
    angles: Angles
    density: Float64[np.ndarray, "times positions angles"]
    resolution: float

    def at(self, sigma: Numbers) -> Float64[np.ndarray, "times sigma angles"]:
        """The densities at some positions in (0, 1]."""
        reading = self.positions.reading(np.atleast_1d(fraction("sigma", sigma)))
        return np.asarray(np.einsum("sp,tpa->tsa", reading, self.density))

    def fourier(self, modes: Numbers, sigma: Numbers) -> Complex128[np.ndarray, "times sigma modes"]:
        r"""\(\hat f(t, \sigma, n) = \mathrm E\,e^{-in\theta}\) for the token at \(\sigma\).

        Raises:
            InvalidInput: a mode beyond half the number of angles, or a position out of range.
        """
        return self.angles.fourier(self.at(sigma), np.atleast_1d(np.asarray(modes)).astype(np.int64))


def mean_field(
    start: Density,
    *,
    lam: float,
    beta: float,
    t: Numbers,
    positions: int = 24,
    angles: int = 64,
    tolerance: float = 1e-11,
) -> MeanField:
    r"""Solve the layered McKean-Vlasov equation for independent tokens with densities \(f_\circ(\sigma, \theta)\).

    \[ \partial_t f = -\partial_\theta(f\,V[f]), \qquad
       V[f](t, \sigma, \theta) = \int_0^\sigma k_\lambda(\sigma, \tau)\,(w'_\beta * f)(t, \tau, \theta)\,d\tau. \]

    Spectral in both variables: Chebyshev nodes in \(\sigma\), where the running mean is an exact matrix on polynomials,
    Fourier modes in \(\theta\), an adaptive method of eighth order in time. The error is ``resolution`` where the start
    is smooth; attention makes densities steeper with time, so that long times need more angles. The uniform density
    stays. Source: the equation, arXiv 2605.09213, Eq. 1.10; the scheme, derived here (docs/kinetic-mean-field.md).

    Args:
        start: \(f_\circ(\sigma, \theta) \ge 0\), of mean 1 over \(\theta\) at every \(\sigma \in [0, 1]\).
        lam: decay lambda >= 0; about lambda/2 more positions are needed.
        beta: in (0, 700].
        t: one time >= 0, or increasing ones.
        positions: nodes in position, 4 to 256.
        angles: angles on the circle, 8 to 4096.
        tolerance: of the time steps, relative and absolute, in [1e-13, 1).

    Raises:
        InvalidInput: an argument is out of range, or the start is no density.
        NotApplicable: the grid does not resolve the solution (a trailing coefficient above 1e-4).

    >>> solved = mean_field(lambda s, a: 1 + 0.6 * np.cos(a - np.pi * s), lam=2.0, beta=1.0, t=1.0, positions=12)
    >>> abs(solved.fourier(1, 1.0)).round(3).item()
    0.364
    """
    grid, space, times = Angles(angles, beta), Positions.of(positions, lam), increasing(t)
    first = started(start, space, grid)
    states = evolve(lambda f: spread(f, velocity(f, space, grid), grid), first, times, tolerance)
    return MeanField(times, space, grid, states, resolved(states, grid, "positions"))


def velocity(
    density: Float64[np.ndarray, "positions angles"], space: Positions, grid: Angles
) -> Float64[np.ndarray, "positions angles"]:
    """V[f] at every node."""
    return np.asarray(space.mean @ grid.pull(density))


def spread(density: Field, speed: Float64[np.ndarray, "*batch angles"], grid: Angles) -> Field:
    r"""\(-\partial_\theta(f\,v)\)."""
    return -grid.slope(density * speed)


def started(start: Density, space: Positions, grid: Angles) -> Float64[np.ndarray, "positions angles"]:
    """The start on the grid, if it is a density at every position."""
    shape = (space.nodes.size, grid.count)
    values = np.broadcast_to(np.asarray(start(space.nodes[:, None], grid.nodes), dtype=np.float64), shape)
    if not np.isfinite(values).all() or values.min() < 0:
        raise invalid("start", "must be a density: finite and >= 0", float(values.min()))
    worst = float(np.abs(values.mean(axis=1) - 1).max())
    if worst > _MEAN:
        raise invalid("start", "must have mean 1 over the circle at every position", 1 + worst, "divide by the mean")
    return np.array(values)


MOST_EVALUATIONS = 50_000
"""Right-hand sides of one run: some hundred times what beta = t = 1 takes, half a minute at 24 positions."""


def evolve(
    rate: Callable[[np.ndarray], np.ndarray], first: np.ndarray, times: Float64[np.ndarray, " times"], tolerance: float
) -> np.ndarray:
    """The states at each time, by SciPy's adaptive method of eighth order; real or complex."""
    from scipy.integrate import solve_ivp

    limit = one_number("tolerance", positive("tolerance", tolerance))
    if not 1e-13 <= limit < 1:
        raise invalid("tolerance", "must be in [1e-13, 1)", tolerance, "float64 carries no smaller step error")
    if times[-1] == 0:
        return first[None].copy()
    evaluations = 0

    def counted(_time: float, flat: np.ndarray) -> np.ndarray:
        nonlocal evaluations
        evaluations += 1
        if evaluations > MOST_EVALUATIONS:
            raise NotApplicable(
                f"the time steps must need at most {MOST_EVALUATIONS:,} evaluations, got more: the equation is stiff "
                "at this beta and t; take a smaller one"
            )
        return rate(flat.reshape(first.shape)).ravel()

    with np.errstate(over="ignore", invalid="ignore"):
        solution = solve_ivp(
            counted, (0.0, float(times[-1])), first.ravel(), method="DOP853", t_eval=times, rtol=limit, atol=limit
        )
    if not solution.success:
        raise NotApplicable(f"the time steps stopped: {solution.message.rstrip('.')}; use a shorter t or more angles")
    return np.asarray(solution.y.T.reshape(len(times), *first.shape))


def increasing(t: Numbers) -> Float64[np.ndarray, " times"]:
    """One time or increasing ones, as a row."""
    times = np.atleast_1d(at_least_zero("t", t))
    if times.ndim != 1 or not times.size or (np.diff(times) <= 0).any():
        raise invalid("t", "must be one time, or increasing times", times.tolist())
    return times


def resolved(values: Field, grid: Angles, along: str) -> float:
    """The largest trailing coefficient over the axis before the angles and over the angles; refused if too large."""
    in_position, in_angle = trailing(np.moveaxis(values, -1, -2)), grid.trailing(values)
    for name, size in ((along, in_position), ("angles", in_angle)):
        if not size <= UNRESOLVED:
            raise NotApplicable(
                f"the solution is not resolved: trailing coefficients are {size:.1g} of the largest; "
                f"use more {name} or a shorter t"
            )
    return max(in_position, in_angle)
