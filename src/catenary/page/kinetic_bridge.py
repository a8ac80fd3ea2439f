"""`kinetic bridge`: residual stacks of growing depth beside the kinetic closed form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from catenary.kinetic.depth.birth import BirthKinetics
from catenary.kinetic.depth.stacks import Stack, bridge, stack_limit, stack_response
from catenary.page import kinetic_charts as charts
from catenary.page.exhibit import Exhibit, Plate
from catenary.page.kinetic_charts import POSITIONS
from catenary.reading import finite

LIMITS: dict[Stack, str] = {
    "additive": "independent uniform tokens, c = a t", "convex": "tokens of one cluster, c = beta e^beta t",
}  # fmt: skip
"""Which tokens of the kinetic theory a deep stack behaves like."""

SMALLEST = 1e-300
"""Least response drawn: the axis is logarithmic."""


def bridge_exhibit(
    *, c: float, lam: float, stack: Stack, layers: Sequence[int], birth: BirthKinetics | None = None
) -> Exhibit:
    """Residual stacks of growing depth beside the kinetic closed form; a model's own depth is marked among them."""
    seen = bridge(c=c, lam=lam, layers=layers, stack=stack)
    at = POSITIONS[POSITIONS < 1]
    limit = np.asarray(stack_limit(at, c=c, lam=lam, stack=stack))
    at, limit = at[limit > SMALLEST], limit[limit > SMALLEST]
    depths, error = seen.layers.tolist(), np.abs(seen.error)
    own = birth.gains.size if birth is not None else None
    curves = [
        (f"{depth:,} layers{f', as {birth.name}' if birth is not None and depth == own else ''}",
         np.asarray(stack_response(at, c=c, lam=lam, layers=depth, stack=stack)))
        for k, depth in enumerate(depths) if k in (0, len(depths) // 2, len(depths) - 1) or depth == own
    ]  # fmt: skip
    verdict, order = seen.words(), finite(seen.order)
    plates = (
        Plate("bridge", charts.stacks(at, curves, limit),
              f"Response of {stack} stacks over the source's position, and their limit.",
              "The response at the last position to a source, per unit of position: residual stacks of one total "
              "mixing and growing depth, and the kinetic closed form they tend to."),
        Plate("bridge-order", charts.depth_errors(seen), verdict,
              "Points: relative difference from the limit. Dashed: the exact coefficient of 1/H, over H."),
    )  # fmt: skip
    rows = tuple(
        (f"{x:.3g}", f"{value:.6g}", f"{depths[-1] * miss:.5g}", f"{fitted:.6f}", f"{exact:.6f}")
        for x, value, miss, fitted, exact in zip(
            seen.sigma0, seen.limit, seen.error[-1], seen.fitted_coefficient, seen.coefficient, strict=True)
    )  # fmt: skip
    data = [
        (int(depth), float(x), float(v), float(value), float(coefficient))
        for depth, values in zip(seen.layers, seen.values, strict=True)
        for x, v, value, coefficient in zip(seen.sigma0, values, seen.limit, seen.coefficient, strict=True)
    ]
    return Exhibit(
        name="bridge", kicker="Kinetic theory", title="From depth to kinetic time", verdict=verdict,
        notes=() if birth is None else _notes(birth, c, lam, stack),
        numbers=(("total mixing c", f"{c:.4g}"), ("lambda", f"{lam:.4g}"), ("stack", stack), ("limit", LIMITS[stack]),
                 *((f"largest difference at the model's {own} branches", f"{100 * miss.max():.2g} %")
                   for depth, miss in zip(depths, error, strict=True) if depth == own),
                 ("order in 1/H of the two deepest", "unknown" if order is None else f"{order:.3f}")),
        plates=plates, caption="First order in 1/H", rows=rows,
        columns=("source", "limit", f"H times error, H = {depths[-1]}", "fitted coefficient", "exact coefficient"),
        fields=("layers", "sigma0", "response", "limit", "coefficient"), data=data,
        parameters={"c": c, "lam": lam, "stack": stack, "layers": depths},
        results={"order": order, "fitted_coefficient": seen.fitted_coefficient.tolist(),
                 "coefficient": seen.coefficient.tolist(), "birth": {} if birth is None else _about(birth)},
    )  # fmt: skip


def _notes(birth: BirthKinetics, c: float, lam: float, stack: Stack) -> tuple[str, ...]:
    """The model at birth, and where what is shown is not the model's."""
    given = [f"c = {c:.4g}"] if c != birth.c else []
    if len(birth.heads) > 1 or lam != birth.heads[0].lam:
        given.append(f"lambda = {lam:.4g}")
    notes = [birth.words()]
    if given:
        notes.append(f"Shown here: {' and '.join(given)}, as given, not the model's.")
    if stack == "additive" and c == birth.c:
        notes.append("The model's c is the total mixing of the convex stack; the additive one is shown, as asked.")
    return tuple(notes)


def _about(birth: BirthKinetics) -> dict[str, Any]:
    return {
        "name": birth.name, "length": birth.length, "c": birth.c, "distance": birth.distance,
        "strength": birth.strength, "gains": birth.gains.tolist(), "heads": [vars(head) for head in birth.heads],
    }  # fmt: skip
