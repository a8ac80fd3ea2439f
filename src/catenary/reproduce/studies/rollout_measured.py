"""The residual-aware rollout of a trained network against its measured influence, by the published code's figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Float64

import catenary as ct
from catenary.deviation import spearman
from catenary.page.exhibit import Plate
from catenary.reading import Reading
from catenary.reproduce.claim import interval_of
from catenary.reproduce.demo import demo_path
from catenary.reproduce.drawing import lines
from catenary.reproduce.finding import STUDIES, Finding
from catenary.reproduce.resampling import Curves, drawn_together, norms
from catenary.reproduce.small import over_networks
from catenary.reproduce.written import written_rollout
from catenary.study.observer import Observer, counting
from catenary.text.windows import Windows
from catenary.theory.rollout.attention import Head, head_mean
from catenary.theory.rollout.product import rollout_row
from catenary.theory.rollout.published import published_figures

ROLLED = "its own attention"
DRAWS = 400
"""Bootstrap draws of a figure that sorts whole curves: the 2.5 % quantile then rests on 10."""
BIN = 16
"""Tokens whose log-mean is one point of a binned rank correlation."""


def rollout_measured(settings: Mapping[str, Any], observer: Observer) -> Finding:
    """Roll out a trained network's own attention, and the prior of the published code, against two influences.

    Settings: ``model``, ``documents``, ``length`` (at most 256, for monotonicity), ``windows``, ``seed``, ``dtype``,
    ``device``; ``monotone`` (windows in which monotonicity is counted). Influence as published: the norm of the
    gradient of the likeliest next token's probability, mean over windows; and ||J_j||_F, log-mean. Intervals are over
    windows; the prior is one curve for all of them.
    """
    from catenary.measure.attention_content import measure_content
    from catenary.measure.strengths import measure_strengths

    network = ct.load(demo_path(str(settings["model"])), weights="pretrained", dtype=str(settings["dtype"]),
                      device=str(settings["device"]))  # fmt: skip
    windows = windows_of(settings, network)
    length = windows.ids.shape[1]
    strengths = np.array(measure_strengths(network, windows).values())
    content = measure_content(network, windows).diagonal
    measured = influences(network, windows, observer)
    with counting(observer, "rollouts", 2 * len(windows)) as progress:
        rolled = {
            f"{ROLLED}, {name}": norms(
                ct.measure_rollout(network, windows, schedule=schedule.tolist(), progress=progress)
            )
            for name, schedule in (("measured strengths", strengths), ("no residual", np.ones_like(strengths)))
        }  # fmt: skip
    rolled[f"{ROLLED} as written, measured strengths"] = written_rollout(network, windows, strengths)
    none, bare = np.zeros_like(content), np.ones_like(strengths)
    prior = {
        f"prior, {name}": np.tile(_prior(own, schedule, length), (len(windows), 1))
        for name, own, schedule in (("no residual", none, bare), ("no content", none, strengths),
                                    ("content", content, strengths))
    }  # fmt: skip
    readings = (*_figures(rolled, prior, measured), *_monotone(network, windows, int(settings["monotone"])))
    shown = {
        **{name: rows.mean(axis=0) for name, rows in rolled.items()}, "prior, content": prior["prior, content"][0],
        "prior, no content": prior["prior, no content"][0],
        "influence": measured["influence"].mean(axis=0), "Jacobian": np.exp(np.log(measured["Jacobian"]).mean(axis=0)),
    }  # fmt: skip
    drawn = [
        (name, [(j + 1.0, float(v)) for j, v in enumerate(row / row.sum()) if v > 0])
        for name, row in shown.items() if "no residual" not in name
    ]  # fmt: skip
    chart = lines(drawn, x="position j", y="share of the sum", log_y=True)
    name = str(settings["model"]).rsplit("/", 1)[-1]
    caption = f"{name}: what the rollout gives to each position, and two measured influences, {len(windows)} windows."
    return Finding(
        f"{name}, trained weights, L = {length}, {len(windows)} document windows, one probe, {settings['dtype']}",
        readings, (Plate("rows", chart, caption, caption),), ("position", *shown),
        [(j + 1, *(float(row[j]) for row in shown.values())) for j in range(length)],
    )  # fmt: skip


def windows_of(settings: Mapping[str, Any], network: Any) -> Windows:
    """The windows that a study's settings ask for."""
    from catenary.text.documents import read_documents
    from catenary.text.vanilla import vanilla_windows

    return vanilla_windows(
        read_documents(demo_path(str(settings["documents"]))), network.tokenizer(), length=int(settings["length"]),
        count=int(settings["windows"]), seed=int(settings["seed"]),
    )  # fmt: skip


def influences(network: Any, windows: Windows, observer: Observer) -> dict[str, Curves]:
    r"""\(p\|\partial\log p/\partial e_j\|\), p the largest probability, and \(\|J_j\|_F\), by window."""
    answers, sure = likeliest(network, windows)
    with counting(observer, "influence", 2 * len(windows)) as progress:
        slope = ct.measure_jacobian(network, windows, output=answers, progress=progress)
        full = ct.measure_jacobian(network, windows, probes=1, progress=progress)
    return {"influence": np.array(sure)[:, None] * norms(slope), "Jacobian": norms(full)}


def likeliest(network: Any, windows: Windows) -> tuple[list[int], list[float]]:
    """The likeliest next token behind each window, and its probability."""
    from catenary.models.extra import torch

    ids, sure = [], []
    with torch.no_grad():
        for row in windows.ids:
            logits = network.module(torch.tensor(row[None], device=network.device)).logits[0, -1].float()
            best = int(logits.argmax())
            ids.append(best)
            sure.append(float(torch.softmax(logits, 0)[best]))
    return ids, sure


def _prior(content: Float64[np.ndarray, "layer head"], strengths: Any, length: int) -> Float64[np.ndarray, " L"]:
    """The published prediction of a network without ALiBi: content on the own key, no positions."""
    attentions = [head_mean([Head(content=float(own)) for own in row], length) for row in content]
    return rollout_row(attentions, np.asarray(strengths))


def _figures(
    rolled: Mapping[str, Curves], prior: Mapping[str, Curves], measured: Mapping[str, Curves]
) -> Iterator[Reading]:
    """Spearman and W1 of every prediction against both influences, and what residual and content gain in W1.

    A prior is one row repeated, which no draw of windows changes. "Behind the first" leaves the first token out of
    both curves; "binned" takes log-means of 16 tokens, which the windows here resolve better than single tokens: half
    of them against the other half says how well.
    """
    groups = {**rolled, **prior}
    for kind, target in measured.items():
        yield drawn_together(f"share of the first, {kind}", [target], lambda t, k=kind: share(average(k, t)),
                             f"first token's share of the measured {kind}", low=0.0, high=1.0)  # fmt: skip
        yield halves_of(f"spearman of halves, {kind}", target, kind, spearman)
        halves = halves_of(f"spearman of halves, {kind}, binned", target, kind, binned)
        yield halves
        for name, rows in groups.items():
            for figure in ("spearman", "wasserstein"):
                yield _against(f"{figure}, {name}, {kind}", rows, target, kind, figure)
            if "no residual" in name or "no content" in name:
                continue
            yield _against(f"wasserstein, {name}, {kind}, behind the first", rows, target, kind, "wasserstein", 1)
            found = drawn_together(
                f"spearman, {name}, {kind}, binned", [rows, target],
                lambda r, t, k=kind: binned(r.mean(axis=0), average(k, t)),
                f"rank correlation of log-means of {BIN} tokens with those of the measured {kind}",
                high=1.0, draws=DRAWS,
            )  # fmt: skip
            yield found
            yield over_ceiling(found, halves)
        for gained, worse, better in (
            ("residual", f"{ROLLED}, no residual", f"{ROLLED}, measured strengths"),
            ("residual in the prior", "prior, no residual", "prior, no content"),
            ("content in the prior", "prior, no content", "prior, content"),
        ):
            yield drawn_together(
                f"W1 gained by the {gained}, {kind}", [groups[worse], groups[better], target],
                lambda a, b, t, k=kind: _figure("wasserstein", a, t, k) - _figure("wasserstein", b, t, k),
                "W1 without it less W1 with it", draws=DRAWS,
            )  # fmt: skip
    for name, rows in groups.items():
        yield drawn_together(f"share of the first, {name}", [rows], lambda r: share(r.mean(axis=0)),
                             "first token's share of the row", low=0.0, high=1.0)  # fmt: skip


def _against(name: str, rows: Curves, target: Curves, kind: str, figure: str, behind: int = 0) -> Reading:
    return drawn_together(
        name, [rows, target], lambda r, t: _figure(figure, r, t, kind, behind),
        f"the row against the measured {kind}, by the published code's definition",
        high=1.0 if figure == "spearman" else np.inf, draws=DRAWS,
    )  # fmt: skip


def _figure(figure: str, rows: Curves, target: Curves, kind: str, behind: int = 0) -> float:
    found = published_figures(rows.mean(axis=0)[behind:], average(kind, target)[behind:])
    return float(getattr(found, figure))


def halves_of(name: str, curves: Curves, kind: str, formula: Callable[[Any, Any], float]) -> Reading:
    """What one half of the windows scores against the other: mean over 32 splits, its scatter the interval."""
    rng, half = np.random.default_rng(0), len(curves) // 2
    splits = [rng.permutation(len(curves)) for _ in range(32)]
    scores = [formula(average(kind, curves[p[:half]]), average(kind, curves[p[half:]])) for p in splits]
    low, high = np.quantile(scores, [0.025, 0.975])
    return Reading(name, float(np.mean(scores)), f"half of the windows against the other, measured {kind}, 32 splits",
                   float(low), float(high))  # fmt: skip


def over_ceiling(reading: Reading, halves: Reading) -> Reading:
    r"""A rank correlation over \(\sqrt{2r/(1+r)}\), the most that a curve whose halves agree by r can have.

    The reliability of the whole is \(2r/(1+r)\) (Spearman and Brown), and noise weakens a correlation by its root
    (Spearman 1904). r is taken as known, and the noise as independent of the other curve.
    """
    r = halves.value
    ceiling = float(np.sqrt(2 * r / (1 + r))) if r > 0 else float("nan")
    if not r > 0:
        return Reading(f"{reading.name}, over its ceiling", ceiling, "", reason="the halves of the windows disagree")
    low, high = interval_of(reading)
    return Reading(
        f"{reading.name}, over its ceiling", min(reading.value / ceiling, 1.0),
        f"{reading.meaning}, over {ceiling:.2f}, the most that the noise of these windows lets it be",
        max(low / ceiling, -1.0), min(high / ceiling, 1.0),
    )  # fmt: skip


def binned(a: Any, b: Any) -> float:
    """Rank correlation of log-means of ``BIN`` tokens, counted from the end."""
    logs = [np.log(row[len(row) % BIN :]).reshape(-1, BIN).mean(axis=1) for row in (a, b)]
    return spearman(*logs)


def average(kind: str, curves: Curves) -> Any:
    """Mean of influences, log-mean of Jacobian norms."""
    return curves.mean(axis=0) if kind == "influence" else np.exp(np.log(curves).mean(axis=0))


def share(row: Any) -> float:
    """The first token's."""
    return float(row[0] / row.sum())


def _monotone(network: Any, windows: Windows, count: int) -> Iterator[Reading]:
    """How often a later query gives more to the first keys than an earlier one, mean over layers, per window."""
    from catenary.measure.attention_statistics import measure_attention

    rates = []
    for index in range(count):
        seen = measure_attention(network, Windows(windows.ids[index : index + 1], windows.kind), monotonicity=True)
        rates.append([violation.rate for violation in seen.violations])
    found = np.array(rates)
    # Triples whose first k keys are not all that the earlier query sees: a causal row is complete there.
    length = windows.ids.shape[1]
    free = length * (length - 1) * (length - 2) / 6 / (length * length * (length - 1) / 2)
    for name, values, meaning in (
        ("violations of monotonicity", found.mean(axis=1), "share of triples k < i < j, head mean, mean over layers"),
        ("largest violations of monotonicity", found.max(axis=1), "the same in the layer with most"),
    ):
        reading = over_networks(name, values / free, f"{meaning}; Student over windows")
        low, high = interval_of(reading)
        yield replace(reading, low=max(low, 0.0), high=min(high, 1.0))


STUDIES.register("rollout-measured", rollout_measured)
