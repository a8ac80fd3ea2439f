"""`kinetic bridge`: residual stacks of growing depth beside the kinetic closed form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from catenary.kinetic.depth.birth import BirthKinetics
from catenary.kinetic.depth.stacks import Stack, bridge, stack_limit, stack_response
from catenary.page import kinetic_charts as charts
from catenary.page.kinetic import Exhibit, Plate
from catenary.page.kinetic_charts import POSITIONS

LIMITS: dict[Stack, str] = {
    "additive": "independent uniform tokens, c = a t", "convex": "tokens of one cluster, c = beta e^beta t",
}  # fmt: skip
"""Which tokens of the kinetic theory a deep stack behaves like."""


def bridge_exhibit(
    *, c: float, lam: float, stack: Stack, layers: Sequence[int], birth: BirthKinetics | None = None
) -> Exhibit:
    """Residual stacks of growing depth beside the kinetic closed form."""
    seen = bridge(c=c, lam=lam, layers=layers, stack=stack)
    at = POSITIONS[POSITIONS < 1]
    shown = sorted({0, len(seen.layers) // 2, len(seen.layers) - 1})
    curves = [
        (f"{seen.layers[k]:,} layers",
         np.asarray(stack_response(at, c=c, lam=lam, layers=int(seen.layers[k]), stack=stack)))
        for k in shown
    ]  # fmt: skip
    plates = (
        Plate("bridge", charts.stacks(at, curves, np.asarray(stack_limit(at, c=c, lam=lam, stack=stack))),
              f"Response of {stack} stacks over the source's position, and their limit.",
              "The response at the last position to a source, per unit of position: residual stacks of one total "
              "mixing and growing depth, and the kinetic closed form they tend to."),
        Plate("bridge-order", charts.depth_errors(seen), seen.words(),
              "Points: relative difference from the limit. Dashed: the exact coefficient of 1/H, over H."),
    )  # fmt: skip
    rows = tuple(
        (f"{x:.3g}", f"{limit:.6g}", f"{seen.layers[-1] * error:.5g}", f"{fitted:.6f}", f"{exact:.6f}")
        for x, limit, error, fitted, exact in zip(
            seen.sigma0, seen.limit, seen.error[-1], seen.fitted_coefficient, seen.coefficient, strict=True)
    )  # fmt: skip
    data = [
        (int(depth), float(x), float(v), float(limit), float(coefficient))
        for depth, values in zip(seen.layers, seen.values, strict=True)
        for x, v, limit, coefficient in zip(seen.sigma0, values, seen.limit, seen.coefficient, strict=True)
    ]
    about: dict[str, Any] = {}
    if birth is not None:
        about = {
            "name": birth.name, "length": birth.length, "c": birth.c, "distance": birth.distance,
            "strength": birth.strength, "gains": birth.gains.tolist(), "heads": [vars(head) for head in birth.heads],
        }  # fmt: skip
    return Exhibit(
        name="bridge", kicker="Kinetic theory", title="From depth to kinetic time", verdict=seen.words(),
        notes=() if birth is None else (birth.words(),),
        numbers=(("total mixing c", f"{c:.4g}"), ("lambda", f"{lam:.4g}"), ("stack", stack), ("limit", LIMITS[stack]),
                 ("fitted order in 1/H", f"{seen.order:.3f}")),
        plates=plates, caption="First order in 1/H", rows=rows,
        columns=("source", "limit", f"H times error, H = {seen.layers[-1]}", "fitted coefficient", "exact coefficient"),
        fields=("layers", "sigma0", "response", "limit", "coefficient"), data=data,
        parameters={"c": c, "lam": lam, "stack": stack, "layers": seen.layers.tolist()},
        results={"order": seen.order, "fitted_coefficient": seen.fitted_coefficient.tolist(),
                 "coefficient": seen.coefficient.tolist(), "birth": about},
    )  # fmt: skip
