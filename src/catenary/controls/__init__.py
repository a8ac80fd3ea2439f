"""Controls: what a measurement rests on, checked on the network at hand."""

from __future__ import annotations

from catenary.controls.catalogue import CONTROLS
from catenary.controls.check import Check, Verdict
from catenary.controls.control import Control
from catenary.controls.run import check_controls, estimate_controls, make_subject, run_controls
from catenary.controls.subject import Subject

__all__ = [
    "CONTROLS", "Check", "Control", "Subject", "Verdict", "check_controls", "estimate_controls", "make_subject",
    "run_controls",
]
