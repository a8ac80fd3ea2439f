"""Tiny configs of all described model types."""

from __future__ import annotations

from families.case import Case
from families.dense import DENSE_CASES

TINY: dict[str, Case] = {**DENSE_CASES}
