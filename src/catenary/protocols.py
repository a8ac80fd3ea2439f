"""The two plug-in shapes: a theory predicts a Profile from an Architecture, a family reads one from a config."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Int64

from catenary.architecture import Architecture
from catenary.profile import Profile

if TYPE_CHECKING:
    from catenary.configs.fields import Fields


@dataclass(frozen=True, eq=False)
class TokenLaw:
    """What a prediction knows about the tokens: their ids, or only how often two of them are equal.

    ``ids`` (0-based positions) wins over ``repeat_probability`` p2 = Pr[id_i = id_j], i != j; both absent
    means that all tokens are distinct.
    """

    ids: Int64[np.ndarray, " L"] | None = None
    repeat_probability: float = 0.0


@runtime_checkable
class Theory(Protocol):
    """A parameter-free (or explicitly parametrised) prediction of a profile from an architecture."""

    name: str
    summary: str

    def predict(
        self, architecture: Architecture, length: int, tokens: TokenLaw, options: Mapping[str, Any]
    ) -> Profile:
        """The profile at ``length`` positions; raises ``NotApplicable`` where the theory stops."""
        ...


@runtime_checkable
class Family(Protocol):
    """One model family: which ``model_type`` it reads and how its config maps to an Architecture.

    ``defaults`` holds what is taken for a field that is left out, beyond what transformers' own class of the type
    takes, which need not be repeated; other fields are required.
    """

    model_types: tuple[str, ...]
    defaults: Mapping[str, object]

    def read(self, fields: Fields) -> Architecture:
        """The architecture; raises ``InvalidInput`` naming the field at fault."""
        ...
