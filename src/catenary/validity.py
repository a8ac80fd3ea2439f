"""The card that travels with every prediction: how strong the logits are, how wrong to expect it, where to stop."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Light = Literal["green", "amber", "red"]
"""How far to trust a prediction at a glance: measured here; measured with reserve or extrapolated; not at all."""


@dataclass(frozen=True)
class ValidityCard:
    """Numbers and words that say how far to trust one prediction.

    ``expected_median_error`` is the median |log10 prediction/measurement| (dex) seen in this regime against an
    ensemble root mean square, None where it was never measured; ``token_spread`` is the per-token standard
    deviation (dex) of one network and one sequence with one probe around it. ``light`` and ``sentence`` say the
    same at a glance. ``logit_variance`` is None where no layer has attention; ``layer_variances`` is that of each layer
    with attention; the first ``condensed`` queries are below the threshold v > 2 ln i, where one key takes most of a
    row.
    """

    logit_variance: float | None
    width: int
    length_over_width: float
    expected_median_error: float | None
    token_spread: float | None
    statements: tuple[str, ...]
    assumed: tuple[str, ...] = ()
    not_expressed: tuple[str, ...] = ()
    light: Light = "amber"
    sentence: str = ""
    layer_variances: tuple[float, ...] = ()
    condensed: int = 0

    def to_dict(self) -> dict[str, Any]:
        """The card as plain JSON values."""
        return asdict(self)
