"""The page of pathways: a stack of terms per layer, and the profiles that some paths alone would give."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from catenary.charts import Spec, framed, log_axis, round_values
from catenary.drawing import PALETTE, digits
from catenary.measure.pathways_result import NAMES, SYMBOLS, Pathways
from catenary.page.exhibit import Exhibit, Plate

if TYPE_CHECKING:
    from catenary.sample import Sample

MEANINGS = {
    "everything": "all paths", "value": "attention weights held fixed", "score": "attention weights' gradient alone",
    "no-ffn": "feed-forward left out", "value-no-ffn": "fixed weights, no feed-forward",
}  # fmt: skip

MOST_POINTS = 128
"""Points per curve; longer profiles are averaged over equal blocks."""


def pathways_exhibit(
    pathways: Pathways, paths: Sample, parameters: Mapping[str, Any], logit_variance: float | None = None
) -> Exhibit:
    """One page for the terms of a network's layers and its profiles by path.

    Args:
        pathways: from ``measure_pathways``.
        paths: from ``measure_paths`` with all parts.
        parameters: what both were made from, as JSON values.
        logit_variance: of the attention logits at birth, for an untrained network.
    """
    shifts = {name: _shift(paths, name) for name in paths.conditions[1:]}
    share = pathways.score_share()
    verdict = (
        f"The score path carries {_percent(share.value)} of the energy that attention carries in single layers; with "
        f"every attention weight held fixed the whole profile is {shifts['value']:+.3f} dex off."
    )
    where = "at the embeddings" if pathways.source == "embeddings" else "at the layer's own input"
    plates = (
        Plate("terms", _stack(pathways), "Energy of the five terms of every layer. " + verdict,
              f"Energy of each term {where} over that of the whole Jacobian. A stack is above 1 where the terms "
              "cancel and below where they add up."),
        Plate("paths", _profiles(paths), "Profiles that some paths alone would give. " + verdict,
              "Root mean square norm by position, the last position left out; all with the network's own activations."),
    )  # fmt: skip
    columns = ("layer", *SYMBOLS, "S/(V+S)")
    rows = tuple(
        (str(layer), *(str(pathways.share(layer, name)) for name in NAMES), str(pathways.score_share(layer)))
        for layer in pathways.layers
    )
    energy, total = pathways.energy.mean(axis=(1, 2)), pathways.total.mean(axis=(1, 2))
    return Exhibit(
        name="pathways", kicker=pathways.label, title="Which paths carry the influence", verdict=verdict,
        notes=tuple(_notes(logit_variance, shifts)),
        numbers=(
            ("layers", str(len(pathways.layers))), ("tokens", f"{paths.length:,}"),
            ("windows", str(paths.sequences)), ("probes", str(paths.probes)),
            *((f"log10 to everything, {MEANINGS[name]}", f"{value:+.3f}") for name, value in shifts.items()),
        ),
        plates=plates, caption="Energy of each term over that of the whole, ± standard error", columns=columns,
        rows=rows, fields=("layer", "position", *NAMES, "whole"),
        data=[
            (layer, j, *(float(x) for x in energy[row, :, j]), float(total[row, j]))
            for row, layer in enumerate(pathways.layers) for j in range(energy.shape[-1])
        ],
        parameters=parameters,
        results={"layers": pathways.records(), "log10_to_everything": shifts, "logit_variance": logit_variance},
    )  # fmt: skip


def _notes(logit_variance: float | None, shifts: Mapping[str, float]) -> list[str]:
    notes = [
        "Each layer is identity + value path V + score path S + feed-forward F + F(V+S). V has the attention weights "
        "held fixed, S is what their own gradient adds.",
        f"Without the feed-forward the profile is {shifts['no-ffn']:+.3f} dex off, with fixed weights and without it "
        f"{shifts['value-no-ffn']:+.3f} dex; the latter is what attention rollout approximates.",
    ]
    if logit_variance is not None:
        notes.append(
            f"Attention logits have variance {logit_variance:.2g} at birth. The score path's energy in a layer grows "
            "in proportion to it while it is below about .15, where it is a small part; at 1 it is half of what "
            "attention carries, and a theory of fixed attention weights does not hold."
        )
    return notes


def _shift(paths: Sample, name: str) -> float:
    """Mean log10 over positions but the last of a part's rms norm over everything's."""
    own, whole = (paths.energy[paths.conditions.index(part), 0].mean(axis=(0, 1, 2)) for part in (name, "everything"))
    body = (own[:-1] > 0) & (whole[:-1] > 0)
    return float(0.5 * np.log10(own[:-1][body] / whole[:-1][body]).mean())


def _percent(value: float) -> str:
    return f"{100 * value:.2g} %"


def _stack(pathways: Pathways) -> Spec:
    names = dict(zip(NAMES, SYMBOLS, strict=True))
    data: list[Spec] = [
        {"layer": layer, "term": names[name], "order": order, "value": digits(pathways.share(layer, name).value)}
        for layer in pathways.layers for order, name in enumerate(NAMES)
    ]  # fmt: skip
    encoding: Spec = {
        "x": {"field": "layer", "type": "ordinal", "title": "layer", "axis": {"labelAngle": 0}},
        "y": {"field": "value", "type": "quantitative", "title": "energy over the whole's", "stack": "zero"},
        "color": {"field": "term", "type": "nominal", "title": None, "sort": list(SYMBOLS),
                  "scale": {"domain": list(SYMBOLS), "range": list(PALETTE[: len(SYMBOLS)])}},
        "order": {"field": "order"},
    }  # fmt: skip
    bars = {"name": "terms", "mark": {"type": "bar"}, "encoding": encoding}
    chart = {"description": "energy of terms by layer", "params": [], "layer": [bars]}
    return framed(chart, data, width=720, height=300)


def _profiles(paths: Sample) -> Spec:
    names = [MEANINGS[name] for name in paths.conditions]
    data: list[Spec] = []
    edges = np.unique(np.linspace(0, paths.length - 1, min(MOST_POINTS, paths.length - 1) + 1).astype(int))
    for index, name in enumerate(names):
        energy = paths.energy[index, 0].mean(axis=(0, 1, 2))
        for first, stop in pairwise(edges):
            value = float(np.sqrt(energy[first:stop].mean()))
            if value > 0:
                data.append({"curve": name, "x": digits((first + stop + 1) / 2), "value": digits(value)})
    encoding: Spec = {
        "x": {"field": "x", "type": "quantitative", "title": "position", "scale": {"nice": False}},
        "y": log_axis("norm", round_values(data)),
        "color": {"field": "curve", "type": "nominal", "title": None, "sort": names,
                  "scale": {"domain": names, "range": list(PALETTE[: len(names)])}},
    }  # fmt: skip
    line = {"name": "paths", "mark": {"type": "line", "strokeWidth": 2}, "encoding": encoding}
    return framed({"description": "profiles by path", "params": [], "layer": [line]}, data, width=720, height=300)
