"""Depth to kinetic time: printed values, Laguerre polynomials, dense stacks, the coefficient of 1/H; birth."""

from __future__ import annotations

from dataclasses import replace

import mpmath
import numpy as np
import pytest

from builders import gpt2_like, qwen2_like
from catenary.architecture import Alibi, Architecture, Attention, Gate, HeadGroup, Window, pre_norm, sandwich
from catenary.errors import InvalidInput, NotApplicable
from catenary.kinetic import cluster_response, graphon, response, source_at
from catenary.kinetic.depth.birth import birth_kinetics
from catenary.kinetic.depth.stacks import Stack, bridge, depth_coefficient, stack_limit, stack_response, warp
from catenary.theory.cesaro.first_moment import path_counts
from catenary.theory.cesaro.separable import exponential_warp, separable_density

# lambda = 0, c = 2, at x = 0.1 and 0.5, from sums of 50 digits; by depth, None the limit.
PRINTED: dict[tuple[Stack, int | None], tuple[float, float]] = {
    ("convex", 24): (1.64737609145421352, 0.516804373661831755),
    ("additive", 24): (10.7874909426765252, 3.64005568563991008),
    ("convex", 96): (1.61563521267363646, 0.509415271718679388),
    ("additive", 96): (11.5817882386196924, 3.7193613849086391),
    ("convex", None): (1.60537685681896282, 0.507004741206454684),
    ("additive", None): (11.8622196549602745, 3.74628647519830993),
}


@pytest.mark.parametrize(("key", "expected"), PRINTED.items())
def test_printed_values(key: tuple[Stack, int | None], expected: tuple[float, float]) -> None:
    stack, layers = key
    if layers is None:
        found = stack_limit([0.1, 0.5], c=2.0, lam=0.0, stack=stack)
    else:
        found = stack_response([0.1, 0.5], c=2.0, lam=0.0, layers=layers, stack=stack)
    assert found == pytest.approx(expected, rel=1e-13)


def test_laguerre_polynomials_and_the_cesaro_density() -> None:
    at = np.array([1e-6, 0.05, 0.3, 0.9, 1.0])
    for lam, c, layers in ((1.3, 0.4, 1), (2.0, 1.7, 24), (8.0, 6.0, 100)):
        y = -np.log(warp(at, lam=lam))
        with mpmath.workdps(40):
            polynomial = [float(mpmath.laguerre(layers - 1, 1, -c / layers * mpmath.mpf(float(v)))) for v in y]
        expected = np.asarray(graphon(1.0, at, lam=lam)) * c / layers * polynomial
        assert stack_response(at, c=c, lam=lam, layers=layers) == pytest.approx(expected, rel=1e-12)
        convex = separable_density(at, layers, c / layers, exponential_warp(lam))
        assert stack_response(at, c=c, lam=lam, layers=layers, stack="convex") == pytest.approx(convex, rel=1e-12)


def test_dense_stacks_of_finitely_many_tokens_tend_to_it() -> None:
    """(1 + c/H A)^H with A the attention of N tokens, each seeing itself: first order in 1/N."""
    c, lam, layers, at = 1.2, 2.0, 6, 0.5
    errors = []
    for tokens in (64, 128, 256, 512):
        j = np.arange(1, tokens + 1)
        weights = np.tril(np.exp(-lam * (j[:, None] - j) / tokens))
        stack = np.eye(tokens) + c / layers * weights / weights.sum(axis=1, keepdims=True)
        row = np.linalg.matrix_power(stack, layers)[-1]
        errors.append(tokens * row[int(at * tokens) - 1] - float(stack_response(at, c=c, lam=lam, layers=layers)))
    assert np.log2(np.abs(np.divide(errors[:-1], errors[1:]))) == pytest.approx(np.ones(3), abs=0.05)


def test_lambda_is_a_warp_of_position() -> None:
    at = np.array([1e-3, 0.2, 0.7, 1.0])
    for lam in (0.0, 1e-8, 2.0, 50.0):
        u = np.asarray(warp(at, lam=lam))
        assert source_at(-np.log(u), lam=lam) == pytest.approx(at, rel=1e-9)
        plain = stack_response(u, c=2.0, lam=0.0, layers=24) * graphon(1.0, at, lam=lam)
        assert stack_response(at, c=2.0, lam=lam, layers=24) == pytest.approx(plain, rel=1e-12)
        middle = at[1:-1]
        step = 1e-6
        slope = (np.asarray(warp(middle + step, lam=lam)) - np.asarray(warp(middle - step, lam=lam))) / (2 * step)
        assert slope == pytest.approx(graphon(1.0, middle, lam=lam), rel=1e-7)


def test_limits_are_the_kinetic_responses() -> None:
    at = np.array([1e-4, 0.3, 0.99])
    assert stack_limit(at, c=2.4, lam=3.0) == pytest.approx(response(0.8, 1.0, at, a=3.0, lam=3.0), rel=1e-13)
    cluster = cluster_response(0.5, 1.0, at, beta=1.0, lam=3.0)
    assert stack_limit(at, c=0.5 * np.e, lam=3.0, stack="convex") == pytest.approx(cluster, rel=1e-13)


@pytest.mark.parametrize("lam", [0.0, 2.0, 9.0])
@pytest.mark.parametrize("stack", ["additive", "convex"])
def test_the_coefficient_of_the_first_order_in_depth(stack: Stack, lam: float) -> None:
    seen = bridge(c=1.7, lam=lam, layers=(500, 1000, 2000, 4000), stack=stack)
    assert seen.fitted_coefficient == pytest.approx(seen.coefficient, abs=1e-4)
    assert seen.order == pytest.approx(1.0, abs=0.02)
    worst = int(np.abs(seen.error[-1]).argmax())
    assert "falls as 1/H" in seen.words()
    assert f"the exact one {seen.coefficient[worst]:.4g}" in seen.words()


def test_printed_coefficients() -> None:
    rows = {
        (0.0, 1000): (0.573582, -1.366861),
        (2.0, 100_000): (0.45536118, -2.17955771),
        (2.0, 24): (0.46288, -2.06419),
    }
    for (lam, layers), expected in rows.items():
        for stack, value in zip(("convex", "additive"), expected, strict=True):
            found = stack_response(0.2, c=1.7, lam=lam, layers=layers, stack=stack)
            error = found / stack_limit(0.2, c=1.7, lam=lam, stack=stack) - 1
            assert layers * error == pytest.approx(value, rel=1e-5)
    assert depth_coefficient(0.2, c=1.7, lam=0.0, stack="convex") == pytest.approx(0.57318, abs=5e-6)
    assert depth_coefficient(0.2, c=1.7, lam=0.0) == pytest.approx(-1.36802, abs=5e-6)


def with_slopes(architecture: Architecture, slopes: tuple[float, ...]) -> Architecture:
    layer = architecture.layers[0]
    groups = tuple(HeadGroup(layer.attention.heads // len(slopes), Alibi(slope)) for slope in slopes)
    changed = layer.with_mixers(replace(layer.attention, groups=groups))
    return replace(architecture, layers=(changed,) * architecture.depth, position="alibi")


def test_decays_of_an_architecture() -> None:
    plain = qwen2_like(width=64, depth=4, heads=4, kv_heads=4, head_dim=16, ffn=128)
    assert birth_kinetics(plain, 512).lam == 0.0
    one = birth_kinetics(with_slopes(plain, (0.01,)), 512)
    assert one.lam == pytest.approx(5.12)
    two = birth_kinetics(with_slopes(plain, (0.5, 0.01)), 1000)
    assert [(head.share, head.lam) for head in two.heads] == [
        (pytest.approx(0.5), pytest.approx(10.0)), (pytest.approx(0.5), pytest.approx(500.0))
    ]
    assert "lambda = 10 to 500" in two.words()
    with pytest.raises(NotApplicable, match="2 decays from 10 to 500: choose one; heads lists them with their shares"):
        _ = two.lam


def test_first_gain_by_hand_and_the_bound_on_poisson() -> None:
    network = gpt2_like(width=128, depth=6)
    seen = birth_kinetics(network, 400)
    attention, embedding = network.layers[0].attention, network.embedding
    stream = embedding.std**2 + embedding.position_std**2 + network.layers[0].norm.epsilon
    assert seen.gains[0] == pytest.approx(np.sqrt(attention.gain(128) / stream), rel=1e-12)
    assert seen.gains.size == 6
    assert (np.diff(seen.gains) < 0).all()  # the stream grows
    counts = path_counts(6, seen.mixing)
    poisson = [float(mpmath.exp(-seen.c) * mpmath.mpf(seen.c) ** r / mpmath.factorial(r)) for r in range(7)]
    variation = 0.5 * (np.abs(counts - poisson).sum() + 1 - sum(poisson))
    assert variation < seen.distance
    assert variation > 0.01


def test_scales_and_norms_behind_a_branch_enter_its_gain() -> None:
    plain = qwen2_like(width=64, depth=2, heads=4, kv_heads=4, head_dim=16, ffn=128)
    layer = plain.layers[0]
    attention, norm = layer.attention, layer.norm
    first = birth_kinetics(plain, 256).gains[0]
    halved = replace(plain, layers=(pre_norm(attention, layer.feed_forward, norm, scale=0.5),))
    assert birth_kinetics(halved, 256).gains[0] == pytest.approx(first / 2, rel=1e-12)
    # Behind its norm the mean of 256 unrelated tokens has unit variance, not kappa^2/256.
    normed = replace(plain, layers=(sandwich(attention, layer.feed_forward, norm),))
    added = attention.gain(64) * (1 / 256) / (1 + norm.epsilon / plain.embedding.std**2)
    expected = first / np.sqrt(added + norm.epsilon)
    assert birth_kinetics(normed, 256).gains[0] == pytest.approx(expected, rel=1e-6)


def test_gains_of_a_real_untrained_network() -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    network = qwen2_like(width=256, depth=3, heads=4, kv_heads=4, head_dim=64, ffn=512)
    config = transformers.Qwen2Config(
        vocab_size=600, hidden_size=256, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=4,
        intermediate_size=512, initializer_range=0.02, rms_norm_eps=1e-6,
    )  # fmt: skip
    squares = []
    for seed in range(4):
        torch.manual_seed(seed)
        model = transformers.Qwen2Model(config).eval()
        with torch.no_grad():
            states = model(torch.randperm(600)[None, :256], output_hidden_states=True).hidden_states
        squares.append([float((state[0, -64:] ** 2).mean()) for state in states[:3]])
    measured = np.sqrt(network.layers[0].attention.gain(256) / np.mean(squares, axis=0))
    assert birth_kinetics(network, 256).gains == pytest.approx(measured, rel=0.06)


def test_refusals() -> None:
    with pytest.raises(InvalidInput, match="c must be below the number of layers"):
        stack_response(0.5, c=6.0, lam=1.0, layers=6, stack="convex")
    with pytest.raises(InvalidInput, match="unknown stack 'convx'"):
        stack_limit(0.5, c=1.0, lam=1.0, stack="convx")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="layers must be at least two rising depths"):
        bridge(c=1.0, lam=0.0, layers=(8, 4))
    with pytest.raises(InvalidInput, match="lam must be >= 0"):
        warp(0.5, lam=-1.0)
    with pytest.raises(NotApplicable, match="below 1e308"):
        stack_response(1e-300, c=1e6, lam=0.0, layers=1000)
    plain = qwen2_like(width=64, depth=2, heads=4, kv_heads=4, head_dim=16, ffn=128)
    with pytest.raises(InvalidInput, match="length must be a whole number"):
        birth_kinetics(plain, 1)
    windowed = _with(plain, groups=(HeadGroup(4, Window(64)),))
    with pytest.raises(NotApplicable, match="exponentials over the whole prompt"):
        birth_kinetics(windowed, 512)
    assert birth_kinetics(windowed, 64).lam == 0.0
    with pytest.raises(NotApplicable, match="gated attention"):
        birth_kinetics(_with(plain, gate=Gate(0.02)), 512)


@pytest.mark.parametrize("layers", [5, (5,), (6, 5), [[6], [12]]])
def test_depths_that_are_no_rising_row_are_refused(layers: object) -> None:
    with pytest.raises(InvalidInput, match="layers must be at least two rising depths"):
        bridge(c=1.0, lam=0.0, layers=layers)  # type: ignore[arg-type]


def _with(architecture: Architecture, **fields: object) -> Architecture:
    layer = architecture.layers[0]
    attention: Attention = replace(layer.attention, **fields)  # type: ignore[arg-type]
    return replace(architecture, layers=(pre_norm(attention, layer.feed_forward, layer.norm),) * architecture.depth)


@pytest.mark.parametrize("stack", ["additive", "convex"])
def test_steep_decays_have_a_coefficient_and_differences_only_where_there_is_a_response(stack: Stack) -> None:
    """y = 800: far beyond where e^-y, the position that uniform attention would see, is a number."""
    c, y = mpmath.mpf("1.7"), mpmath.mpf(800)
    position = float(source_at(800.0, lam=900.0))
    z = 2 * mpmath.sqrt(c * y)
    first, second, third = (
        (y / c) ** (mpmath.mpf(m - 1) / 2) * mpmath.besseli(abs(m - 1), z) for m in range(3)
    )
    convex = -(c**2) / 2 * (third - 2 * second + first) / first
    expected = float(convex if stack == "convex" else -c * y / 2)
    assert depth_coefficient(position, c=1.7, lam=900.0, stack=stack) == pytest.approx(expected, rel=1e-12)
    with pytest.raises(NotApplicable, match=r"sigma0 = 0.05 is below 1e-308 at lam = 1000"):
        bridge(c=1.7, lam=1000.0, stack=stack)
