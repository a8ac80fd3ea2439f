"""Mean attention kernels entry by entry: the softmax of a bias over the tokens that a mask lets through."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from catenary.architecture import Alibi, Causal, Chunk, Kernel, Prefix, Window


def sees(kernel: Kernel, query: int, key: int) -> bool:
    """The mask, positions from 0, as the words of the architecture say it."""
    if isinstance(kernel, Prefix) and query < kernel.length and key < kernel.length:
        return True
    if key > query:
        return False
    if isinstance(kernel, Window):
        return key > query - kernel.width
    if isinstance(kernel, Chunk):
        return query // kernel.width == key // kernel.width
    return True


def dense(kernel: Kernel, length: int) -> np.ndarray:
    """Softmax of -slope * distance (0 without ALiBi) under the mask."""
    matrix = np.zeros((length, length))
    for query in range(length):
        keys = [key for key in range(length) if sees(kernel, query, key)]
        slope = kernel.slope if isinstance(kernel, Alibi) else 0.0
        weights = np.exp(-slope * (query - np.array(keys)))
        matrix[query, keys] = weights / weights.sum()
    return matrix


def exact_average(kernel: Causal | Window | Chunk | Prefix, values: list[Fraction]) -> list[Fraction]:
    """The average of every uniform row, without rounding."""
    length = len(values)
    rows = ([values[key] for key in range(length) if sees(kernel, query, key)] for query in range(length))
    return [sum(row, Fraction(0)) / len(row) for row in rows]


def exact_adjoint(kernel: Causal | Window | Chunk | Prefix, values: list[Fraction]) -> list[Fraction]:
    """The transpose of every uniform row, without rounding."""
    length = len(values)
    counts = [sum(sees(kernel, query, key) for key in range(length)) for query in range(length)]
    return [
        sum((values[query] / counts[query] for query in range(length) if sees(kernel, query, key)), Fraction(0))
        for key in range(length)
    ]
