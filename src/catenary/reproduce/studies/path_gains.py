r"""Whether a value pathway of independent matrices gives \(\|J_j\| \propto (N^H)_{L,j}\): linear networks, exactly.

A linear network \(h^l = h^{l-1} + M h^{l-1} W_l\) has \(J_j = \sum_r (M^r)_{L,j} P_r\), where \(P_r\) sums the products
of r of the matrices in their order. So its norms need no autograd and no probes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float64

from catenary.page.exhibit import Plate
from catenary.profile import Profile
from catenary.reproduce.drawing import lines
from catenary.reproduce.finding import STUDIES, Finding
from catenary.reproduce.small import over_networks
from catenary.study.observer import Observer
from catenary.theory.cesaro.fit import fit_cesaro
from catenary.theory.cesaro.path_sum import path_sum_row
from catenary.theory.cesaro.powers import cesaro_powers
from catenary.theory.cesaro.row import cesaro_row


def path_gains(settings: Mapping[str, Any], observer: Observer) -> Finding:
    """Norms of linear networks against both laws: first moments with their best mixing, second moments without a fit.

    Settings: ``width``, ``layers``, ``length``, ``nets``, ``gain`` (of the attention branch over the residual).
    """
    width, layers, length = int(settings["width"]), int(settings["layers"]), int(settings["length"])
    nets, gain = int(settings["nets"]), float(settings["gain"])
    powers = np.concatenate([np.eye(1, length, length - 1), cesaro_powers(length, layers)])
    norms = np.array([_norms(powers, width, layers, gain, np.random.default_rng(seed)) for seed in range(nets)])
    mean = Profile(np.sqrt((norms**2).mean(axis=0)), label="linear networks")
    second = np.sqrt(width * path_sum_row(length, [gain**2] * layers))
    stated = cesaro_row(length, layers, gain / (1 + gain))
    fits = {
        "w1": [fit_cesaro(Profile(row), layers, by="w1") for row in norms],
        "log": [fit_cesaro(Profile(row), layers, by="log") for row in norms],
    }
    error = np.log10(second / norms)
    alone = np.log10(norms / stated)
    readings = [
        over_networks("second moments, typical error", np.median(np.abs(error), axis=1),
                      "median |log10 law/norm|, dex, absolute, nothing fitted"),
        over_networks("second moments, last token", error[:, -1], "log10 law over norm"),
        over_networks("second moments, first token", error[:, 0], "log10 law over norm"),
        over_networks("range of the gain", alone.max(axis=1) - alone.min(axis=1),
                      "dex over positions of |J_j| / (N^H)_Lj at alpha = g/(1+g); 0 were it one number"),
        over_networks("gain at the last token", alone[:, -1] - np.median(alone, axis=1),
                      "log10 of |J_j|/(N^H)_Lj there, its median over positions taken off"),
        over_networks("gain of the whole", alone.mean(axis=1) / layers, "log10 gamma: mean over positions, per layer"),
    ]  # fmt: skip
    for by, found in fits.items():
        off = np.log10(np.array([fit.profile().values for fit in found]) / norms)
        off = off - np.median(off, axis=1, keepdims=True)
        readings += [
            over_networks(f"last token, fitted by {by}", off[:, -1], "log10 first-moment law over norm, each network's "
                          "best mixing, its median over positions taken off"),
            over_networks(f"largest error, fitted by {by}", np.abs(off).max(axis=1),
                          "dex of the shape, over positions"),
            over_networks(f"mixing by {by}", [fit.mixing for fit in found],
                          f"best of each network; g/(1+g) is {gain / (1 + gain):.3g}"),
        ]  # fmt: skip
    curves = {"networks": mean.values, "second moments": second, "first moments": stated * math.sqrt(width)}
    chart = lines(
        [(name, [(length - j + 0.0, float(v[j] / np.median(v))) for j in range(0, length, max(1, length // 200))])
         for name, v in curves.items()],
        x="position from the end", y="norm over its median", log_x=True, log_y=True,
    )  # fmt: skip
    caption = f"Linear networks of {layers} layers and both laws, each over its median; gain {gain:g} per layer."
    return Finding(
        f"linear networks h + M h W, width {width}, H = {layers}, L = {length}, gain {gain:g}, {nets} networks, exact "
        "norms, float64",
        tuple(readings), (Plate("norms", chart, caption, caption),), ("position", *curves),
        [(j + 1, *(float(v[j]) for v in curves.values())) for j in range(length)],
    )  # fmt: skip


def _norms(
    powers: Float64[np.ndarray, "r L"], width: int, layers: int, gain: float, rng: np.random.Generator
) -> Float64[np.ndarray, " L"]:
    """Frobenius norms of all J_j, from the Gram matrix of the P_r."""
    paths = np.zeros((layers + 1, width, width))
    paths[0] = np.eye(width)
    for layer in range(1, layers + 1):
        weights = gain / math.sqrt(width) * rng.standard_normal((width, width))
        for r in range(layer, 0, -1):
            paths[r] += paths[r - 1] @ weights
    flat = paths.reshape(layers + 1, -1)
    gram = flat @ flat.T
    return np.asarray(np.sqrt(np.einsum("rj,rs,sj->j", powers, gram, powers)))


STUDIES.register("path-gains", path_gains)
