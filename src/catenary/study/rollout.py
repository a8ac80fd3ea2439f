"""The rollout of one model on one kind of input, beside its Jacobian profile, strengths and attention statistics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from catenary.sample import Sample
from catenary.strengths import Strengths
from catenary.study.config import StudyConfig
from catenary.study.inputs import build_windows
from catenary.study.measuring import load_net
from catenary.study.observer import Observer
from catenary.study.single import Request, part_of
from catenary.study.source import find_source, usable_source

if TYPE_CHECKING:
    from catenary.measure.attention_statistics import AttentionStatistics
    from catenary.theory.rollout.schedules import Schedule


@dataclass(frozen=True, eq=False)
class RolloutStudy:
    """What was measured on the same windows of one network; ``strengths`` only where the schedule is measured."""

    rollout: Sample
    jacobian: Sample
    strengths: Strengths | None
    statistics: AttentionStatistics


def study_rollout(
    config: StudyConfig, observer: Observer, *, weights: str, tokens: str, windows: int, probes: int,
    schedule: Schedule | None, monotonicity: bool = False,
) -> RolloutStudy:
    """Roll out the attention of one network, and measure its Jacobian profile and its heads on the same windows.

    ``schedule`` None takes the measured strengths.

    Raises:
        InvalidInput: unknown words, missing weights or tokenizer, and what loading and measuring refuse.
    """
    from catenary.measure.attention_statistics import measure_attention
    from catenary.measure.jacobian import measure_jacobian
    from catenary.measure.rollout import measure_rollout
    from catenary.measure.strengths import measure_strengths
    from catenary.theory.rollout.schedules import Given

    part = part_of(Request(weights, (tokens,), 1, windows, probes, "probes", None))
    found = find_source(config)
    observer.say(f"{found.located.source}\n{found.architecture.describe()}")
    found = usable_source(found, config, part)
    made = build_windows(part.tokens[0], config, found, part)
    model = load_net(config, part, 0)
    strengths = None
    if schedule is None:
        strengths = measure_strengths(model, made)
        schedule = Given(strengths.values(), "measured")
    observer.begin("rollout, Jacobian and heads", 3 * windows)

    def step(done: int, total: int) -> None:
        observer.advance(1)

    try:
        rolled = measure_rollout(model, made, schedule=schedule, progress=step)
        seen = measure_attention(model, made, monotonicity=monotonicity, progress=step)
        jacobian = measure_jacobian(
            model, made, probes=probes, seed=config.seed,
            progress=lambda done, total: step(done, total) if done % probes == 0 else None,
        )
    finally:
        observer.end()
    return RolloutStudy(rolled, jacobian, strengths, seen)
