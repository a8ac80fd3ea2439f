"""Pictures of the theory pages and of the first page: each a function without arguments, by the name of its file."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float64

import catenary as ct
from catenary import kinetic
from catenary.architecture.kernels import Alibi, Causal, Chunk, Kernel, Prefix, Window
from catenary.charts import Spec
from catenary.figures import overlay, to_svg
from catenary.profile import Profile
from catenary.reproduce.drawing import lines
from catenary.theory.cesaro.row import cesaro_row
from catenary.theory.positions.kernels import operator

LEDGER = Path(__file__).parent.parent / "docs" / "ledger"

QUERY, LENGTH = 96, 128
"""The query whose row of mean attention is drawn, counted from 1, and the context it stands in."""

KERNELS: Mapping[str, Kernel] = {
    "Causal()": Causal(), "Window(32)": Window(32), "Chunk(40)": Chunk(40), "Alibi(1/16)": Alibi(1 / 16),
    "Prefix(112)": Prefix(112),
}  # fmt: skip

REGIMES: Mapping[str, tuple[float, float, float]] = {
    "U: lambda 1, t = 1": (1, 1, 1), "hump: lambda 5, t = 5": (5, 1, 5), "primacy: lambda 1, t = 2.6": (1, 1, 2.6)
}
"""lambda, beta and t of the three shapes that docs/kinetic.md names."""

START_CURVE = 0.8
"""Amplitude of the start in the picture of the mean field, as in the table of docs/kinetic-mean-field.md."""

Curve = tuple[str, Sequence[tuple[float, float]]]


def birth_and_trained() -> str:
    """SmolLM2-135M before and after training, from the ledger's own numbers."""
    with (LEDGER / "2603.10123" / "trained_network.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    words = {"untrained": "at birth: an untrained network", "pretrained": "the trained network"}
    return to_svg(overlay([
        Profile(np.array([float(row[f"{column}, vanilla"]) for row in rows]), label=label, average="log")
        for column, label in words.items()
    ]))  # fmt: skip


def kernel_rows() -> dict[str, Float64[np.ndarray, " L"]]:
    """Mean attention of the query at ``QUERY``, by kernel."""
    return {name: operator(kernel, LENGTH).dense()[QUERY - 1] for name, kernel in KERNELS.items()}


def kernels() -> str:
    """One row of each mean kernel; positions without attention are left out."""
    curves = [(name, [(float(j + 1), float(v)) for j, v in enumerate(row) if v > 0])
              for name, row in kernel_rows().items()]  # fmt: skip
    return to_svg(_plain(lines(curves, x="token j", y=f"mean attention of query {QUERY}")))


def cesaro_depth() -> str:
    """The Cesàro law at mixing .1 for growing depth, over its middle."""
    length = 256
    curves = [
        (f"{depth} layers", _points(_over_middle(cesaro_row(length, depth, 0.1)))) for depth in (2, 6, 12, 24, 48)
    ]
    return to_svg(_plain(lines(curves, x="position x = j/L", y="influence over its middle", log_y=True)))


def moments() -> str:
    """Null, first moment and second moment for one config, each over its middle."""
    architecture, length = ct.read_config("gpt2"), 256
    drawn = {
        "trivial null, c/j": ct.predict(architecture, length=length, theory="null"),
        "first moment, mixing .1": ct.predict(architecture, length=length, theory="cesaro", mixing=0.1),
        "second moment: the birth law": ct.predict(architecture, length=length),
    }
    curves = [(name, _points(_over_middle(found.values))) for name, found in drawn.items()]
    return to_svg(_plain(lines(curves, x="position x = j/L", y="influence over its middle", log_y=True)))


def couplings() -> str:
    """The three couplings at logit variance 1, where they part."""
    architecture = ct.read_config("smollm2-135m", init_std=1 / 24)
    names = ("strong", "first-order", "uniform")
    return to_svg(overlay(
        [ct.predict(architecture, length=256, coupling=name).relabel(f"{name} coupling") for name in names]
    ))  # fmt: skip


def regimes() -> str:
    """A U, a hump and pure primacy, from the closed form."""
    sigma = np.unique(np.concatenate([np.geomspace(1e-2, 0.1, 30), np.linspace(0.1, 1, 181)]))
    curves: list[Curve] = []
    for name, (lam, beta, t) in REGIMES.items():
        values = np.asarray(kinetic.retrieval_profile(sigma, lam=lam, beta=beta, t=t, M=8))
        curves.append((name, _pairs(sigma, values / values[-1])))
    return to_svg(_plain(lines(curves, x="source position in the prompt", y="profile over its end value", log_y=True)))


def mean_field() -> str:
    """Angles of a near-deterministic prompt over position, as time goes on."""
    curves: list[Curve] = []
    for t in (0.0, 1.0, 2.0, 4.0):
        found = kinetic.near_deterministic(
            lambda s: START_CURVE * np.sin(2 * np.pi * s), sigma0=[0.5], lam=1.0, beta=1.0, t=t
        )
        sigma = np.linspace(0.01, 1, 81)
        curves.append((f"t = {t:g}", _pairs(sigma, found.path_at(sigma))))
    return to_svg(_plain(lines(curves, x="position in the prompt", y="angle of the token")))


def _over_middle(values: Float64[np.ndarray, " L"]) -> Float64[np.ndarray, " L"]:
    """Over the log-mean of x in [.45, .55]."""
    x = (np.arange(len(values)) + 0.5) / len(values)
    return np.asarray(values / np.exp(np.log(values[(x >= 0.45) & (x <= 0.55)]).mean()))


def _points(values: Float64[np.ndarray, " L"]) -> list[tuple[float, float]]:
    return _pairs((np.arange(len(values)) + 1) / len(values), values)


def _pairs(x: Float64[np.ndarray, " n"], y: Float64[np.ndarray, " n"]) -> list[tuple[float, float]]:
    return [(float(a), float(b)) for a, b in zip(x, y, strict=True)]


def _plain(chart: Spec) -> Spec:
    """The chart for lines that are functions: no mark at every point, no band, and ticks that keep apart."""
    (line,) = (layer for layer in chart["layer"] if layer["name"] == "line")
    encoding = line["encoding"] | {"x": line["encoding"]["x"] | {"axis": {"tickCount": 6}}}
    return chart | {"layer": [line | {"mark": {"type": "line", "strokeWidth": 2}, "encoding": encoding}]}


PICTURES: Mapping[str, Callable[[], str]] = {
    "birth-and-trained.svg": birth_and_trained,
    "theory-kernels.svg": kernels,
    "theory-depth.svg": cesaro_depth,
    "theory-moments.svg": moments,
    "theory-couplings.svg": couplings,
    "theory-regimes.svg": regimes,
    "theory-mean-field.svg": mean_field,
}
"""By file name in docs/img/gallery."""
