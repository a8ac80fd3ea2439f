"""Errors of one curve against another, written as plain loops; shares no code with the package."""

from __future__ import annotations

import math
from statistics import median


def log_ratios(a: list[float], b: list[float]) -> list[float]:
    """log10 a/b, position by position."""
    return [math.log(x / y) / math.log(10) for x, y in zip(a, b, strict=True)]


def errors(a: list[float], b: list[float]) -> dict[str, float]:
    """Median and largest error, absolute and after removing the median factor."""
    r = log_ratios(a, b)
    m = median(r)
    return {
        "median_absolute": median(abs(x) for x in r),
        "max_absolute": max(abs(x) for x in r),
        "median_shape": median(abs(x - m) for x in r),
        "max_shape": max(abs(x - m) for x in r),
    }


def region_of(position: int, length: int) -> str:
    """The region of a position counted from 1, for lengths with a rest of at least 32 tokens."""
    if position == 1:
        return "first"
    if position == length:
        return "last"
    if position <= 8:
        return "2-8"
    if position <= 64:
        return "9-64"
    rest = length - 1 - 64
    for k in range(8):
        low, high = 65 + rest * k // 8, 64 + rest * (k + 1) // 8
        if low <= position <= high:
            return f"{low}-{high}"
    raise AssertionError(position)


def block_log_means(rho: list[float], size: float) -> list[float]:
    """log10 block means of positions 2..L-1 in floor((L-2)/size) blocks, the remainder spread."""
    body = rho[1:-1]
    count = math.floor(len(body) / size)
    blocks: list[list[float]] = [[] for _ in range(count)]
    for i, value in enumerate(body):
        k = next(k for k in range(count) if i < len(body) * (k + 1) // count)
        blocks[k].append(math.log10(value))
    return [sum(block) / len(block) for block in blocks]
