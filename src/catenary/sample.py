"""Sample: the set of measurements a profile comes from, one energy per member and position.

Its dims are (condition, step, net, sequence, probe, position). An *energy* is an unbiased estimate of
||J_j||_F^2. Everything statistical starts here: averages, bands, standard errors, bootstrap units and halves.
The unit of uncertainty is the outermost dimension that has at least two members: networks, then sequences,
then probes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from jaxtyping import Float64

from catenary.errors import invalid, unknown
from catenary.profile import Average, Profile
from catenary.quantity import JACOBIAN_NORM, QUANTITIES, Quantity

if TYPE_CHECKING:
    import xarray

DIMENSIONS = ("condition", "step", "net", "sequence", "probe", "position")
Unit = Literal["net", "sequence", "probe", "none"]


@dataclass(frozen=True, eq=False)
class Sample:
    """Energies with dims (condition, step, net, sequence, probe, position), float64, finite, >= 0.

    ``conditions`` name the first axis (``vanilla``, ``chunked``, ``random``, ...), ``steps`` the second
    (training steps; one 0 where there is no training). ``exact`` says the energies carry no probe noise.
    """

    energy: Float64[np.ndarray, "condition step net sequence probe position"]
    conditions: tuple[str, ...]
    steps: tuple[int, ...] = (0,)
    quantity: Quantity = JACOBIAN_NORM
    label: str = "measured"
    exact: bool = False
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check and freeze the array."""
        energy = np.array(self.energy, dtype=np.float64)
        if energy.ndim != len(DIMENSIONS):
            raise invalid("energy", f"must have the dims {DIMENSIONS}", f"shape {energy.shape}")
        if energy.shape[:2] != (len(self.conditions), len(self.steps)):
            raise invalid("energy", "must have one entry per condition and step", f"shape {energy.shape}")
        if 0 in energy.shape:
            raise invalid("energy", "must not be empty", f"shape {energy.shape}")
        if not (np.isfinite(energy).all() and (energy >= 0).all()):
            raise invalid("energy", "must be finite and >= 0", "NaN, inf or a negative number")
        if not energy.any(axis=-1).all():
            raise invalid("energy", "must not be all zero in any sequence", 0.0, "the network has a dead branch")
        energy.setflags(write=False)
        object.__setattr__(self, "energy", energy)

    @property
    def length(self) -> int:
        """Number of positions L."""
        return int(self.energy.shape[-1])

    @property
    def nets(self) -> int:
        """Number of networks."""
        return int(self.energy.shape[2])

    @property
    def sequences(self) -> int:
        """Number of sequences per network."""
        return int(self.energy.shape[3])

    @property
    def probes(self) -> int:
        """Number of cotangent probes per sequence."""
        return int(self.energy.shape[4])

    @property
    def weights(self) -> str | None:
        """``"untrained"`` or ``"pretrained"``, as the provenance of the sample or of its model says; else None."""
        model = self.provenance.get("model")
        said = self.provenance.get("weights", model.get("weights") if isinstance(model, Mapping) else None)
        return said if isinstance(said, str) else None

    @property
    def unit(self) -> Unit:
        """The outermost dimension with at least two members; uncertainty is over it."""
        if self.nets > 1:
            return "net"
        if self.sequences > 1:
            return "sequence"
        return "probe" if self.probes > 1 else "none"

    @property
    def probe_variance(self) -> Float64[np.ndarray, "condition step net sequence position"]:
        """Variance of the probe-averaged energy; 0 where the energy is exact, NaN with a single probe."""
        if self.exact:
            return np.zeros(self.energy.shape[:4] + self.energy.shape[5:])
        if self.probes < 2:
            return np.full(self.energy.shape[:4] + self.energy.shape[5:], np.nan)
        return np.asarray(self.energy.var(axis=4, ddof=1) / self.probes)

    def select(self, condition: str | None = None, step: int | None = None) -> Sample:
        """The part of one condition and one step (needed only where there are several)."""
        c = _index("condition", condition, self.conditions)
        s = _index("step", step, self.steps)
        return Sample(
            self.energy[c : c + 1, s : s + 1],
            (self.conditions[c],),
            (self.steps[s],),
            self.quantity,
            self.label if len(self.conditions) == 1 else f"{self.label}, {self.conditions[c]}",
            self.exact,
            self.provenance,
        )

    def units(self, average: Average = "rms") -> Float64[np.ndarray, "unit position"]:
        """One row per unit of uncertainty, in the space where rows are averaged (energy, log or norm).

        ``combine`` of the mean of the rows is the profile. Sample must be of one condition and one step.
        """
        self._single()
        energy = self.energy[0, 0]
        if self.unit == "net":
            return np.asarray(_forward(energy.mean(axis=2), average).mean(axis=1))
        if self.unit == "sequence":
            return _forward(energy[0].mean(axis=1), average)
        return _forward(energy[0, 0], average)

    def profile(
        self, average: Average = "rms", condition: str | None = None, step: int | None = None
    ) -> Profile:
        """Reduce to one curve: root mean square, log-mean or mean of norms over networks and sequences.

        Probes are always averaged as energies first. The standard error is over ``unit``; the band is p16-p84
        over (network, sequence) pairs, present from 4 pairs on.
        """
        part = self.select(condition, step)
        energy = part.energy[0, 0].mean(axis=2).reshape(-1, part.length)
        rows = part.units(average) if part.unit != "probe" else _forward(energy, average)
        centre = _forward(energy, average).mean(axis=0)
        values = combine(centre, average)
        error = part._standard_error(rows, values, average)
        low = high = None
        if len(energy) >= 4:
            low, high = np.quantile(np.sqrt(energy), [0.16, 0.84], axis=0)
        return Profile(
            values,
            part.quantity,
            part.label,
            average,
            error,
            low,
            high,
            None,
            {**part.provenance, "average": average, "condition": part.conditions[0], "step": part.steps[0]},
        )

    def _standard_error(
        self, rows: Float64[np.ndarray, "unit L"], values: Float64[np.ndarray, " L"], average: Average
    ) -> Float64[np.ndarray, " L"] | None:
        if self.unit == "none":
            return np.zeros_like(values) if self.exact else None
        if self.unit == "probe":
            return np.asarray(np.sqrt(self.probe_variance[0, 0, 0, 0]) / (2 * values))
        error = rows.std(axis=0, ddof=1) / np.sqrt(len(rows))
        if average == "rms":
            return np.asarray(error / (2 * values))
        return np.asarray(error * values) if average == "log" else np.asarray(error)

    def halves(self) -> tuple[Sample, Sample]:
        """Two disjoint halves over ``unit`` (nets, then sequences, then probes); refused with a single unit."""
        axis = {"net": 2, "sequence": 3, "probe": 4}.get(self.unit)
        if axis is None:
            raise invalid("sample", "must have two networks, sequences or probes to be halved", "one of each")
        count = self.energy.shape[axis] // 2
        take = [np.arange(0, 2 * count, 2), np.arange(1, 2 * count, 2)]
        first, second = (np.take(self.energy, index, axis=axis) for index in take)
        return self._replace(first), self._replace(second)

    def _replace(self, energy: Float64[np.ndarray, "c s n q p L"]) -> Sample:
        return Sample(
            energy, self.conditions, self.steps, self.quantity, self.label, self.exact, self.provenance
        )

    def _single(self) -> None:
        if len(self.conditions) > 1 or len(self.steps) > 1:
            raise invalid(
                "sample", "must hold one condition and one step here", f"{self.conditions}, steps {self.steps}",
                "call .select(condition, step) first",
            )

    def to_dataset(self) -> xarray.Dataset:
        """The sample as an xarray Dataset: ``energy``, ``probe_variance`` and every probe's energy."""
        import xarray

        dims = [d for d in DIMENSIONS if d != "probe"]
        return xarray.Dataset(
            {
                "energy": (dims, self.energy.mean(axis=4)),
                "probe_variance": (dims, self.probe_variance),
                "probe_energy": (DIMENSIONS, self.energy),
            },
            coords={
                "condition": np.array(self.conditions, dtype=object),
                "step": np.array(self.steps, dtype=np.int64),
                "position": np.arange(self.length),
            },
            attrs={"quantity": self.quantity.name, "label": self.label, "exact": int(self.exact)},
        )

    @classmethod
    def from_dataset(cls, data: xarray.Dataset, provenance: Mapping[str, Any] | None = None) -> Sample:
        """The inverse of ``to_dataset``."""
        return cls(
            data["probe_energy"].transpose(*DIMENSIONS).to_numpy(),
            tuple(str(c) for c in data["condition"].to_numpy()),
            tuple(int(s) for s in data["step"].to_numpy()),
            QUANTITIES[str(data.attrs["quantity"])],
            str(data.attrs["label"]),
            bool(data.attrs["exact"]),
            dict(provenance or {}),
        )

    def __repr__(self) -> str:
        """One line: label, quantity and the size of every dimension."""
        sizes = ", ".join(f"{n} {d}{'s' if n != 1 else ''}" for d, n in zip(DIMENSIONS, self.energy.shape, strict=True))
        return f"Sample({self.label!r}, {self.quantity.symbol}, {sizes})"

    def _repr_html_(self) -> str:
        """The sample's profiles as a small chart in a notebook."""
        from catenary.figures import overlay, to_svg

        return to_svg(overlay([self.profile(condition=c, step=self.steps[0]) for c in self.conditions]))


def combine(mean: Float64[np.ndarray, " *n"], average: Average) -> Float64[np.ndarray, " *n"]:
    """From the averaging space back to a norm: the inverse of the map that ``units`` applied."""
    if average == "rms":
        return np.asarray(np.sqrt(mean))
    return np.asarray(np.exp(mean)) if average == "log" else mean


def _forward(energy: Float64[np.ndarray, " *n"], average: Average) -> Float64[np.ndarray, " *n"]:
    if average == "rms":
        return energy
    if average == "mean":
        return np.asarray(np.sqrt(energy))
    if average != "log":
        raise unknown("average", average, ("rms", "log", "mean"))
    if not (energy > 0).all():
        raise invalid("average", "'log' needs every energy > 0", "an energy of exactly 0", "use 'rms'")
    return np.asarray(0.5 * np.log(energy))


def _index(kind: str, wanted: object, known: Sequence[object]) -> int:
    if wanted is None and len(known) == 1:
        return 0
    if wanted is None:
        raise invalid(kind, "must be named when the sample holds several", None, f"one of {list(known)}")
    if wanted not in known:
        raise unknown(kind, str(wanted), [str(k) for k in known])
    return list(known).index(wanted)
