"""The residual-aware rollout of a trained network against its measured influence, by the published code's figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from jaxtyping import Float64

import catenary as ct
from catenary.page.exhibit import Plate
from catenary.reading import Reading
from catenary.reproduce.demo import demo_path
from catenary.reproduce.drawing import lines
from catenary.reproduce.finding import STUDIES, Finding
from catenary.reproduce.resampling import Curves, drawn_together, norms
from catenary.reproduce.small import over_networks
from catenary.study.observer import Observer, counting
from catenary.text.windows import Windows
from catenary.theory.rollout.attention import Head, head_mean
from catenary.theory.rollout.product import rollout_row
from catenary.theory.rollout.published import published_figures

ROLLED = "its own attention"
PREDICTED = ("no residual", "no content", "content")


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
    windows = _windows(settings, network)
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
    prior = {
        "prior, no residual": _prior(np.zeros_like(content), np.ones_like(strengths), length),
        "prior, no content": _prior(np.zeros_like(content), strengths, length),
        "prior, content": _prior(content, strengths, length),
    }  # fmt: skip
    readings = (*_figures(rolled, prior, measured), *_monotone(network, windows, int(settings["monotone"])))
    shown = {
        **{name: rows.mean(axis=0) for name, rows in rolled.items()}, "prior, content": prior["prior, content"],
        "prior, no content": prior["prior, no content"],
        "influence": measured["influence"].mean(axis=0), "Jacobian": np.exp(np.log(measured["Jacobian"]).mean(axis=0)),
    }  # fmt: skip
    chart = lines([(name, [(j + 1.0, float(v)) for j, v in enumerate(row / row.sum()) if v > 0])
                   for name, row in shown.items()], x="position j", y="share of the sum", log_y=True)  # fmt: skip
    name = str(settings["model"]).rsplit("/", 1)[-1]
    caption = f"{name}: what the rollout gives to each position, and two measured influences, {len(windows)} windows."
    return Finding(
        f"{name}, trained weights, L = {length}, {len(windows)} document windows, one probe, {settings['dtype']}",
        readings, (Plate("rows", chart, caption, caption),), ("position", *shown),
        [(j + 1, *(float(row[j]) for row in shown.values())) for j in range(length)],
    )  # fmt: skip


def _windows(settings: Mapping[str, Any], network: Any) -> Windows:
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
    rolled: Mapping[str, Curves], prior: Mapping[str, Any], measured: Mapping[str, Curves]
) -> Iterator[Reading]:
    """Spearman and W1 of every prediction against both influences, and what the residual and the content gain in W1."""

    def average(kind: str, curves: Curves) -> Any:
        return curves.mean(axis=0) if kind == "influence" else np.exp(np.log(curves).mean(axis=0))

    def w1(row: Any, kind: str, target: Curves) -> float:
        return published_figures(row, average(kind, target)).wasserstein

    alone, full = f"{ROLLED}, no residual", f"{ROLLED}, measured strengths"
    for kind, target in measured.items():
        for name, rows in rolled.items():
            for figure, high in (("spearman", 1.0), ("wasserstein", np.inf)):
                yield drawn_together(
                    f"{figure}, {name}, {kind}", [rows, target],
                    lambda r, t, kind=kind, figure=figure: getattr(
                        published_figures(r.mean(axis=0), average(kind, t)), figure),
                    f"mean rollout row against the measured {kind}, over positions / (n - 1)" if figure[0] == "w" else
                    f"mean rollout row against the measured {kind}", high=high,
                )  # fmt: skip
        for name, row in prior.items():
            for figure, high in (("spearman", 1.0), ("wasserstein", np.inf)):
                yield drawn_together(
                    f"{figure}, {name}, {kind}", [target],
                    lambda t, kind=kind, row=row, figure=figure: getattr(
                        published_figures(row, average(kind, t)), figure),
                    f"predicted profile against the measured {kind}", high=high,
                )  # fmt: skip
        yield drawn_together(
            f"W1 gained by the residual, {kind}", [rolled[alone], rolled[full], target],
            lambda a, f, t, kind=kind: w1(a.mean(axis=0), kind, t) - w1(f.mean(axis=0), kind, t),
            "W1 of its own attention without residual less W1 with it",
        )  # fmt: skip
        for gained, worse, better in (("residual in the prior", "no residual", "no content"),
                                      ("content in the prior", "no content", "content")):  # fmt: skip
            yield drawn_together(
                f"W1 gained by the {gained}, {kind}", [target],
                lambda t, kind=kind, a=prior[f"prior, {worse}"], b=prior[f"prior, {better}"]: w1(a, kind, t)
                - w1(b, kind, t), "W1 of the prior without it less W1 with it",
            )  # fmt: skip


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
    yield over_networks("violations of monotonicity", found.mean(axis=1) / free,
                        "share of triples k < i < j, head mean, mean over layers; Student over windows")  # fmt: skip
    yield over_networks("largest violations of monotonicity", found.max(axis=1) / free,
                        "the same in the layer with most; Student over windows")  # fmt: skip


STUDIES.register("rollout-measured", rollout_measured)
