"""Outcomes: what a model did with each sample at each position of its fact."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Float64

from catenary.errors import invalid, unknown

METRICS = {
    "logp": "log-probability of the answer per token, nats",
    "exact": "the generated answer equals one of the answers",
    "contains": "the generated answer contains one of the answers",
    "best_subspan": "an answer occurs in the first line of the generation, after the usual normalisation of QA answers",
}
"""Metrics in the order they are reported. All but ``logp`` are 0 or 1."""

WORDS = {"exact": "exact", "contains": "contains", "best_subspan": "best subspan", "logp": "log-probability"}
"""Their names in tables and figures."""


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Paired results: rows are samples, columns positions.

    Attributes:
        task: the task's name.
        samples: n names, one per row.
        slots: the P slots that were measured, 0-based, rising.
        of: how many slots the prompt has.
        values: by metric, (n, P); NaN where it was not scored, for the reason in ``skipped``.
        skipped: (n, P) text, "" where scored. Never a silently cut prompt: too long is a reason here.
        answers: (n, P) generated text, "" where nothing was generated.
        tokens: (n, P) tokens of the prompt, 0 where it was not tokenised.
        baselines: by name ("closed book", "oracle") and metric, (n,) values; NaN where there is none.
        provenance: model, versions, seeds, template, tokenizer and BOS policy, as JSON values.
    """

    task: str
    samples: tuple[str, ...]
    slots: tuple[int, ...]
    of: int
    values: Mapping[str, Float64[np.ndarray, "n P"]]
    skipped: Sequence[Sequence[str]]
    answers: Sequence[Sequence[str]]
    tokens: Sequence[Sequence[int]]
    baselines: Mapping[str, Mapping[str, Float64[np.ndarray, " n"]]] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse tables whose shapes disagree."""
        shape = (len(self.samples), len(self.slots))
        if 0 in shape:
            raise invalid("samples", "and slots must hold at least one each", shape)
        if list(self.slots) != sorted(set(self.slots)) or self.slots[-1] >= self.of or self.slots[0] < 0:
            raise invalid("slots", f"must rise within 0..{self.of - 1}", self.slots)
        for name, table in self.values.items():
            if name not in METRICS:
                raise unknown("metric", name, METRICS)
            if table.shape != shape:
                raise invalid(f"values[{name!r}]", f"must have shape {shape}", table.shape)
        for name, rows in (("skipped", self.skipped), ("answers", self.answers), ("tokens", self.tokens)):
            if len(rows) != shape[0] or any(len(row) != shape[1] for row in rows):
                raise invalid(name, f"must have {shape[0]} rows of {shape[1]}", [len(row) for row in rows][:5])

    def complete(self, metric: str) -> Float64[np.ndarray, "m P"]:
        """The rows of a metric that were scored at every position, as paired statistics need them."""
        if metric not in self.values:
            raise unknown("metric", metric, self.values)
        table = self.values[metric]
        return np.asarray(table[np.isfinite(table).all(axis=1)])
