"""The rollout of a network's own attention against its Jacobian profile, trained and untrained, on document windows.

Prints, for strengths measured, constant and 1: Spearman, Wasserstein-1 with and without the last token, and the median
|log10 ratio| after removing one factor, with 95 % bootstrap intervals over windows (both curves drawn together).

    python experiments/rollout.py .cache/demo/smollm2-135m .cache/demo/documents --windows 12 --length 512
"""

from __future__ import annotations

import argparse
import json

import numpy as np
import torch

import catenary as ct
from catenary.deviation import between
from catenary.measure.attention_statistics import measure_attention
from catenary.measure.feed import prepare
from catenary.measure.rollout import adjoint
from catenary.measure.strengths import measure_strengths
from catenary.models.top_down import calls_top_down
from catenary.models.undisturbed import undisturbed
from catenary.statistics import interval
from catenary.text.documents import read_documents
from catenary.text.vanilla import vanilla_windows
from catenary.text.windows import Windows

FIGURES = ("spearman", "w1", "w1_without_last", "median_shape")
DRAWS = 500


def figures(rollout: np.ndarray, energy: np.ndarray) -> list[float]:
    """Of the mean row against the log-mean Jacobian profile."""
    found = between(rollout.mean(axis=0), np.exp(0.5 * np.log(energy).mean(axis=0)))
    return [getattr(found, name) for name in FIGURES]


def carried(model: ct.Model, windows: Windows, schedules: list[np.ndarray]) -> np.ndarray:
    """The last row for several schedules from one pass per window, (schedule, window, L)."""
    feed = prepare(model, windows)
    found = []
    for index in range(len(windows)):
        rows = torch.zeros(len(schedules), 1, feed.length, dtype=torch.float64)
        rows[:, :, -1] = 1
        layer = len(schedules[0])
        with undisturbed(model.module):
            for call in calls_top_down(model.anatomy, feed.vectors([index]), feed.mask([index])):
                layer -= 1
                shares = torch.full((call.heads,), 1 / call.heads, dtype=torch.float64)
                for row, schedule in zip(rows, schedules, strict=True):
                    row[:] = (1 - schedule[layer]) * row + schedule[layer] * adjoint(call, row, shares)
        found.append(rows[:, 0].numpy())
    return np.stack(found, axis=1)


def main() -> None:
    """Measure trained and untrained weights in turn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("documents")
    parser.add_argument("--windows", type=int, default=12)
    parser.add_argument("--length", type=int, default=512)
    parser.add_argument("--weights", nargs="+", default=["pretrained", "untrained"])
    options = parser.parse_args()
    tokenizer = ct.load(options.model, weights="pretrained").tokenizer()
    windows = vanilla_windows(
        read_documents(options.documents), tokenizer, length=options.length, count=options.windows, seed=0
    )
    for weights in options.weights:
        model = ct.load(options.model, weights=weights)
        strengths = measure_strengths(model, windows)
        values = np.array(strengths.values())
        few = Windows(windows.ids[:4], windows.kind)
        heads = measure_attention(model, few)
        print(json.dumps({
            "weights": weights, "strengths": values.round(4).tolist(), "sum": strengths.total(),
            "sum_error": strengths.sum_errors.get("attention"), "windows_of_heads": len(few),
            "sink": heads.sink.mean(axis=(0, 2)).round(3).tolist(),
            "value_sink": heads.value_sink.mean(axis=(0, 2)).round(3).tolist(),
            "means": {name: float(getattr(heads, name).mean())
                      for name in ("sink", "value_sink", "diagonal", "entropy")},
        }), flush=True)
        constant = np.full(values.size, values.mean())
        named = {"measured": values, "constant": constant, "attention only": np.ones(values.size)}
        rolled = carried(model, windows, list(named.values()))
        energy = ct.measure_jacobian(model, windows, probes=1).energy[0, 0, 0].mean(axis=1)
        picks = np.random.default_rng(0).integers(0, len(windows), (DRAWS, len(windows)))
        for name, rows in zip(named, rolled, strict=True):
            draws = np.array([figures(rows[pick], energy[pick]) for pick in picks])
            centre, profile = figures(rows, energy), rows.mean(axis=0)
            print(json.dumps({
                "weights": weights, "strengths": name, "first": profile[0], "last": profile[-1],
                "middle": profile[options.length // 2], "trough": int(profile[1:-1].argmin()) + 1,
                **{figure: [centre[k], *interval(centre[k], draws[:, k], len(rows))]
                   for k, figure in enumerate(FIGURES)},
            }), flush=True)


if __name__ == "__main__":
    main()
