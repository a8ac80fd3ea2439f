"""Made-up curves for tests of charts and pages: a falling prediction, an untrained sample near it, a trained U."""

from __future__ import annotations

import numpy as np

from catenary.profile import Profile
from catenary.sample import Sample
from catenary.validity import ValidityCard


def predicted(length: int = 256, label: str = "predicted at birth") -> Profile:
    x = np.arange(1, length + 1) / length
    values = 1.4 * (1 + 0.12 / x**0.55)
    values[-1] = 30.0
    card = ValidityCard(
        1.0, 576, length / 576, 0.03, None, ("Read as a root mean square.",), ("epsilon 1e-5",), ("the RoPE scaling",)
    )
    return Profile(values, label=label, average="expectation", card=card, provenance={"model": "toy", "length": length})


def untrained(length: int = 256, label: str = "untrained") -> Sample:
    return _sample(predicted(length).values, nets=4, sequences=2, scatter=0.1, label=label, weights="untrained")


def trained(length: int = 256, label: str = "trained", conditions: tuple[str, ...] = ("vanilla",)) -> Sample:
    j = np.arange(length)
    values = 0.5 * (1 + 7 / np.sqrt(j + 1.0) + 60 / (length - j) ** 0.9)
    return _sample(values, nets=1, sequences=12, scatter=0.3, label=label, weights="pretrained", conditions=conditions)


def _sample(
    values: np.ndarray, nets: int, sequences: int, scatter: float, label: str, weights: str,
    conditions: tuple[str, ...] = ("vanilla",),
) -> Sample:
    draw = np.random.default_rng(7).standard_normal((len(conditions), 1, nets, sequences, 1, values.size))
    energy = values**2 * np.exp(2 * np.log(10) * scatter * draw)
    return Sample(energy, conditions, label=label, provenance={"weights": weights, "seeds": [0, 1]})
