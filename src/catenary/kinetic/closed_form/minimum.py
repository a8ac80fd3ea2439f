"""Which shape a retrieval profile has, and where in the prompt retrieval is worst, for whole grids of parameters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int64, Shaped

from catenary.kinetic.arguments import (
    Numbers,
    Values,
    broadcast_shape,
    concentration,
    plain,
    positive,
    shape_decay,
    vocabulary,
)
from catenary.kinetic.closed_form.balance import balance
from catenary.kinetic.closed_form.modes import profile_modes
from catenary.kinetic.closed_form.primitives import source_position
from catenary.kinetic.closed_form.retrieval import derivative

REGIMES = ("U", "W", "hump", "primacy")
"""U: primacy, one interior minimum, recency. W: two interior minima or more, then recency (beta above 10, few tokens).
Hump: an interior minimum and a maximum after it, then a falling end. Primacy: falling from the first token to the last.
"""

Words = Shaped[np.ndarray, "..."] | np.str_

Bracket = tuple[Int64[np.ndarray, " k"], Float64[np.ndarray, " k"], Float64[np.ndarray, " k"]]
"""Which profiles, from which distance on, in which first step."""


@dataclass(frozen=True)
class InteriorMinimum:
    """The interior minimum of one profile or of many, the lowest of several; NaN where the regime is primacy."""

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

    Minima are roots of \(\Lambda(y, t) = 0\) at which \(\Lambda\) falls (``balance.py``). Where \(\Lambda\) turns is
    seen on a grid of 25 distances and found exactly from there; with one mode it is concave and turns once at most
    (docs/kinetic.md). Position and value to 1e-13, curvature to 1e-11; next to the edges of a regime less, as the
    minimum itself moves fast there. Values below 1e-308 round to 0: ``log_retrieval_profile`` at ``sigma`` has them.
    About 0.5 ms per profile.
    Source: derived here from arXiv 2605.09213, Section 6.

    Args:
        lam: decay lambda in [0, 1e5].
        beta: in (0, 700].
        t: time > 0.
        M: number of token angles >= 1.

    Raises:
        InvalidInput: an argument is out of range; at t = 0 the profile is 0 everywhere and has no shape.
        NotApplicable: a value exceeds what float64 holds, or max_n a_n t is below 1e-90.

    >>> found = interior_minimum(lam=1.0, beta=1.0, t=[1.0, 2.6], M=8)
    >>> found.regime.tolist(), found.sigma.round(6).tolist()
    (['U', 'primacy'], [0.259276, nan])
    """
    shape, columns = _columns(lam, beta, t, M)
    words, brackets = _regimes(columns)
    found = np.full((4, columns.shape[1]), np.nan)
    for part, start, step in brackets:
        decay, b, time, m = columns[:, part]
        distance = balance(profile_modes(b, m), decay).minimum(start, step, time, np.arange(part.size))
        at = source_position(distance, decay)
        value, end, curvature = (
            derivative(where, decay, b, time, m, order).values("regime has the shape without them; use a smaller t")
            for where, order in ((at, 0), (1.0, 0), (at, 2))
        )
        lower = ~(found[1, part] <= value)
        new = np.array([at, value, curvature, end - value])
        found[:, part[lower]] = new[:, lower]
    shaped = [plain(column.reshape(shape)) for column in found]
    return InteriorMinimum(shaped[0], shaped[1], shaped[2], shaped[3], words.reshape(shape)[()])


def regime(*, lam: Numbers, beta: Numbers, t: Numbers, M: Numbers) -> Words:
    """The regime alone, one of ``REGIMES`` for every broadcast parameter. Arguments and errors as for the minimum.

    >>> regime(lam=5.0, beta=1.0, t=[1.0, 5.0, 7.0], M=8).tolist()
    ['U', 'hump', 'primacy']
    """
    shape, columns = _columns(lam, beta, t, M)
    words: Words = _regimes(columns)[0].reshape(shape)[()]
    return words


def _columns(lam: Numbers, beta: Numbers, t: Numbers, M: Numbers) -> tuple[tuple[int, ...], Float64[np.ndarray, "4 n"]]:
    """The shape of the broadcast arguments, and one row for each of the four."""
    arrays = {"lam": shape_decay(lam), "beta": concentration(beta), "t": positive("t", t), "M": vocabulary(M)}
    shape = broadcast_shape(**arrays)
    return shape, np.array([np.broadcast_to(array, shape).ravel() for array in arrays.values()])


def _regimes(columns: Float64[np.ndarray, "4 n"]) -> tuple[Shaped[np.ndarray, " n"], list[Bracket]]:
    """The words, and brackets of every minimum: which profiles, from which distance on, in which first step."""
    lam, beta, t, M = columns
    words, brackets = np.full(t.size, "primacy"), []
    index = np.flatnonzero(lam > 0)
    if index.size:
        profiles = balance(profile_modes(beta[index], M[index]), lam[index])
        profiles.modes.shape_series(t[index])
        turns = profiles.turns(t[index], np.arange(index.size))
        count = np.zeros(index.size, dtype=np.int64)
        for part, start, step in turns.minima():
            count[part] += 1
            brackets.append((index[part], start, step))
        words[index] = np.select([turns.recent & (count > 1), turns.recent, count > 0], ["W", "U", "hump"], "primacy")
    return words, brackets
