"""Gaussian kernels of activations: by Hermite series or closed form, against two-dimensional quadrature."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import ndtr

from builders import qwen2_like
from catenary.architecture import FeedForward
from catenary.configs.activations import ACTIVATIONS as NAMES
from catenary.errors import NotApplicable
from catenary.theory.feed_forward.activations import ACTIVATIONS, activation
from catenary.theory.feed_forward.hermite import Series, horner
from catenary.theory.feed_forward.kernels import activation_kernels, kernels_between
from catenary.theory.feed_forward.mixer import feed_forward_kernels
from catenary.theory.positions.pairs import Pairs


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def tanh_gelu(x: np.ndarray) -> np.ndarray:
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def softplus(x: np.ndarray) -> np.ndarray:
    return np.log(1 + np.exp(-np.abs(x))) + np.maximum(x, 0)


# Written again from their definitions: name -> f.
DEFINITIONS = {
    "silu": lambda x: x * sigmoid(x),
    "swish": lambda x: x * sigmoid(x),
    "gelu": lambda x: x * ndtr(x),
    "gelu_python": lambda x: x * ndtr(x),
    "gelu_10": lambda x: np.clip(x * ndtr(x), -10, 10),
    "gelu_new": tanh_gelu,
    "gelu_fast": tanh_gelu,
    "gelu_pytorch_tanh": tanh_gelu,
    "gelu_python_tanh": tanh_gelu,
    "gelu_accurate": tanh_gelu,
    "quick_gelu": lambda x: x * sigmoid(1.702 * x),
    "relu": lambda x: np.maximum(x, 0.0),
    "relu2": lambda x: np.maximum(x, 0.0) ** 2,
    "leaky_relu": lambda x: np.maximum(x, 0.01 * x),
    "prelu": lambda x: np.maximum(x, 0.25 * x),
    "hardswish": lambda x: x * np.minimum(np.maximum(x + 3, 0), 6) / 6,
    "linear": lambda x: x,
    "tanh": np.tanh,
    "sigmoid": sigmoid,
    "mish": lambda x: x * np.tanh(softplus(x)),
    "laplace": lambda x: ndtr((x - 0.707107) / 0.282095),
    "sqrtsoftplus": lambda x: np.sqrt(softplus(x)),
    "xielu": lambda x: np.where(x > 0, 0.8 * x**2 + 0.5 * x, 0.8 * (np.exp(np.minimum(x, 0)) - 1 - x) + 0.5 * x),
}
KINKED = {"relu", "leaky_relu", "prelu", "hardswish", "gelu_10"}
"""Those whose slope jumps."""
DISTINCT = sorted({ACTIVATIONS[name]: name for name in sorted(DEFINITIONS)}.values())
"""One name of each function."""
UNLIKE = sorted({"silu", "gelu", "gelu_new", "relu", "relu2", "tanh", "sigmoid", "xielu", "prelu", "laplace", "mish"})


def plane_average(f, scale: float, rho: float, other: float | None = None) -> float:  # type: ignore[no-untyped-def]
    """E[f(s u) f(t v)] by a midpoint rule on the plane of two independent normals, in polar coordinates; t = s."""
    radii = (np.arange(600) + 0.5) * (9.0 / 600)
    angles = (np.arange(720) + 0.5) * (2 * np.pi / 720)
    weight = np.exp(-radii**2 / 2) * radii * (9.0 / 600) * (2 * np.pi / 720) / (2 * np.pi)
    u = radii[:, None] * np.cos(angles)
    v = rho * u + math.sqrt(1 - rho**2) * radii[:, None] * np.sin(angles)
    return float((weight[:, None] * f(scale * u) * f((other or scale) * v)).sum())


def slope(f):  # type: ignore[no-untyped-def]
    return lambda x: (f(x + 1e-5) - f(x - 1e-5)) / 2e-5


def test_every_activation_has_a_definition_here() -> None:
    assert set(DEFINITIONS) == set(ACTIVATIONS)


@pytest.mark.parametrize("name", DISTINCT)
def test_kernels_match_an_average_over_the_plane(name: str) -> None:
    kernels, f = activation_kernels(name, 0.8), DEFINITIONS[name]
    for rho in (-0.4, 0.3, 0.9):
        value = float(kernels.value(np.array([rho]))[0])
        derivative = float(kernels.derivative(np.array([rho]))[0])
        # The midpoint rule meets kinks, and jumps of the slope, inside cells: 1e-5 and 2e-3.
        assert value == pytest.approx(plane_average(f, 0.8, rho), rel=1e-4)
        wide = 3e-3 if name in KINKED else 1e-4
        assert derivative == pytest.approx(plane_average(slope(f), 0.8, rho), rel=wide)


@pytest.mark.parametrize("name", UNLIKE)
def test_kernels_of_two_scales_match_an_average_over_the_plane(name: str) -> None:
    f, scales, rho = DEFINITIONS[name], np.array([0.4, 0.9, 2.0]), 0.7
    correlation = Pairs(np.where(np.eye(3, dtype=bool), 1.0, rho), np.ones(3))
    kernels = kernels_between(activation(name), scales)
    value, derivative = kernels.value(correlation), kernels.derivative(correlation)
    for i in range(3):
        alike = activation_kernels(name, scales[i])
        assert value.same[i] == pytest.approx(float(alike.value(np.ones(1))[0]), rel=1e-9)
        assert derivative.same[i] == pytest.approx(float(alike.derivative(np.ones(1))[0]), rel=1e-9)
        for j in range(i):
            assert value.matrix[i, j] == pytest.approx(plane_average(f, scales[i], rho, scales[j]), rel=1e-4)
            expected = plane_average(slope(f), scales[i], rho, scales[j])
            assert derivative.matrix[i, j] == pytest.approx(expected, rel=5e-3 if name in KINKED else 2e-4)


@pytest.mark.parametrize("name", sorted(DEFINITIONS))
def test_variance_at_full_correlation_matches_a_line_integral(name: str) -> None:
    x = np.linspace(-12, 12, 48_001)
    weight = np.exp(-x**2 / 2) / np.exp(-x**2 / 2).sum()
    for scale in (0.3, 1.0, 1.8):
        expected = float(weight @ DEFINITIONS[name](scale * x) ** 2)
        found = float(activation_kernels(name, scale).value(np.array([1.0]))[0])
        assert found == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("name", sorted(set(DEFINITIONS) - {"linear"}))
def test_the_slope_of_the_value_kernel_is_the_derivative_kernel(name: str) -> None:
    # Price's theorem: d/drho E[f(su) f(sv)] = s^2 E[f'(su) f'(sv)].
    kernels, rho, step = activation_kernels(name, 0.7), np.array([0.4]), 1e-5
    change = (kernels.value(rho + step) - kernels.value(rho - step)) / (2 * step)
    assert float(change[0]) == pytest.approx(0.49 * float(kernels.derivative(rho)[0]), rel=1e-7)


@pytest.mark.parametrize("name", sorted(DEFINITIONS))
def test_functions_and_slopes_are_those_of_transformers(name: str) -> None:
    torch = pytest.importorskip("torch")
    table = pytest.importorskip("transformers.activations").ACT2FN
    x = torch.linspace(-9.05, 11.05, 202, dtype=torch.float64, requires_grad=True)
    y = table[name].double()(x)
    y.sum().backward()
    at = x.detach().numpy()
    # transformers keeps xielu's parameters in bfloat16 and rounds one constant of the fast gelu.
    wide = 5e-3 if name == "xielu" else 1e-7
    np.testing.assert_allclose(activation(name).value(at), y.detach().numpy(), rtol=wide, atol=wide)
    np.testing.assert_allclose(activation(name).derivative(at), x.grad.numpy(), rtol=wide, atol=wide)


def test_every_activation_of_transformers_is_known() -> None:
    table = pytest.importorskip("transformers.activations").ACT2FN
    # relu6 has two kinks and no closed form, and no causal language model uses it.
    assert set(table) - {"relu6"} == set(ACTIVATIONS) == set(NAMES) - {"relu6"}


def test_series_of_silu_has_the_known_coefficients() -> None:
    # E[silu(sz) He_k(z)]^2/k! at s^2 = 0.3584 (Qwen2-0.5B), from 160 Gauss-Hermite nodes in an independent program.
    kernels = activation_kernels("silu", math.sqrt(0.3584))
    assert isinstance(kernels.value, Series)
    assert isinstance(kernels.derivative, Series)
    expected = [6.84454028e-03, 8.96e-02, 1.17989700e-02, 0, 7.06464634e-05, 0]
    np.testing.assert_allclose(kernels.value.coefficients[:6], expected, rtol=1e-8, atol=1e-30)
    expected = [0.25, 6.58424668e-02, 0, 7.88464993e-04, 0, 2.22150351e-05]
    np.testing.assert_allclose(kernels.derivative.coefficients[:6], expected, rtol=1e-8, atol=1e-30)
    assert float(kernels.value(np.array([1.0]))[0]) == pytest.approx(0.10831552641105018, rel=1e-9)


def test_series_are_cut_only_where_nothing_is_left() -> None:
    short, long = activation_kernels("silu", 0.3).value, activation_kernels("silu", 2.5).value
    assert isinstance(short, Series)
    assert isinstance(long, Series)
    assert short.coefficients.size < 12 < 60 < long.coefficients.size


def test_horner_takes_any_shape_and_crosses_blocks() -> None:
    rho = np.random.default_rng(0).uniform(-1, 1, (300, 301)).T
    expected = 1 + 2 * rho + 5 * rho**3
    np.testing.assert_allclose(horner(np.array([1.0, 2.0, 0.0, 5.0]), rho), expected, rtol=1e-13, atol=1e-13)


def gelu_slopes(scale: float, rho: float) -> float:
    """E[gelu'(su) gelu'(sv)] by 1500 x 1500 Gauss-Legendre nodes."""
    at, weight = np.polynomial.legendre.leggauss(1500)
    z, w = 9 * at, 9 * weight * np.exp(-((9 * at) ** 2) / 2) / math.sqrt(2 * math.pi)
    f = activation("gelu").derivative
    u = z[:, None]
    v = rho * u + math.sqrt(1 - rho**2) * z
    return float(w @ (f(scale * u) * f(scale * v)) @ w)


@pytest.mark.parametrize("rho", [0.5, 0.97, 0.995])
def test_a_large_input_scale_errs_only_beside_full_correlation(rho: float) -> None:
    # At s = 9 gelu' is nearly a step; 256 terms leave 2e-3 of it out, which stands on the last power.
    found = float(activation_kernels("gelu", 9.0).derivative(np.array([rho]))[0])
    assert found == pytest.approx(gelu_slopes(9.0, rho), rel=1e-6 if rho < 0.98 else 1e-3)


def test_an_unknown_activation_and_a_huge_scale_are_refused() -> None:
    with pytest.raises(NotApplicable, match=r"activation 'snake'; known: gelu"):
        activation_kernels("snake", 1.0)
    with pytest.raises(NotApplicable, match="after 256 terms at input std 40"):
        activation_kernels("gelu", 40.0)
    with pytest.raises(NotApplicable, match=r"'relu6'"):
        activation_kernels("relu6", 1.0)


@pytest.mark.parametrize("activation", ["silu", "relu"])
@pytest.mark.parametrize("gated", [True, False])
def test_feed_forward_kernels_match_a_random_network(activation: str, gated: bool) -> None:
    """Phi and chi against 40 draws of a branch of width 192: forward covariance and J^T J of two inputs."""
    width, inner, std_in, std_out, rho = 192, 384, 0.06, 0.05, 0.6
    branch = FeedForward(inner, gated, activation, std_in, std_out)
    kernels = feed_forward_kernels(branch, width)
    rng = np.random.default_rng(1)
    f, df = DEFINITIONS[activation], slope(DEFINITIONS[activation])
    forward, backward = [], []
    for _ in range(40):
        x = rng.standard_normal(width)
        y = rng.standard_normal(width)
        x *= math.sqrt(width) / np.linalg.norm(x)
        y -= x * (x @ y) / width
        y = rho * x + math.sqrt(1 - rho**2) * y * math.sqrt(width) / np.linalg.norm(y)
        up, gate = (std_in * rng.standard_normal((inner, width)) for _ in range(2))
        down = std_out * rng.standard_normal((width, inner))

        def inside(z: np.ndarray, up: np.ndarray = up, gate: np.ndarray = gate) -> np.ndarray:
            return f(gate @ z) * (up @ z) if gated else f(up @ z)

        def jacobian(z: np.ndarray, up: np.ndarray = up, gate: np.ndarray = gate) -> np.ndarray:
            if not gated:
                return df(up @ z)[:, None] * up
            return (df(gate @ z) * (up @ z))[:, None] * gate + f(gate @ z)[:, None] * up

        forward.append((down @ inside(x)) @ (down @ inside(y)) / width)
        backward.append(np.sum((down @ jacobian(x)) * (down @ jacobian(y))) / width)
    for drawn, kernel in ((forward, kernels.forward), (backward, kernels.backward)):
        error = np.std(drawn) / math.sqrt(len(drawn))
        # 4 standard errors, and 2 % for the finite width.
        assert abs(np.mean(drawn) - float(kernel(np.array([rho]))[0])) < 4 * error + 0.02 * np.mean(drawn)


def test_gain_of_qwen2s_feed_forward() -> None:
    layer = qwen2_like().layers[0]
    kernels = feed_forward_kernels(layer.feed_forward, 896)
    # m sigma^2 s^2 E silu^2 with E silu^2 from the coefficients above.
    expected = 4864 * 0.0004 * 0.3584 * 0.10831552641105018
    assert float(kernels.forward(np.array([1.0]))[0]) == pytest.approx(expected, rel=1e-8)
