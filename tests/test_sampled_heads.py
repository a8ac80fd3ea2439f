"""Drawn heads: the law of their logits, what they share, and their softmax under masks, sinks and soft-capping."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from catenary.architecture import Alibi, Causal, Chunk, Gate, HeadGroup, Kernel, Prefix, Rotary, Sink, Window
from catenary.errors import NotApplicable
from catenary.theory.attention.moments import softmax_moments
from catenary.theory.positions.kernels import operator
from catenary.theory.sampled.heads import HeadLaw
from catenary.theory.sampled.scores import HeadPass
from small_attention import WIDTH, attention, draw, tokens


@pytest.mark.parametrize("dims", [0, 4, 8])
def test_covariance_of_the_logits(dims: int) -> None:
    """v X_ik X_jl times RoPE's mean cosine of the relative distance, over 3,000 heads."""
    rotary = Rotary(100.0, dims) if dims else None
    x, count, v = tokens(4), 3000, 1.7
    z = np.array([head.logits.ravel() for head in draw(attention(count, v=v, rotary=rotary), x)])
    found = z.T @ z / count
    i, j = np.divmod(np.arange(16), 4)
    distance = (i[:, None] - i) - (j[:, None] - j)
    angles = 100.0 ** (-np.arange(0, dims, 2) / dims) if dims else np.empty(0)
    cosine = (1 - dims / 8) + np.cos(distance[..., None] * angles).sum(-1) * 2 / 8
    expected = v * x[i[:, None], i] * x[j[:, None], j] * cosine
    # A product of Gaussian channels has a kurtosis of its own: 2.5 times v / sqrt(N) covers four standard errors.
    assert np.abs(found - expected).max() < 4 * 2.5 * v / count**0.5
    assert np.abs(expected - v * x[i[:, None], i] * x[j[:, None], j]).max() > 0.3 or not dims


def test_qk_norm_fixes_the_variance_of_a_logit() -> None:
    held = attention(2000, qk_norm=True, v=30.0)
    heads = draw(held, 5.0 * tokens(4))
    assert np.mean([head.logits**2 for head in heads]) == pytest.approx(1.0, abs=0.1)
    assert np.allclose(np.mean(heads[0].query.vectors ** 2, axis=1), 1)


def test_heads_of_one_group_share_keys() -> None:
    heads = draw(attention(6, 2), tokens(5))
    keys = [head.key.vectors for head in heads]
    assert all(keys[k] is keys[0] for k in (1, 2))
    assert all(keys[k] is keys[3] for k in (4, 5))
    assert not np.allclose(keys[0], keys[3])
    assert len({head.query.vectors.tobytes() for head in heads}) == 6


def test_a_seed_is_a_draw() -> None:
    x, held = tokens(5), attention(2)
    first, again, other = (draw(held, x, seed) for seed in (3, 3, 4))
    assert all(np.array_equal(a.attention, b.attention) for a, b in zip(first, again, strict=True))
    assert not np.allclose(first[0].attention, other[0].attention)


def test_equal_tokens_are_equal_keys() -> None:
    (head,) = draw(attention(v=4.0), tokens(6))
    assert head.logits[:, 1] == pytest.approx(head.logits[:, 5], abs=1e-3)


@pytest.mark.parametrize("kernel", [Causal(), Window(3), Chunk(3), Alibi(0.4), Prefix(3)])
def test_without_logits_attention_is_the_mean_kernel(kernel: Kernel) -> None:
    (head,) = draw(replace(attention(v=0.0), groups=(HeadGroup(1, kernel),)), tokens(7))
    assert np.allclose(head.attention, operator(kernel, 7).dense(), atol=1e-15)


@pytest.mark.parametrize("cap", [None, 0.8])
@pytest.mark.parametrize("sink", [None, Sink(0.4)])
def test_softmax_by_hand(cap: float | None, sink: Sink | None) -> None:
    (head,) = draw(attention(v=2.0, softcap=cap, sink=sink), tokens(6))
    for i in range(6):
        z = head.logits[i, : i + 1]
        capped = z if cap is None else cap * np.tanh(z / cap)
        weights = np.exp(capped) / (np.exp(capped).sum() + (0 if sink is None else np.exp(0.4)))
        assert np.allclose(head.attention[i, : i + 1], weights, rtol=1e-13)
        assert not head.attention[i, i + 1 :].any()
        slope = weights if cap is None else weights / np.cosh(z / cap) ** 2
        assert np.allclose(head.slope[i, : i + 1], slope, rtol=1e-12)


def test_sinks_scatter_over_heads() -> None:
    held = attention(2000, sink=Sink(0.5, 1.0), v=0.0)
    left = np.array([head.attention[0, 0] for head in draw(held, np.eye(2))])
    logits = np.log(1 / left - 1)
    assert (logits.mean(), logits.std()) == (pytest.approx(0.5, abs=0.06), pytest.approx(1.0, abs=0.05))


@pytest.mark.parametrize("v", [0.36, 2.7])
def test_distinct_tokens_have_the_moments_of_a_softmax(v: float) -> None:
    """Value path n m_2 and key path v n kappa, over heads so wide that their logits are Gaussian."""
    n, heads, dim = 8, 400, 256
    held = attention(heads, head_dim=dim, v=v)
    end = np.zeros((n, n))
    end[-1, -1] = 1.0
    value, scores = [], []
    for head in draw(held, np.eye(n)):
        passed = HeadPass.over(head, np.eye(n))
        value.append(passed.full[-1, -1])
        through = passed.backward(end)
        scores.append(np.trace(through) - np.sum(head.attention[-1] ** 2))
    moments = softmax_moments(np.array([n]), np.array([v]))
    spread = np.std(value) / heads**0.5
    assert np.mean(value) == pytest.approx(n * moments.second[0, 0], abs=4 * spread)
    # Keys and queries have the same coefficient: v kappa for each of n keys, and n times that at the query.
    spread = np.std(scores) / heads**0.5
    expected = 2 * v * n * moments.key[0, 0]
    assert np.mean(scores) == pytest.approx(expected, abs=4 * spread + expected / dim)


def test_refusals() -> None:
    with pytest.raises(NotApplicable, match="not one with a gate"):
        HeadLaw(attention(gate=Gate(0.1)), WIDTH, 4)
    held = replace(attention(), rotary=Rotary(100.0, 8))
    assert (HeadLaw(held, WIDTH, 4).turned, HeadLaw(held, WIDTH, 4, rotary=False).turned) == (8, 0)
