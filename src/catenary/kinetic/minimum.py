"""Which shape a retrieval profile has, and where in the prompt retrieval is worst, for whole grids of parameters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Shaped

from catenary.kinetic.arguments import Numbers, Values, at_least_zero, concentration, plain, positive, vocabulary
from catenary.kinetic.balance import balance
from catenary.kinetic.modes import ProfileModes, profile_modes
from catenary.kinetic.primitives import source_position
from catenary.kinetic.retrieval import retrieval_curvature, retrieval_profile
from catenary.kinetic.thresholds import log_t_crit

REGIMES = ("U", "hump", "primacy")
"""U: primacy, one interior minimum, recency. Hump: an interior minimum and a maximum after it, then a falling end.
Primacy: falling from the first token to the last."""

Words = Shaped[np.ndarray, "..."] | np.str_


@dataclass(frozen=True)
class InteriorMinimum:
    """The interior minimum of one profile or of many; NaN where the regime is primacy and there is none."""

    sigma: Values
    """Position in (0, 1)."""
    value: Values
    """The profile there."""
    curvature: Values
    """Its second derivative there, >= 0."""
    depth: Values
    """How far it lies below the profile's last value S(1); may be negative where the regime is hump."""
    regime: Words
    """One of ``REGIMES``."""


def interior_minimum(*, lam: Numbers, beta: Numbers, t: Numbers, M: Numbers) -> InteriorMinimum:
    r"""The interior minimum of the retrieval profile and the regime, for arguments that broadcast.

    The minimum is the root of \(\Lambda(y, t) = 0\) at which \(\Lambda\) falls (``balance.py``). Below ``t_crit`` it is
    searched from y = 0 on, later from the maximum of \(\Lambda\) on; that there is one such root is proved for one mode
    and up to ``t_sufficient``, and seen in every case tried beyond (docs/kinetic.md). Position and value to 1e-13,
    curvature to 1e-11; next to the edges of a regime less, as the minimum itself moves fast there. Values below 1e-308
    round to 0: ``log_retrieval_profile`` at ``sigma`` has them. About 0.1 ms per profile.
    Source: derived here from arXiv 2605.09213, Section 6.

    Args:
        lam: decay lambda >= 0.
        beta: in (0, 700].
        t: time > 0.
        M: number of token angles >= 1.

    Raises:
        InvalidInput: an argument is out of range; at t = 0 the profile is 0 everywhere and has no shape.
        NotApplicable: a value exceeds what float64 holds.

    >>> found = interior_minimum(lam=1.0, beta=1.0, t=[1.0, 2.6], M=8)
    >>> found.regime.tolist(), found.sigma.round(6).tolist()
    (['U', 'primacy'], [0.259276, nan])
    """
    arrays = np.broadcast_arrays(at_least_zero("lam", lam), concentration(beta), positive("t", t), vocabulary(M))
    shape, (decay, b, time, m) = arrays[0].shape, (array.ravel() for array in arrays)
    words, start, modes = _regimes(decay, b, time, m)
    index = np.flatnonzero(words != "primacy")
    sigma, value, curvature, depth = np.full((4, time.size), np.nan)
    if index.size:
        decay, b, time, m = decay[index], b[index], time[index], m[index]
        distance = balance(modes[index], decay).minimum(start[index], time, np.arange(index.size))
        at = source_position(distance, decay)
        sigma[index] = at
        value[index] = retrieval_profile(at, lam=decay, beta=b, t=time, M=m)
        curvature[index] = retrieval_curvature(at, lam=decay, beta=b, t=time, M=m)
        depth[index] = retrieval_profile(1.0, lam=decay, beta=b, t=time, M=m) - value[index]
    shaped = [plain(found.reshape(shape)) for found in (sigma, value, curvature, depth)]
    return InteriorMinimum(shaped[0], shaped[1], shaped[2], shaped[3], words.reshape(shape)[()])


def regime(*, lam: Numbers, beta: Numbers, t: Numbers, M: Numbers) -> Words:
    """The regime alone, one of ``REGIMES`` for every broadcast parameter. Arguments and errors as for the minimum.

    >>> regime(lam=5.0, beta=1.0, t=[1.0, 5.0, 7.0], M=8).tolist()
    ['U', 'hump', 'primacy']
    """
    arrays = np.broadcast_arrays(at_least_zero("lam", lam), concentration(beta), positive("t", t), vocabulary(M))
    words: Words = _regimes(*(array.ravel() for array in arrays))[0].reshape(arrays[0].shape)[()]
    return words


def _regimes(
    lam: Float64[np.ndarray, " n"], beta: Float64[np.ndarray, " n"], t: Float64[np.ndarray, " n"],
    M: Float64[np.ndarray, " n"],
) -> tuple[Shaped[np.ndarray, " n"], Float64[np.ndarray, " n"], ProfileModes]:
    """The words, the distance to search the minimum from, and the modes."""
    modes = profile_modes(beta, M)
    recent = np.log(t) < log_t_crit(lam, modes)
    words, start = np.where(recent, "U", "primacy"), np.zeros(t.size)
    late = np.flatnonzero(~recent & (lam > 0))
    if late.size:
        profiles, every = balance(modes[late], lam[late]), np.arange(late.size)
        start[late] = profiles.crest(t[late], every)
        words[late[profiles.value(start[late], t[late], every) > 0]] = "hump"
    return words, start, modes
