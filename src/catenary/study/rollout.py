"""The rollout of one model on one kind of input, beside its Jacobian profile, strengths and attention statistics."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from catenary.sample import Sample
from catenary.strengths import Strengths
from catenary.study.config import StudyConfig
from catenary.study.finished import Finished
from catenary.study.inputs import build_windows
from catenary.study.measuring import identity_of, load_net, measure_part
from catenary.study.observer import Observer, counting
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
    schedule: Schedule | None, folder: Path, monotonicity: bool = False,
) -> RolloutStudy:
    """Roll out the attention of one network, and measure its Jacobian profile and its heads on the same windows.

    ``schedule`` None takes the measured strengths. Finished windows are kept in ``folder``, from which a killed run
    goes on.

    Raises:
        InvalidInput: unknown words, missing weights or tokenizer, and what loading and measuring refuse.
    """
    from catenary.measure.attention_statistics import measure_attention
    from catenary.measure.rollout import measure_rollout
    from catenary.measure.strengths import measure_strengths
    from catenary.theory.rollout.schedules import Given

    part = part_of(Request(weights, (tokens,), 1, windows, probes, "probes", None))
    found = find_source(config)
    observer.say(f"{found.located.source}\n{found.architecture.describe()}")
    found = usable_source(found, config, part)
    made = build_windows(part.tokens[0], config, found, part)
    model = load_net(config, part, 0)
    kept = Finished(folder, identity_of(config, found, part))
    strengths = None
    if schedule is None:
        strengths = Strengths.from_dict(
            kept.record("strengths", made, lambda: measure_strengths(model, made).to_dict())
        )
        schedule = Given(strengths.values(), "measured")
    with counting(observer, "rollout", windows) as progress:
        keep = kept.windows("rollout", made, schedule=repr(schedule))
        rolled = measure_rollout(model, made, schedule=schedule, progress=progress, keep=keep)
    with counting(observer, "heads", windows) as progress:
        keep = kept.windows("heads", made, monotonicity=monotonicity)
        seen = measure_attention(model, made, monotonicity=monotonicity, progress=progress, keep=keep)
    jacobian = measure_part(config, found, part, {part.tokens[0]: made}, folder, observer, load=lambda net: model)
    return RolloutStudy(rolled, jacobian, strengths, seen)
