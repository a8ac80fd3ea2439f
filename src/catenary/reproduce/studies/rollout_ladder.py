"""Why the rollout misses the influence of a trained network: ladders whose rungs differ in one thing each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

import catenary as ct
from catenary.deviation import spearman
from catenary.page.exhibit import Plate
from catenary.reading import Reading
from catenary.reproduce.demo import demo_path
from catenary.reproduce.drawing import lines
from catenary.reproduce.finding import STUDIES, Finding
from catenary.reproduce.resampling import Curves, drawn_together
from catenary.reproduce.rungs import by_distance, sizes_row, squares_row, steps_of, sunk, values_row
from catenary.reproduce.studies.rollout_measured import (
    DRAWS,
    average,
    binned,
    halves_of,
    likeliest,
    over_ceiling,
    share,
    windows_of,
)  # fmt: skip
from catenary.reproduce.turned import ALONE, EACH, FIXED, GAINS, ONE, TURNS, WHOLE, path_norms
from catenary.study.observer import Observer, counting
from catenary.text.windows import Windows
from catenary.theory.rollout.attention import Head, head_mean
from catenary.theory.rollout.published import published_figures

SIZES, SQUARES = "own attention, sizes", "own attention, squares"
VALUES, OTHERS = "value maps, squares", "value maps, squares, the first normed as the others"
PRIOR, PRIOR_SQUARES = "prior, sizes", "prior, squares"
SUNK, DISTANCE, MEAN = "measured share of the first, sizes", "and measured distances, sizes", "mean attention, sizes"

STEPS = (
    ("counting in squares", SIZES, SQUARES), ("measured distances", SUNK, DISTANCE), ("places", DISTANCE, MEAN),
    ("windows of their own", MEAN, SIZES), ("the feed-forward", ALONE, FIXED),
    ("the feed-forward's gains", ALONE, GAINS), ("the feed-forward's turns", ALONE, TURNS),
    ("random turns at each position", ALONE, EACH), ("one random turn for all positions", ALONE, ONE),
)  # fmt: skip
"""What a step between two rungs puts in."""


def rollout_ladder(settings: Mapping[str, Any], observer: Observer) -> Finding:
    """Compare three ladders with two influences, as ``rollout-measured`` does, over the same windows.

    From the prior's attention to the network's own; from the rollout in sizes to one in squares, by the value maps;
    and the network's own Jacobian with the feed-forward's paths replaced by parts of them. Curves made of the mean
    over windows are one curve for all draws.

    Settings: ``model`` (a Llama), ``documents``, ``length``, ``windows``, ``seed``, ``dtype``, ``device``.
    """
    network = ct.load(demo_path(str(settings["model"])), weights="pretrained", dtype=str(settings["dtype"]),
                      device=str(settings["device"]))  # fmt: skip
    windows = windows_of(settings, network)
    answers, sure = likeliest(network, windows)
    slopes, norms = path_norms(network, windows, answers, sure, observer)
    rolled = rollouts(network, windows, observer)
    readings: list[Reading] = []
    for kind, paths in (("influence", slopes), ("Jacobian", norms)):
        readings += _figures(kind, paths[WHOLE], rolled, {name: rows for name, rows in paths.items() if name != WHOLE})
    readings += _attention_alone(rolled[SIZES], norms[ALONE])
    shown = {
        "influence": average("influence", slopes[WHOLE]), "Jacobian": average("Jacobian", norms[WHOLE]),
        ALONE: average("Jacobian", norms[ALONE]), TURNS: average("Jacobian", norms[TURNS]),
        EACH: average("Jacobian", norms[EACH]), **{name: rows.mean(axis=0) for name, rows in rolled.items()},
    }  # fmt: skip
    drawn = [
        (name, [(j + 1.0, float(v)) for j, v in enumerate(shown[name] / shown[name].sum())])
        for name in ("Jacobian", ALONE, EACH, SIZES, SQUARES, VALUES)
    ]
    chart = lines(drawn, x="position j", y="share of the sum", log_y=True)
    name = str(settings["model"]).rsplit("/", 1)[-1]
    caption = f"{name}: the Jacobian, parts of it, and rollouts that add sizes or squares, {len(windows)} windows."
    return Finding(
        f"{name}, trained weights, L = {windows.ids.shape[1]}, {len(windows)} document windows, one probe, "
        f"{settings['dtype']}",
        tuple(readings), (Plate("rows", chart, caption, caption),), ("position", *shown),
        [(j + 1, *(float(row[j]) for row in shown.values())) for j in range(windows.ids.shape[1])],
    )  # fmt: skip


def rollouts(network: Any, windows: Windows, observer: Observer) -> dict[str, Curves]:
    """Every rollout by window; those of a prior or of the mean attention are one row repeated."""
    from catenary.measure.attention_content import measure_content
    from catenary.measure.strengths import measure_strengths

    strengths = np.array(measure_strengths(network, windows).values())
    rows: dict[str, list[Any]] = {name: [] for name in (SIZES, SQUARES, OTHERS, VALUES)}
    total: Any = 0.0
    with counting(observer, "rollouts", len(windows)) as progress:
        for steps in steps_of(network, windows):
            maps = [step.attention for step in steps]
            total = total + np.array(maps)
            rows[SIZES].append(sizes_row(maps, strengths))
            rows[SQUARES].append(squares_row(maps, strengths))
            rows[OTHERS].append(values_row(steps, first_as_others=True))
            rows[VALUES].append(values_row(steps))
            progress(len(rows[VALUES]), len(windows))
    mean = list(total / len(windows))
    prior = [_prior(row, len(mean[0])) for row in measure_content(network, windows).diagonal]
    once = {
        PRIOR: sizes_row(prior, strengths), PRIOR_SQUARES: squares_row(prior, strengths),
        SUNK: sizes_row([sunk(one) for one in mean], strengths),
        DISTANCE: sizes_row([by_distance(one) for one in mean], strengths), MEAN: sizes_row(mean, strengths),
    }  # fmt: skip
    found = {name: np.array(part) for name, part in rows.items()}
    return {**found, **{name: np.tile(row, (len(windows), 1)) for name, row in once.items()}}


def _prior(content: Sequence[float], length: int) -> Any:
    """The published prior's heads' mean as a matrix."""
    return head_mean([Head(content=float(own)) for own in content], length).adjoint(np.eye(length))


def _figures(
    kind: str, target: Curves, rolled: Mapping[str, Curves], paths: Mapping[str, Curves]
) -> Iterator[Reading]:
    """Every rung against one influence: rank correlation by token and in bins over its ceiling, and W1."""
    halves = halves_of(f"spearman of halves, {kind}, binned", target, kind, binned)
    yield halves
    yield halves_of(f"spearman of halves, {kind}", target, kind, spearman)
    yield drawn_together(f"share of the first, {kind}", [target], lambda t: share(average(kind, t)),
                         f"first token's share of the measured {kind}", low=0.0, high=1.0)  # fmt: skip
    # A part of the network is averaged as the network itself is; a rollout's rows by their mean.
    groups = {**{name: (rows, "influence") for name, rows in rolled.items()},
              **{name: (rows, kind) for name, rows in paths.items()}}  # fmt: skip
    for name, (rows, own) in groups.items():
        yield drawn_together(f"share of the first, {name}, {kind}", [rows], lambda r, o=own: share(average(o, r)),
                             "first token's share of the row", low=0.0, high=1.0)  # fmt: skip
        yield over_ceiling(_ranked(f"spearman, {name}, {kind}, binned", rows, target, own, kind), halves)
        yield from _published(f"{name}, {kind}", rows, target, own, kind)
    for gained, without, having in STEPS:
        (worse, own), (better, _) = groups[without], groups[having]
        yield drawn_together(
            f"spearman gained by {gained}, {kind}, binned", [worse, better, target],
            lambda w, b, t, o=own: binned(average(o, b), average(kind, t)) - binned(average(o, w), average(kind, t)),
            "rank correlation with it less without it, log-means of 16 tokens", draws=DRAWS,
        )  # fmt: skip


def _published(names: str, rows: Curves, target: Curves, own: str, kind: str) -> Iterator[Reading]:
    """The published code's two figures, and W1 again without the first token; ``own`` says how rows are averaged."""
    for figure, behind in (("spearman", 0), ("wasserstein", 0), ("wasserstein", 1)):
        yield drawn_together(
            f"{figure}, {names}{', behind the first' if behind else ''}", [rows, target],
            lambda r, t, f=figure, b=behind: getattr(published_figures(average(own, r)[b:], average(kind, t)[b:]), f),
            f"the row against the measured {kind}, by the published code's definition",
            high=1.0 if figure == "spearman" else np.inf, draws=DRAWS,
        )  # fmt: skip


def _ranked(name: str, rows: Curves, target: Curves, own: str, kind: str) -> Reading:
    return drawn_together(
        name, [rows, target], lambda r, t: binned(average(own, r), average(kind, t)),
        f"rank correlation of log-means of 16 tokens with those of the measured {kind}", high=1.0, draws=DRAWS,
    )  # fmt: skip


def _attention_alone(rows: Curves, target: Curves) -> Iterator[Reading]:
    """The published rollout against what it stands for: the Jacobian at frozen weights without the feed-forward."""
    halves = halves_of(f"spearman of halves, {ALONE}, binned", target, "Jacobian", binned)
    yield halves
    yield over_ceiling(_ranked(f"spearman, {SIZES}, {ALONE}, binned", rows, target, "influence", "Jacobian"), halves)
    yield from _published(f"{SIZES}, {ALONE}", rows, target, "influence", "Jacobian")


STUDIES.register("rollout-ladder", rollout_ladder)
