"""A profile over the first updates of training, several networks: valley, floor, spikes, size, and what is kept."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from catenary.page.exhibit import Plate
from catenary.reading import Reading
from catenary.reproduce import valley
from catenary.reproduce.claim import interval_of
from catenary.reproduce.demo import demo_path
from catenary.reproduce.drawing import lines
from catenary.reproduce.finding import STUDIES, Finding
from catenary.reproduce.resampling import Curves
from catenary.reproduce.small import over_networks
from catenary.study.config import study_config
from catenary.study.course import Course
from catenary.study.evolve import EvolveStudy, evolve_model
from catenary.study.observer import Observer

CHANGES = (
    ("depth", "highest over lowest block of the body"),
    ("last/mid", "last token over the middle"),
    ("first/mid", "first token over the middle"),
    ("mid", "||J_j|| over x in [.45, .55]"),
    ("floor share", "the lowest block over the mean of the profile"),
    ("smear 15%", "the last 15 % over the 15 % before"),
)
"""Numbers of ``follow_training`` whose change from the first to the last step is read."""


def evolution(settings: Mapping[str, Any], observer: Observer) -> Finding:
    """Train one network per seed by the paper's recipe and follow the profile of held-out windows.

    Settings: ``network`` (a config) or ``model``, ``tokenizer``, ``documents``, ``length``, ``chunk``, ``seeds``,
    ``steps``, ``every``, ``early`` (a profiled step), ``sequences`` (of each kind), ``training_documents``, ``device``.
    A seed draws weights, documents and windows. Intervals are Student's over seeds.
    """
    seeds = list(map(int, settings["seeds"]))
    numbers: dict[str, list[float]] = {}
    traces: dict[str, list[list[float]]] = {"last/mid": [], "depth": [], "mid": [], "boundary": []}
    steps: tuple[int, ...] = ()
    for seed in seeds:
        with TemporaryDirectory() as folder:
            study = _train(settings, seed, Path(folder), observer)
            for name, value in _numbers(study, int(settings["early"])).items():
                numbers.setdefault(name, []).append(value)
            followed, steps = study.follow(), study.sample.steps
            for name, found in traces.items():
                trace = followed.trace("chunked" if name == "boundary" else "vanilla", name)
                assert trace is not None
                found.append(trace.values.tolist())
    readings = [_reading(name, values) for name, values in numbers.items()]
    curves = [
        (name, [(float(step), float(np.mean([row[k] / row[0] for row in found]))) for k, step in enumerate(steps)])
        for name, found in traces.items()
    ]
    chart = lines(curves, x="update", y="over its value at step 0", log_y=True)
    caption = f"Depth below the last token, depth between blocks, the middle, and joins: mean of {len(seeds)} runs."
    return Finding(
        f"{_name(settings)} trained from scratch, {settings['steps']} updates of one window of {settings['length']}, "
        f"{len(seeds)} runs (weights, documents and windows by seed); {settings['sequences']} held-out windows each of "
        f"single documents and of {settings['chunk']}-token excerpts, one probe, float32",
        tuple(readings), (Plate("steps", chart, caption, caption),), ("seed", "step", *traces),
        [(seed, step, *(found[s][k] for found in traces.values())) for s, seed in enumerate(seeds)
         for k, step in enumerate(steps)],
    )  # fmt: skip


def _train(settings: Mapping[str, Any], seed: int, folder: Path, observer: Observer) -> EvolveStudy:
    model = str(settings.get("model", ""))
    if not model:
        config = folder / "config.json"
        config.write_text(json.dumps(dict(settings["network"])), encoding="utf-8")
        model = str(config)
    tokenizer = str(settings.get("tokenizer", ""))
    config_of_run = study_config({
        "model": demo_path(model), "tokenizer": demo_path(tokenizer) or None, "seed": seed,
        "documents": demo_path(str(settings["documents"])), "length": int(settings["length"]),
        "chunk": int(settings["chunk"]), "conditions": ("vanilla", "chunked"), "device": str(settings["device"]),
    })  # fmt: skip
    course = Course(
        steps=int(settings["steps"]), every=int(settings["every"]), sequences=int(settings["sequences"]),
        training_documents=int(settings["training_documents"]),
    )  # fmt: skip
    never = int(settings["steps"]) + 1
    return evolve_model(config_of_run, course, folder / "run", observer, budget_minutes=600.0, checkpoint_every=never)


def _numbers(study: EvolveStudy, early: int) -> dict[str, float]:
    """What one run gives, in dex unless said."""
    sample, followed = study.sample, study.follow()
    last = sample.steps[-1]
    found: dict[str, float] = {}
    for name, _ in CHANGES:
        trace = followed.trace("vanilla", name)
        assert trace is not None
        found[f"change of {name}"] = trace.change.value
        if name in ("mid", "floor share"):
            found[f"highest later {name}"] = trace.highest.value
    joins = followed.trace("chunked", "boundary")
    assert joins is not None
    for step in (0, early, last):
        found[f"joins at step {step}"] = float(joins.values[sample.steps.index(step)])
    born, soon, end = (_norms(study, step) for step in (0, early, last))
    found["change of the whole"] = float(np.log10(end).mean() - np.log10(born).mean())
    found[f"roughness at step {early}"] = roughness(soon) / roughness(born)
    found["order kept"] = valley.kept(end, born)
    return found


def _reading(name: str, values: list[float]) -> Reading:
    """Mean over runs with Student's interval; a rank correlation ends at 1."""
    reading = over_networks(name, values, _meaning(name))
    low, high = interval_of(reading)
    return replace(reading, low=low, high=min(high, 1.0)) if name == "order kept" else reading


def _norms(study: EvolveStudy, step: int) -> Curves:
    return np.asarray(np.sqrt(study.sample.select("vanilla", step).energy[0, 0, 0].mean(axis=1)))


def roughness(curves: Curves) -> float:
    """Standard deviation of ln norm about its running mean over 17 tokens, ends left out; mean over windows."""
    width = valley.RUNNING
    logs = np.log(curves)
    kernel = np.full(width, 1 / width)
    smooth = np.array([np.convolve(row, kernel, mode="valid") for row in logs])
    return float((logs[:, width // 2 : -(width // 2)] - smooth).std(axis=1).mean())


def _name(settings: Mapping[str, Any]) -> str:
    network = settings.get("network", {})
    return str(settings.get("model") or f"{network['model_type']}, {network['num_hidden_layers']} layers of width "
               f"{network['hidden_size']}")  # fmt: skip


def _meaning(name: str) -> str:
    known = {f"change of {key}": f"log10 from first to last step: {words}" for key, words in CHANGES}
    known |= {
        "highest later mid": "log10 of the middle at its highest later step over step 0",
        "highest later floor share": "log10 of the lowest block over the mean, highest later step over step 0",
        "change of the whole": "log10 from first to last step: log-mean of ||J_j|| over all positions",
        "order kept": "rank correlation of the blocks at the last step with those at step 0",
    }
    if name.startswith("roughness"):
        return "scatter of single tokens about a 17-token running mean, over that at step 0"
    return known.get(name, "first token of a chunk over its neighbours 3 to 12 tokens away") + "; mean over runs"


STUDIES.register("evolution", evolution)
