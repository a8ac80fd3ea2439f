"""The steps of the paper's proofs one by one: appendix A in exact fractions, C by quadrature, E by complex steps."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import comb
from typing import Any

import numpy as np
from jaxtyping import Complex128, Float64

from catenary.reading import Reading
from catenary.reproduce.finding import STUDIES, Finding
from catenary.study.observer import Observer
from catenary.theory.cesaro.density import cesaro_density, spike_mass

Matrix = list[list[Fraction]]
Projection = Float64[np.ndarray, "d k"]
Jacobian = Float64[np.ndarray, "L d L d"]


def proof_steps(settings: Mapping[str, Any], observer: Observer) -> Finding:
    """Gap of both sides of every identity that a proof uses.

    Settings: ``size`` (positions, exact fractions), ``powers`` (H up to), ``mixing``, ``at`` (x), ``nodes``.
    """
    size, powers = int(settings["size"]), int(settings["powers"])
    mixing = Fraction(str(settings["mixing"]))
    at, nodes = list(map(float, settings["at"])), int(settings["nodes"])
    exact = {
        "base case": max(abs(_sum(i, j, 1) - Fraction(1, i)) for i in range(1, size + 1) for j in range(1, i + 1)),
        "binomial product": max(
            abs(comb(k - 1, j - 1) * comb(k - j, m - j) - comb(m - 1, j - 1) * comb(k - 1, m - 1))
            for k in range(1, size + 1) for m in range(1, k + 1) for j in range(1, m + 1)
        ),
        "inductive step": max(_step_gap(i, j, h) for h in range(1, powers + 1)
                              for i in range(1, size + 1) for j in range(1, i + 1)),
        "normalised form": _normalised_gap(size, powers, mixing),
    }  # fmt: skip
    meanings = {
        "base case": "largest gap of the sum at H = 1 to 1/i",
        "binomial product": "largest gap of C(k-1,j-1) C(k-j,m-j) to C(m-1,j-1) C(k-1,m-1)",
        "inductive step": "largest gap of M times the sum at H to the sum at H + 1",
        "normalised form": "largest gap of (I + a'M)^H to (1 + a')^H N^H at alpha = a'/(1 + a')",
    }
    pure = max(_kernel_gap(x, n, 1.0, nodes) for x in at for n in range(1, powers + 1))
    mixed = max(_kernel_gap(x, n, float(mixing), nodes) for x in at for n in range(1, powers + 1))
    readings = (
        *(Reading(name, float(gap), meanings[name], floor=0.0) for name, gap in exact.items()),
        Reading("pure kernel", pure, "largest relative gap of the composed kernel to the next, alpha = 1", floor=1e-11),
        Reading("residual kernel", mixed, f"largest relative gap of the composed kernel, alpha = {float(mixing):g}",
                floor=1e-11),
        Reading("softmax derivative", max(_softmax_gap(i) for i in (2, 3, size)),
                "largest gap of dA_ik/dS_im at equal logits to (1/i)(delta_km - 1/i)", floor=1e-14),
        Reading("layer Jacobian", layer_gap(size),
                f"largest gap of E.2's sum of three to dh_i/dh_j of a random layer, {size} positions", floor=1e-13),
    )  # fmt: skip
    return Finding(
        f"exact fractions up to L = {size}, H = {powers + 1}; {nodes}-node quadrature at x = {at}; "
        f"alpha = {float(mixing):g}",
        readings,
    )


def _sum(i: int, j: int, power: int) -> Fraction:
    terms = (Fraction((-1) ** (m - j) * comb(i - j, m - j), m**power) for m in range(j, i + 1))
    return comb(i - 1, j - 1) * sum(terms, Fraction(0))


def _step_gap(i: int, j: int, power: int) -> Fraction:
    return abs(sum((_sum(k, j, power) for k in range(j, i + 1)), Fraction(0)) / i - _sum(i, j, power + 1))


def _times(a: Matrix, b: Matrix) -> Matrix:
    return [[sum((x * y for x, y in zip(row, column, strict=True)), Fraction(0)) for column in zip(*b, strict=True)]
            for row in a]  # fmt: skip


def _normalised_gap(size: int, powers: int, mixing: Fraction) -> Fraction:
    """alpha is given; a' = alpha / (1 - alpha)."""
    raw = mixing / (1 - mixing)
    same = [[Fraction(i == j) for j in range(size)] for i in range(size)]
    mean = [[Fraction(int(j <= i), i + 1) for j in range(size)] for i in range(size)]
    left = [[s + raw * m for s, m in zip(*rows, strict=True)] for rows in zip(same, mean, strict=True)]
    right = [
        [(1 - mixing) * s + mixing * m for s, m in zip(*rows, strict=True)] for rows in zip(same, mean, strict=True)
    ]
    a, b, worst = same, same, Fraction(0)
    for power in range(1, powers + 1):
        a, b = _times(a, left), _times(b, right)
        scale = (1 + raw) ** power
        gap = max(abs(x - scale * y) for rows in zip(a, b, strict=True) for x, y in zip(*rows, strict=True))
        worst = max(worst, gap)
    return worst


def _kernel_gap(x: float, n: int, mixing: float, nodes: int) -> float:
    r"""Density of n + 1 layers against one layer applied to n, for the kernel's scale-free form \(\rho_n(x/z)/z\)."""
    points, weights = np.polynomial.legendre.leggauss(nodes)
    u = (points + 1) / 2 * -np.log(x)  # z = e^-u runs from 1 down to x
    inner = float(cesaro_density(x * np.exp(u), n, mixing) @ weights) * -np.log(x) / 2
    stepped = (1 - mixing) * float(cesaro_density(x, n, mixing)) + mixing * (spike_mass(n, mixing) + inner)
    return float(abs(stepped / float(cesaro_density(x, n + 1, mixing)) - 1))


def _softmax_gap(i: int) -> float:
    """By complex steps, which have no rounding of a difference."""
    found: Float64[np.ndarray, "i i"] = np.empty((i, i))
    for m in range(i):
        logits: Complex128[np.ndarray, " i"] = np.zeros(i, dtype=np.complex128)
        logits[m] = 1e-30j
        found[:, m] = (np.exp(logits) / np.exp(logits).sum()).imag / 1e-30
    return float(np.abs(found - (np.eye(i) - 1 / i) / i).max())


def layer_gap(length: int, width: int = 5, head: int = 3) -> float:
    """Appendix E.2's decomposition against complex steps through one random head with its residual stream."""
    rng = np.random.default_rng(0)
    stream = rng.standard_normal((length, width))
    query, key, value = (rng.standard_normal((width, head)) for _ in range(3))
    out = rng.standard_normal((head, width))
    stepped: Float64[np.ndarray, "j a i b"] = np.empty((length, width, length, width))
    for j, a in np.ndindex(length, width):
        moved = stream.astype(np.complex128)
        moved[j, a] += 1e-30j
        stepped[j, a] = (moved + _attention(moved, query, key) @ moved @ value @ out).imag / 1e-30
    return float(np.abs(sum(layer_terms(stream, query, key, value, out)) - stepped).max())


def layer_terms(
    stream: Float64[np.ndarray, "L d"], query: Projection, key: Projection, value: Projection,
    out: Float64[np.ndarray, "k d"],
) -> tuple[Jacobian, Jacobian, Jacobian]:
    r"""Residual, value and score term of \(\partial h_{ib}/\partial h_{ja}\), vectors as rows (appendix E.2).

    The score term is \(\sum_{k,m} A_{ik}(\delta_{km}-A_{im})[\delta_{ij} W_Q k_m + \delta_{mj} W_K q_i]_a
    (v_k W_O)_b/\sqrt{d_k}\).
    """
    weights, same = _attention(stream, query, key), np.eye(len(stream))
    queries, keys, values = stream @ query, stream @ key, stream @ value @ out
    softmax = np.einsum("ik,km->ikm", weights, same) - np.einsum("ik,im->ikm", weights, weights)
    to_query = np.einsum("ikm,ij,ma,kb->jaib", softmax, same, keys @ query.T, values, optimize=True)
    to_key = np.einsum("ikj,ia,kb->jaib", softmax, queries @ key.T, values, optimize=True)
    return (
        np.einsum("ij,ab->jaib", same, np.eye(stream.shape[1])), np.einsum("ij,ab->jaib", weights, value @ out),
        (to_query + to_key) / np.sqrt(query.shape[1]),
    )  # fmt: skip


def _attention(stream: Any, query: Projection, key: Projection) -> Any:
    """Causal softmax weights; of a complex stream too."""
    logits = stream @ query @ (stream @ key).T / np.sqrt(query.shape[1])
    weights = np.tril(np.exp(logits))
    return weights / weights.sum(axis=1, keepdims=True)


STUDIES.register("proof-steps", proof_steps)
