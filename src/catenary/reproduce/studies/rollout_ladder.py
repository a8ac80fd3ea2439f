"""Why the rollout misses the influence of a trained network: ladders whose rungs differ in one thing each.

Rank correlations stand as they are. A ceiling of noise takes the noise of the two curves to be independent: here they
share windows, and the network's own paths share the cotangent too.
"""

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
HELD = (PRIOR, PRIOR_SQUARES, SUNK, DISTANCE, MEAN)
"""Rows made of means over all windows: one row whatever windows are drawn, so that intervals leave their noise out."""

STEPS = (
    ("counting in squares", SIZES, SQUARES), ("measured distances", SUNK, DISTANCE), ("places", DISTANCE, MEAN),
    ("windows of their own", MEAN, SIZES), ("the feed-forward", ALONE, FIXED),
    ("the feed-forward's gains", ALONE, GAINS), ("the feed-forward's turns", ALONE, TURNS),
    ("random turns at each position", ALONE, EACH), ("one random turn for all positions", ALONE, ONE),
    ("turns at each position instead of one for all", ONE, EACH),
    ("the feed-forward's turns instead of its gains", GAINS, TURNS),
)  # fmt: skip
"""What a step between two rungs puts in."""


def rollout_ladder(settings: Mapping[str, Any], observer: Observer) -> Finding:
    """Compare three ladders with two influences, as ``rollout-measured`` does, over the same windows.

    From the prior's attention to the network's own; from the rollout in sizes to one in squares, by the value maps;
    and the network's own Jacobian with the feed-forward's paths replaced by parts of them. Rows made of the mean
    over windows are one row for all draws, as their readings say.

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
        **{name: average("Jacobian", rows) for name, rows in norms.items() if name != WHOLE},
        **{name: rows.mean(axis=0) for name, rows in rolled.items()},
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
    """Every rung against one influence: rank correlation by token and in bins, W1, and what each step gains."""
    yield halves_of(f"spearman of halves, {kind}, binned", target, kind, binned)
    yield halves_of(f"spearman of halves, {kind}", target, kind, spearman)
    yield drawn_together(f"share of the first, {kind}", [target], lambda t: share(average(kind, t)),
                         f"first token's share of the measured {kind}", low=0.0, high=1.0)  # fmt: skip
    # A part of the network is averaged as the network itself is; a rollout's rows by their mean.
    groups = {**{name: (rows, "influence") for name, rows in rolled.items()},
              **{name: (rows, kind) for name, rows in paths.items()}}  # fmt: skip
    for name, (rows, own) in groups.items():
        yield drawn_together(f"share of the first, {name}, {kind}", [rows], lambda r, o=own: share(average(o, r)),
                             f"first token's share of the row{held(name)}", low=0.0, high=1.0)  # fmt: skip
        yield from _against(name, kind, rows, target, own, kind)
    for gained, without, having in STEPS:
        (worse, own), (better, _) = groups[without], groups[having]
        yield drawn_together(
            f"spearman gained by {gained}, {kind}, binned", [worse, better, target],
            lambda w, b, t, o=own: binned(average(o, b), average(kind, t)) - binned(average(o, w), average(kind, t)),
            f"rank correlation of '{having}' less that of '{without}', log-means of 16 tokens{held(without, having)}",
            draws=DRAWS,
        )  # fmt: skip


def _attention_alone(rows: Curves, target: Curves) -> Iterator[Reading]:
    """The published rollout against what it stands for: the Jacobian at frozen weights without the feed-forward."""
    yield halves_of(f"spearman of halves, {ALONE}, binned", target, "Jacobian", binned)
    yield from _against(SIZES, ALONE, rows, target, "influence", "Jacobian")


def _against(name: str, other: str, rows: Curves, target: Curves, own: str, kind: str) -> Iterator[Reading]:
    """Binned rank correlation, the published code's two figures, and W1 again without the first token.

    ``own`` says how rows are averaged, ``kind`` how the target's are.
    """
    yield drawn_together(
        f"spearman, {name}, {other}, binned", [rows, target], lambda r, t: binned(average(own, r), average(kind, t)),
        f"rank correlation of log-means of 16 tokens with those of the measured {kind}{held(name)}",
        high=1.0, draws=DRAWS,
    )  # fmt: skip
    for figure, behind in (("spearman", 0), ("wasserstein", 0), ("wasserstein", 1)):
        yield drawn_together(
            f"{figure}, {name}, {other}{', behind the first' if behind else ''}", [rows, target],
            lambda r, t, f=figure, b=behind: getattr(published_figures(average(own, r)[b:], average(kind, t)[b:]), f),
            f"the row against the measured {kind}, by the published code's definition{held(name)}",
            high=1.0 if figure == "spearman" else np.inf, draws=DRAWS,
        )  # fmt: skip


def held(*names: str) -> str:
    """What a reading's meaning adds where some of its rows do not change with the windows drawn."""
    fixed = [f"'{name}'" for name in names if name in HELD]
    return f"; the same in all draws of windows: {' and '.join(fixed)}" if fixed else ""


STUDIES.register("rollout-ladder", rollout_ladder)
