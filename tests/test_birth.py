"""The birth law: golden values, an oracle of explicit loops, limits, and what each ingredient does."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from builders import decoder, gpt2_like, llama_like, qwen2_like, qwen3_like, smollm2_like
from catenary.architecture import Architecture, FeedForward, pre_norm
from catenary.errors import InvalidInput, NotApplicable
from catenary.theory import birth
from catenary.theory.birth import exact_energies
from catenary.theory.embedding import embedded
from oracles.birth import LayerNumbers, Plain, profile

GOLDEN = Path(__file__).parent / "golden"
BUILDERS: dict[str, Callable[[], Architecture]] = {
    "qwen2-0.5b": qwen2_like,
    "gpt2": gpt2_like,
    "smollm2-135m": smollm2_like,
    "llama-3-8b": llama_like,
    "qwen3-0.6b": qwen3_like,
}


def entries(file: str) -> list[Any]:
    return [
        pytest.param(entry, id=f"{entry['name']}-{entry['coupling']}-{entry['L']}-{k}")
        for k, entry in enumerate(json.loads((GOLDEN / file).read_text())["entries"])
    ]


def distinct(architecture: Architecture, length: int, **options: Any) -> np.ndarray:
    return exact_energies(architecture, embedded(architecture, np.eye(length)), **options)


def golden_error(entry: dict[str, Any]) -> float:
    architecture = BUILDERS[entry["name"]]()
    config, layer = entry["config"], architecture.layers[0]
    # The builder must be the network of the golden file, or the comparison means nothing.
    assert (architecture.width, architecture.depth) == (config["d"], config["H"])
    assert (layer.attention.heads, layer.attention.head_dim) == (config["nh"], config["hd"])
    assert (layer.attention.value_std, layer.feed_forward.width) == (config["sw"], config["m"])
    assert layer.attention.output_std == pytest.approx(config["so"], rel=1e-15)
    assert layer.feed_forward.output_std == pytest.approx(config["sd"], rel=1e-15)
    assert (layer.feed_forward.gated, layer.norm.epsilon) == (config["glu"], config["eps"])
    assert architecture.embedding.position_std**2 == pytest.approx(config["pos2"])
    length = entry["L"]
    ids = np.tile([0, 1, 2, 0, 3, 1, 4, 5], length // 8) if entry["ids"] else np.arange(length)
    start = embedded(architecture, (ids[:, None] == ids).astype(float))
    found = exact_energies(architecture, start, entry["coupling"], entry.get("finite_width", True))
    return max(abs(found[int(j) - 1] / value - 1) for j, value in entry["values"].items())


@pytest.mark.parametrize("entry", entries("birth_first_order.json"))
def test_first_order_and_uniform_values(entry: dict[str, Any]) -> None:
    assert golden_error(entry) < 1e-8


@pytest.mark.parametrize("entry", entries("birth_strong.json"))
def test_strong_values(entry: dict[str, Any]) -> None:
    # The golden program interpolates its moments on a coarse grid: .14 % of the square at v = 2.7, less below.
    assert golden_error(entry) < 2e-3


# --- an oracle of explicit loops ------------------------------------------------------------------------------

BRANCHES = {
    # relu has kernels that can be written down at once: arc-cosine (1, 0) and linear in rho when gated with "linear".
    "plain relu": FeedForward(40, False, "relu", 0.2, 0.15),
    "gated linear": FeedForward(30, True, "linear", 0.15, 0.1),
}


def numbers(architecture: Architecture) -> tuple[LayerNumbers, ...]:
    """The layers in numbers, from the architecture's fields alone."""

    def relu_value(x: float) -> float:
        x = min(x, 1.0)
        return (math.sqrt(1 - x * x) + x * (math.pi - math.acos(x))) / (2 * math.pi)

    def relu_slope(x: float) -> float:
        return (math.pi - math.acos(min(x, 1.0))) / (2 * math.pi)

    out = []
    for layer in architecture.layers:
        attention, branch, d = layer.attention, layer.feed_forward, architecture.width
        s2 = d * branch.input_std**2
        m = branch.width * branch.output_std**2
        if branch.gated:  # f(x) = x: Phi = m s^4 rho^2, chi = m s^2 (s^2 rho + s^2 rho)
            phi, chi = (lambda x, m=m, s2=s2: m * s2**2 * x * x), (lambda x, m=m, s2=s2: 2 * m * s2**2 * x)
        else:
            phi, chi = (lambda x, m=m, s2=s2: m * s2 * relu_value(x)), (lambda x, m=m, s2=s2: m * s2 * relu_slope(x))
        gain = d * attention.value_std**2 * attention.heads * attention.head_dim * attention.output_std**2
        unit = 1.0 if attention.qk_norm else (d * attention.query_key_std**2) ** 2
        variance = attention.head_dim * attention.query_scale**2 * unit
        head_dim = None if attention.qk_norm else attention.head_dim
        out.append(LayerNumbers(gain, variance, head_dim, layer.norm.epsilon, phi, chi))
    return tuple(out)


def small(branch: str, **changes: Any) -> Architecture:
    """Two layers that differ in every number."""
    base = decoder(
        family="toy", width=24, depth=2, heads=3, kv_heads=1, head_dim=8, ffn=40, std=0.19, embedding_std=0.3,
        position_std=0.1, epsilon=1e-3, **changes,
    )
    first = base.layers[0].with_mixers(feed_forward=BRANCHES[branch])
    second = pre_norm(
        replace(first.attention, query_key_std=0.27, value_std=0.11, output_std=0.23),
        replace(BRANCHES[branch], width=17),
        replace(first.norm, epsilon=2e-2),
    )
    return replace(base, layers=(first, second))


@pytest.mark.parametrize("branch", sorted(BRANCHES))
@pytest.mark.parametrize("coupling", ["uniform", "first-order", "strong"])
@pytest.mark.parametrize("repeats", [False, True])
def test_explicit_loops_give_the_same(branch: str, coupling: str, repeats: bool) -> None:
    architecture = small(branch)
    ids = np.array([0, 1, 0, 2, 3, 1]) if repeats else np.arange(6)
    equal = (ids[:, None] == ids).astype(float)
    start = 0.09 * equal + 0.01 * np.eye(6)
    expected = profile(Plain(24, numbers(architecture), start), coupling)
    found = exact_energies(architecture, embedded(architecture, equal), coupling)
    # The moment table is a polynomial of degree 15 here (1e-6); everything else is the same sums.
    np.testing.assert_allclose(found, expected, rtol=2e-6 if coupling == "strong" else 1e-12)


def test_explicit_loops_give_the_same_without_finite_width_and_with_normalised_queries() -> None:
    architecture = small("plain relu", qk_norm=True)
    start = 0.09 * np.eye(6) + 0.01 * np.eye(6)
    net = Plain(24, numbers(architecture), start)
    for finite_width in (True, False):
        found = distinct(architecture, 6, finite_width=finite_width)
        np.testing.assert_allclose(found, profile(net, "strong", finite_width), rtol=2e-6)


def test_the_order_of_unlike_layers_matters() -> None:
    architecture = small("plain relu")
    swapped = replace(architecture, layers=architecture.layers[::-1])
    assert np.abs(distinct(architecture, 6) / distinct(swapped, 6) - 1).max() > 0.01


# --- limits ---------------------------------------------------------------------------------------------------


def test_strong_tends_to_first_order_as_the_logits_weaken() -> None:
    """The difference falls in proportion to v at infinite width: the slope is 1 +- .05 in log-log."""
    base = qwen2_like(depth=4)
    differences, variances = [], []
    for factor in (0.25, 0.125, 0.0625):
        layer = base.layers[0]
        layer = layer.with_mixers(replace(layer.attention, query_key_std=0.02 * math.sqrt(factor)))
        architecture = replace(base, layers=(layer,) * 4)
        strong = distinct(architecture, 48, finite_width=False)
        first = distinct(architecture, 48, coupling="first-order")
        uniform = distinct(architecture, 48, coupling="uniform")
        # Relative to what the coupling adds at all, which is itself of order v.
        differences.append(np.abs(strong - first).max() / np.abs(first - uniform).max())
        variances.append(layer.attention.logit_variance(896))
    slope = np.polyfit(np.log(variances), np.log(differences), 1)[0]
    assert slope == pytest.approx(1, abs=0.05)
    assert differences[-1] < 1e-3


def test_the_finite_width_term_falls_as_one_over_width() -> None:
    differences, widths = [], [256, 1024, 4096]
    for width in widths:
        std = 0.02 * math.sqrt(896 / width)
        architecture = decoder(
            family="qwen2", width=width, depth=4, heads=width // 64, kv_heads=1, head_dim=64,
            ffn=round(5.43 * width), std=std, embedding_std=0.02,
        )
        ratio = distinct(architecture, 48) / distinct(architecture, 48, finite_width=False)
        differences.append(np.abs(ratio - 1).max())
    assert np.polyfit(np.log(widths), np.log(differences), 1)[0] == pytest.approx(-1, abs=0.05)


def elementary(values: list[float], r: int) -> float:
    """Elementary symmetric polynomial, by its generating product."""
    return float(np.polynomial.polynomial.polyfromroots([-1 / v for v in values])[r] * math.prod(values))


def test_constant_norms_give_the_path_sum() -> None:
    r"""With one norm for all positions and no feed-forward, \(\sum_r e_r(g^2) [(M^r)_{L,j}]^2\).

    A huge epsilon makes every norm sqrt(epsilon), so the squared gains are exactly kappa^2 / epsilon.
    """
    length, epsilon = 20, 1e12
    base = decoder(
        family="toy", width=32, depth=3, heads=4, kv_heads=4, head_dim=8, ffn=8, std=1.0, epsilon=epsilon,
    )
    layers, gains = [], []
    for share in (0.3, 1.1, 0.7):
        layer = base.layers[0]
        output = math.sqrt(share * epsilon / (32 * 4 * 8))
        layers.append(
            layer.with_mixers(
                replace(layer.attention, output_std=output), replace(layer.feed_forward, output_std=0.0)
            )
        )
        gains.append(share)
    found = distinct(replace(base, layers=tuple(layers)), length, coupling="uniform")
    mean = np.tril(np.ones((length, length))) / np.arange(1, length + 1)[:, None]
    expected = sum(elementary(gains, r) * np.linalg.matrix_power(mean, r)[-1] ** 2 for r in range(4))
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_no_repeats_and_a_repeat_probability_of_zero_are_the_same() -> None:
    architecture = qwen2_like(depth=3)
    ids = np.random.default_rng(0).permutation(40)
    same = exact_energies(architecture, embedded(architecture, (ids[:, None] == ids).astype(float)))
    np.testing.assert_array_equal(same, distinct(architecture, 40))


def test_logits_without_variance_attend_uniformly() -> None:
    base = qwen2_like(depth=2)
    layer = base.layers[0].with_mixers(replace(base.layers[0].attention, query_key_std=0.0))
    architecture = replace(base, layers=(layer, layer))
    np.testing.assert_array_equal(distinct(architecture, 16), distinct(architecture, 16, coupling="uniform"))


# --- memory and refusals --------------------------------------------------------------------------------------


def test_a_short_tape_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = distinct(gpt2_like(depth=3), 40)
    monkeypatch.setattr(birth, "FULL_TAPE", 0)
    np.testing.assert_array_equal(distinct(gpt2_like(depth=3), 40), kept)


def test_what_does_not_fit_is_refused_before_it_is_allocated() -> None:
    with pytest.raises(InvalidInput, match=r"length must keep 24 exact layers below 16 GiB \(this takes 131\), got"):
        birth.check_exact_memory(20_000, 24)
    birth.check_exact_memory(2_048, 24)


def test_an_unknown_kernel_or_coupling_is_refused() -> None:
    class Banded:
        pass

    base = qwen2_like(depth=1)
    group = replace(base.layers[0].attention.groups[0], kernel=Banded())  # type: ignore[arg-type]
    layer = base.layers[0].with_mixers(replace(base.layers[0].attention, groups=(group,)))
    with pytest.raises(NotApplicable, match="kernel Banded"):
        distinct(replace(base, layers=(layer,)), 8)
    with pytest.raises(InvalidInput, match="Did you mean 'strong'"):
        distinct(base, 8, coupling="stronk")
