r"""Correlations, mode by mode, for tokens that start independent, each with a law of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Complex128, Float64, Int64

from catenary.errors import invalid
from catenary.kinetic.arguments import Numbers, at_least_zero, generator, instance, one_number, positive, whole
from catenary.kinetic.correlations.result import batches, source_tokens
from catenary.kinetic.field.correlated import Function
from catenary.kinetic.field.layered import Density
from catenary.kinetic.particles.adjoint import sensitivity
from catenary.kinetic.particles.system import Angles, System

NODES = 2048
"""Angles at which laws are tabulated: what is read off between two of them is within 2e-6 for modes of order 1."""


@dataclass(frozen=True, eq=False)
class ModeCorrelations:
    r"""Estimates of \(N\,\mathrm{Cov}(e^{-in\theta_N(t)}, \varphi(\theta_i(0)))\), with their standard errors."""

    sigma0: Float64[np.ndarray, " sources"]
    modes: Int64[np.ndarray, " modes"]
    draws: Complex128[np.ndarray, "samples modes sources"]
    seed: int

    @property
    def value(self) -> Complex128[np.ndarray, "modes sources"]:
        """Mean over the draws."""
        return np.asarray(self.draws.mean(axis=0))

    @property
    def stderr(self) -> Complex128[np.ndarray, "modes sources"]:
        """Standard errors of the real and of the imaginary part, as one complex number."""
        spread = self.draws.real.std(axis=0, ddof=1) + 1j * self.draws.imag.std(axis=0, ddof=1)
        return np.asarray(spread / np.sqrt(len(self.draws)))

    def window(self, low: float, high: float) -> ModeCorrelations:
        """The average over the sources with low < sigma0 <= high, as one source.

        Raises:
            InvalidInput: there is none.
        """
        inside = (self.sigma0 > low) & (self.sigma0 <= high)
        if not inside.any():
            raise invalid("low, high", "must have a source between them", (low, high))
        mean = self.draws[:, :, inside].mean(axis=2, keepdims=True)
        return ModeCorrelations(self.sigma0[inside].mean(keepdims=True), self.modes, mean, self.seed)


def draw_prompts(start: Density, tokens: int, samples: int, rng: np.random.Generator) -> Angles:
    """Angles of independent tokens with densities f(j/N, .), exactly, by rejection."""
    sigma = np.arange(1, tokens + 1) / tokens
    bound = 1.01 * _tabulated(start, sigma).max(axis=1)
    out = np.empty((samples, tokens))
    row, column = np.indices(out.shape).reshape(2, -1)
    while len(row):
        angle = rng.uniform(0.0, 2 * np.pi, len(row))
        kept = rng.uniform(0.0, 1.0, len(row)) * bound[column] < start(sigma[column], angle)
        out[row[kept], column[kept]] = angle[kept]
        row, column = row[~kept], column[~kept]
    return out


def correlate_modes(
    system: System,
    start: Density,
    function: Function,
    *,
    t: float,
    modes: Sequence[int],
    samples: int,
    seed: int,
    sigma0: Numbers | None = None,
    steps: int | None = None,
) -> ModeCorrelations:
    r"""\(N\,\mathrm{Cov}(e^{-in\theta_N(t)}, \varphi(\theta_i(0)))\) by integration by parts over the source's law:

    \[ \mathrm{Cov}(\psi(\theta_N(t)), \varphi(\theta_i(0))) =
       \mathrm{E}\Bigl[J_{N,i}\,\psi'(\theta_N(t))\,\frac{h_i(\theta_i)}{f_i(\theta_i)}\Bigr], \qquad
       h_i' = -(\varphi - \mathrm{E}\varphi(\theta_i)) f_i, \]

    where the free constant of \(h_i\) is the one that makes \(\mathrm{E}|h_i/f_i|^2\) smallest. All modes and sources
    from one backward pass; exact at every N but for the time steps. It tends to the modes of the correlation C of the
    mean field (``mean_field_correlations``). For uniform laws and a read-out ``correlate`` has a control variate and
    needs fewer samples. Source: derived here (docs/kinetic-particles.md).

    Args:
        system: ``Circle`` or ``PositionalCircle``.
        start: \(f_\circ(\sigma, \theta) > 0\), as for ``mean_field``.
        function: \(\varphi(\theta)\), real or complex.
        t: time > 0.
        modes: n of the end's modes.
        samples: number of independent prompts >= 2; every draw is kept.
        seed: seed of the prompts.
        sigma0: positions of the sources; all tokens but the last if not given.
        steps: time steps of a run, see ``flow``.

    Raises:
        InvalidInput: an argument is out of range; the start is not positive and finite, or does not average 1.
    """
    whole("samples", samples, 2)
    instance("system", system, System, "Circle, PositionalCircle or another System")
    duration = one_number("t", positive("t", t))
    tokens = system.tokens
    sources = source_tokens(sigma0, tokens)
    which = np.array([whole("modes", mode, -NODES, NODES) for mode in modes], dtype=np.int64)
    ratio = _ratios(start, function, (sources + 1) / tokens)
    rng = generator(seed)
    rows = []
    for size in batches(tokens, int(samples)):
        prompts = draw_prompts(start, tokens, size, rng)
        answer = sensitivity(system, prompts, duration, steps=steps)
        pull = tokens * answer.gradient[:, sources] * _read(ratio, prompts[:, sources])
        slope = -1j * which * np.exp(-1j * which * answer.end[:, -1:])
        rows.append(slope[:, :, None] * pull[:, None, :])
    return ModeCorrelations((sources + 1) / tokens, which, np.concatenate(rows), seed)


def _tabulated(start: Density, sigma: Float64[np.ndarray, " positions"]) -> Float64[np.ndarray, "positions angles"]:
    angles = 2 * np.pi * np.arange(NODES) / NODES
    values = at_least_zero("start", np.broadcast_to(start(sigma[:, None], angles), (len(sigma), NODES)))
    if not values.all():
        raise invalid("start", "must be > 0 everywhere", 0.0, "what is sampled is divided by it")
    off = np.abs(values.mean(axis=1) - 1)
    if off.max() > 1e-6:
        worst = int(off.argmax())
        raise invalid("start", f"must average 1 over the circle, at sigma = {sigma[worst]:g} too", values[worst].mean())
    return values


def _ratios(
    start: Density, function: Function, sigma: Float64[np.ndarray, " positions"]
) -> Complex128[np.ndarray, "positions angles"]:
    r"""\(h_i/f_i\) at equally spaced angles, by integrating Fourier modes."""
    law = _tabulated(start, sigma)
    values = np.asarray(function(2 * np.pi * np.arange(NODES) / NODES), dtype=np.complex128)
    mean = (law * values).mean(axis=1, keepdims=True)
    slope = np.fft.fft(-(values - mean) * law, axis=1)
    mode = np.fft.fftfreq(NODES, 1 / NODES)
    mode[0] = 1.0  # the mean of the slope is 0
    slope[:, 0] = 0.0
    integral = np.fft.ifft(slope / (1j * mode), axis=1)
    constant = -(integral / law).mean(axis=1, keepdims=True) / (1 / law).mean(axis=1, keepdims=True)
    return np.asarray((integral + constant) / law)


def _read(
    table: Complex128[np.ndarray, "positions angles"], angles: Float64[np.ndarray, "samples positions"]
) -> Complex128[np.ndarray, "samples positions"]:
    """Table values at the given angles, linear between nodes."""
    place = angles / (2 * np.pi) * NODES
    node = np.floor(place).astype(np.int64)
    part = place - node
    column = np.arange(len(table))
    left, right = table[column, node % NODES], table[column, (node + 1) % NODES]
    return np.asarray((1 - part) * left + part * right)
