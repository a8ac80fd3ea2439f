"""Units of work: each finished batch of windows is a file, so a killed run loses at most the one in flight.

A unit's file name carries a digest of everything that decides its numbers (network, windows, probes, seeds,
dtype, versions). A unit made under any other setting is never mistaken for this one.
"""

from __future__ import annotations

import gc
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float64

from catenary.provenance import digest
from catenary.sample import Sample
from catenary.store import write_array
from catenary.study.config import Tokens
from catenary.study.parts import Part
from catenary.text.windows import Windows

if TYPE_CHECKING:
    from catenary.models.model import Model

LoadNet = Callable[[int], "Model"]
Advance = Callable[[int], None]


@dataclass(frozen=True)
class Unit:
    """One batch of windows (``rows`` of ``windows``) of one network under one condition."""

    condition: int
    net: int
    windows: Windows
    rows: range
    path: Path


def units_of(
    part: Part, windows: Mapping[Tokens, Windows], folder: Path, *, batch: int, identity: Mapping[str, Any]
) -> Iterator[Unit]:
    """Every unit of a part, network by network; ``identity`` is what decides the network's numbers.

    Network n is fed rows n * part.windows to (n + 1) * part.windows of each condition's windows.
    """
    for net in range(part.nets):
        for condition, tokens in enumerate(part.tokens):
            end = (net + 1) * part.windows
            for first in range(net * part.windows, end, batch):
                rows = range(first, min(first + batch, end))
                given = windows[tokens]
                fed = {"net": net, "probes": part.probes, "method": part.method, **part.aim.record()}
                key = digest({**identity, **fed_record(given, rows), **fed})
                name = f"{part.name}-{tokens}-net{net:03d}-window{first:05d}-{key}.npy"
                yield Unit(condition, net, given, rows, folder / name)


def fed_record(windows: Windows, rows: Sequence[int]) -> dict[str, Any]:
    """What some rows of windows are, for a digest; ``rows`` follow each other."""
    return {
        "rows": list(rows),
        "ids": sha256(windows.ids[rows[0] : rows[-1] + 1].tobytes()).hexdigest(),
        "vectors": windows.vectors,
        "windows_seed": windows.seed,
    }


def derived_seed(seed: int, *words: object) -> int:
    """A 32-bit seed that depends on the run's seed and on what it is for, and on nothing else."""
    entropy = [seed, *(zlib.crc32(str(word).encode()) for word in words)]
    return int(np.random.SeedSequence(entropy).generate_state(1)[0])


def measure_units(part: Part, units: list[Unit], load_net: LoadNet, seed: int, advance: Advance) -> Sample:
    """Measure the units that have no file yet, then read all of them into one Sample."""
    net = -1
    model: Model | None = None
    for unit in units:
        if not unit.path.is_file():
            if model is None or net != unit.net:
                model = None
                gc.collect()  # modules refer to each other: without it two networks would be in memory at once
                net, model = unit.net, load_net(unit.net)
            write_array(unit.path, measure_unit(model, unit, part, seed))
        advance(len(unit.rows))
    return collect_units(part, units)


def measure_unit(model: Model, unit: Unit, part: Part, seed: int) -> Float64[np.ndarray, "n K L"]:
    """The energies of one unit's windows."""
    from catenary.measure.jacobian import measure_jacobian

    sample = measure_jacobian(
        model,
        unit.windows,
        probes=part.probes,
        seed=seed,
        method=part.method,
        batch_size=len(unit.rows),
        sequences=unit.rows,
        recompute=part.recompute,
        **asdict(part.aim),
    )
    return np.asarray(sample.energy[0, 0, 0])


def collect_units(part: Part, units: list[Unit]) -> Sample:
    """Read the files of all units of a part into one Sample."""
    exact = part.aim.exact(part.method)
    return Sample(_collect(part, units), part.tokens, quantity=part.quantity, label=part.label, exact=exact)


def _collect(part: Part, units: list[Unit]) -> Float64[np.ndarray, "c 1 n q p L"]:
    read = [np.load(unit.path, allow_pickle=False) for unit in units]
    energy = np.full((len(part.tokens), 1, part.nets, part.windows, *read[0].shape[1:]), np.nan)
    for unit, values in zip(units, read, strict=True):
        first = unit.rows.start - unit.net * part.windows
        energy[unit.condition, 0, unit.net, first : first + len(unit.rows)] = values
    return energy
