r"""How the last token's final angle answers to every token's first angle, by one backward pass."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from catenary.kinetic.particles.integrate import checked_steps, duration
from catenary.kinetic.particles.system import Angles, Cotangents, System, angles_of, cotangents_of


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """Final angles and the gradient of what was asked for with respect to the first angles, per copy."""

    end: Angles
    gradient: Angles


def sensitivity(
    system: System, start: Angles, t: float, *, cotangents: Cotangents | None = None, steps: int | None = None
) -> Sensitivity:
    r"""The final angles by ``flow``, and \(\sum_j p_j\,\partial\theta_j(t)/\partial\theta_i(0)\) for every i.

    By default p picks the last token: \(J_{N,i} = \partial\theta_N(t)/\partial\theta_i(0)\), which sums to 1 over i,
    because turning all tokens turns the last one. The gradient is that of the discrete steps, exact to rounding; it
    differs from the flow's own by \(O(h^4)\). Cost: three times ``flow`` (a pull-back is two scans). Memory: four
    arrays like ``start`` per step. Source: derived here (docs/kinetic-particles.md).

    Args:
        system: ``Circle``, ``PositionalCircle``, or anything that satisfies ``System``.
        start: angles at time 0, any number of copies.
        t: time >= 0.
        cotangents: p, shaped like ``start``; the last token if not given.
        steps: number of steps; ``rk4_steps`` if not given.

    Raises:
        InvalidInput: as ``flow``, or the cotangents have another shape.
    """
    t = duration(t)
    count = checked_steps(system.beta, t, steps)
    angles = angles_of("start", start, system.tokens)
    if cotangents is None:
        gradient = np.zeros(angles.shape)
        gradient[..., -1] = 1.0
    else:
        gradient = cotangents_of(cotangents, angles)
    h = t / count
    stages = []
    for _ in range(count):
        first = system.drift(angles)
        second_at = angles + h / 2 * first
        second = system.drift(second_at)
        third_at = angles + h / 2 * second
        third = system.drift(third_at)
        fourth_at = angles + h * third
        stages.append((angles, second_at, third_at, fourth_at))
        angles = angles + h / 6 * (first + 2 * second + 2 * third + system.drift(fourth_at))
    for first_at, second_at, third_at, fourth_at in reversed(stages):
        fourth = system.pull_back(fourth_at, h / 6 * gradient)
        third = system.pull_back(third_at, h / 3 * gradient + h * fourth)
        second = system.pull_back(second_at, h / 3 * gradient + h / 2 * third)
        first = system.pull_back(first_at, h / 6 * gradient + h / 2 * second)
        gradient = gradient + first + second + third + fourth
    return Sensitivity(angles, gradient)
