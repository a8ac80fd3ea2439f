"""What learned positions change at birth, by the law: the stream's variance, and how alike equal tokens are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import catenary as ct
from catenary.deviation import wasserstein
from catenary.page.exhibit import Plate
from catenary.reading import Reading
from catenary.reproduce.drawing import lines
from catenary.reproduce.finding import STUDIES, Finding
from catenary.study.observer import Observer


def learned_positions(settings: Mapping[str, Any], observer: Observer) -> Finding:
    """The birth law of a network with learned positions, without them, and with their variance in the tokens instead.

    Settings: ``model``, ``length``, ``repeat_probability``.
    """
    architecture = ct.read_config(str(settings["model"]))
    length, text = int(settings["length"]), float(settings["repeat_probability"])
    fed = architecture.embedding
    variants = {
        "with positions": architecture,
        "without": replace(architecture, embedding=replace(fed, position_std=0.0)),
        "as large, without": replace(
            architecture, embedding=replace(fed, position_std=0.0, std=(fed.std**2 + fed.position_std**2) ** 0.5)
        ),
    }
    curves = {
        (name, repeats): ct.predict(one, length=length, repeat_probability=repeats, method="coarse").values
        for name, one in variants.items() for repeats in (0.0, text)
    }  # fmt: skip
    readings = []
    for kind, repeats in (("distinct tokens", 0.0), ("text-like tokens", text)):
        whole = curves["with positions", repeats]
        for name in ("without", "as large, without"):
            readings.append(Reading(f"W1, {name}, {kind}", wasserstein(curves[name, repeats], whole),
                                    "distance to the law with positions, both normalised to sum 1", floor=0.0005))
    chart = lines(
        [(name, [((j + 0.5) / length, float(curves[name, text][j])) for j in range(0, length, max(1, length // 128))])
         for name in variants],
        x="position", y="influence", log_y=True,
    )  # fmt: skip
    caption = f"Birth law of {architecture.name} with and without learned positions, text-like tokens."
    return Finding(
        f"birth law of {architecture.name}, L = {length}, repeat probability 0 and {text:g}", tuple(readings),
        (Plate("law", chart, caption, caption),), ("position", *variants),
        [(j + 1, *(float(curves[name, text][j]) for name in variants)) for j in range(length)],
    )  # fmt: skip


STUDIES.register("learned-positions", learned_positions)
