r"""All interior extrema of a retrieval profile of one or several heads: U, hump, W and whatever weights make of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float64

from catenary.errors import NotApplicable, invalid
from catenary.kinetic.arguments import (
    Numbers,
    Values,
    concentration,
    fraction,
    one_number,
    plain,
    positive,
    real,
    shape_decay,
    vocabulary,
)
from catenary.kinetic.closed_form.modes import profile_modes
from catenary.kinetic.closed_form.primitives import source_position
from catenary.kinetic.closed_form.retrieval import retrieval_curvature, retrieval_profile
from catenary.kinetic.closed_form.source_profile import profile_derivatives

Kind = Literal["minimum", "maximum"]

Head = tuple[float, float, float]
"""(weight, lambda, beta): the weight may be negative."""

SPACING = 0.05
"""Distance in y between two looks at the slope; below it they stand closer and closer, down to 1e-9."""

FAR = 100.0
"""Beyond it five times ``SPACING`` is enough: what heads of unlike decays make together is at least 1 wide there."""

REACH = 40.0
r"""How far beyond \(y = \lambda + \log(1/c)\), where a head of small rate c has its minimum, to look."""


@dataclass(frozen=True)
class Extremum:
    """One interior extremum of a profile."""

    sigma: float
    """Position in (0, 1)."""
    value: float
    """The profile there."""
    curvature: float
    """Its second derivative there."""
    kind: Kind


def heads_profile(sigma0: Numbers, *, heads: Sequence[Head], t: float, M: float) -> Values:
    r"""The profile of several heads, \(P(\sigma_0) = \sum_h w_h S_t(\sigma_0; \lambda_h, \beta_h)\).

    Args:
        sigma0: positions of the source, in (0, 1].
        heads: (weight, lambda, beta) of each; weights not 0, decays up to 1e5.
        t: time > 0.
        M: number of token angles >= 1.

    Raises:
        InvalidInput: an argument is out of range.
        NotApplicable: a value exceeds what float64 holds.

    >>> round(float(heads_profile(1.0, heads=[(1.0, 15.0, 0.5), (1e-3, 15.0, 3.0)], t=1.0, M=8)), 6)
    5.425169
    """
    at = fraction("sigma0", sigma0)
    with np.errstate(over="ignore", invalid="ignore"):
        profiles = [
            weight * retrieval_profile(at, lam=lam, beta=beta, t=t, M=M) for weight, lam, beta in _checked(heads, t, M)
        ]
        total = np.sum(profiles, axis=0)
    if not np.isfinite(total).all():
        raise NotApplicable("the profile must stay below 1e308; use smaller weights or a smaller t")
    return plain(total)


def extrema(*, heads: Sequence[Head], t: float, M: float) -> list[Extremum]:
    r"""Every interior extremum of ``heads_profile``, from the first position to the last. Empty: the profile has none.

    The slope's sign is looked at on a grid of the distances \(y_h\) of all heads, 0.05 apart (0.25 beyond 100)
    and denser near both ends, down to positions where every head falls; where the slope comes close to 0 between two
    looks without a change of sign, its extreme is found and looked at too. Each change is then narrowed down to the
    last bits. Extrema closer together than about 1e-7 of their distance from an end may be missed: they are about to
    merge.
    Source: defined here; slope from arXiv 2605.09213, Eq. 1.25.

    Args:
        heads: (weight, lambda, beta) of each; weights not 0, decays up to 1e5.
        t: time > 0.
        M: number of token angles >= 1.

    Raises:
        InvalidInput: an argument is out of range.
        NotApplicable: a value exceeds what float64 holds, or max_n a_n t is below 1e-90.

    >>> [(found.kind, round(found.sigma, 4)) for found in extrema(heads=[(1.0, 5.0, 1.0)], t=5.0, M=8)]
    [('minimum', 0.1948), ('maximum', 0.814)]
    """
    heads = _checked(heads, t, M)
    found = []
    for depth, kind in reversed(_sign_changes(_Slope(heads, t, M))):
        sigma = float(np.exp(-depth))
        bends = [w * float(retrieval_curvature(sigma, lam=lam, beta=b, t=t, M=M)) for w, lam, b in heads]
        found.append(Extremum(sigma, float(heads_profile(sigma, heads=heads, t=t, M=M)), sum(bends), kind))
    return found


def _checked(heads: Sequence[Head], t: float, M: float) -> list[Head]:
    """The heads as floats, every number in its range."""
    try:
        table = np.asarray(heads, dtype=np.float64)
    except (TypeError, ValueError):
        table = np.empty(0)
    if table.ndim != 2 or table.shape[1] != 3 or not len(table):
        raise invalid("heads", "must be one or more of (weight, lambda, beta)", heads)
    weights = real("weight", table[:, 0])
    if not weights.all():
        raise invalid("weight", "must not be 0", 0.0, "leave the head out")
    decays, betas = shape_decay(table[:, 1]), concentration(table[:, 2])
    one_number("t", positive("t", t))
    one_number("M", vocabulary(M))
    return list(zip(weights.tolist(), decays.tolist(), betas.tolist(), strict=True))


class _Slope:
    r"""Minus the slope of P over \(\log\sigma_0\), in units of \(\sum_h |w_h| S_h\), at depth \(x = -\log\sigma_0\)."""

    def __init__(self, heads: Sequence[Head], t: float, M: float) -> None:
        tokens, time = vocabulary(M), positive("t", t)
        self.weights = np.array([weight for weight, _, _ in heads])[:, None]
        self.decays = [np.asarray(lam) for _, lam, _ in heads]
        self.modes = [profile_modes(concentration(beta), tokens) for _, _, beta in heads]
        self.series = [modes.shape_series(time) for modes in self.modes]
        self.rates = [float(t * np.exp(modes.log_moment(2) - modes.log_moment(1))) for modes in self.modes]

    def __call__(self, depth: Float64[np.ndarray, " n"]) -> Float64[np.ndarray, " n"]:
        at, end = np.exp(-depth), np.ones(())
        pairs = list(zip(self.series, self.decays, strict=True))
        values = [profile_derivatives(series, end, at, lam, 0) for series, lam in pairs]
        slopes = [profile_derivatives(series, end, at, lam, 1) for series, lam in pairs]
        exponents = np.array([value.exponent for value in values])
        growth = np.exp(exponents - exponents.max(axis=0))
        size = (np.abs(self.weights) * growth * [value.factor for value in values]).sum(axis=0)
        return np.asarray(-at * (self.weights * growth * [slope.factor for slope in slopes]).sum(axis=0) / size)

    def depths(self) -> Float64[np.ndarray, " n"]:
        """Where to look: the grids in y of all heads, as depths."""
        grids = []
        for lam, rate in zip(self.decays, self.rates, strict=True):
            last = float(lam) + REACH + max(0.0, -np.log(rate))
            near, far = np.arange(SPACING, min(last, FAR), SPACING), np.arange(FAR, last, 5 * SPACING)
            y = np.concatenate([np.geomspace(1e-9, SPACING, 60, endpoint=False), near, far])
            grids.append(-np.log(source_position(y, lam)))
        return np.unique(np.concatenate(grids))


def _sign_changes(slope: _Slope) -> list[tuple[float, Kind]]:
    """The depths at which the slope changes sign, growing, and what stands there."""
    from scipy.optimize import brentq, minimize_scalar

    def at(depth: float) -> float:
        return float(slope(np.array([depth]))[0])

    depths = slope.depths()
    values = slope(depths)
    nearest = np.flatnonzero(
        (np.abs(values[1:-1]) < np.abs(values[:-2])) & (np.abs(values[1:-1]) <= np.abs(values[2:]))
        & (values[1:-1] * values[:-2] > 0) & (values[1:-1] * values[2:] > 0)
    ) + 1
    for i in nearest:
        sign = float(np.sign(values[i]))
        low, high = float(depths[i - 1]), float(depths[i + 1])
        found = minimize_scalar(lambda x, s=sign: s * at(x), bounds=(low, high), options={"xatol": 1e-9 * (high - low)})
        depths, values = np.append(depths, found.x), np.append(values, sign * found.fun)
    order = np.argsort(depths)
    depths, grows = depths[order], values[order] > 0
    changes = np.flatnonzero(grows[1:] != grows[:-1])
    kinds: list[Kind] = ["maximum" if grows[i] else "minimum" for i in changes]
    roots = [float(brentq(at, depths[i], depths[i + 1], xtol=1e-300, rtol=1e-15)) for i in changes]
    return list(zip(roots, kinds, strict=True))
