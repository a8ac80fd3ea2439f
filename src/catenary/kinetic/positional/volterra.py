r"""The response to a source under any positional kernel, by solving the Volterra equation in the source's position.

The kernel of \(K_b^r\) between the end and \(\sigma_0\) obeys

\[ \kappa_1(\sigma_0) = \frac{b(1-\sigma_0)}{B(1)}, \qquad
   \kappa_{r+1}(\sigma_0) = \int_{\sigma_0}^1 \kappa_r(\tau)\, \frac{b(\tau-\sigma_0)}{B(\tau)}\, d\tau, \qquad
   g = \sum_{r \ge 1} \frac{c^r}{r!}\, \kappa_r. \]

All terms are positive. In depth \(x = -\log\sigma_0\) the singular factor is gone: \(d\tau/B(\tau)\) is
\(\sigma\,dx/B(\sigma)\), which tends to \(dx/b(0)\). Depth is cut into panels, halved until a polynomial of degree 15
follows b across each, and short enough for it to follow the response: this one behaves as
\(\psi_c(y) \sim e^{2\sqrt{cy}}\), y the distance \(b(0) \int d\tau/B(\tau)\), whose logarithm changes by at most 2
to 3 over \(h = \max(8/c, 2\sqrt{y/c})\).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from catenary.errors import NotApplicable
from catenary.kinetic.arguments import (
    Numbers,
    Values,
    at_least_zero,
    broadcast_shape,
    concentration,
    fraction,
    plain,
    vocabulary,
)
from catenary.kinetic.closed_form.modes import NEGLIGIBLE, profile_modes
from catenary.kinetic.positional.kernels import PositionalKernel, checked_kernel
from catenary.kinetic.positional.quadrature import gauss, lagrange

NODES = 16
"""Points per panel."""

RESOLVED = 1e-13
"""How well the polynomial must follow b between the points of a panel, relative to its largest value there."""

MOST_PANELS = 256
"""4096 points in all: their matrix takes 128 MB."""

SHORTEST = 1e-3
"""Depth to solve to where every source is closer to the end."""


def positional_response(sigma0: Numbers, *, c: Numbers, kernel: PositionalKernel) -> Values:
    r"""One mode's response at the end of the prompt, \(g(\sigma_0)\) with c = at, for any positional kernel.

    ``response`` is the closed form for one exponential. sigma0 and c broadcast. Relative error about 1e-13
    (tests: against the closed form, and against 8 more points per panel). Source: derived here (docs/kinetic.md); the
    equation, arXiv 2605.09213, Eq. 1.23 and Section 1.2.2.

    Args:
        sigma0: positions of the source, in (0, 1].
        c: rate times time, >= 0.
        kernel: b.

    Raises:
        InvalidInput: an argument is out of range, or b is not positive.
        NotApplicable: b varies too fast (an exponential: decay above about 400), or a value exceeds float64.

    >>> from catenary.kinetic.positional.kernels import PowerLaw
    >>> positional_response([0.05, 0.5], c=2.0, kernel=PowerLaw(0.2, 2.0)).round(9).tolist()
    [6.09855192, 5.249394904]
    """
    checked_kernel(kernel)
    at, rate = fraction("sigma0", sigma0), at_least_zero("c", c)
    broadcast_shape(sigma0=at, c=rate)
    at, rate = np.broadcast_arrays(at, rate)
    return plain(_sum(at, np.zeros((*at.shape, 1)), rate[..., None], kernel))


def positional_profile(sigma0: Numbers, *, kernel: PositionalKernel, beta: Numbers, t: Numbers, M: Numbers) -> Values:
    r"""The retrieval profile \(\sum_n \omega_n g_{a_n}(\sigma_0)\) for any positional kernel.

    ``retrieval_profile`` is the closed form for one exponential. Arguments but the kernel broadcast. Accuracy, source
    and errors as for ``positional_response``.

    Args:
        sigma0: positions of the source, in (0, 1].
        kernel: b.
        beta: in (0, 700].
        t: time >= 0.
        M: number of token angles >= 1.
    """
    checked_kernel(kernel)
    at, b, time, m = fraction("sigma0", sigma0), concentration(beta), at_least_zero("t", t), vocabulary(M)
    broadcast_shape(sigma0=at, beta=b, t=time, M=m)
    at, b, time, m = np.broadcast_arrays(at, b, time, m)
    series = profile_modes(b, m).series(time)
    return plain(_sum(at, series.log_weight, series.rate, kernel))


def _sum(
    sigma0: Float64[np.ndarray, "*shape"],
    log_weights: Float64[np.ndarray, "*shape modes"],
    rates: Float64[np.ndarray, "*shape modes"],
    kernel: PositionalKernel,
) -> Float64[np.ndarray, "*shape"]:
    r"""\(\sum_r \frac{m_r}{r!} \kappa_r(\sigma_0)\) with \(m_r = \sum_n \omega_n c_n^r\)."""
    if sigma0.size == 0:
        return np.zeros(sigma0.shape)
    depth, largest = -np.log(sigma0), float(rates.max())
    solver = Volterra.of(kernel, float(depth.max()), largest)
    reading = solver.reading(depth.ravel())
    power, density, bound = np.exp(log_weights), solver.first, np.zeros(solver.first.shape)
    total, order, log_factorial = np.zeros(sigma0.shape), 0, 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        while True:
            order += 1
            log_factorial += math.log(order)
            power = power * rates / order
            total = total + power.sum(axis=-1) * (reading @ density).reshape(sigma0.shape)
            term = np.abs(density) * math.exp(order * math.log(max(largest, 1e-300)) - log_factorial)
            bound = bound + term
            if order > largest and (term <= NEGLIGIBLE * bound).all():
                break
            density = solver.matrix @ density
    if not np.isfinite(total).all():
        raise NotApplicable("values must stay below 1e308; use a smaller c")
    return np.asarray(total)


@dataclass(frozen=True)
class Volterra:
    """The operator from one power to the next at the points of all panels, and its first density."""

    breaks: Float64[np.ndarray, " edges"]
    first: Float64[np.ndarray, " points"]
    matrix: Float64[np.ndarray, "points points"]

    @classmethod
    def of(cls, kernel: PositionalKernel, depth: float, c: float) -> Volterra:
        """Panels for sources down to ``depth`` and sums with rates up to ``c``."""
        breaks = _panels(kernel, depth, c)
        rule, left, width = gauss(NODES), breaks[:-1], np.diff(breaks)
        x = (left[:, None] + width[:, None] * rule.nodes).ravel()
        share = (width[:, None] * rule.weights).ravel() * np.exp(-x) / kernel.mass(np.exp(-x))
        panel = np.repeat(np.arange(left.size), NODES)
        earlier = panel[:, None] > panel
        matrix = np.zeros((x.size, x.size))
        rows, columns = np.nonzero(earlier)
        matrix[rows, columns] = kernel.weight(np.exp(-x[columns]) - np.exp(-x[rows])) * share[columns]
        # Within its own panel a point integrates up to itself: a rule on that part, and the panel's polynomial there.
        inner = rule.nodes[:, None] * rule.nodes
        spread = lagrange(rule.nodes, inner)
        for k in range(left.size):
            xi = left[k] + width[k] * inner
            own = x[k * NODES : (k + 1) * NODES]
            values = kernel.weight(np.maximum(np.exp(-xi) - np.exp(-own[:, None]), 0.0)) * np.exp(-xi)
            values = values / kernel.mass(np.exp(-xi)) * width[k] * rule.nodes[:, None] * rule.weights
            block = slice(k * NODES, (k + 1) * NODES)
            matrix[block, block] = np.einsum("im,imj->ij", values, spread)
        first = kernel.weight(-np.expm1(-x)) / kernel.mass(np.float64(1.0))
        return cls(breaks, first, matrix)

    def reading(self, depth: Float64[np.ndarray, " n"]) -> Float64[np.ndarray, "n points"]:
        """The matrix that interpolates from the points to ``depth``."""
        count = self.breaks.size - 1
        panel = np.clip(np.searchsorted(self.breaks, depth, side="right") - 1, 0, count - 1)
        within = (depth - self.breaks[panel]) / np.diff(self.breaks)[panel]
        reading = np.zeros((depth.size, count, NODES))
        reading[np.arange(depth.size), panel] = lagrange(gauss(NODES).nodes, within)
        return np.asarray(reading.reshape(depth.size, -1))


def _panels(kernel: PositionalKernel, depth: float, c: float) -> Float64[np.ndarray, " edges"]:
    """Edges of panels on which b and the response are resolved: halves of halves of [0, depth]."""
    done, waiting, distance = [0.0], [max(depth, SHORTEST)], 0.0
    while waiting:
        left, right = done[-1], waiting[-1]
        sigma = np.float64(math.exp(-left))
        stretch = (right - left) * float(kernel.weight(np.float64(0.0)) * sigma / kernel.mass(sigma))
        if c * stretch <= max(8.0, 2 * math.sqrt(c * distance)) and _resolved(kernel, left, right, depth):
            done.append(waiting.pop())
            distance += stretch
        else:
            waiting.append((left + right) / 2)
        if len(done) + len(waiting) > MOST_PANELS:
            raise NotApplicable(
                f"{MOST_PANELS} panels do not resolve the response; use a flatter b, a smaller c or later sources"
            )
    return np.array(done)


def _resolved(kernel: PositionalKernel, left: float, right: float, depth: float) -> bool:
    """Whether polynomials on the panel follow b in both of its positions, and the density's factor 1/B."""
    rule = gauss(NODES)
    between = np.concatenate([[0.0], (rule.nodes[1:] + rule.nodes[:-1]) / 2, [1.0]])
    spread = lagrange(rule.nodes, between)
    points, checks = (np.exp(-left - (right - left) * place) for place in (rule.nodes, between))
    later = np.exp(-np.concatenate([[right], right + np.geomspace(SHORTEST, max(depth - right, SHORTEST), 12)]))
    earlier = np.exp(-np.concatenate([[left], left * np.linspace(0.0, 0.95, 12)]))
    gaps = ((points - later[:, None], checks - later[:, None]), (earlier[:, None] - points, earlier[:, None] - checks))
    rows = [(kernel.weight(at_points), kernel.weight(at_checks)) for at_points, at_checks in gaps]
    rows.append(((points / kernel.mass(points))[None], (checks / kernel.mass(checks))[None]))
    return all(_follows(values @ spread.T, exact) for values, exact in rows)


def _follows(polynomial: Float64[np.ndarray, "rows n"], exact: Float64[np.ndarray, "rows n"]) -> bool:
    error = np.abs(polynomial - exact).max(axis=1)
    return bool((error <= RESOLVED * exact.max(axis=1)).all())
