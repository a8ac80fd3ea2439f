"""Joins: the boundary effect of every measured curve of a finished run, at the places its chunked windows have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from catenary.boundaries import BoundaryEffect, boundary_effect
from catenary.errors import InvalidInput
from catenary.sample import Sample
from catenary.store import Run
from catenary.study.curves import single_curves


def join_effects(run: Run, chunk: int | None = None, *, seed: int = 0) -> dict[str, BoundaryEffect]:
    """The effect of joins by the name of the curve, curves with joins first; the rest are controls at the same places.

    Args:
        run: a finished run with measured curves.
        chunk: tokens per chunk; as the run's chunked windows have it if None.
        seed: of the bootstrap.

    Raises:
        InvalidInput: no measured curve, no chunked windows and no ``chunk``, or a chunk that does not fit.
    """
    size = chunk or chunk_of(run.result)
    if size is None:
        raise InvalidInput(
            "run must hold chunked windows, whose joins are looked at; measure with --tokens chunked, or give --chunk "
            "to look at the places where joins would be"
        )
    measured = {name: curve for name, curve in single_curves(run.curves).items() if isinstance(curve, Sample)}
    if not measured:
        raise InvalidInput("run must hold a measured curve; this one holds predictions only")
    ordered = sorted(measured, key=lambda name: (not name.endswith("/chunked"), name))
    return {name: boundary_effect(measured[name], size, seed=seed) for name in ordered}


def chunk_of(result: Mapping[str, Any]) -> int | None:
    """Tokens per chunk of a run's windows, None where it has no chunked ones."""
    for kinds in result.get("windows", {}).values():
        for described in kinds.values():
            chunk = described.get("report", {}).get("chunk")
            if isinstance(chunk, int):
                return chunk
    return None
