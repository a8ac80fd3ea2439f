"""Which difference between GPT-2 and Qwen2 the fitted law fails on: the size of a block's output at birth, switched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

import catenary as ct
from catenary.architecture.network import Architecture
from catenary.deviation import wasserstein
from catenary.page.exhibit import Plate
from catenary.profile import Profile
from catenary.reading import Reading
from catenary.reproduce.drawing import from_the_end, lines
from catenary.reproduce.finding import STUDIES, Finding
from catenary.reproduce.small import resampled
from catenary.reproduce.studies.untrained import end_errors
from catenary.study.observer import Observer, counting

OUTPUTS = ("attn.c_proj", "mlp.c_proj", "self_attn.o_proj", "mlp.down_proj")
"""A layer's output matrices, in GPT-2 and in Qwen2."""


def output_scale(settings: Mapping[str, Any], observer: Observer) -> Finding:
    """Measure a network whose output matrices are scaled by 1/sqrt(2 layers) where they were not, and the other way.

    Settings: ``scaled`` and ``unscaled`` (the model to scale, and the one to take the scale from), ``length``,
    ``windows``, ``probes``, ``seed``. Windows, probes and all other weights are those of the study ``untrained``.
    """
    seed, probes, count = int(settings["seed"]), int(settings["probes"]), int(settings["windows"])
    windows = replace(ct.zipf_windows(int(settings["length"]), count, seed), vectors="gaussian")
    repeats = float(windows.report["repeat_probability"])
    readings: list[Reading] = []
    shown: dict[str, Profile] = {}
    with counting(observer, "windows", 2 * count * probes) as progress:
        for done, (model, power) in enumerate(((settings["scaled"], -0.5), (settings["unscaled"], 0.5))):
            architecture = ct.read_config(model)
            factor = (2 * architecture.depth) ** power
            network = ct.load(model, seed=seed, vocabulary=16, dtype="float32")
            scale_outputs(network, factor)
            seen = ct.measure_jacobian(
                network, windows, probes=probes, seed=seed,
                progress=lambda at, _, done=done: progress(done * count * probes + at, 0),
            )  # fmt: skip
            name = f"{architecture.name}, outputs {'scaled' if power < 0 else 'not scaled'}"
            law = ct.predict(with_outputs(architecture, factor), length=windows.length, repeat_probability=repeats)
            fitted = ct.fit_cesaro(seen.profile("rms"), architecture.depth, by="w1").profile()
            shown |= {name: seen.profile("rms"), f"{name}: paper": fitted, f"{name}: birth law": law}
            for curve, values in (("paper", fitted.values), ("birth law", law.values)):
                readings += end_errors(f"{curve}, {name}", values, seen)
                readings.append(resampled(
                    f"W1, {curve}, {name}", seen,
                    lambda c, values=values: np.array([wasserstein(values, row) for row in c]),
                    "distance to the measured profile, both normalised to sum 1", low=0.0,
                ))  # fmt: skip
    chart = lines(
        [(name, from_the_end(curve.values)) for name, curve in shown.items()],
        x="position from the end, L - j + 1", y="influence over its median", log_x=True, log_y=True,
    )  # fmt: skip
    caption = "Networks at birth with their output matrices scaled by depth, or no longer, and the curves for them."
    return Finding(
        f"{settings['scaled']} with output matrices over sqrt(2 layers), {settings['unscaled']} with them times that; "
        f"untrained, 1 network each, L = {windows.length}, {count} Zipf windows, {probes} probe(s) each, float32",
        tuple(readings), (Plate("profile", chart, caption, caption),), ("position", *shown),
        [(j + 1, *(float(curve.values[j]) for curve in shown.values())) for j in range(windows.length)],
    )  # fmt: skip


def scale_outputs(network: Any, factor: float) -> None:
    """Multiply every layer's two output matrices."""
    for layer in network.anatomy.layers:
        parts = dict(layer.named_modules())
        found = [parts[name] for name in OUTPUTS if name in parts]
        assert len(found) == 2
        for part in found:
            part.weight.data *= factor


def with_outputs(architecture: Architecture, factor: float) -> Architecture:
    """The architecture whose output matrices have ``factor`` times their std."""
    return replace(architecture, layers=tuple(
        replace(layer, steps=tuple(
            replace(step, branches=tuple(
                replace(branch, mix=replace(branch.mix, output_std=factor * branch.mix.output_std))
                for branch in step.branches
            )) for step in layer.steps
        )) for layer in architecture.layers
    ))  # fmt: skip


STUDIES.register("output-scale", output_scale)
