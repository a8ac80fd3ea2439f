"""Normalisations as they are initialised."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Norm:
    """A normalisation: ``rms`` (no mean removed) or ``layer``, as initialised (weight 1, bias 0)."""

    kind: Literal["rms", "layer"]
    epsilon: float
