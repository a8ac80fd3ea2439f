r"""Which paths carry the influence: every layer's Jacobian as a sum of five, and whole profiles with some of them.

\[J = J_{>l}\,[\,I + V + S + F + F(V+S)\,]\,J_{<l}\]

with V the value path (attention weights held fixed), S the score path, F the feed-forward. A pass is replayed layer by
layer from the top, so that beside the layers' inputs and the vectors on their way down only one layer's graph is held.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float64, Int

from catenary.errors import invalid, unknown
from catenary.measure.checks import check_count, check_state, chosen_rows, windows_record
from catenary.measure.feed import Feed, prepare
from catenary.measure.keep import Keep, unkept
from catenary.measure.methods import METHODS, Draw, Method
from catenary.measure.pathways_result import Pathways, Source
from catenary.measure.pathways_terms import EVERYTHING, PARTS, LayerVjps, Vector
from catenary.models.branches import Branches, find_branches
from catenary.models.extra import torch
from catenary.models.model import Model, adopt
from catenary.models.replay import record_layers
from catenary.models.undisturbed import undisturbed
from catenary.quantity import PATHWAY_NORM
from catenary.sample import Sample
from catenary.text.windows import Windows

Progress = Callable[[int, int], None]
Step = Callable[[int], None]


def measure_pathways(
    model: Model | torch.nn.Module,
    windows: Windows | Int[np.ndarray, "n L"],
    *,
    probes: int = 4,
    seed: int = 0,
    method: str = "probes",
    source: Source = "embeddings",
    layers: Sequence[int] | None = None,
    sequences: Sequence[int] | None = None,
    attention_mask: Int[np.ndarray, "n L"] | None = None,
    progress: Progress | None = None,
    keep: Keep = unkept,
) -> Pathways:
    r"""Split the Jacobian of the last position into five terms at every layer, as inner products per position.

    \(J = J_{>l}\,[I + V + S + F + F(V+S)]\,J_{<l}\), exactly, by linearity of the vjp; the probes are those of
    ``measure_jacobian`` with the same seed.

    Args:
        model: from ``load``, or a transformers module you hold, which is never moved or cast and is left as found.
        windows: token windows, or their ids; one is run at a time.
        probes: K, the cotangents per window.
        seed: of the probes.
        method: ``probes`` or ``exact`` (all d cotangents, summed).
        source: ``embeddings`` pulls each term down to the embedded tokens, which costs about 5 H/2 backward passes for
            H layers; ``layer`` reads it at its layer's input, for 4 backward passes in all.
        layers: which layers to split, from 0; all if None.
        sequences: which windows to measure, all if None.
        attention_mask: 1 on tokens, 0 on padding.
        progress: called after each layer with (done, all).
        keep: stands between a window and its measurement, to store it or to give what was stored.

    Raises:
        InvalidInput: bad arguments, as ``measure_jacobian``.
        NotApplicable: where layers get more than the stream, have no softmax attention, or put a norm behind the
            residual sum (see ``find_branches``).

    Source: derived here; ``docs/pathways.md``.
    """
    if source not in ("embeddings", "layer"):
        raise unknown("source", str(source), ("embeddings", "layer"))
    held, feed, chosen, rows = _prepared(model, windows, method, probes, seed, sequences, attention_mask)
    gathered: list[Float64[np.ndarray, "probe layer 5 5 L"]] = []
    told = 0
    with undisturbed(held.module):
        branches = find_branches(held.anatomy)
        split = _layers(layers, len(branches))
        for number, row in enumerate(rows):
            def step(done: int, before: int = number * len(branches)) -> None:
                nonlocal told
                if progress is not None and before + done > told:
                    told = before + done
                    progress(told, len(rows) * len(branches))

            def five(row: int = row, step: Step = step) -> Float64[np.ndarray, "probe layer 5 5 L"]:
                vjps, cotangents = _opened(feed, row, chosen, branches, seed, probes)
                grams = _split(vjps, cotangents, split, source, step)
                return np.array([gram[..., feed.real[row]] for gram in grams])

            gathered.append(keep([row], five))
            step(len(branches))
    products = np.array(gathered)  # sequence, probe, layer, term, term, position
    if chosen.summed:
        products = products.sum(axis=1, keepdims=True)
    return Pathways(
        np.ascontiguousarray(np.moveaxis(products, 2, 0)), tuple(split), source, held.label, chosen.summed,
        {
            "model": held.provenance(), "windows": windows_record(feed.windows, feed),
            "measurement": {
                "method": method, "probes": products.shape[1], "seed": seed, "sequences": rows, "source": source,
            },
        },
    )  # fmt: skip


def measure_paths(
    model: Model | torch.nn.Module,
    windows: Windows | Int[np.ndarray, "n L"],
    *,
    parts: Sequence[str] = tuple(PARTS),
    probes: int = 4,
    seed: int = 0,
    method: str = "probes",
    sequences: Sequence[int] | None = None,
    attention_mask: Int[np.ndarray, "n L"] | None = None,
    progress: Progress | None = None,
    keep: Keep = unkept,
) -> Sample:
    r"""Whole profiles with some paths alone, as the conditions of one Sample.

    Every layer keeps \((1+F)(1+V+S)\) in ``everything``, which is the Jacobian itself, \((1+F)(1+V)\) in ``value``,
    \((1+F)(1+S)\) in ``score``, \(1+V+S\) in ``no-ffn``, \(1+V\) in ``value-no-ffn`` (what attention rollout
    approximates). The activations are the network's own in all of them.

    Args and Raises: as ``measure_pathways``; ``parts`` are the conditions wanted, and ``progress`` is called after each
    window.
    """
    wanted = {}
    for part in parts:
        if part not in PARTS:
            raise unknown("part", str(part), PARTS)
        wanted[part] = PARTS[part]
    if not wanted:
        raise invalid("parts", "must name at least one", list(parts), f"of {', '.join(PARTS)}")
    held, feed, chosen, rows = _prepared(model, windows, method, probes, seed, sequences, attention_mask)
    energies: list[Float64[np.ndarray, "part probe L"]] = []
    with undisturbed(held.module):
        branches = find_branches(held.anatomy)
        for number, row in enumerate(rows):
            def by_path(row: int = row) -> Float64[np.ndarray, "part probe L"]:
                vjps, cotangents = _opened(feed, row, chosen, branches, seed, probes)
                moving = {part: vjps.leave(cotangents) for part in wanted}
                for layer in reversed(range(vjps.replay.depth)):
                    moving = vjps.combine(layer, wanted, moving)
                return np.array([[_squares(x)[feed.real[row]] for x in vjps.enter(moving[part])] for part in wanted])

            energies.append(keep([row], by_path))
            if progress is not None:
                progress(number + 1, len(rows))
    energy = np.moveaxis(np.array(energies), 0, 1)  # part, sequence, probe, position
    if chosen.summed:
        energy = energy.sum(axis=2, keepdims=True)
    return Sample(
        energy[:, None, None], tuple(wanted), quantity=PATHWAY_NORM, label=held.label, exact=chosen.summed,
        provenance={
            "model": held.provenance(), "windows": windows_record(feed.windows, feed),
            "measurement": {"method": method, "probes": energy.shape[2], "seed": seed, "sequences": rows},
        },
    )


def _prepared(
    model: Model | torch.nn.Module, windows: Windows | Int[np.ndarray, "n L"], method: str, probes: int, seed: int,
    sequences: Sequence[int] | None, attention_mask: Int[np.ndarray, "n L"] | None,
) -> tuple[Model, Feed, Method, list[int]]:  # fmt: skip
    held = model if isinstance(model, Model) else adopt(model)
    given = windows if isinstance(windows, Windows) else Windows(np.asarray(windows))
    check_count("probes", probes)
    check_count("seed", seed, 0)
    if method not in ("probes", "exact"):
        raise unknown("method", method, ("probes", "exact"))
    return held, prepare(held, given, attention_mask), METHODS[method], chosen_rows(sequences, len(given))


def _opened(
    feed: Feed, row: int, method: Method, branches: tuple[Branches, ...], seed: int, probes: int
) -> tuple[LayerVjps, list[Vector]]:
    """One window's pass, and the cotangents at its last position."""
    model = feed.model
    replay = record_layers(model.anatomy, feed.vectors([row]), feed.mask([row]), feed.positions([row]), check=False)
    check_state(model, replay.stream, [row])
    at = int(feed.last([row])[0])
    cotangents = []
    for vector in method.cotangents(replay.stream[:, at], Draw(seed, model.seed or 0, [row], probes)):
        whole = torch.zeros_like(replay.stream)
        whole[:, at] = vector
        cotangents.append(whole)
    return LayerVjps(replay, branches), cotangents


def _split(
    vjps: LayerVjps, cotangents: list[Vector], split: Sequence[int], source: Source, step: Step
) -> list[Float64[np.ndarray, "layer 5 5 T"]]:
    """For each cotangent the terms' inner products per layer of ``split``."""
    main = vjps.leave(cotangents)
    depth = vjps.replay.depth
    terms: dict[int, list[list[Vector]]] = {}
    grams: dict[int, list[Float64[np.ndarray, "5 5 T"]]] = {}
    for layer in reversed(range(depth)):
        pulled = iter(vjps.pull(layer, EVERYTHING, [x for rows in terms.values() for row in rows for x in row]))
        terms = {above: [[next(pulled) for _ in row] for row in rows] for above, rows in terms.items()}
        if layer in split:
            new = vjps.terms(layer, main)
            main = [sum(parts[1:], parts[0]) for parts in zip(*new, strict=True)]
            if source == "layer":
                grams[layer] = _grams(new)
            else:
                terms[layer] = new
        else:
            main = vjps.pull(layer, EVERYTHING, main)
        step(depth - layer)
    for layer, rows in terms.items():
        grams[layer] = _grams([vjps.enter(row) for row in rows])
    return [np.array([grams[layer][probe] for layer in split]) for probe in range(len(cotangents))]


def _grams(terms: list[list[Vector]]) -> list[Float64[np.ndarray, "5 5 T"]]:
    """One (5, 5, T) array per cotangent."""
    result = []
    for parts in zip(*terms, strict=True):
        stacked = torch.stack([part[0] for part in parts]).cpu().double()
        result.append(torch.einsum("ajd,bjd->abj", stacked, stacked).numpy())
    return result


def _squares(vector: Vector) -> Float64[np.ndarray, " T"]:
    return np.asarray(vector[0].cpu().double().square().sum(-1).numpy())


def _layers(layers: Sequence[int] | None, depth: int) -> list[int]:
    chosen = list(range(depth)) if layers is None else [int(layer) for layer in layers]
    if not chosen or any(not 0 <= layer < depth for layer in chosen) or len(set(chosen)) < len(chosen):
        raise invalid("layers", f"must be distinct layers in 0..{depth - 1}", chosen)
    return sorted(chosen)
