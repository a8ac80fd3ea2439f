"""Every verb, in the order in which `catenary --help` lists them."""

from __future__ import annotations

from catenary.cli import (
    atlas,
    boundaries,
    compare,
    doctor,
    evolve,
    kinetic,
    learn,
    measure,
    order,
    pathways,
    predict,
    profile,
    report,
    reproduce,
    retrieve,
    rollout,
    strengths,
)
from catenary.cli.app import app, main

__all__ = [
    "app", "atlas", "boundaries", "compare", "doctor", "evolve", "kinetic", "learn", "main", "measure", "order",
    "pathways", "predict", "profile", "report", "reproduce", "retrieve", "rollout", "strengths",
]  # fmt: skip
