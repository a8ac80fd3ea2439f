"""What the kinetic functions take and give: numbers that broadcast, checked against their domain in one line each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float64, Real

from catenary.errors import InvalidInput, invalid

Numbers = Real[np.ndarray, "..."] | Sequence[float] | float | np.integer[Any]
"""An argument: one number, or anything numpy reads as an array of numbers. Arguments of one call broadcast."""

Array = Float64[np.ndarray, "..."]
"""Float64 values of any shape, which broadcast with their neighbours."""

Values = Array | np.float64
"""A result: a float64 number for numbers, an array for arrays."""

LARGEST_BETA = 700.0
"""Above it the rates n^2 I_n(beta) leave float64."""

SMALLEST_BETA = 1e-100
"""Below it their cubes do."""

LARGEST_DECAY = 1e5
"""Up to it shapes of profiles are sought: the distances looked at grow with lambda."""


def plain(array: Values) -> Values:
    """A number where the array has no axes, else the array."""
    values: Values = np.asarray(array)[()]
    return values


def real(name: str, values: Numbers) -> Array:
    """``values`` as finite float64; the error names the first entry that is not."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise invalid(name, "must be a number or an array of numbers", values) from None
    return _kept(name, "must be finite", array, np.isfinite(array))


def at_least_zero(name: str, values: Numbers) -> Array:
    """Finite and >= 0."""
    array = real(name, values)
    return _kept(name, "must be >= 0", array, array >= 0)


def positive(name: str, values: Numbers) -> Array:
    """Finite and > 0."""
    array = real(name, values)
    return _kept(name, "must be > 0", array, array > 0)


def concentration(values: Numbers) -> Array:
    r"""The interaction's \(\beta\), in (0, 700]; positive ones below 1e-100 are refused too."""
    array = real("beta", values)
    _kept("beta", f"must be in (0, {LARGEST_BETA:g}]", array, (array > 0) & (array <= LARGEST_BETA))
    return _kept("beta", f"must be at least {SMALLEST_BETA:g}", array, array >= SMALLEST_BETA)


def shape_decay(values: Numbers) -> Array:
    r"""A decay \(\lambda\) of a profile whose shape is sought, in [0, 1e5]."""
    array = at_least_zero("lam", values)
    return _kept("lam", f"must be at most {LARGEST_DECAY:g}", array, array <= LARGEST_DECAY)


def vocabulary(values: Numbers) -> Array:
    """The number of token angles M >= 1. It need not be whole: pi/M is the width of the read-out."""
    array = real("M", values)
    return _kept("M", "must be >= 1", array, array >= 1)


def fraction(name: str, values: Numbers) -> Array:
    """A position fraction in (0, 1]."""
    array = real(name, values)
    hint = "position 0 is no token, and influence diverges there"
    return _kept(name, "must be in (0, 1]", array, (array > 0) & (array <= 1), hint)


def source(values: Numbers, target: Array) -> Array:
    """A source position in (0, target]."""
    array = fraction("sigma0", values)
    later = np.broadcast_to(array, broadcast_shape(sigma0=array, sigma=target))
    _kept("sigma0", "must be <= sigma", later, later <= target, "a later source has no influence")
    return array


def one_number(name: str, array: Array) -> float:
    """The number in an array without axes."""
    if array.ndim:
        raise invalid(name, "must be one number", array.tolist())
    return float(array)


def whole(name: str, value: int | np.integer[Any], least: int, most: int | None = None, hint: str = "") -> int:
    """A whole number from ``least`` on, numpy's own included; True and False are none."""
    if (
        isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least
        or (most is not None and value > most)
    ):
        span = f"of at least {least}" if most is None else f"in {least}..{most}"
        raise invalid(name, f"must be a whole number {span}", value, hint)
    return int(value)


def broadcast_shape(**arrays: Array) -> tuple[int, ...]:
    """The shape that the arguments have together; the error names those of all."""
    try:
        return np.broadcast_shapes(*(array.shape for array in arrays.values()))
    except ValueError:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise InvalidInput(f"arguments must have shapes that broadcast, got {shapes}") from None


def instance(name: str, value: object, kind: type, words: str) -> None:
    """Refuse what is not of a class, or lacks a protocol's methods."""
    if not isinstance(value, kind):
        raise invalid(name, f"must be {words}", value)


def generator(seed: int) -> np.random.Generator:
    """Random numbers from a whole number >= 0."""
    return np.random.default_rng(whole("seed", seed, 0))


def _kept(
    name: str, rule: str, array: Array, good: np.ndarray, hint: str = ""
) -> Array:
    if not good.all():
        raise invalid(name, rule, float(array[~good].flat[0]), hint)
    return array
