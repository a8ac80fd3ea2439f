"""Aim: which output is differentiated with respect to which input, in words that need no network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from catenary.errors import invalid, unknown
from catenary.quantity import (
    ANSWER_GRADIENT,
    JACOBIAN_NORM,
    LOGIT_JACOBIAN,
    RELATIVE,
    SCALAR_GRADIENT,
    STREAM_JACOBIAN,
    Quantity,
)

Output = str | int | Sequence[int]
"""``stream``, ``logits``, or the id of an answer token (one for all windows, or one for each)."""

OUTPUTS = ("stream", "logits")


@dataclass(frozen=True)
class Aim:
    """The arguments of ``measure_jacobian`` that say what is measured, by their names there."""

    position: int = -1
    output: Output = "stream"
    source_layer: int | None = None
    target_layer: int | None = None
    relative: bool = False

    @property
    def kind(self) -> str:
        """``stream``, ``logits`` or ``answer``."""
        if not isinstance(self.output, str):
            return "answer"
        if self.output not in OUTPUTS:
            raise unknown("output", self.output, OUTPUTS)
        return self.output

    def quantity(self, method: str) -> Quantity:
        """The name of what ``method`` measures here.

        Raises:
            InvalidInput: for the scalar gradient of anything but the last stream with respect to the embeddings.
        """
        inside = (self.source_layer, self.target_layer) != (None, None)
        if method == "scalar" and (inside or self.kind != "stream"):
            raise invalid("method", "must be 'probes' or 'exact' for other outputs or layers than the last", method)
        base = {"logits": LOGIT_JACOBIAN, "answer": ANSWER_GRADIENT}.get(
            self.kind, STREAM_JACOBIAN if inside else SCALAR_GRADIENT if method == "scalar" else JACOBIAN_NORM
        )
        return RELATIVE[base] if self.relative else base

    def exact(self, method: str) -> bool:
        """Whether energies carry no probe error."""
        return method == "exact" or self.kind == "answer"

    def record(self) -> dict[str, Any]:
        """What differs from the usual aim, as plain JSON values; empty for the usual one."""
        usual, own = asdict(USUAL), asdict(self)
        return {name: value for name, value in own.items() if value != usual[name]}


USUAL = Aim()
"""The last position's stream with respect to the embeddings."""
