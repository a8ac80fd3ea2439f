"""What a part would cost on this machine: the sizes of the network and the speed of one matrix product here."""

from __future__ import annotations

from catenary.study.config import StudyConfig
from catenary.study.parts import TEXT, Part
from catenary.study.plan import Estimate, Estimator
from catenary.study.source import Source


def part_estimator(config: StudyConfig, source: Source) -> Estimator:
    """A function from a part to its estimate: every network is drawn or read once, then fed its windows."""

    def estimate(part: Part) -> Estimate:
        from catenary.measure.cost import estimate as cost_of

        full = part.weights == "pretrained" or bool(TEXT & set(part.tokens))
        cost = cost_of(
            source.architecture,
            config.length,
            windows=len(part.tokens) * part.windows,
            probes=source.architecture.width if part.method == "exact" else part.probes,
            dtype=config.dtype,
            batch_size=config.batch_size,
            vocabulary=None if full else 16,
            device=config.device,
        )
        return Estimate(part.nets * cost.seconds, cost.bytes)

    return estimate
