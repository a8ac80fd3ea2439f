"""Every verb, in the order in which `catenary --help` lists them."""

from __future__ import annotations

from catenary.cli import compare, doctor, measure, predict, profile, report
from catenary.cli.app import app, main

__all__ = ["app", "compare", "doctor", "main", "measure", "predict", "profile", "report"]
