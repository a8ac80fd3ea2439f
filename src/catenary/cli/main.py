"""Every verb, in the order in which `catenary --help` lists them."""

from __future__ import annotations

from catenary.cli import (
    atlas,
    boundaries,
    compare,
    doctor,
    kinetic,
    measure,
    pathways,
    predict,
    profile,
    report,
    rollout,
    strengths,
)
from catenary.cli.app import app, main

__all__ = [
    "app", "atlas", "boundaries", "compare", "doctor", "kinetic", "main", "measure", "pathways", "predict", "profile",
    "report", "rollout", "strengths",
]  # fmt: skip
