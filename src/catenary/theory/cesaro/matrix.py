r"""The first-moment law at any output position: rows, columns and the whole matrix \(N = \prod_l N_l\).

N is lower triangular, and its row i does not know how many positions follow: it is the last row of the law at length
i. So the influence on any output costs what the influence on the last one costs, at length i in place of L.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64

from catenary.errors import NotApplicable
from catenary.theory.cesaro.first_moment import SMALLEST, Mixing, checked_length, checked_position, layer_mixing
from catenary.theory.cesaro.row import cesaro_row
from catenary.theory.positions.kernels import Uniform


def cesaro_query_row(length: int, layers: int, mixing: Mixing, query: int) -> Float64[np.ndarray, " L"]:
    r"""\(N_{i,j}\) for one output i = ``query`` and all sources j: ``cesaro_row`` at length i, then exact zeros.

    Args:
        length: number of positions L >= 2.
        layers: number of layers H >= 1.
        mixing: alpha in [0, 1], one number or one per layer, not 0 in every layer.
        query: the output position, 0-based, 0 <= query < L.

    Raises:
        InvalidInput: an argument is out of range.
        NotApplicable: a weight at or before the query is below 1e-292.

    >>> cesaro_query_row(5, 2, 1.0, 3).round(4).tolist()
    [0.5208, 0.2708, 0.1458, 0.0625, 0.0]
    """
    layer_mixing(layers, mixing)
    query = checked_position("query", query, checked_length(length))
    row = np.zeros(length)
    row[: query + 1] = cesaro_row(query + 1, layers, mixing) if query else 1.0
    return row


def cesaro_column(length: int, layers: int, mixing: Mixing, position: int) -> Float64[np.ndarray, " L"]:
    r"""\(N_{i,j}\) for one source j = ``position`` and all outputs i: exact zeros, then how its influence dilutes.

    From \(v = e_j\), each layer does \(v_i \leftarrow (1-\alpha_l) v_i + \alpha_l \frac1i \sum_{k \le i} v_k\); O(HL).
    Source: derived here.

    Raises:
        InvalidInput: an argument is out of range.
        NotApplicable: an entry at or after the position is below 1e-292.

    >>> cesaro_column(4, 2, 1.0, 1).round(4).tolist()
    [0.0, 0.25, 0.2778, 0.2708]
    """
    mixings, kernel = layer_mixing(layers, mixing), Uniform(checked_length(length))
    column = np.zeros(length)
    column[checked_position("position", position, length)] = 1.0
    for a in mixings:
        column = (1 - a) * column + a * kernel.average(column)
    _refuse_underflow(column[position:])
    return column


def cesaro_matrix(length: int, layers: int, mixing: Mixing) -> Float64[np.ndarray, "L L"]:
    """All of N, output by source, in O(H L^2) time and 16 L^2 bytes: for looking at small L.

    Raises:
        InvalidInput: an argument is out of range.
        NotApplicable: an entry on or below the diagonal is below 1e-292.

    >>> cesaro_matrix(3, 1, 0.5).round(4).tolist()
    [[1.0, 0.0, 0.0], [0.25, 0.75, 0.0], [0.1667, 0.1667, 0.6667]]
    """
    mixings, kernel = layer_mixing(layers, mixing), Uniform(checked_length(length))
    matrix = np.eye(length)
    for a in mixings:
        matrix = (1 - a) * matrix + a * kernel.average(matrix)
    _refuse_underflow(matrix[np.tril_indices(length)])
    return matrix


def _refuse_underflow(weights: Float64[np.ndarray, " n"]) -> None:
    if weights.min() < SMALLEST:
        raise NotApplicable(
            f"the path weights must stay above {SMALLEST:.1g} to be float64 numbers, got {weights.min():.3g}; "
            "cesaro_log_row gives the logarithms of a row"
        )
