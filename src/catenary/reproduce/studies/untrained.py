"""One published network at birth: the word for its shape, peak over trough by definition, and which curve fits it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Float64

import catenary as ct
from catenary.blocks import Blocks
from catenary.deviation import between_halves, spearman, wasserstein
from catenary.page.exhibit import Plate
from catenary.profile import Profile
from catenary.reading import Reading
from catenary.reproduce.drawing import from_the_end, lines
from catenary.reproduce.finding import STUDIES, Finding
from catenary.reproduce.small import resampled
from catenary.sample import Sample
from catenary.study.observer import Observer, counting
from catenary.theory.null import fit_null

Curves = Float64[np.ndarray, "r L"]
BIN = 16
"""Tokens whose log-mean is one point of the binned rank correlation."""

RANKS_ROUNDED, DISTANCE_ROUNDED = 1e-3, 2e-4
"""What rounding may move a rank correlation and a distance by: bfloat16 moved them by .0005 and .0002 from float32."""


def untrained(settings: Mapping[str, Any], observer: Observer) -> Finding:
    """Measure a network with and without its position coding on the same text-like windows, with the same probes.

    Settings: ``model`` (a preset, or a config), ``length``, ``windows``, ``probes``, ``seed``, ``dtype``. Windows are
    tokens by Zipf's law with a Gaussian vector each; position coding is rotary (angles set to 0) or a learned table
    (set to 0).
    """
    model, length, count = settings["model"], int(settings["length"]), int(settings["windows"])
    windows = replace(ct.zipf_windows(length, count, int(settings["seed"])), vectors="gaussian")
    network = ct.load(model, seed=int(settings["seed"]), vocabulary=16, dtype=str(settings["dtype"]))
    name = network.name

    def measured() -> Sample:
        with counting(observer, "windows", count * int(settings["probes"])) as progress:
            sample: Sample = ct.measure_jacobian(
                network, windows, probes=int(settings["probes"]), seed=int(settings["seed"]), progress=progress
            )
            return sample

    seen = measured()
    with without_positions(network):
        bare = measured()
    profile, architecture = seen.profile("rms"), ct.read_config(model)
    repeats = float(windows.report["repeat_probability"])
    curves = {
        "paper": ct.fit_cesaro(profile, architecture.depth, by="w1").profile(),
        "paper by log": ct.fit_cesaro(profile, architecture.depth, by="log").profile(),
        "birth law": ct.predict(architecture, length=length, repeat_probability=repeats),
        "1/j": fit_null(profile),
    }
    mixing = ct.fit_cesaro(profile, architecture.depth, by="w1").mixing
    readings = (*_shape(seen), *_fits(seen, curves), *_coding(seen, bare))
    shown = {"measured": profile, "without position coding": bare.profile("rms"), **curves}
    chart = lines(
        [(name, from_the_end(curve.values)) for name, curve in shown.items()],
        x="position from the end, L - j + 1", y="influence over its middle", log_x=True, log_y=True,
    )  # fmt: skip
    caption = f"{name} at birth, {count} windows, and the curves held against it; the paper's mixing {mixing:.3g}."
    return Finding(
        f"{name}, untrained, 1 network, L = {length}, {count} Zipf windows, {settings['probes']} probe(s) each, "
        f"{settings['dtype']}; rms over windows; paper's law fitted, mixing {mixing:.3g}",
        readings, (Plate("profile", chart, caption, caption),), ("position", *shown),
        [(j + 1, *(float(curve.values[j]) for curve in shown.values())) for j in range(length)],
    )  # fmt: skip


@contextmanager
def without_positions(model: Any) -> Iterator[None]:
    """Within the context the network knows no positions: rotary angles, or the learned table, are 0."""
    from catenary.models.rope import rotary_buffers, rotary_off

    module = model.module
    if rotary_buffers(module):
        with rotary_off(module):
            yield
        return
    table = module.get_submodule("transformer.wpe").weight
    saved = table.data.clone()
    table.data.zero_()
    try:
        yield
    finally:
        table.data.copy_(saved)


def _shape(seen: Sample) -> Iterator[Reading]:
    """The verdict, and peak over trough under every definition we know."""
    shape = ct.describe(seen)
    blocks = Blocks(seen.length)
    middle = slice(round(0.45 * seen.length), round(0.55 * seen.length))
    yield Reading("U", float(shape.verdict.body == "U"),
                  f"1 if the verdict's body is a U; it is: {shape.verdict.words}", floor=0.0)  # fmt: skip
    yield Reading("primacy", float(shape.verdict.body == "primacy"), "1 if the verdict's body is primacy", floor=0.0)
    yield resampled("right arm", seen, lambda c: _block_rise(c, blocks),
                    "last block of the body over its lowest, dex", low=0.0)  # fmt: skip
    for name, formula, meaning in (
        ("single tokens", lambda c: c.max(1) / c.min(1), "highest over lowest token"),
        ("single tokens of the body", lambda c: c[:, 1:-1].max(1) / c[:, 1:-1].min(1), "highest over lowest, no ends"),
        ("last over middle", lambda c: c[:, -1] / _level(c[:, middle]), "last token over x in [.45, .55]"),
        ("first over middle", lambda c: c[:, 0] / _level(c[:, middle]), "first token over x in [.45, .55]"),
        ("last over second last", lambda c: c[:, -1] / c[:, -2], "last token over the one before it"),
        ("last over the eight before", lambda c: c[:, -1] / _level(c[:, -9:-1]), "last token over the log-mean of 8"),
        ("eight before the last over the middle", lambda c: _level(c[:, -9:-1]) / _level(c[:, middle]),
         "log-mean of eight tokens over that of x in [.45, .55]"),
        ("share of the last", lambda c: c[:, -1] / c.sum(1), "last token's share of the sum over positions"),
        ("share of the body", lambda c: c[:, :-1].sum(1) / c.sum(1), "share of all but the last token"),
    ):  # fmt: skip
        yield resampled(name, seen, formula, meaning, low=0.0)
    body = shape["peak/trough"]
    yield replace(body, name="blocks", meaning="highest over lowest block of the body (log-means)")


def _block_rise(curves: Curves, blocks: Blocks) -> Float64[np.ndarray, " r"]:
    b = blocks.log_means(curves)
    return np.asarray(b[:, -1] - b.min(axis=1))


def _level(curves: Curves) -> Float64[np.ndarray, " r"]:
    return np.asarray(np.exp(np.log(curves).mean(axis=1)))


def _fits(seen: Sample, curves: Mapping[str, Profile]) -> Iterator[Reading]:
    """W1, rank correlation, and the error at both ends, of each curve against the measured one."""
    halves = between_halves(seen, "rms")
    for name, curve in curves.items():
        law = curve.values
        yield resampled(f"W1, {name}", seen, lambda c, law=law: np.array([wasserstein(law, row) for row in c]),
                        "distance to the measured profile, both normalised to sum 1 over x = j/L",
                        low=0.0)  # fmt: skip
        yield resampled(f"Spearman, {name}", seen, lambda c, law=law: np.array([spearman(law, row) for row in c]),
                        "rank correlation with the measured profile, single tokens", high=1.0)  # fmt: skip
        yield resampled(
            f"binned Spearman, {name}", seen,
            lambda c, law=law: np.array([spearman(_bins(law[None])[0], row) for row in _bins(c)]),
            f"rank correlation of log-means of {BIN} tokens, both ends apart", high=1.0,
        )  # fmt: skip
        yield from end_errors(name, law, seen)
    blind = spearman(curves["paper"].values, seen.profile("rms").values)
    plain = spearman(curves["1/j"].values, seen.profile("rms").values)
    yield resampled(
        "Spearman gained over 1/j", seen,
        lambda c: np.array([spearman(curves["paper"].values, r) - spearman(curves["1/j"].values, r) for r in c]),
        f"the paper's law ({blind:.3f}) less 1/j with a spike ({plain:.3f})",
    )  # fmt: skip
    yield Reading("Spearman of halves", halves.spearman, "half of the windows against the other half",
                  floor=RANKS_ROUNDED)  # fmt: skip
    yield Reading("W1 of halves", halves.w1, "half of the windows against the other half, over sqrt 2",
                  floor=DISTANCE_ROUNDED)  # fmt: skip


def end_errors(name: str, law: Float64[np.ndarray, " L"], seen: Sample) -> Iterator[Reading]:
    """How far a curve is off at the first and at the last token."""
    for end, index in (("first", 0), ("last", -1)):
        yield resampled(
            f"{end} token, {name}", seen,
            lambda c, index=index: _log(law[index] / c[:, index]) - np.median(_log(law / c), axis=1),
            "log10 curve over measured, its median over positions taken off",
        )  # fmt: skip


def _coding(seen: Sample, bare: Sample) -> Iterator[Reading]:
    """The same network, windows and probes without position coding; both profiles are resampled together."""
    rows = seen.units("rms")
    other = bare.units("rms")
    both = Sample(np.concatenate([rows, other], axis=1)[None, None, None, :, None], ("both",), exact=True)
    size = seen.length

    def each(formula: Any) -> Any:
        return lambda c: np.array([formula(row[:size], row[size:]) for row in c])

    yield resampled("coding, Spearman", both, each(spearman), "rank correlation with and without, single tokens",
                    high=1.0)  # fmt: skip
    yield resampled("coding, binned Spearman", both, each(lambda a, b: spearman(_bins(a[None])[0], _bins(b[None])[0])),
                    f"rank correlation of log-means of {BIN} tokens, with and without", high=1.0)  # fmt: skip
    yield resampled("coding, W1", both, each(wasserstein),
                    "distance of the profiles with and without, both normalised to sum 1", low=0.0)  # fmt: skip
    yield resampled("coding, shape", both, each(_median_gap), "median |log10 ratio| about its median, dex", low=0.0)
    yield resampled("coding, bins", both, each(lambda a, b: _median_gap(_bins(a[None])[0], _bins(b[None])[0])),
                    f"median |log10 ratio| about its median of log-means of {BIN} tokens, dex", low=0.0)  # fmt: skip


def _median_gap(a: Float64[np.ndarray, " n"], b: Float64[np.ndarray, " n"]) -> float:
    ratio = _log(a / b)
    return float(np.median(np.abs(ratio - np.median(ratio))))


def _bins(curves: Curves) -> Float64[np.ndarray, "r m"]:
    """Log-means of ``BIN`` tokens of the body, with the first and the last token at either end."""
    body = curves[:, 1:-1]
    full = body[:, body.shape[1] % BIN :].reshape(len(curves), -1, BIN)
    return np.concatenate([curves[:, :1], np.exp(np.log(full).mean(axis=2)), curves[:, -1:]], axis=1)


def _log(values: Any) -> Any:
    return np.log10(values)


STUDIES.register("untrained", untrained)
