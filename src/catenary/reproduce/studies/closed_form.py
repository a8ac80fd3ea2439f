"""The closed form of the kinetic theory against the equation it solves, and the mass it must carry."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np

from catenary.kinetic import graphon, mode_rate, response, retrieval_mass, retrieval_profile
from catenary.page.exhibit import Plate
from catenary.reading import Reading
from catenary.reproduce.drawing import lines
from catenary.reproduce.finding import STUDIES, Finding
from catenary.study.observer import Observer


def closed_form(settings: Mapping[str, Any], observer: Observer) -> Finding:
    """Residual of the Volterra-Hardy equation by quadrature, and the integral of the retrieval profile.

    Settings: ``lam`` (several), ``beta``, ``times``, ``sources``, ``nodes`` of the quadrature, ``M``.
    """
    beta, nodes, vocabulary = float(settings["beta"]), int(settings["nodes"]), int(settings["M"])
    worst_equation, worst_mass = 0.0, 0.0
    for lam in map(float, settings["lam"]):
        for t in map(float, settings["times"]):
            for source in map(float, settings["sources"]):
                worst_equation = max(worst_equation, _residual(t, source, float(mode_rate(1, beta)), lam, nodes))
            worst_mass = max(worst_mass, _mass_gap(t, lam, beta, vocabulary, nodes))
    readings = (
        Reading("equation residual", worst_equation, "largest relative residual of the Volterra-Hardy equation",
                floor=1e-12),
        Reading("mass gap", worst_mass, "largest relative gap of the profile's integral to its closed form",
                floor=1e-9),
    )  # fmt: skip
    at = np.linspace(0.02, 1, 99)
    curves = [
        (f"t = {t:g}", [(float(s), float(v)) for s, v in zip(at, _profile(at, t, settings), strict=True)])
        for t in map(float, settings["times"])
    ]
    chart = lines(curves, x="source position in the prompt", y="retrieval profile S", log_y=True)
    caption = f"The retrieval profile, decay {float(settings['lam'][0]):g}, beta {beta:g}, vocabulary of {vocabulary}."
    return Finding(
        f"decays {settings['lam']}, beta = {beta:g}, times {settings['times']}, {nodes}-node quadrature",
        readings, (Plate("profile", chart, caption, caption),), ("t", "sigma0", "S"),
        [(float(name[4:]), *point) for name, points in curves for point in points],
    )  # fmt: skip


def _profile(at: Any, t: float, settings: Mapping[str, Any]) -> Any:
    lam, beta, vocabulary = float(settings["lam"][0]), float(settings["beta"]), int(settings["M"])
    return np.asarray(retrieval_profile(at, lam=lam, beta=beta, t=t, M=vocabulary))


def _residual(t: float, source: float, a: float, lam: float, nodes: int) -> float:
    """|d/dt g - a (int k g + k)| over d/dt g at the end of the prompt; the derivative by a difference of order 6."""
    points, weights = np.polynomial.legendre.leggauss(nodes)
    middle = source + (1 - source) * (points + 1) / 2
    past = np.asarray(graphon(1.0, middle, lam=lam)) * np.asarray(response(t, middle, source, a=a, lam=lam))
    force = a * (float(past @ weights) * (1 - source) / 2 + float(graphon(1.0, source, lam=lam)))
    h = 0.01 * t
    steps = np.arange(-3, 4)
    stencil = np.array([-1, 9, -45, 0, 45, -9, 1]) / 60
    values = np.array([float(response(t + k * h, 1.0, source, a=a, lam=lam)) for k in steps])
    slope = float(stencil @ values) / h
    return abs(slope - force) / abs(slope)


def _mass_gap(t: float, lam: float, beta: float, vocabulary: int, nodes: int) -> float:
    """The integral over sources, in pieces that shrink towards 0, where the profile diverges slower than any power."""
    points, weights = np.polynomial.legendre.leggauss(nodes)
    edges = np.geomspace(1, 1e-30, 121)
    total = 0.0
    for high, low in itertools.pairwise(edges):
        at = low + (high - low) * (points + 1) / 2
        values = np.asarray(retrieval_profile(at, lam=lam, beta=beta, t=t, M=vocabulary))
        total += float(values @ weights) * (high - low) / 2
    exact = float(retrieval_mass(beta=beta, t=t, M=vocabulary))
    return abs(total / exact - 1)


STUDIES.register("closed-form", closed_form)
