"""The paper's alternating sum for powers of the Cesàro matrix, in exact fractions and in float64."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from catenary.page.exhibit import Plate
from catenary.reading import Reading
from catenary.reproduce.drawing import lines
from catenary.reproduce.finding import STUDIES, Finding
from catenary.study.observer import Observer
from catenary.theory.cesaro.row import cesaro_row


def printed_sum(settings: Mapping[str, Any], observer: Observer) -> Finding:
    """Where the printed sum is the law, and where float64 loses it.

    Settings: ``layers``, ``mixing``, ``exact_lengths`` (exact fractions against dense powers), ``lengths`` (float64).
    """
    layers, mixing = int(settings["layers"]), Fraction(str(settings["mixing"]))
    exact = max(_exact_gap(int(length), layers, mixing) for length in settings["exact_lengths"])
    stable = max(_stable_gap(int(length), layers, mixing) for length in settings["exact_lengths"])
    errors = [(int(length), _float_error(int(length), layers, float(mixing))) for length in settings["lengths"]]
    first = next((length for length, error in errors if error > 1), math.nan)
    readings = (
        Reading("exact gap", exact, "largest difference to the dense power, exact fractions", floor=0.0),
        Reading("recursion gap", stable, "largest relative error of catenary's recursion, float64", floor=1e-15),
        Reading(
            "first lost length", float(first), "shortest L at which the printed sum in float64 errs by over 100 %",
            floor=0.0, reason="" if math.isfinite(first) else "no length of the list",
        ),
    )  # fmt: skip
    points = [(float(length), max(error, 1e-17)) for length, error in errors]
    chart = lines([("printed sum, float64", points)], x="context length L", y="largest relative error", log_y=True)
    caption = f"The printed sum evaluated in float64, {layers} layers, mixing {float(mixing):g}, against the recursion."
    return Finding(
        f"H = {layers}, alpha = {float(mixing):g}; exact fractions at L = {list(settings['exact_lengths'])}, float64 "
        f"at L = {errors[0][0]} to {errors[-1][0]}",
        readings, (Plate("error", chart, caption, caption),), ("length", "relative_error"), errors,
    )  # fmt: skip


def _terms(length: int, position: int, power: int) -> list[tuple[int, int]]:
    """Signed binomial products and m of the sum for M^power at the last query, 1-based ``position``."""
    front = math.comb(length - 1, position - 1)
    return [
        (front * (-1) ** (m - position) * math.comb(length - position, m - position), m)
        for m in range(position, length + 1)
    ]


def _printed(length: int, position: int, layers: int, mixing: Fraction) -> Fraction:
    total = (1 - mixing) ** layers if position == length else Fraction(0)
    for r in range(1, layers + 1):
        weight = math.comb(layers, r) * mixing**r * (1 - mixing) ** (layers - r)
        total += weight * sum((Fraction(c, m**r) for c, m in _terms(length, position, r)), Fraction(0))
    return total


def _dense(length: int, layers: int, mixing: Fraction) -> list[Fraction]:
    """The last row of N^H, by multiplying a row with the dense matrix."""
    row = [Fraction(0)] * (length - 1) + [Fraction(1)]
    for _ in range(layers):
        new = [(1 - mixing) * v for v in row]
        for i, value in enumerate(row):
            share = mixing * value / (i + 1)
            for j in range(i + 1):
                new[j] += share
        row = new
    return row


def _exact_gap(length: int, layers: int, mixing: Fraction) -> float:
    dense = _dense(length, layers, mixing)
    return float(max(abs(_printed(length, j + 1, layers, mixing) - dense[j]) for j in range(length)))


def _stable_gap(length: int, layers: int, mixing: Fraction) -> float:
    dense, ours = _dense(length, layers, mixing), cesaro_row(length, layers, float(mixing))
    return max(abs(Fraction(float(v)) / w - 1) for v, w in zip(ours, dense, strict=True)).__float__()


def _float_error(length: int, layers: int, mixing: float) -> float:
    """Largest relative error over positions of the printed sum as a program would evaluate it."""
    right = cesaro_row(length, layers, mixing)
    worst = 0.0
    for j in range(1, length + 1):
        total = (1 - mixing) ** layers if j == length else 0.0
        m = np.arange(j, length + 1, dtype=np.float64)
        signed = np.array([float(c) for c, _ in _terms(length, j, 1)])
        for r in range(1, layers + 1):
            weight = math.comb(layers, r) * mixing**r * (1 - mixing) ** (layers - r)
            total += weight * float(np.sum(signed * m**-r))
        worst = max(worst, abs(total / right[j - 1] - 1))
    return worst


STUDIES.register("printed-sum", printed_sum)
