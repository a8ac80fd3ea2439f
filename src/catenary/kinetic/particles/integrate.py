r"""Time stepping for the particle systems: fixed steps of fourth order, and an adaptive reference of eighth order."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
from jaxtyping import Float64

from catenary.errors import NotApplicable, invalid, unknown
from catenary.kinetic.arguments import at_least_zero, concentration, one_number, positive, whole
from catenary.kinetic.particles.system import Angles, System, angles_of

STABLE = 2.7
r"""Largest \(h\,\beta e^\beta\) taken: a linear decay at rate r needs h r < 2.785 in the classical fourth-order method
(the real root of 1 - z + z^2/2 - z^3/6 + z^4/24 = 1), and no mode decays faster than \(\beta e^\beta\)."""

FEWEST = 6
"""Steps of a Monte-Carlo run at small rates: at beta = t = 1 no token is then off by more than 2e-4."""

MOST = 1_000_000
r"""Largest number of fixed steps, and largest \(t\,\beta e^\beta\) for the adaptive method, which is explicit as well
and takes about two evaluations per unit of it once tokens have clustered (measured: 1.4 to 1.9, beta = 8 and 9)."""

Method = Literal["rk4", "dop853"]


def stiffness(beta: float) -> float:
    r"""\(\beta e^\beta = -w''_\beta(0)\), the fastest rate at which a token closes in on earlier ones."""
    return beta * math.exp(beta)


def rk4_steps(beta: float, t: float) -> int:
    r"""Steps for Monte Carlo: \(\lceil t\beta e^\beta/2 \rceil\), twice that for beta > 2, at least 6.

    Twice as many above 2, because tokens then cluster within the run and the step error at the stability limit is no
    longer small. Source: measured here (docs/kinetic-particles.md).

    Raises:
        InvalidInput: beta is not in (0, 700], or t is below 0.
        NotApplicable: more than a million steps.

    >>> [rk4_steps(beta, 1.0) for beta in (1.0, 2.0, 4.0)]
    [6, 8, 219]
    """
    rate = stiffness(one_number("beta", concentration(beta)))
    steps = duration(t) * rate * (0.5 if beta <= 2 else 1.0)
    if steps > MOST:
        raise NotApplicable(
            f"beta = {beta:g}, t = {t:g} need {steps:.1e} fixed steps, more than {MOST:,}: take a smaller beta or t"
        )
    return max(FEWEST, math.ceil(steps))


def flow(system: System, start: Angles, t: float, *, steps: int | None = None) -> Angles:
    r"""The angles at time t, by ``steps`` equal steps of the classical fourth-order Runge-Kutta method.

    Error \(O(h^4)\). At N = 512, lambda = beta = t = 1 the largest over the tokens is 1.1e-4 with 5 steps and 2.4e-8
    with 40, the last token's 3e-7 and 9e-11 (medians over prompts).

    Args:
        system: ``Circle``, ``PositionalCircle``, or anything that satisfies ``System``.
        start: angles at time 0, any number of copies.
        t: time >= 0.
        steps: number of steps >= 1; ``rk4_steps`` if not given.

    Raises:
        InvalidInput: an argument is out of range, or the step exceeds the stability limit
            \(h\,\beta e^\beta \le 2.7\); the message says how many steps are enough.
    """
    t = duration(t)
    count = checked_steps(system.beta, t, steps)
    angles = angles_of("start", start, system.tokens)
    for _ in range(count):
        angles = rk4_step(system.drift, angles, t / count)
    return angles


def trajectory(
    system: System,
    start: Angles,
    times: Sequence[float],
    *,
    method: Method = "dop853",
    steps: int | None = None,
    tolerance: float = 1e-9,
) -> Float64[np.ndarray, "times *batch tokens"]:
    r"""The angles at each of the given times.

    "dop853" is the adaptive eighth-order method of Dormand and Prince (SciPy's), the cheapest below errors of 1e-6;
    it controls the root mean square error over all tokens and copies. "rk4" takes equal steps within each interval,
    none longer than the last time divided by ``steps``.

    Args:
        system: the particles.
        start: angles at time 0, any number of copies.
        times: increasing, >= 0.
        method: "dop853" or "rk4".
        steps: for "rk4", as in ``flow``.
        tolerance: for "dop853", relative and absolute error per step, in [1e-13, 1).

    Raises:
        InvalidInput: an argument is out of range, or an "rk4" step is unstable.
        NotApplicable: "dop853" with \(t\,\beta e^\beta\) above a million, or it gave up.
    """
    if method not in _METHODS:
        raise unknown("method", method, _METHODS)
    at = at_least_zero("times", times)
    if at.ndim != 1 or not len(at) or (np.diff(at) <= 0).any():
        raise invalid("times", "must increase", times)
    angles = angles_of("start", start, system.tokens)
    return _METHODS[method](system, angles, at, steps, tolerance)


def refuse_stiff(beta: float, t: float) -> None:
    r"""Refuse a run of the adaptive method whose \(t\,\beta e^\beta\) is above a million.

    Raises:
        NotApplicable: it is.
    """
    size = t * stiffness(beta)
    if size > MOST:
        raise NotApplicable(
            f"t beta e^beta must be at most {MOST:,} for explicit time steps, got {size:.1e} at beta = {beta:g}, "
            f"t = {t:g}; take a smaller beta or t"
        )


def rk4_step(drift: Callable[[Angles], Angles], angles: Angles, h: float) -> Angles:
    """One step of the classical Runge-Kutta method."""
    first = drift(angles)
    second = drift(angles + h / 2 * first)
    third = drift(angles + h / 2 * second)
    fourth = drift(angles + h * third)
    return np.asarray(angles + h / 6 * (first + 2 * second + 2 * third + fourth))


def duration(t: float) -> float:
    """One time >= 0."""
    return one_number("t", at_least_zero("t", t))


def checked_steps(beta: float, t: float, steps: int | None) -> int:
    """``steps``, or the rule's number where it is None; refused where the step would be unstable."""
    if steps is None:
        return rk4_steps(beta, t)
    count = whole("steps", steps, 1)
    if t * stiffness(beta) > STABLE * count:
        enough = math.ceil(t * stiffness(beta) / STABLE)
        rule = f"must be at least {enough} for a stable step (h beta e^beta <= {STABLE}) at beta = {beta:g}, t = {t:g}"
        raise invalid("steps", rule, steps, "leave steps out for a number that is accurate too")
    return count


def _fixed(
    system: System, start: Angles, times: Float64[np.ndarray, " times"], steps: int | None, _: float
) -> Float64[np.ndarray, "times *batch tokens"]:
    longest = float(times[-1]) / checked_steps(system.beta, float(times[-1]), steps)
    out = np.empty((len(times), *start.shape))
    now, angles = 0.0, start
    for index, then in enumerate(times.tolist()):
        count = math.ceil((then - now) / longest * (1 - 1e-12)) if longest else 0
        for _step in range(count):
            angles = rk4_step(system.drift, angles, (then - now) / count)
        out[index], now = angles, then
    return out


def _adaptive(
    system: System, start: Angles, times: Float64[np.ndarray, " times"], _: int | None, tolerance: float
) -> Float64[np.ndarray, "times *batch tokens"]:
    from scipy.integrate import solve_ivp

    limit = one_number("tolerance", positive("tolerance", tolerance))
    if not 1e-13 <= limit < 1:
        raise invalid("tolerance", "must be in [1e-13, 1)", tolerance, "float64 carries no smaller step error")
    refuse_stiff(system.beta, float(times[-1]))
    out = np.empty((len(times), *start.shape))
    now, state = 0.0, start.ravel()
    for index, then in enumerate(times.tolist()):
        if then > now:
            solution = solve_ivp(
                lambda _time, flat: system.drift(flat.reshape(start.shape)).ravel(),
                (now, then),
                state,
                method="DOP853",
                t_eval=(then,),
                rtol=limit,
                atol=limit,
            )
            if not solution.success:
                raise NotApplicable(f"the adaptive method stopped before time {then:g}: {solution.message.rstrip('.')}")
            state = solution.y[:, -1]
        out[index], now = state.reshape(start.shape), then
    return out


_METHODS = {"dop853": _adaptive, "rk4": _fixed}
