"""Activations by transformers' names, and their Gaussian kernels K_f(rho) = E[f(s u) f(s v)], corr(u, v) = rho.

A kernel of a smooth activation is a power series in rho (Hermite series); one with a kink has a slowly converging
series and a closed form, which is used instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Float64

from catenary.errors import NotApplicable
from catenary.registry import Registry

Array = Float64[np.ndarray, " *shape"]
Kernel = Callable[[Array], Array]

NODES = np.linspace(-13, 13, 651)
"""Trapezoid nodes of the Gaussian average. The integrands are analytic in a strip of half-width >= pi/(2 s), so the
error is below exp(-2 pi (pi / 2 s) / 0.04), under 1e-16 for s <= 6; He_k(z) exp(-z^2/2) is below 1e-15 at 13."""

WEIGHTS = np.exp(-0.5 * NODES**2) / np.exp(-0.5 * NODES**2).sum()

TERMS = 256
"""Most terms of a Hermite series."""

TAIL = 1e-10
"""A series ends where the terms left out hold less than this share of E[f^2]."""

WORST_TAIL = 1e-6
"""Refused when TERMS terms leave more than this share of E[f^2] out: .1 % of the profile would need 100 times more."""


@dataclass(frozen=True)
class ActivationKernels:
    """K_f and K_f' of one activation at one input scale s."""

    value: Kernel
    derivative: Kernel


ActivationTheory = Callable[[float], ActivationKernels]
"""From the standard deviation s of the activation's input to its two kernels."""

ACTIVATIONS: Registry[ActivationTheory] = Registry("activation")


def activation_kernels(name: str, scale: float) -> ActivationKernels:
    r"""The kernels \(K_f(\rho)\), \(K_{f'}(\rho)\) of activation ``name`` for inputs of standard deviation ``scale``.

    \[K_f(\rho) = E[f(su)f(sv)], \quad (u, v)\ \text{standard normal with correlation}\ \rho .\]

    Args:
        name: transformers' name of the activation (``silu``, ``gelu``, ``gelu_new``, ``relu``, ...).
        scale: s > 0, the standard deviation of the pre-activation.

    Raises:
        NotApplicable: for a name without kernels, or a scale at which the Hermite series does not converge.
    """
    if name not in ACTIVATIONS:
        raise NotApplicable(
            f"no Gaussian kernel is known for the activation {name!r}; known: {', '.join(sorted(ACTIVATIONS))}"
        )
    return ACTIVATIONS[name](scale)


@dataclass(frozen=True, eq=False)
class Series:
    r"""A kernel \(\sum_k c_k \rho^k\) with \(c_k \ge 0\), \(|\rho| \le 1\).

    For a Hermite series \(c_k = a_k^2\), \(a_k = E[f(sz) He_k(z)]/\sqrt{k!}\), by Mehler's formula.
    """

    coefficients: Float64[np.ndarray, " terms"]

    def __call__(self, rho: Array) -> Array:
        """The sum, by Horner's rule; shape of ``rho``."""
        return horner(self.coefficients, rho)

    def times(self, factor: float) -> Series:
        """The series factor * K."""
        return Series(factor * self.coefficients)

    def raised(self) -> Series:
        """The series rho * K(rho)."""
        return Series(np.concatenate(([0.0], self.coefficients)))

    def plus(self, other: Series) -> Series:
        """The sum of two series."""
        total = np.zeros(max(self.coefficients.size, other.coefficients.size))
        total[: self.coefficients.size] += self.coefficients
        total[: other.coefficients.size] += other.coefficients
        return Series(total)


def hermite_series(f: Callable[[Array], Array], scale: float) -> Series:
    r"""The Hermite series of \(E[f(su)f(sv)]\), cut where the rest holds less than ``TAIL`` of \(E[f(sz)^2]\).

    All terms are >= 0 and \(|\rho| \le 1\), so the kernel errs by at most the share left out, at every rho.

    Raises:
        NotApplicable: when ``TERMS`` terms leave more than ``WORST_TAIL`` out (a kink, or a very large ``scale``).
    """
    values = f(scale * NODES)
    total = float(WEIGHTS @ values**2)
    squares = np.empty(TERMS)
    previous, polynomial = np.zeros_like(NODES), np.ones_like(NODES)
    held = 0.0
    for k in range(TERMS):
        squares[k] = (WEIGHTS @ (values * polynomial)) ** 2
        held += squares[k]
        if held >= (1 - TAIL) * total:
            return Series(squares[: k + 1].copy())
        previous, polynomial = polynomial, (NODES * polynomial - math.sqrt(k) * previous) / math.sqrt(k + 1)
    if held >= (1 - WORST_TAIL) * total:
        return Series(squares)
    raise NotApplicable(
        f"the Hermite series of the activation leaves {1 - held / total:.1e} of its variance out after {TERMS} terms "
        f"at input std {scale:.3g}; smaller weights converge faster"
    )


BLOCK = 32_768
"""Numbers per block: two blocks stay in the cache through all terms."""


def horner(coefficients: Float64[np.ndarray, " terms"], rho: Array) -> Array:
    """The polynomial sum_k coefficients[k] rho^k, elementwise."""
    flat = np.ascontiguousarray(rho).reshape(-1)
    out = np.empty_like(flat)
    for start in range(0, flat.size, BLOCK):
        x, y = flat[start : start + BLOCK], out[start : start + BLOCK]
        y[:] = coefficients[-1]
        for c in coefficients[-2::-1]:
            y *= x
            if c:
                y += c
    return out.reshape(rho.shape)


def _smooth(f: Callable[[Array], Array], derivative: Callable[[Array], Array]) -> ActivationTheory:
    @lru_cache(maxsize=64)
    def kernels(scale: float) -> ActivationKernels:
        return ActivationKernels(hermite_series(f, scale), hermite_series(derivative, scale))

    return kernels


def _sigmoid(x: Array) -> Array:
    return np.asarray(0.5 * (1 + np.tanh(0.5 * x)))


def _silu(x: Array) -> Array:
    return np.asarray(x * _sigmoid(x))


def _silu_derivative(x: Array) -> Array:
    gate = _sigmoid(x)
    return np.asarray(gate * (1 + x * (1 - gate)))


def _normal_cdf(x: Array) -> Array:
    return np.array([0.5 * math.erfc(-t / math.sqrt(2)) for t in x.ravel()]).reshape(x.shape)


def _gelu(x: Array) -> Array:
    return np.asarray(x * _normal_cdf(x))


def _gelu_derivative(x: Array) -> Array:
    return np.asarray(_normal_cdf(x) + x * np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi))


_TANH_SCALE = math.sqrt(2 / math.pi)
_TANH_CUBIC = 0.044715


def _gelu_tanh(x: Array) -> Array:
    return np.asarray(0.5 * x * (1 + np.tanh(_TANH_SCALE * (x + _TANH_CUBIC * x**3))))


def _gelu_tanh_derivative(x: Array) -> Array:
    bend = np.tanh(_TANH_SCALE * (x + _TANH_CUBIC * x**3))
    return np.asarray(0.5 * (1 + bend) + 0.5 * x * (1 - bend**2) * _TANH_SCALE * (1 + 3 * _TANH_CUBIC * x * x))


def _quick_gelu(x: Array) -> Array:
    return np.asarray(x * _sigmoid(1.702 * x))


def _quick_gelu_derivative(x: Array) -> Array:
    gate = _sigmoid(1.702 * x)
    return np.asarray(gate * (1 + 1.702 * x * (1 - gate)))


def _relu(scale: float) -> ActivationKernels:
    r"""Arc-cosine kernels of degree 1 and 0: \(E[(su)_+(sv)_+]\) and \(\Pr[u>0, v>0]\) (Cho and Saul 2009, eq. 6)."""
    return ActivationKernels(lambda rho: scale**2 * _arc_cosine(rho, 1), lambda rho: _arc_cosine(rho, 0))


def _relu_squared(scale: float) -> ActivationKernels:
    """Arc-cosine kernels of degree 2 and 1, for f = max(x, 0)^2 and f' = 2 max(x, 0)."""
    return ActivationKernels(
        lambda rho: scale**4 * _arc_cosine(rho, 2), lambda rho: 4 * scale**2 * _arc_cosine(rho, 1)
    )


def _arc_cosine(rho: Array, degree: int) -> Array:
    r"""\(E[u_+^n v_+^n]\) for standard normals of correlation rho, n = 0, 1, 2; angle \(\theta = \arccos\rho\)."""
    rho = np.clip(rho, -1, 1)
    angle = np.pi - np.arccos(rho)
    sine = np.sqrt(1 - rho * rho)
    terms = (angle, sine + angle * rho, 3 * sine * rho + angle * (1 + 2 * rho * rho))
    return np.asarray(terms[degree] / (2 * np.pi))


def _linear(scale: float) -> ActivationKernels:
    return ActivationKernels(Series(np.array([0.0, scale**2])), Series(np.array([1.0])))


for _names, _theory in (
    (("silu", "swish"), _smooth(_silu, _silu_derivative)),
    (("gelu", "gelu_python"), _smooth(_gelu, _gelu_derivative)),
    (("gelu_new", "gelu_pytorch_tanh", "gelu_fast", "gelu_python_tanh", "gelu_accurate"),
     _smooth(_gelu_tanh, _gelu_tanh_derivative)),
    (("quick_gelu",), _smooth(_quick_gelu, _quick_gelu_derivative)),
    (("relu",), _relu),
    (("relu2",), _relu_squared),
    (("linear",), _linear),
):
    for _name in _names:
        ACTIVATIONS.register(_name, _theory)
