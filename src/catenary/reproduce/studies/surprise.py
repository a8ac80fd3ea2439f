"""Why a trained network's profile has a spike where two texts join: a join is a token it did not expect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import catenary as ct
from catenary.boundaries import Layout
from catenary.page.exhibit import Plate
from catenary.reading import Reading
from catenary.reproduce import valley
from catenary.reproduce.demo import demo_path
from catenary.reproduce.drawing import Point, lines
from catenary.reproduce.finding import STUDIES, Finding
from catenary.reproduce.resampling import Curves, drawn_together, norms
from catenary.reproduce.standing import Tokens, at_joins, inside, per_nat, rarity, standing
from catenary.reproduce.studies.trained import text_windows
from catenary.reproduce.surprisal import excess, order_gain, shuffled_inside, surprisal
from catenary.study.observer import Observer, counting

CLASSES = 8
"""Classes of equally many tokens in the figure."""


def surprise(settings: Mapping[str, Any], observer: Observer) -> Finding:
    """Measure joined excerpts as they are and with each excerpt's tokens shuffled, with the surprisal of every token.

    Shuffling keeps which tokens a window holds, and where its joins are; what is lost is what lets a network expect a
    token. Whether surprise is what stands out is then read where there is no join: of tokens inside excerpts.

    Settings: ``model``, ``documents``, ``length``, ``chunk``, ``windows``, ``probes``, ``seed``, ``dtype``,
    ``device``. Intervals are over windows; both kinds share them and the probes.
    """
    network = ct.load(demo_path(str(settings["model"])), weights="pretrained", dtype=str(settings["dtype"]),
                      device=str(settings["device"]))  # fmt: skip
    seed, probes, chunk = (int(settings[name]) for name in ("seed", "probes", "chunk"))
    text = text_windows(settings, network.tokenizer())["chunked"]
    layout = Layout.of(text.length, chunk)
    kinds = {"text": text, "shuffled": shuffled_inside(text, chunk, seed)}
    curves: dict[str, Curves] = {}
    for kind, windows in kinds.items():
        with counting(observer, kind, len(windows) * probes) as progress:
            curves[kind] = norms(ct.measure_jacobian(network, windows, probes=probes, seed=seed, progress=progress))
    nats = {kind: surprisal(network, windows) for kind, windows in kinds.items()}
    readings = [reading for kind in kinds for reading in _of_kind(kind, curves[kind], nats[kind], layout)]
    readings.append(drawn_together(
        "joins, text over shuffled", [curves["text"], curves["shuffled"]],
        lambda a, b: valley.joins(a, layout) / valley.joins(b, layout), "how much of a join goes with the order",
        low=0.0,
    ))  # fmt: skip
    readings.append(drawn_together("nats from order", [nats["text"], nats["shuffled"]], order_gain,
                                   "surprisal of a token in shuffled text less in text, mean"))  # fmt: skip
    outs, reasons = standing(curves["text"], layout), inside(nats["text"], layout)
    joined = at_joins(nats["text"], layout)
    readings += _of_tokens(outs, reasons, inside(rarity(text), layout), joined)
    drawn = [("inside, text", by_class(outs, reasons, CLASSES)),
             ("joins, text", by_class(layout.ratios(curves["text"]), joined, CLASSES // 2))]  # fmt: skip
    caption = "Single tokens over their neighbours by how surprising they are: inside excerpts, and where two join."
    chart = lines(drawn, x="surprisal, nats", y="influence over the neighbours'", log_y=True)
    name = str(settings["model"]).rsplit("/", 1)[-1]
    return Finding(
        f"{name}, trained weights, L = {text.length}, {len(text)} windows of {chunk}-token excerpts, as they are and "
        f"with each excerpt's tokens shuffled, {probes} probe(s), {settings['dtype']}",
        tuple(readings), (Plate("surprisal", chart, caption, caption),), ("tokens", "nats", "ratio"),
        [(name, point[0], point[1]) for name, points in drawn for point in points],
    )  # fmt: skip


def as_surprising(outs: Tokens, nats: Tokens, low: float, high: float) -> float:
    """Influence over the neighbours' of tokens with a surprisal from ``low`` to ``high``, a log-mean."""
    return float(np.exp(outs[(nats >= low) & (nats <= high)].mean()))


def by_class(outs: Tokens, nats: Tokens, classes: int) -> list[Point]:
    """Mean surprisal and log-mean ratio of classes of equally many tokens."""
    parts = np.array_split(np.argsort(nats, axis=None), classes)
    return [(float(nats.ravel()[part].mean()), float(np.exp(outs.ravel()[part].mean()))) for part in parts]


def _of_kind(kind: str, curves: Curves, nats: Tokens, layout: Layout) -> list[Reading]:
    return [
        drawn_together(f"joins, {kind}", [curves], lambda c: valley.joins(c, layout),
                       "a chunk's first token over its neighbours 3 to 12 tokens away, log-mean", low=0.0),
        drawn_together(f"surprise at joins, {kind}", [nats], lambda s: excess(s, layout),
                       "nats of first tokens of chunks, less those of all others"),
        drawn_together(f"smear 15%, {kind}", [curves], lambda c: valley.smear(c, 0.15),
                       "log-mean of the last 15% without the last token over as many tokens before", low=0.0),
    ]  # fmt: skip


def _of_tokens(outs: Tokens, nats: Tokens, rare: Tokens, joined: Tokens) -> list[Reading]:
    low, high = np.quantile(joined, [0.25, 0.75])
    return [
        drawn_together("log influence per nat", [outs, nats, rare], per_nat,
                       "inside excerpts, between tokens of the same frequency"),
        drawn_together("as surprising inside", [outs, nats], lambda o, s: as_surprising(o, s, low, high),
                       f"tokens inside excerpts with a surprisal of {low:.1f} to {high:.1f} nats, as the middle half "
                       "of joins has, over their neighbours", low=0.0),
    ]  # fmt: skip


STUDIES.register("surprise", surprise)
