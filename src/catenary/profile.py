"""Profile: one number per context position, and what is known about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from jaxtyping import Float64

from catenary.errors import invalid
from catenary.quantity import JACOBIAN_NORM, Quantity
from catenary.validity import ValidityCard

if TYPE_CHECKING:
    import xarray

Average = Literal["rms", "log", "mean", "expectation", "none"]
"""How a curve came from its set: over networks and sequences, or an expectation a theory computed, or not at all."""


@dataclass(frozen=True, eq=False)
class Profile:
    r"""Influence of each context position j on the last one, \(\rho_j > 0\), j = 1..L (index 0 is the first token).

    Attributes:
        values: float64, shape (L,), positive and finite.
        quantity: what the numbers are; profiles of unlike quantities cannot be compared.
        label: the words a legend shows.
        average: how the curve came from its sample.
        standard_error: float64, shape (L,), of ``values``, or None where unknown.
        low, high: the 16 % and 84 % quantiles over sequences, or None.
        card: the validity card of a prediction, None for a measurement.
        provenance: plain JSON values from which the profile can be computed again.

    Raises:
        InvalidInput: when values are not a positive finite vector of length >= 2, or shapes disagree.
    """

    values: Float64[np.ndarray, " L"]
    quantity: Quantity = JACOBIAN_NORM
    label: str = "profile"
    average: Average = "none"
    standard_error: Float64[np.ndarray, " L"] | None = None
    low: Float64[np.ndarray, " L"] | None = None
    high: Float64[np.ndarray, " L"] | None = None
    card: ValidityCard | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check and freeze the arrays."""
        values = _vector("values", self.values)
        if values.size < 2:
            raise invalid("values", "must hold at least 2 positions", values.size)
        bad = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
        if bad.size:
            raise invalid("values", "must be finite and >= 0", values[bad[0]], f"position {bad[0]} is the first")
        if not values.any():
            raise invalid("values", "must not all be 0", 0.0, "a dead branch or a constant weight gives this")
        object.__setattr__(self, "values", values)
        for name in ("standard_error", "low", "high"):
            array = getattr(self, name)
            if array is None:
                continue
            array = _vector(name, array)
            if array.shape != values.shape:
                raise invalid(name, f"must have the shape of values {values.shape}", array.shape)
            object.__setattr__(self, name, array)

    def __len__(self) -> int:
        """Number of positions L."""
        return int(self.values.size)

    @property
    def length(self) -> int:
        """Number of positions L."""
        return len(self)

    @property
    def positions(self) -> Float64[np.ndarray, " L"]:
        """Position fractions x_j = (j - 1/2)/L, j = 1..L."""
        return (np.arange(len(self)) + 0.5) / len(self)

    def relabel(self, label: str) -> Profile:
        """The same profile under another label."""
        return replace(self, label=label)

    def to_xarray(self) -> xarray.DataArray:
        """The profile as a labelled array over ``position`` (0-based); ``.plot()`` draws it with matplotlib."""
        import xarray

        return xarray.DataArray(
            self.values,
            dims="position",
            coords={"position": np.arange(len(self)), "x": ("position", self.positions)},
            name=self.quantity.name,
            attrs={"label": self.label, "average": self.average, "definition": self.quantity.definition},
        )

    def __repr__(self) -> str:
        """One line: label, quantity, length, first, middle, last."""
        v = self.values
        return (
            f"Profile({self.label!r}, {self.quantity.symbol}, L={len(self)}, "
            f"first={v[0]:.4g}, mid={v[len(self) // 2]:.4g}, last={v[-1]:.4g}, average={self.average})"
        )

    def _repr_html_(self) -> str:
        """The profile as a small chart in a notebook."""
        from catenary.figures import overlay, to_svg

        return to_svg(overlay([self]))


def _vector(name: str, array: object) -> Float64[np.ndarray, " L"]:
    """A read-only float64 copy, one-dimensional or refused."""
    vector = np.array(array, dtype=np.float64)
    if vector.ndim != 1:
        raise invalid(name, "must be one-dimensional", f"shape {vector.shape}")
    vector.setflags(write=False)
    return vector
