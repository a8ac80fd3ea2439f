"""Attention's mixer: against sums over pairs of keys, exact softmaxes of drawn heads, and drawn matrices."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from catenary.architecture import (
    Alibi,
    Attention,
    Causal,
    Chunk,
    Gate,
    HeadGroup,
    Kernel,
    Latent,
    Prefix,
    Sink,
    Window,
)
from catenary.errors import NotApplicable
from catenary.theory.attention.mixer import attention_mixer
from catenary.theory.attention.scores import Scores
from catenary.theory.attention.sinks import Damped
from catenary.theory.birth import singles
from catenary.theory.positions.kernels import operator
from catenary.theory.positions.pairs import Half, Pairs, Singles
from catenary.theory.sampled.attention import SampledAttention
from catenary.theory.sampled.heads import HeadLaw
from oracles.attention import drawn, first_order, first_order_backward

WIDTH = 128
KERNELS = (Causal(), Window(5), Chunk(6), Prefix(4), Alibi(0.3))


def attention(*kernels: Kernel, variance: float = 1.0, heads: int = 1, head_dim: int = 32) -> Attention:
    """``heads`` per kernel, with this logit variance at width ``WIDTH`` and unit gain."""
    std = math.sqrt(math.sqrt(variance) / WIDTH)
    size = heads * len(kernels)
    gain = WIDTH * size * head_dim
    groups = tuple(HeadGroup(heads, kernel) for kernel in kernels)
    return Attention(groups, size, head_dim, head_dim**-0.5, False, std, 1.0, gain**-0.5)


def covariance(length: int, common: float, sizes: np.ndarray | None = None) -> np.ndarray:
    """Tokens that share a part of size 0 to ``common`` each, of unit variance or of the given ones."""
    shared = np.sqrt(common) * np.random.default_rng(0).uniform(0.5, 1, length)
    matrix = np.outer(shared, shared)
    np.fill_diagonal(matrix, 1)
    return matrix if sizes is None else matrix * np.sqrt(np.outer(sizes, sizes))


def law(heads: Attention, x: np.ndarray, gradient: np.ndarray, coupling: str = "strong", *, finite_width: bool = False,
        normalised: bool = True) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Covariances forward and backward."""
    mixer = attention_mixer(heads, WIDTH, singles(len(x)), coupling, finite_width, normalised)
    outcome = mixer.forward(pairs(x))
    added = outcome.added.matrix.copy()
    np.testing.assert_allclose(added.diagonal(), outcome.added.same)
    return added, outcome.passed.backward(pairs(gradient)).matrix


def pairs(matrix: np.ndarray) -> Pairs:
    return Pairs(matrix.copy(), matrix.diagonal().copy())


def gradients(length: int) -> np.ndarray:
    return np.full((length, length), 0.3) + np.diag(np.linspace(0.5, 1, length))


# --- first order: every term is the sum that defines it ---------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("inputs", ["unit", "raw", "own norm"])
def test_first_order_is_the_sum_over_pairs_of_keys(kernel: Kernel, inputs: str) -> None:
    length, variance = 9, 0.7
    sizes = None if inputs == "unit" else np.linspace(0.4, 1.6, length)
    x, d = covariance(length, 0.5, sizes), gradients(length)
    heads = replace(attention(kernel, variance=variance), qk_norm=inputs == "own norm")
    if heads.qk_norm:
        heads = replace(heads, query_scale=math.sqrt(variance / heads.head_dim))
    forward, backward = law(heads, x, d, "first-order", normalised=inputs == "unit")
    scale = 1 / np.sqrt(x.diagonal()) if heads.qk_norm else np.ones(length)
    keys = x * np.outer(scale, scale)
    mean = operator(kernel, length).dense()
    out, _ = first_order(mean, keys, x, variance)
    np.testing.assert_allclose(forward, out, rtol=1e-12)
    # Only what passes through queries and keys passes through QK-norm: it is what the scale multiplies.
    plain = first_order_backward(mean, keys, x, 0.0, d)
    values = first_order_backward(mean, keys, np.zeros_like(x), variance, d) - plain
    scores = first_order_backward(mean, keys, x, variance, d) - plain - values
    expected = plain + values + scores * np.outer(scale, scale)
    np.testing.assert_allclose(backward, expected, rtol=1e-12)


def test_first_order_with_a_sink() -> None:
    length, variance, sink = 8, 0.6, 0.4
    x, d = covariance(length, 0.5), gradients(length)
    heads = replace(attention(Window(4), variance=variance), sink=Sink(sink))
    forward, backward = law(heads, x, d, "first-order")
    # At v -> 0 a row of n keys keeps n/(n + e^s); the mixer takes the mean over the drawn logits instead.
    mean = operator(Window(4), length).dense()
    kept = np.sqrt(forward[0, 0] / (1 + variance * (1 - np.sqrt(1 / 4)) ** 2))
    assert 0.3 < kept < 0.5
    weak = replace(attention(Window(4), variance=1e-4), sink=Sink(sink))
    forward, backward = law(weak, x, d, "first-order")
    counts = np.minimum(np.arange(1, length + 1), 4)
    damped = mean * (counts / (counts + np.exp(sink)))[:, None]
    out, _ = first_order(damped, x, x, 1e-4)
    np.testing.assert_allclose(forward, out, rtol=1e-4)
    np.testing.assert_allclose(backward, first_order_backward(damped, x, x, 1e-4, d), rtol=1e-4)


def test_damped_averages_are_those_of_the_damped_matrix() -> None:
    rng = np.random.default_rng(1)
    kept, x, b = rng.uniform(0.3, 1, 7), rng.standard_normal((7, 7)), rng.standard_normal((7, 7))
    x = x + x.T
    damped = Damped(Singles(operator(Window(3), 7)), kept)
    a = kept[:, None] * operator(Window(3), 7).dense()
    mean, adjoint = damped.average(pairs(x)), damped.adjoint(pairs(x))
    np.testing.assert_allclose(mean.half.matrix, x @ a.T, atol=1e-12)
    np.testing.assert_allclose(mean.full.matrix, a @ x @ a.T, atol=1e-12)
    np.testing.assert_allclose(adjoint.half.matrix, a.T @ x, atol=1e-12)
    np.testing.assert_allclose(adjoint.full.matrix, a.T @ x @ a, atol=1e-12)
    centred = damped.average_centred(pairs(x), Half(b)).matrix
    np.testing.assert_allclose(centred, a @ x @ a.T - a @ b - (a @ b).T, atol=1e-12)
    back = damped.adjoint_centred(pairs(x), Half(b)).matrix
    np.testing.assert_allclose(back, a.T @ x @ a - b @ a - (b @ a).T, atol=1e-12)


def test_head_groups_are_averaged_by_their_share() -> None:
    x, d = covariance(8, 0.3), gradients(8)
    one, other = (law(attention(kernel), x, d) for kernel in (Causal(), Window(3)))
    both = replace(attention(Causal(), Window(3)), groups=(HeadGroup(1), HeadGroup(3, Window(3))))
    both = replace(both, output_std=both.output_std / math.sqrt(2))
    for found, first, second in zip(law(both, x, d), one, other, strict=True):
        np.testing.assert_allclose(found, 0.25 * first + 0.75 * second, rtol=1e-12)


# --- any variance: exact softmaxes of drawn heads ---------------------------------------------------------------

WORDS = {
    "plain": {},
    "sink": {"sink": Sink(0.0, 0.02)},
    "scattered sink": {"sink": Sink(1.0, 1.0)},
    "cap": {"softcap": 1.5},
    "cap and sink": {"softcap": 2.0, "sink": Sink(0.5)},
    "qk-norm": {"qk_norm": True},
}
BANDS = ((0, 1), (1, 4), (4, 12), (12, 28), (28, 31), (31, 32))


def errors(found: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """log10 of the ratio of mean diagonals over bands of positions."""
    a, b = found.diagonal(), expected.diagonal()
    return np.array([np.log10(a[slice(*band)].mean() / b[slice(*band)].mean()) for band in BANDS])


def sampled(heads: Attention, x: np.ndarray, gradient: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    many = replace(
        heads, groups=tuple(replace(group, heads=count) for group in heads.groups), kv_heads=count * len(heads.groups)
    )
    outcome = SampledAttention(HeadLaw(many, WIDTH, len(x), rotary=False), 1.0, (0,)).forward(pairs(x))
    return outcome.added.matrix, outcome.passed.backward(pairs(gradient)).matrix


CASES = [
    *[("plain", kernel, common) for kernel in (Causal(), Window(6), Chunk(10), Prefix(8)) for common in (0.02, 0.4)],
    *[(words, kernel, 0.02) for words in WORDS if words != "plain" for kernel in (Causal(), Window(6))],
    ("sink", Causal(), 0.4),
    ("cap", Causal(), 0.4),
]


@pytest.mark.parametrize(("words", "kernel", "common"), CASES, ids=str)
def test_equal_weights_at_strong_logits(words: str, kernel: Kernel, common: float) -> None:
    """Within .03 of the energy with one standard error of about .015 from 240 heads; the first order errs by .1."""
    x, d = covariance(32, common), gradients(32)
    heads = replace(attention(kernel, variance=1.5), **WORDS[words])
    if heads.qk_norm:
        heads = replace(heads, query_scale=math.sqrt(1.5 / heads.head_dim))
    for found, expected in zip(law(heads, x, d), sampled(heads, x, d, 100 if heads.qk_norm else 240), strict=True):
        error = errors(found, expected)
        assert np.abs(np.median(error)) < 0.03
        assert np.abs(error).max() < 0.06


def test_what_tokens_share_moves_them_against_a_sink() -> None:
    """Correlation .9 over 5 tokens: beside a sink the common part of the logits counts."""
    x, d = np.full((5, 5), 0.9) + 0.1 * np.eye(5), gradients(5)
    heads = replace(attention(Causal(), variance=2.0), sink=Sink(0.0))
    (forward, backward), (out, back) = law(heads, x, d), sampled(heads, x, d, 1500)
    np.testing.assert_allclose(forward.diagonal(), out.diagonal(), rtol=0.04)
    np.testing.assert_allclose(backward.diagonal(), back.diagonal(), rtol=0.15)


@pytest.mark.parametrize("slope", [0.5, 0.25, 0.06])
def test_alibi_by_its_participation_number(slope: float) -> None:
    """Unequal weights: at v = 1 the energy is within .08, .1 for the last query (half of that for the norm)."""
    x, d = covariance(32, 0.02), gradients(32)
    heads = attention(Alibi(slope), variance=1.0)
    for found, expected in zip(law(heads, x, d), sampled(heads, x, d, 300), strict=True):
        error = errors(found, expected)
        assert np.abs(np.median(error)) < 0.03
        assert np.abs(error[:-1]).max() < 0.08
        assert np.abs(error[-1]) < 0.11


# --- gates, latents and inputs without a norm: drawn matrices with autograd -------------------------------------


DRAWN = {
    "plain": {},
    "gate per channel": {"gate": Gate(0.09)},
    "gate per head": {"gate": Gate(0.09, "head")},
    "qk-norm": {"qk_norm": True},
    "latent keys and values": {"latent": Latent(32, None, 24, 8, 24), "query_scale": 0.3},
    "latent queries": {"latent": Latent(32, 48, 24, 8, 24), "query_scale": 0.6},
}


@pytest.mark.parametrize(
    ("words", "level"), [*[(words, None) for words in DRAWN], ("plain", 2.0), ("qk-norm", 2.0), ("gate per head", 2.0)]
)
def test_drawn_matrices(words: str, level: float | None) -> None:
    """300 networks of width 128: standard error .01 of the energy and O(1/d) from finite width."""
    length = 16
    x, d = covariance(length, 0.3, None if level is None else np.full(length, level)), gradients(length)
    heads = replace(attention(Causal(), heads=4), **DRAWN[words])
    if heads.latent is not None:
        heads = replace(heads, value_std=heads.query_key_std)
    found = law(heads, x, d, finite_width=True, normalised=level is None)
    expected = drawn(heads, WIDTH, x, d, 300, level is None)
    for mine, theirs in zip(found, expected, strict=True):
        ratio = np.log10(mine.diagonal() / theirs.diagonal())
        assert abs(np.log10(np.trace(mine) / np.trace(theirs))) < 0.02
        assert np.abs(ratio).max() < 0.09


def test_the_overlap_of_unrelated_tokens_in_a_latent() -> None:
    """E[K_jl X_jl], K what scores see (latent and rotary channels), X the values' covariance (latent only)."""
    rng, width, rank, tokens = np.random.default_rng(0), 96, 24, 1200
    heads = replace(attention(Causal()), latent=Latent(rank, None, 24, 8, 24))
    variances = np.array([rank * 24, width * 8])
    x = rng.standard_normal((tokens, width))
    x /= np.sqrt((x**2).mean(1, keepdims=True))
    low = x @ rng.standard_normal((width, rank))
    low /= np.sqrt((low**2).mean(1, keepdims=True))
    values, plain = low @ low.T / rank, x @ x.T / width
    keys = (variances[0] * values + variances[1] * plain) / variances.sum()
    off = ~np.eye(tokens, dtype=bool)
    expected = (keys * values)[off].mean()
    assert Scores.of(heads, width, finite_width=True).overlap == pytest.approx(expected, rel=0.05)
    assert Scores.of(heads, width, finite_width=False).overlap == 0


def test_a_weak_gate_is_one_half() -> None:
    x, d = covariance(8, 0.3), gradients(8)
    plain, gated = (law(replace(attention(Causal()), gate=g), x, d) for g in (None, Gate(1e-9)))
    for free, half in zip(plain, gated, strict=True):
        np.testing.assert_allclose(half, free / 4, rtol=1e-6)


# --- what is not covered is refused -----------------------------------------------------------------------------


def test_words_without_a_law_are_refused() -> None:
    capped = replace(attention(Causal()), softcap=2.0)
    with pytest.raises(NotApplicable, match="only QK-norm normalises"):
        attention_mixer(replace(capped, qk_norm=True), WIDTH, singles(4), normalised=False)
    x = covariance(4, 0.1, np.full(4, 3.0))
    with pytest.raises(NotApplicable, match="no norm in front"):
        attention_mixer(capped, WIDTH, singles(4), normalised=False).forward(pairs(x))
