"""One measurement on its own, stored as a run: what `catenary measure` does."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import get_args

from catenary.errors import InvalidInput, unknown
from catenary.measure.aim import USUAL, Aim
from catenary.provenance import versions
from catenary.quantity import QUANTITIES
from catenary.reading import counted
from catenary.store import Run, read_run, write_json, write_run
from catenary.study.adaptive import measure_until
from catenary.study.config import StudyConfig, Tokens
from catenary.study.curves import single_curves
from catenary.study.deciding import deciding
from catenary.study.estimate import STORING_SECONDS, part_estimator
from catenary.study.existing import existing_run
from catenary.study.inputs import build_windows, describe_windows
from catenary.study.measuring import load_net, measure_part
from catenary.study.memory import usable_memory
from catenary.study.observer import Observer
from catenary.study.parts import TEXT, Part
from catenary.study.plan import Estimate, fit_memory
from catenary.study.source import find_source, usable_source
from catenary.study.spent import Meter
from catenary.text.windows import Windows


@dataclass(frozen=True)
class Request:
    """Which networks are fed which windows, and how they are measured."""

    weights: str
    tokens: tuple[str, ...]
    nets: int
    windows: int
    probes: int
    method: str
    target_error: float | None
    aim: Aim = USUAL


def measure_single(
    config: StudyConfig, request: Request, folder: Path, observer: Observer, *, overwrite: bool = False
) -> Run:
    """Measure one network or several on given kinds of windows and store the Sample as a run of its own.

    Raises:
        InvalidInput: unknown kinds of tokens or weights, several pretrained networks, or what the loading and
            the measurement refuse.
    """
    from catenary.shape import describe

    meter = Meter(config.device)
    part = part_of(request)
    asked = {**vars(request), "tokens": list(part.tokens), "aim": part.aim.record()}
    record = {**deciding(config, (part.weights,), part.tokens, "rope", "batch_size"), "request": asked}
    finished = existing_run(folder, record, overwrite=overwrite)
    if finished is not None:
        observer.say("this very run is there already: nothing is measured again")
        return finished
    source = find_source(config)
    observer.say(f"{source.located.source}\n{source.architecture.describe()}")
    source = usable_source(source, config, part)
    made = {kind: build_windows(kind, config, source, part) for kind in part.tokens}
    target_error = request.target_error
    if target_error is not None and part.weights == "untrained":
        part = _with_probes(part, config, made, target_error)
        observer.say(f"{counted(part.probes, 'probe')} per window reach a relative error of {target_error:g}")
    part, cost = fit_memory(part, part_estimator(config, source), usable_memory(config.device))
    cost = Estimate(meter.seconds + cost.seconds + STORING_SECONDS, cost.bytes)
    again = ", recomputing layers" if part.recompute else ""
    observer.say(f"to measure: {counted(part.total, 'window')}, {cost.words}{again}")
    if target_error is None or part.weights == "untrained":
        sample = measure_part(config, source, part, made, folder, observer)
        adapted = None
    else:
        found = measure_until(config, source, part, made, folder, observer, target_error=target_error)
        observer.say(found.words)
        sample, part = found.sample, found.part
        adapted = {"windows": part.windows, "error": found.error, "reached": found.reached}
    curves = {part.name: sample}
    result = {
        "config": record,
        "probes": part.probes,
        **({} if adapted is None else {"adapted": adapted}),
        "model": {"source": source.located.source, "name": source.located.name, "config": dict(source.located.config)},
        "architecture": source.architecture.describe(),
        "versions": versions(),
        "windows": {part.name: {kind: describe_windows(w) for kind, w in made.items()}},
        "shapes": {name: describe(curve).to_dict() for name, curve in single_curves(curves).items()},
        "quantity": QUANTITIES[part.quantity.name].definition,
    }  # fmt: skip
    write_run(folder, curves, result)
    write_json(folder / "run.json", meter.record(cost))
    return read_run(folder)


def part_of(request: Request) -> Part:
    """The part a request means; raises ``InvalidInput`` for unknown words and for what does not go together."""
    from catenary.measure.methods import METHODS

    known, method = get_args(Tokens), METHODS[request.method].name
    for kind in request.tokens:
        if kind not in known:
            raise unknown("tokens", kind, known)
    kinds: tuple[Tokens, ...] = request.tokens  # type: ignore[assignment]  # each was checked just above
    nets, windows, probes = request.nets, request.windows, request.probes
    if request.weights == "untrained":
        return Part("untrained", "untrained", "untrained", kinds, nets, windows, probes, method, aim=request.aim)
    if request.weights != "pretrained":
        raise unknown("weights", request.weights, ("untrained", "pretrained"))
    if nets != 1:
        raise InvalidInput(f"nets must be 1 for pretrained weights, got {nets}; there is one network to measure")
    if set(kinds) - TEXT:
        raise InvalidInput(
            f"tokens must be vanilla, chunked, shuffled or uniform for pretrained weights, got "
            f"{', '.join(sorted(set(kinds) - TEXT))}; random vectors and Zipf draws mean nothing to a trained embedding"
        )
    return Part("trained", "trained", "pretrained", kinds, 1, windows, probes, method, aim=request.aim)


def _with_probes(part: Part, config: StudyConfig, made: dict[Tokens, Windows], target_error: float) -> Part:
    """The part with as many probes as the target needs, from a pilot on the first network and window."""
    from catenary.measure.jacobian import measure_jacobian

    model = load_net(config, part, 0)
    pilot = measure_jacobian(
        model, made[part.tokens[0]], seed=config.seed, method=part.method, target_error=target_error, sequences=[0],
        **asdict(part.aim),
    )
    return replace(part, probes=pilot.probes)
