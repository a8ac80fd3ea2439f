"""Why a trained network's profile has a spike where two texts join: a join is a token it did not expect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
from catenary.reproduce.standing import Tokens, fit, fitted, inside, per_nat, rarity
from catenary.reproduce.studies.trained import text_windows
from catenary.reproduce.surprisal import lost_by_shuffling, shuffled_inside, surprisal, surprise_at_joins
from catenary.study.observer import Observer, counting

CLASSES = 8
"""Classes of equally many tokens in the figure."""


def surprise(settings: Mapping[str, Any], observer: Observer) -> Finding:
    """Measure joined excerpts as they are and with each excerpt's tokens shuffled, with the surprisal of every token.

    Shuffling keeps which tokens a window holds, and where its joins are; what is lost is what lets a network expect a
    token. Whether surprise is what stands out is then read where there is no join: from tokens inside excerpts, more
    than 12 tokens away from one. What those say of tokens as surprising and as rare as joins is held against joins.

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
    readings.append(drawn_together("nats lost by shuffling", [nats["text"], nats["shuffled"]], lost_by_shuffling,
                                   "surprisal of a token in shuffled text less in text, mean"))  # fmt: skip
    readings += _of_tokens(curves["text"], nats["text"], rarity(text), layout)
    outs, reasons = inside(np.log(curves["text"]), layout), inside(nats["text"], layout)
    drawn = [
        ("inside", by_class(outs, reasons, CLASSES)),
        ("joins", by_class(layout.ratios(curves["text"]), layout.contrasts(nats["text"]), CLASSES // 2)),
    ]
    caption = "Tokens over their neighbours, by how much more surprising they are: inside excerpts, and where two join."
    chart = lines(drawn, x="surprisal over the neighbours', nats", y="influence over the neighbours'", log_y=True)
    name = str(settings["model"]).rsplit("/", 1)[-1]
    return Finding(
        f"{name}, trained weights, L = {text.length}, {len(text)} windows of {chunk}-token excerpts, as they are and "
        f"with each excerpt's tokens shuffled, {probes} probe(s), {settings['dtype']}",
        tuple(readings), (Plate("surprisal", chart, caption, caption),), ("tokens", "nats", "ratio"),
        [(name, point[0], point[1]) for name, points in drawn for point in points],
    )  # fmt: skip


def as_surprising(outs: Tokens, nats: Tokens, joined: Tokens) -> float:
    """Log-mean influence over the neighbours' of the tokens whose surprisal lies in the middle half of ``joined``."""
    low, high = np.quantile(joined, [0.25, 0.75])
    return float(np.exp(outs[(nats >= low) & (nats <= high)].mean()))


def by_class(outs: Tokens, nats: Tokens, classes: int) -> list[Point]:
    """Mean surprisal and log-mean ratio of classes of equally many tokens."""
    parts = np.array_split(np.argsort(nats, axis=None), classes)
    return [(float(nats.ravel()[part].mean()), float(np.exp(outs.ravel()[part].mean()))) for part in parts]


def _of_kind(kind: str, curves: Curves, nats: Tokens, layout: Layout) -> list[Reading]:
    return [
        drawn_together(f"joins, {kind}", [curves], lambda c: valley.joins(c, layout),
                       "a chunk's first token over its neighbours 3 to 12 tokens away, log-mean", low=0.0),
        drawn_together(f"surprise at joins, {kind}", [nats], lambda s: surprise_at_joins(s, layout),
                       "nats of a chunk's first token, less those of the same neighbours"),
        drawn_together(f"smear 15%, {kind}", [curves], lambda c: valley.smear(c, 0.15),
                       "log-mean of the last 15% without the last token over as many tokens before", low=0.0),
    ]  # fmt: skip


def _of_tokens(curves: Curves, nats: Tokens, rare: Tokens, layout: Layout) -> Iterator[Reading]:
    """What tokens inside excerpts say, and what they would have joins be."""
    groups = [curves, nats, rare]

    def alike(c: Curves, s: Tokens, _: Tokens) -> float:
        return as_surprising(inside(np.log(c), layout), inside(s, layout), layout.contrasts(s))

    def of_joins(c: Curves, s: Tokens, _: Tokens) -> float:
        return as_surprising(layout.ratios(c), layout.contrasts(s), layout.contrasts(s))

    def expected(c: Curves, s: Tokens, r: Tokens) -> float:
        found = fit(inside(np.log(c), layout), inside(s, layout), inside(r, layout))
        return fitted(found, layout.contrasts(s), layout.contrasts(r))

    yield drawn_together("log influence per nat", groups, lambda c, s, r: per_nat(c, s, r, layout),
                         "of surprisal, inside excerpts, all over the neighbours; frequency in these windows held "
                         "linearly")  # fmt: skip
    yield drawn_together("as surprising inside", groups, alike,
                         "tokens inside excerpts as surprising as the middle half of joins, over their neighbours",
                         low=0.0)  # fmt: skip
    yield drawn_together("middle half of joins", groups, of_joins, "those joins over their neighbours", low=0.0)
    yield drawn_together("joins, as tokens inside have it", groups, expected,
                         "what a line through tokens inside excerpts, in surprisal and rarity, gives at joins",
                         low=0.0)  # fmt: skip


STUDIES.register("surprise", surprise)
