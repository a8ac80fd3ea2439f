"""Phase diagrams: regime and interior minimum over a grid of two parameters, with the times that bound the regimes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Shaped

from catenary.errors import invalid
from catenary.kinetic.arguments import Numbers, concentration, one_number, real, vocabulary
from catenary.kinetic.closed_form.balance import balance
from catenary.kinetic.closed_form.minimum import regime
from catenary.kinetic.closed_form.modes import profile_modes
from catenary.kinetic.closed_form.primitives import source_position
from catenary.kinetic.closed_form.retrieval import log_retrieval_profile
from catenary.kinetic.closed_form.thresholds import t_crit, t_monotone, t_sufficient


@dataclass(frozen=True)
class PhaseDiagram:
    """Regimes over decay and time at one (beta, M): decays along the first axis, times along the second."""

    lam: Float64[np.ndarray, " decays"]
    t: Float64[np.ndarray, " times"]
    beta: float
    M: float
    regime: Shaped[np.ndarray, "decays times"]
    """One of ``REGIMES`` each."""
    sigma: Float64[np.ndarray, "decays times"]
    """Position of the interior minimum, NaN where the regime is primacy."""
    depth: Float64[np.ndarray, "decays times"]
    """How far the minimum lies below the profile's last value; NaN too where float64 does not hold it."""
    t_sufficient: Float64[np.ndarray, " decays"]
    t_crit: Float64[np.ndarray, " decays"]
    t_monotone: Float64[np.ndarray, " decays"]


def phase_diagram(*, lam: Numbers, t: Numbers, beta: float, M: float) -> PhaseDiagram:
    r"""The regime at each pair of decay and time, the minimum there, and the three bounding times for each decay.

    Below ``t_sufficient`` the U shape is proved; up to ``t_crit`` it is found; between ``t_crit`` and ``t_monotone``
    there is a hump; above, primacy. Scaling time with beta makes diagrams comparable: \(t\,\max_n a_n\).

    Args:
        lam: one axis of decays >= 0.
        t: one axis of times > 0.
        beta: in (0, 700].
        M: number of token angles >= 1.

    Raises:
        InvalidInput: an argument is out of range or an axis is not one-dimensional.
        NotApplicable: a rate times t exceeds what float64 holds.

    >>> phase_diagram(lam=[1.0, 5.0], t=[1.0, 5.0], beta=1.0, M=8).regime.tolist()
    [['U', 'primacy'], ['U', 'hump']]
    """
    decays, times = _axis("lam", lam), _axis("t", t)
    b, m = one_number("beta", concentration(beta)), one_number("M", vocabulary(M))
    lam, time = np.broadcast_arrays(decays[:, None], times)
    words = np.asarray(regime(lam=lam, beta=beta, t=time, M=M))
    sigma, depth = np.full(lam.shape, np.nan), np.full(lam.shape, np.nan)
    bent = words != "primacy"
    sigma[bent], depth[bent] = _lowest(lam[bent], time[bent], b, m)
    bounds = [np.asarray(bound(decays, beta, M)) for bound in (t_sufficient, t_crit, t_monotone)]
    return PhaseDiagram(
        decays, times, b, m,
        words, sigma, depth, bounds[0], bounds[1], bounds[2],
    )


def _lowest(
    lam: Float64[np.ndarray, " n"], t: Float64[np.ndarray, " n"], beta: float, M: float
) -> tuple[Float64[np.ndarray, " n"], Float64[np.ndarray, " n"]]:
    """Position and depth of the lowest interior minimum, compared in logarithms; NaN for a depth beyond float64."""
    profiles = balance(profile_modes(np.full(lam.size, beta), np.full(lam.size, M)), lam)
    sigma, lowest = np.full(lam.size, np.nan), np.full(lam.size, np.inf)
    for part, start, step in profiles.turns(t, np.arange(lam.size)).minima():
        at = source_position(profiles.minimum(start, step, t[part], part), lam[part])
        value = np.asarray(log_retrieval_profile(at, lam=lam[part], beta=beta, t=t[part], M=M))
        lower = value < lowest[part]
        sigma[part[lower]], lowest[part[lower]] = at[lower], value[lower]
    end = np.asarray(log_retrieval_profile(1.0, lam=lam, beta=beta, t=t, M=M))
    with np.errstate(over="ignore", invalid="ignore"):
        depth = np.exp(end) - np.exp(lowest)
    return sigma, np.where(np.isfinite(depth), depth, np.nan)


def _axis(name: str, values: Numbers) -> Float64[np.ndarray, " n"]:
    axis = real(name, values)
    if axis.ndim != 1 or axis.size == 0:
        raise invalid(name, "must be a list of one or more numbers", values)
    return axis
