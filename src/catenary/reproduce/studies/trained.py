"""One published network before and after its training, on the same windows: valley, ramp, joins, and what is kept."""

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
from catenary.reproduce.drawing import lines
from catenary.reproduce.finding import STUDIES, Finding
from catenary.reproduce.resampling import Curves, drawn_together, norms
from catenary.study.observer import Observer, counting
from catenary.text.windows import Windows

WEIGHTS = ("untrained", "pretrained")
KINDS = ("vanilla", "chunked")


def trained(settings: Mapping[str, Any], observer: Observer) -> Finding:
    """Measure both networks on single documents and on joined excerpts, with the same probes.

    Settings: ``model``, ``documents``, ``length``, ``chunk``, ``windows`` (of each kind), ``block`` (tokens),
    ``probes``, ``seed``, ``dtype``, ``device``. Paths that begin with ``demo/`` lie in the demo folder. Intervals are
    over windows, which the two networks share; one network of each kind.
    """
    length, chunk, block = (int(settings[name]) for name in ("length", "chunk", "block"))
    curves = _measured(settings, observer)
    layout = Layout.of(length, chunk)
    readings: list[Reading] = []
    for weights in WEIGHTS:
        readings += _valley(weights, curves[weights, "vanilla"], block)
        readings += _inside(weights, curves[weights, "chunked"], curves[weights, "vanilla"], layout)
    readings += _changes(curves["pretrained", "vanilla"], curves["untrained", "vanilla"], block)
    name, count = str(settings["model"]).rsplit("/", 1)[-1], int(settings["windows"])
    averages = {
        f"{weights}, {kind}": np.exp(np.log(curves[weights, kind]).mean(axis=0))
        for weights in WEIGHTS for kind in KINDS
    }  # fmt: skip
    chart = lines(
        [(label, _points(row)) for label, row in averages.items()],
        x="position from the end, L - j + 1", y="influence over its middle", log_x=True, log_y=True,
    )  # fmt: skip
    caption = f"{name} before and after training, log-average over {count} windows of single documents and of excerpts."
    return Finding(
        f"{name}, 1 network at birth (seed {settings['seed']}) and its trained weights, L = {length}, {count} windows "
        f"each of single documents and of {chunk}-token excerpts, {settings['probes']} probe(s), {settings['dtype']}",
        tuple(readings), (Plate("profile", chart, caption, caption),), ("position", *averages),
        [(j + 1, *(float(row[j]) for row in averages.values())) for j in range(length)],
    )  # fmt: skip


def text_windows(settings: Mapping[str, Any], tokenizer: Any) -> dict[str, Windows]:
    """Windows of single documents and of joined excerpts; ``MissingResource`` where the demo documents are not."""
    from catenary.text.chunked import chunked_windows
    from catenary.text.documents import read_documents
    from catenary.text.vanilla import vanilla_windows

    documents = read_documents(demo_path(str(settings["documents"])))
    common: dict[str, Any] = {
        "length": int(settings["length"]), "count": int(settings["windows"]), "seed": int(settings["seed"]),
    }  # fmt: skip
    return {
        "vanilla": vanilla_windows(documents, tokenizer, **common),
        "chunked": chunked_windows(documents, tokenizer, chunk=int(settings["chunk"]), **common),
    }


def _measured(settings: Mapping[str, Any], observer: Observer) -> dict[tuple[str, str], Curves]:
    """Norms (sequence, position) by weights and kind of window."""
    model, probes, seed = demo_path(str(settings["model"])), int(settings["probes"]), int(settings["seed"])
    common: dict[str, Any] = {"dtype": str(settings["dtype"]), "device": str(settings["device"]), "seed": seed}
    found: dict[tuple[str, str], Curves] = {}
    made: dict[str, Windows] = {}
    for weights in reversed(WEIGHTS):  # the trained one has the tokenizer
        network = ct.load(model, weights=weights, **common)
        made = made or text_windows(settings, network.tokenizer())
        for kind in KINDS:
            with counting(observer, f"{weights}, {kind}", len(made[kind]) * probes) as progress:
                sample = ct.measure_jacobian(network, made[kind], probes=probes, seed=seed, progress=progress)
            found[weights, kind] = norms(sample)
    return found


def _valley(weights: str, curves: Curves, block: int) -> Iterator[Reading]:
    """Depth by every definition, place of the trough, ends, and the ramp before the end."""
    for name, (formula, meaning) in valley.depths(curves, block).items():
        yield drawn_together(f"{name}, {weights}", [curves], formula, meaning, low=0.0)
    yield drawn_together(f"trough, {weights}", [curves], valley.trough, "x of the lowest block of the body", low=0.0,
                         high=1.0)  # fmt: skip
    for end, place in (("first", 0), ("last", -1)):
        yield drawn_together(f"{end} over middle, {weights}", [curves],
                             lambda c, place=place: valley.over_middle(c, place), "log-averages", low=0.0)  # fmt: skip
    for share in (0.10, 0.15):
        yield drawn_together(
            f"smear {share:.0%}, {weights}", [curves], lambda c, share=share: valley.smear(c, share),
            f"log-mean of the last {share:.0%} without the last token over as many tokens before", low=0.0,
        )  # fmt: skip
    yield drawn_together(f"ramp, {weights}", [curves], valley.ramp,
                         "share of the context before the end over which the curve is twice its middle", low=0.0,
                         high=1.0)  # fmt: skip


def _inside(weights: str, chunked: Curves, vanilla: Curves, layout: Layout) -> Iterator[Reading]:
    """Joins, and the curve inside chunks, with single documents at the same places as the control."""
    for kind, curves in (("chunked", chunked), ("vanilla", vanilla)):
        yield drawn_together(
            f"joins, {weights}, {kind}", [curves], lambda c: valley.joins(c, layout),
            "a chunk's first token over its neighbours 3 to 12 tokens away, log-mean", low=0.0,
        )  # fmt: skip
    for arm, (name, meaning) in enumerate((("left", "first token"), ("right", "last four tokens"))):
        yield drawn_together(
            f"local {name} arm, {weights}", [chunked, vanilla],
            lambda a, b, arm=arm: valley.local_arms(a, layout)[arm] / valley.local_arms(b, layout)[arm],
            f"{meaning} of a chunk over its middle fifth, over the same in single documents", low=0.0,
        )  # fmt: skip
    yield drawn_together(
        f"local over global primacy, {weights}", [chunked],
        lambda c: np.log(valley.local_arms(c, layout)[0]) / np.log(valley.over_middle(c, 0)),
        "log of first token over middle inside chunks, over the same of the whole window",
    )  # fmt: skip


def _changes(after: Curves, before: Curves, block: int) -> Iterator[Reading]:
    """What training does to the depth by every definition, to the ramp, and to the order of the blocks."""
    old, new = valley.depths(before, block), valley.depths(after, block)
    for name, (formula, meaning) in new.items():
        yield drawn_together(
            f"growth, {name}", [after, before],
            lambda a, b, f=formula, g=old[name][0]: f(a) / g(b), f"{meaning}: trained over untrained", low=0.0,
        )  # fmt: skip
    yield drawn_together("growth of the smear", [after, before],
                         lambda a, b: valley.smear(a, 0.15) / valley.smear(b, 0.15),
                         "last 15 % over the 15 % before, trained over untrained", low=0.0)  # fmt: skip
    yield drawn_together("order kept", [after, before], valley.kept,
                         "rank correlation of the blocks of the body, trained against untrained", high=1.0)  # fmt: skip


def _points(row: Any) -> list[tuple[float, float]]:
    """A hundred positions at most, from the end, over the curve's own middle."""
    size = len(row)
    taken = np.unique(np.round(np.geomspace(1, size, 100)).astype(int))
    level = float(np.exp(np.log(row[round(0.45 * size) : round(0.55 * size)]).mean()))
    return [(float(k), float(row[size - k] / level)) for k in taken]


STUDIES.register("trained", trained)
