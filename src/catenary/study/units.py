"""Units of work: each finished batch of windows is a file, so a killed run loses at most the one in flight.

A unit's file name carries a digest of everything that decides its numbers (network, windows, probes, seeds,
dtype, versions). A unit made under any other setting is never mistaken for this one.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
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
    """One batch of windows of one network under one condition."""

    condition: int
    tokens: Tokens
    net: int
    first: int
    windows: Windows
    seed: int
    path: Path


def units_of(
    part: Part, windows: Mapping[Tokens, Windows], folder: Path, *, seed: int, batch: int, identity: Mapping[str, Any]
) -> Iterator[Unit]:
    """Every unit of a part, network by network; ``identity`` is what decides the network's numbers."""
    for net in range(part.nets):
        for condition, tokens in enumerate(part.tokens):
            own = windows[tokens].ids[net * part.windows : (net + 1) * part.windows]
            for first in range(0, part.windows, batch):
                ids = own[first : first + batch]
                unit_seed = derived_seed(seed, part.name, tokens, net, first)
                piece = Windows(ids, windows[tokens].kind, windows[tokens].vectors, unit_seed)
                key = digest(
                    {
                        **identity, "net": net, "ids": sha256(ids.tobytes()).hexdigest(), "shape": list(ids.shape),
                        "vectors": piece.vectors, "seed": unit_seed, "probes": part.probes,
                    }
                )  # fmt: skip
                name = f"{part.name}-{tokens}-net{net:03d}-window{first:05d}-{key}.npy"
                yield Unit(condition, tokens, net, first, piece, unit_seed, folder / name)


def derived_seed(seed: int, *words: object) -> int:
    """A 32-bit seed that depends on the run's seed and on what it is for, and on nothing else."""
    entropy = [seed, *(zlib.crc32(str(word).encode()) for word in words)]
    return int(np.random.SeedSequence(entropy).generate_state(1)[0])


def measure_units(part: Part, units: list[Unit], load_net: LoadNet, length: int, advance: Advance) -> Sample:
    """Measure the units that have no file yet, then read all of them into one Sample."""
    from catenary.measure.jacobian import measure_jacobian

    loaded: tuple[int, Model] | None = None
    for unit in units:
        if not unit.path.is_file():
            if loaded is None or loaded[0] != unit.net:
                loaded = None  # free the previous network before the next one is built
                loaded = (unit.net, load_net(unit.net))
            sample = measure_jacobian(
                loaded[1], unit.windows, probes=part.probes, seed=unit.seed, batch_size=len(unit.windows)
            )
            write_array(unit.path, sample.energy[0, 0, 0])
        advance(len(unit.windows))
    return Sample(_collect(part, units, length), part.tokens, label=part.label)


def _collect(part: Part, units: list[Unit], length: int) -> Float64[np.ndarray, "c 1 n q p L"]:
    energy = np.full((len(part.tokens), 1, part.nets, part.windows, part.probes, length), np.nan)
    for unit in units:
        last = unit.first + len(unit.windows)
        energy[unit.condition, 0, unit.net, unit.first : last] = np.load(unit.path, allow_pickle=False)
    return energy
