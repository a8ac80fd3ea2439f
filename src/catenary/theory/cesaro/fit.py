r"""The paper's law fitted to a profile by its one parameter, and named as fitted wherever it appears.

A fit is no prediction: it says how close the law's family of curves comes to a profile, and with which mixing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import Float64

from catenary.errors import NotApplicable, invalid
from catenary.profile import Profile
from catenary.quantity import Quantity
from catenary.registry import Registry
from catenary.theory.cesaro.log_row import cesaro_log_row
from catenary.theory.cesaro.row import cesaro_row

Logs = Float64[np.ndarray, " L"]
Vector = Float64[np.ndarray, " L"]

GRID = np.geomspace(1e-6, 1.0, 121)
"""Mixings tried first: 20 a decade, from where a thousand layers still leave the last token 99.9 % of the weight."""


@dataclass(frozen=True)
class Criterion:
    """One way to fit: what is minimised over the mixing, and the scale that goes with it."""

    words: str
    misfit: Callable[[Logs, Vector], float]
    scale: Callable[[Logs, Vector], float]


def _w1(logs: Logs, values: Vector) -> float:
    law, seen = np.exp(logs - logs.max()), values
    return float(np.abs(np.cumsum(law / law.sum() - seen / seen.sum())[:-1]).sum() / values.size)


def _log_rms(logs: Logs, values: Vector) -> float:
    return float(np.std(np.log(values) - logs) / np.log(10))


CRITERIA: Registry[Criterion] = Registry("fit criterion")
CRITERIA.register(
    "w1",
    Criterion(
        "smallest Wasserstein-1 distance over x = j/L between the two curves, each scaled to sum 1",
        _w1,
        lambda logs, values: float(values.sum() / np.exp(logs).sum()),
    ),
)
CRITERIA.register(
    "log",
    Criterion(
        "smallest root mean square of log10(law/profile) over all positions, after the best common factor",
        _log_rms,
        lambda logs, values: float(np.exp(np.mean(np.log(values) - logs))),
    ),
)


@dataclass(frozen=True)
class CesaroFit:
    """The paper's law with the mixing that fits one profile best.

    Attributes:
        mixing: the fitted alpha, in [1e-6, 1].
        scale: factor from path weights (sum 1) to the profile's units, fitted by the same criterion.
        by: the criterion, ``"w1"`` or ``"log"``.
        misfit: its value at the fit: W1 in units of the context length, or dex.
        at_edge: whether the best mixing is an end of the range searched, so that no minimum inside it was found.
        layers, length: H and L.
        quantity: that of the profile fitted to.
        source: label of the profile fitted to.
    """

    mixing: float
    scale: float
    by: Literal["w1", "log"]
    misfit: float
    at_edge: bool
    layers: int
    length: int
    quantity: Quantity
    source: str

    def profile(self) -> Profile:
        """The fitted curve, in the units of the profile it was fitted to, labelled as fitted."""
        return Profile(
            self.scale * np.exp(_log_law(self.length, self.layers, self.mixing)),
            self.quantity,
            f"paper's law, fitted (mixing {self.mixing:.4g} by {self.by})",
            "none",
            provenance=self.provenance,
        )

    @property
    def provenance(self) -> Mapping[str, Any]:
        """What was fitted, to what and how, as plain JSON values."""
        return {
            "theory": "cesaro",
            "layers": self.layers,
            "length": self.length,
            "fitted": {"mixing": self.mixing, "scale": self.scale},
            "fitted_by": CRITERIA[self.by].words,
            "fitted_to": self.source,
            "by": self.by,
            "misfit": self.misfit,
            "at_edge": self.at_edge,
        }


def fit_cesaro(profile: Profile, layers: int, *, by: Literal["w1", "log"] = "w1") -> CesaroFit:
    r"""The one mixing \(\alpha\) of the paper's law that comes closest to ``profile``, scale free.

    ``by="w1"`` minimises the Wasserstein-1 distance over x = j/L between the two curves scaled to sum 1;
    ``by="log"`` minimises the standard deviation over positions of \(\log_{10}(\rho_j / N_j)\). Neither need have a
    single minimum, so a grid of 121 mixings comes first and every local minimum on it is refined.
    The two criteria give different mixings where the law does not fit: W1 hardly sees the last token's height, log
    sees mostly the body. Cost: about 200 rows, O(HL) each. Source: arXiv 2603.10123, section 5, fits a mixing but
    does not say how; the criteria are defined here.

    Args:
        profile: the curve to fit; ``by="log"`` needs every value > 0.
        layers: number of layers H >= 1.
        by: ``"w1"`` or ``"log"``.

    Raises:
        InvalidInput: ``by`` is unknown, ``layers`` is not a whole number >= 1, or a value is 0 with ``by="log"``.

    >>> fit = fit_cesaro(Profile(3 * cesaro_row(64, 6, 0.2)), layers=6)
    >>> round(fit.mixing, 6), round(fit.scale, 6)
    (0.2, 3.0)
    """
    from scipy.optimize import minimize_scalar

    criterion = CRITERIA[by]
    values = profile.values
    if by == "log" and not (values > 0).all():
        raise invalid("profile", "must be > 0 everywhere for by='log'", 0.0, "use by='w1'")

    def misfit(log_mixing: float) -> float:
        return criterion.misfit(_log_law(values.size, layers, float(min(np.exp(log_mixing), 1.0))), values)

    grid = np.log(GRID)
    heights = np.array([misfit(point) for point in grid])
    best, best_height = grid[heights.argmin()], heights.min()
    for n in _local_minima(heights):
        ends = (grid[max(n - 1, 0)], grid[min(n + 1, grid.size - 1)])
        found = minimize_scalar(misfit, bounds=ends, method="bounded", options={"xatol": 1e-10})
        if found.fun < best_height:
            best, best_height = float(found.x), float(found.fun)
    mixing = float(min(np.exp(best), 1.0))
    return CesaroFit(
        mixing=mixing,
        scale=criterion.scale(_log_law(values.size, layers, mixing), values),
        by=by,
        misfit=float(best_height),
        at_edge=bool(best in (grid[0], grid[-1])),
        layers=int(layers),
        length=values.size,
        quantity=profile.quantity,
        source=profile.label,
    )


def _local_minima(heights: Float64[np.ndarray, " n"]) -> list[int]:
    """Grid points no higher than both neighbours; a flat stretch counts once, at its left end."""
    left = np.concatenate(([np.inf], heights[:-1]))
    right = np.concatenate((heights[1:], [np.inf]))
    return [int(n) for n in np.flatnonzero((heights < left) & (heights <= right))]


def _log_law(length: int, layers: int, mixing: float) -> Logs:
    """Logarithm of the law's row, by the fast route where it has no underflow."""
    try:
        return np.asarray(np.log(cesaro_row(length, layers, mixing)))
    except NotApplicable:
        return cesaro_log_row(length, layers, mixing)
