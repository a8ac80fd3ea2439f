"""Running, restarting, sliding and decaying sums along one axis: one pass, additions only, for any array.

Sums of positive numbers keep their relative accuracy: nothing is ever subtracted, also not where a window leaves a
term behind. Each function returns a new array.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import EllipsisType

import numpy as np
from jaxtyping import Float64


def running_sum(
    x: Float64[np.ndarray, " *shape"], axis: int = 0, period: int | None = None, offset: int = 0
) -> Float64[np.ndarray, " *shape"]:
    r"""\(y_i = \sum_{s(i) \le j \le i} x_j\), s(i) = 0 or the last index up to i that is ``offset`` mod ``period``.

    Args:
        x: any float64 array.
        axis: the axis to sum along.
        period: how often the sum starts anew (None: never), >= 1.
        offset: the first index at which it does, 0 <= offset < period.
    """
    y = np.empty_like(x)
    if axis in (-1, x.ndim - 1):
        for rows in _blocks(x):
            y[rows] = _along_last(x[rows], period, offset)
        return y
    length = x.shape[axis]
    total: Float64[np.ndarray, " *row"] | None = None
    for index, row, out in zip(range(length), np.moveaxis(x, axis, 0), np.moveaxis(y, axis, 0), strict=True):
        if total is None or (period is not None and (index - offset) % period == 0):
            out[...] = row
        else:
            np.add(total, row, out=out)
        total = out
    return y


def later_sum(
    x: Float64[np.ndarray, " *shape"], axis: int = 0, period: int | None = None
) -> Float64[np.ndarray, " *shape"]:
    r"""\(y_j = \sum_{j \le i \le e(j)} x_i\), e(j) the last index, or that before the next multiple of ``period``."""
    offset = 0 if period is None else x.shape[axis] % period
    return np.flip(running_sum(np.flip(x, axis), axis, period, offset), axis)


def sliding_sum(x: Float64[np.ndarray, " *shape"], width: int, axis: int = 0) -> Float64[np.ndarray, " *shape"]:
    r"""\(y_i = \sum_{i-w < j \le i} x_j\), w = ``width`` >= 1.

    The window ending at i is the tail of one block of w entries and the head of the next: a sum up to i that restarts
    at every block, and one from i - w + 1 to its block's end.
    """
    length = x.shape[axis]
    if width >= length:
        return running_sum(x, axis)
    y = np.moveaxis(running_sum(x, axis, width), axis, 0)
    tails = np.moveaxis(later_sum(x, axis, width), axis, 0)
    # A window that is a whole block has no tail.
    tails[::width] = 0.0
    y[width:] += tails[1 : length - width + 1]
    return np.moveaxis(y, 0, axis)


def decaying_sum(x: Float64[np.ndarray, " *shape"], factor: float, axis: int = 0) -> Float64[np.ndarray, " *shape"]:
    r"""\(y_i = \sum_{j \le i} f^{i-j} x_j\), f = ``factor`` in (0, 1]: the recursion \(y_i = f y_{i-1} + x_i\).

    Values below the smallest normal number come out as 0.
    """
    y: Float64[np.ndarray, " *shape"]
    if axis in (-1, x.ndim - 1):
        from scipy.signal import lfilter  # most of what importing the theory would cost

        y = lfilter([1.0], [1.0, -factor], x, axis=-1)
    else:
        y = np.empty_like(x)
        total = np.zeros_like(np.take(x, 0, axis))
        for row, out in zip(np.moveaxis(x, axis, 0), np.moveaxis(y, axis, 0), strict=True):
            total *= factor
            total += row
            out[...] = total
    # Rounding to nearest keeps a subnormal number alive for ever when f > 1/2.
    y[np.abs(y) < np.finfo(np.float64).tiny] = 0.0
    return y


def _along_last(
    x: Float64[np.ndarray, " *shape"], period: int | None, offset: int
) -> Float64[np.ndarray, " *shape"]:
    length = x.shape[-1]
    if period is None:
        return np.cumsum(x, axis=-1)
    before = -offset % period
    after = -(before + length) % period
    padded = np.zeros((*x.shape[:-1], before + length + after))
    padded[..., before : before + length] = x
    blocks = padded.reshape(*x.shape[:-1], -1, period)
    sums = np.cumsum(blocks, axis=-1).reshape(padded.shape)
    return np.asarray(sums[..., before : before + length])


def _blocks(x: Float64[np.ndarray, " *shape"]) -> Iterator[slice | EllipsisType]:
    """Slices of the first axis that fit in the cache."""
    if x.ndim == 1:
        yield ...
        return
    rows = max(1, 16_384 * x.shape[0] // max(x.size, 1))
    for start in range(0, x.shape[0], rows):
        yield slice(start, start + rows)
