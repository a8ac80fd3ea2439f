"""A profile followed over training: train, measure held-out windows on the way, resume where it was stopped."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float64, Int64

from catenary.errors import InvalidInput, invalid
from catenary.evolution import Evolution, follow_training
from catenary.provenance import digest, versions
from catenary.sample import Sample
from catenary.store import Run, read_run, write_array, write_json, write_run
from catenary.study.checkpoint import Checkpoints
from catenary.study.config import StudyConfig, Tokens
from catenary.study.course import RECIPE, Course
from catenary.study.deciding import deciding
from catenary.study.evolve_cost import check_estimate, check_size, training_estimate
from catenary.study.existing import existing_run
from catenary.study.held_out import HeldOut, held_out_windows
from catenary.study.inputs import describe_windows
from catenary.study.measuring import load_net, provenance_of
from catenary.study.observer import Observer, Silent
from catenary.study.parts import Part
from catenary.study.plan import Estimate
from catenary.study.revisions import each_revision
from catenary.study.source import Source, find_source, usable_source
from catenary.study.spent import Meter
from catenary.study.units import derived_seed

if TYPE_CHECKING:
    from catenary.models.model import Model
    from catenary.models.training import Trainer

NAME = "evolution"
DECIDES = {"init_std", "rope", "device", "dtype", "attention", "seed", "batch_size"}
"""Fields of the config that change a measured number; the rest only says what is measured."""

Measure = Callable[["Model", int, Mapping[str, Any]], None]


@dataclass(frozen=True)
class EvolveStudy:
    """A finished evolution: its run directory, and whether it was all there already."""

    run: Run
    reused: bool

    @property
    def sample(self) -> Sample:
        """Energies with dims (condition, step, net, sequence, probe, position)."""
        found = self.run.curves[NAME]
        assert isinstance(found, Sample)
        return found

    @property
    def losses(self) -> tuple[float, ...]:
        """The loss before each update, in nats per token of that update's own windows; empty for revisions."""
        return tuple(self.run.result["losses"])

    def follow(self, *, seed: int = 0) -> Evolution:
        """What changes over the steps."""
        return follow_training(self.sample, self.run.result["chunk"], seed=seed)


def evolve_model(
    config: StudyConfig,
    course: Course,
    folder: Path,
    observer: Observer | None = None,
    *,
    overwrite: bool = False,
    budget_minutes: float = 60.0,
    checkpoint_every: int = 10,
) -> EvolveStudy:
    """Train one network by a course, or take published checkpoints, and measure its profile at every wanted step.

    Held-out windows are the same at every step, and so are their probes. Each profiled step is a file of its own,
    written whole; training goes on from its last checkpoint. A run that was killed at any moment and started again
    ends with the same bytes, on the same machine with the same number of threads.

    Args:
        config: MODEL, length, seed, documents, conditions (vanilla, chunked) and how to measure.
        course: the recipe, the steps to profile, held-out windows and probes; or revisions.
        folder: of the run. ``profiles.nc`` holds the Sample, ``result.json`` the losses.
        observer: told of decisions and progress.
        overwrite: replace a finished run of another config.
        budget_minutes: what would take longer is refused, with the estimate, before it starts.
        checkpoint_every: updates between two checkpoints of the weights; changes no number.

    Raises:
        InvalidInput: bad settings, too few documents, no room or no time for it, or a loss that is not finite.
        MissingResource: MODEL, its tokenizer or a revision is not there.

    The recipe and the protocol are those of arXiv 2603.10123, appendix G. There, chunked windows come from documents
    that are trained on; here from those held out.
    """
    watch, meter = observer or Silent(), Meter(config.device)
    _check(config, course)
    record = settings_record(config, course)
    finished = existing_run(folder, record, overwrite=overwrite)
    if finished is not None:
        watch.say("this very run is there already: nothing is trained or measured again")
        return EvolveStudy(finished, True)
    job = _Job(config, course, folder, watch)
    energies, losses, source, data, cost = job.revisions() if course.revisions else job.training(
        budget_minutes, checkpoint_every
    )  # fmt: skip
    part = job.part
    steps = tuple(energies)
    sample = Sample(
        np.stack([energies[step] for step in steps], axis=1)[:, :, None], config.conditions, steps,
        label=source.located.name, provenance=provenance_of(config, source, part, data.windows),
    )
    chunk = data.windows["chunked"].report["chunk"] if "chunked" in data.windows else None
    result = {
        "config": record, "losses": losses, "chunk": chunk, "text": dict(data.report),
        "model": {"source": source.located.source, "name": source.located.name, "config": dict(source.located.config)},
        "architecture": source.architecture.describe(), "versions": versions(),
        "windows": {kind: describe_windows(w) for kind, w in data.windows.items()},
    }  # fmt: skip
    write_run(folder, {NAME: sample}, result)
    write_json(folder / "run.json", meter.record(cost))
    Checkpoints(folder, "").remove()
    return EvolveStudy(read_run(folder), False)


def settings_record(config: StudyConfig, course: Course) -> dict[str, Any]:
    """All that decides the numbers, as JSON values; ``stored_course`` reads it back."""
    weights = "pretrained" if course.revisions else course.weights
    kept = deciding(config, (weights,), config.conditions, "rope", "batch_size", "conditions")
    return {**kept, "course": course.model_dump(mode="json")}


@dataclass(frozen=True)
class _Job:
    """One evolution in the making."""

    config: StudyConfig
    course: Course
    folder: Path
    watch: Observer

    @property
    def part(self) -> Part:
        """What is measured at each step, as a part of a study."""
        read = bool(self.course.revisions) or self.course.weights == "pretrained"
        return Part(
            NAME, NAME, "pretrained" if read else "untrained", self.config.conditions, 1, self.course.sequences,
            self.course.probes,
        )

    def training(self, budget: float, every: int) -> tuple[dict[int, Any], list[float], Source, HeldOut, Estimate]:
        """Energies by step, losses, and what they came from, of a network that is trained."""
        from catenary.measure.feed import prepare
        from catenary.models.training import Recipe, Trainer

        config, course = self.config, self.course
        source = usable_source(find_source(config), config, self.part)
        self.watch.say(f"{source.located.source}\n{source.architecture.describe()}")
        check_size(config, source)
        data = held_out_windows(config, course, source)
        model = load_net(config, self.part, 0)
        for windows in data.windows.values():
            prepare(model, windows)
        cost = training_estimate(model, config, course)
        self.watch.say(f"{course.steps} updates, {len(course.profiled)} profiles: {cost.words}")
        check_estimate(cost, config, budget)
        recipe = Recipe(course.steps, course.rate, course.final_rate, course.weight_decay, course.clip)
        network = source.weights_digest if course.weights == "pretrained" else source.config_digest
        assert data.training is not None
        identity = {
            "network": network, "recipe": course.model_dump(mode="json", include=RECIPE),
            "training": data.training.digest(), "config": config.model_dump(mode="json", include=DECIDES),
            "versions": versions(),
        }  # fmt: skip
        paths = {step: self._path(data, step, identity) for step in course.profiled}
        checkpoints = Checkpoints(self.folder, digest(identity))
        trainer = Trainer(model, recipe)
        missing = min((step for step, path in paths.items() if not path.is_file()), default=course.steps)
        losses = checkpoints.load(trainer, missing)
        self.watch.begin("training and measuring", course.steps + len(paths) * self.part.total)
        try:
            self._train(trainer, model, data, paths, checkpoints, losses, every)
        finally:
            self.watch.end()
        return {step: np.load(path, allow_pickle=False) for step, path in paths.items()}, losses, source, data, cost

    def _train(
        self, trainer: Trainer, model: Model, data: HeldOut, paths: Mapping[int, Path], checkpoints: Checkpoints,
        losses: list[float], every: int,
    ) -> None:
        self.watch.advance(trainer.done + sum(self.part.total for step in paths if step < trainer.done))
        for step in range(trainer.done, self.course.steps + 1):
            if step in paths:
                self._measure(model, data, paths[step])
            if step == self.course.steps:
                return
            losses.append(trainer.step(self._batch(data, step)))
            self.watch.advance(1)
            if trainer.done % every == 0 and trainer.done < self.course.steps:
                checkpoints.save(trainer, losses)

    def revisions(self) -> tuple[dict[int, Any], list[float], Source, HeldOut, Estimate]:
        """Energies by step of published checkpoints, all on the same windows."""
        from catenary.study.estimate import part_estimator

        energies: dict[int, Any] = {}
        found = each_revision(self.config, self.course, self.part)
        first_config, first = next(iter(found.values()))
        data = held_out_windows(first_config, self.course, first)
        one = part_estimator(first_config, first)(self.part)
        cost = Estimate(len(found) * one.seconds, one.bytes)
        self.watch.say(f"{first.architecture.describe()}\n{len(found)} checkpoints: {cost.words}")
        self.watch.begin("measuring", len(found) * self.part.total)
        try:
            for step, (config, source) in found.items():
                identity = {
                    "network": source.weights_digest, "versions": versions(),
                    "config": config.model_dump(mode="json", include=DECIDES),
                }  # fmt: skip
                path = self._path(data, step, identity)
                if not path.is_file():
                    self._measure(load_net(config, self.part, 0), data, path)
                else:
                    self.watch.advance(self.part.total)
                energies[step] = np.load(path, allow_pickle=False)
        finally:
            self.watch.end()
        return energies, [], first, data, cost

    def _batch(self, data: HeldOut, step: int) -> Int64[np.ndarray, "b L"]:
        """The windows of one update: a function of the seed and the update's number alone."""
        assert data.training is not None
        generator = np.random.default_rng(derived_seed(self.config.seed, "update", step))
        return np.stack([data.training.window(generator) for _ in range(self.course.training_batch)])

    def _measure(self, model: Model, data: HeldOut, path: Path) -> None:
        """Energies (condition, sequence, probe, position) of one network, into its file unless it is there."""
        from catenary.measure.jacobian import measure_jacobian

        if path.is_file():
            self.watch.advance(self.part.total)
            return
        found = []
        for kind in self.config.conditions:
            sample = measure_jacobian(
                model, data.windows[kind], probes=self.course.probes, seed=self.config.seed,
                batch_size=self.config.batch_size,
            )
            found.append(np.asarray(sample.energy[0, 0, 0]))
            self.watch.advance(self.course.sequences)
        write_array(path, _stacked(found))

    def _path(self, data: HeldOut, step: int, identity: Mapping[str, Any]) -> Path:
        key = digest({
            **identity, "step": step, "probes": self.course.probes,
            "windows": {kind: sha256(w.ids.tobytes()).hexdigest() for kind, w in data.windows.items()},
        })  # fmt: skip
        return self.folder / "units" / f"step{step:07d}-{key}.npy"


def _stacked(found: list[Float64[np.ndarray, "n K L"]]) -> Float64[np.ndarray, "c n K L"]:
    return np.stack(found)


def _check(config: StudyConfig, course: Course) -> None:
    known: tuple[Tokens, ...] = ("vanilla", "chunked")
    if not config.conditions or set(config.conditions) - set(known):
        raise invalid("conditions", "must be vanilla, chunked or both", ", ".join(config.conditions))
    if course.weights not in ("untrained", "pretrained"):
        raise invalid("weights", "must be untrained or pretrained", course.weights)
    if course.final_rate > course.rate:
        raise invalid("final_rate", f"must be <= rate {course.rate:g}", course.final_rate)
    if config.dtype != "float32" and not course.revisions:
        raise InvalidInput(f"dtype must be float32 to train, got {config.dtype}; half types are for --revisions")
